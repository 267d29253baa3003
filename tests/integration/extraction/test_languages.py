"""Chats in German and French go the product's own way from a turn to what is kept. Both chats are made up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from memory_app import MemoryApp, NewTurn, Role, Scope
from memory_app.bench.stage import drain
from memory_app.memories import lookup
from memory_app.memories.lookup import MemoryFilter
from memory_app.records.records import Memory
from memory_app.runtime import Runtime

SCOPE = Scope("nova", "mira", "chat")
START = datetime(2026, 6, 10, 9, tzinfo=UTC)

GERMAN = (
    "Hallo, ich heiße Mira Brandt und wohne in Jena.",
    "Schön, dich kennenzulernen, Mira!",
    "Ich arbeite bei Zeiss als Optikerin, kennst du die Firma?",
    "Ja, Zeiss baut Objektive.",
    "Mein Mann Jonas ist allergisch gegen Katzen, und ich bin gegen Haselnüsse allergisch.",
    "Dann passt ein Hund besser.",
    "Wir haben einen Hund, er ist sieben. Wie alt wird ein Mischling?",
    "Meist zwölf bis fünfzehn Jahre.",
    "Wenn ich in München wohne, brauche ich kein Auto, oder?",
    "In München fährt die U-Bahn.",
    "Meine Schwester sagt, ich bin zu streng.",
    "Das klingt nach einem Streit.",
    "Ich mag keinen Koriander. Gibt es Currys ohne?",
    "Viele, zum Beispiel Korma.",
    "In meinem Roman heißt der Held Ragnar und ist Pirat.",
    "Guter Name.",
    "Wir sind jetzt nach Weimar gezogen.",
    "Weimar ist schön.",
    "Ich rauche nicht mehr, seit Mai schon.",
    "Danke dir!",
)
FRENCH = (
    "Bonjour, je m'appelle Mira Caron et j'habite à Lille.",
    "Enchanté, Mira !",
    "Je suis infirmière depuis 2018. Tu as des idées de repas rapides ?",
    "Bien sûr.",
    "Je ne mange pas de viande et je suis allergique aux arachides.",
    "C'est noté.",
    "Mon mari Luc adore le cyclisme.",
    "Quel type de vélo ?",
    "Si j'habite à Nice un jour, je prendrai un bateau.",
    "Belle idée.",
    "Ma chatte s'appelle Praline, elle miaule la nuit.",
    "Elle a peut-être faim.",
    "Ma mère dit que je travaille trop.",
    "Repose-toi.",
    "Je déteste les endives, tu les remplaces par quoi ?",
    "Par des poireaux.",
    "Imagine que je suis pirate et que je m'appelle Barbe.",
    "Ohé !",
    "On a déménagé à Nantes aujourd'hui.",
    "Merci beaucoup !",
)


def kept(runtime: Runtime, tenant: int, lines: tuple[str, ...]) -> list[Memory]:
    """What is current after the chat, in which user and assistant take turns and the last word is the user's."""
    app = MemoryApp(runtime, tenant)
    roles = [
        Role.USER if place % 2 == 0 or place == len(lines) - 1 else Role.ASSISTANT
        for place in range(len(lines))
    ]
    turns = [
        NewTurn(role, line, at=START + timedelta(minutes=place))
        for place, (role, line) in enumerate(zip(roles, lines, strict=True))
    ]
    app.record_all(SCOPE, turns)
    drain(app)
    rows = lookup.list_memories(runtime, tenant, SCOPE, filters=MemoryFilter(limit=100))
    return [row for row in rows if row.kind != "query"]


def texts(rows: list[Memory]) -> set[str]:
    return {row.text for row in rows if row.valid_until is None}


def test_a_chat_in_german_leaves_what_was_said_and_nothing_else(runtime: Runtime, tenant: int) -> None:
    assert texts(kept(runtime, tenant, GERMAN)) == {
        "mira heißt Mira Brandt.",
        "mira wohnt in Weimar.",
        "mira arbeitet bei Zeiss.",
        "mira arbeitet als Optikerin.",
        "mira nennt als Mann: Jonas.",
        "Jonas ist allergisch gegen Katzen.",
        "mira ist allergisch gegen Haselnüsse.",
        "mira hat Hund als Haustier.",
        "mira mag nicht: Koriander.",
        "mira raucht nicht mehr (seit 2026-05).",
    }


def test_a_chat_in_french_leaves_what_was_said_and_nothing_else(runtime: Runtime, tenant: int) -> None:
    assert texts(kept(runtime, tenant, FRENCH)) == {
        "mira s'appelle Mira Caron.",
        "mira habite à Nantes.",
        "mira travaille comme infirmière (depuis 2018).",
        "mira ne mange pas: viande.",
        "mira est allergique à arachides.",
        "mira a pour mari: Luc.",
        "Luc aime cyclisme.",
        "mira a chatte Praline.",
        "Praline est: chatte.",
        "mira n'aime pas endives.",
    }


def test_a_new_home_ends_the_one_before_in_both_languages(runtime: Runtime, tenant: int) -> None:
    rows = kept(runtime, tenant, GERMAN)
    (home,) = [row for row in rows if row.relation == "lives_in" and row.valid_until is None]
    assert home.object == "Weimar"
    app = MemoryApp(runtime, tenant)
    app.record(
        SCOPE,
        "Maintenant j'habite à Lyon, et la ville me plaît beaucoup.",
        at=START + timedelta(hours=1),
    )
    drain(app)
    after = lookup.list_memories(runtime, tenant, SCOPE, filters=MemoryFilter(limit=100))
    homes = {row.object for row in after if row.relation == "lives_in" and row.valid_until is None}
    assert homes == {"Lyon"}


def test_a_context_window_shows_what_is_known(runtime: Runtime, tenant: int) -> None:
    kept(runtime, tenant, GERMAN)
    window = MemoryApp(runtime, tenant).context(SCOPE, "Was darf ich nicht essen?")
    assert "mira ist allergisch gegen Haselnüsse." in window.text
