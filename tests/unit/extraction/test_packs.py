"""What the language packs read, and what they must leave alone. All sentences are made up for these tests."""

from __future__ import annotations

import tomllib
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo

import pytest

from memory_app.extraction.rules import extract
from memory_app.extraction.rules.packs.fact import Fact
from memory_app.extraction.rules.packs.facts import read
from memory_app.extraction.rules.packs.pack import LANGUAGES, pack_of
from memory_app.extraction.rules.packs.turn_language import language_of
from memory_app.records.records import Extraction, Role, Statement, Turn

TODAY = date(2026, 6, 10)
NOON = datetime(2026, 6, 10, 12, tzinfo=UTC)


def facts(language: str, text: str) -> list[Fact]:
    pack = pack_of(language)
    assert pack is not None
    return list(read(pack, text, today=TODAY, is_left_out=lambda sentence: False))


def triples(language: str, text: str) -> set[tuple[str, str, str]]:
    """Whom it is about (name or kin, empty for the speaker), relation and object of each fact."""
    return {(fact.called or fact.kin or "", fact.relation, fact.object) for fact in facts(language, text)}


def turn(text: str, *, seq: int = 1, role: Role = Role.USER, at: datetime = NOON) -> Turn:
    return Turn(uuid5(UUID(int=0), f"{seq} {text[:80]}"), "s", seq, role, "user", text, at)


def extracted(*turns: Turn, earlier: tuple[Turn, ...] = ()) -> Extraction:
    return extract(turns, earlier, user_label="Mira", agent_label="Nova", time_zone=ZoneInfo("UTC"))


def only(text: str) -> Statement:
    (statement,) = extracted(turn(text)).statements
    return statement


SENTENCES = {
    path.stem: tomllib.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent / "pack_sentences").glob("*.toml"))
}


def test_each_pack_has_sentences() -> None:
    assert SENTENCES.keys() == LANGUAGES
    for sentences in SENTENCES.values():
        assert len(sentences["read"]) >= 15
        assert len(sentences["nothing"]) >= 12


@pytest.mark.parametrize(
    ("language", "case"),
    [(language, case) for language, table in SENTENCES.items() for case in table["read"]],
    ids=lambda value: value if isinstance(value, str) else value["text"][:40],
)
def test_a_sentence_is_read(language: str, case: dict[str, Any]) -> None:
    assert triples(language, case["text"]) == set(map(tuple, case["facts"]))


@pytest.mark.parametrize(
    ("language", "text"),
    [(language, text) for language, table in SENTENCES.items() for text in table["nothing"]],
    ids=lambda value: value[:40],
)
def test_a_sentence_gives_nothing(language: str, text: str) -> None:
    assert facts(language, text) == []


# --- what a fact becomes --------------------------------------------------------------------------------------


def test_the_text_is_in_the_language_of_the_turn_and_the_fact_is_not() -> None:
    statement = only("Ich wohne seit 2019 in Köln.")
    assert statement.text == "Mira wohnt in Köln (seit 2019)."
    assert (statement.subject, statement.relation, statement.object) == ("Mira", "lives_in", "Köln")
    assert statement.valid_from == datetime(2019, 1, 1, tzinfo=UTC)
    assert statement.importance == 7


def test_somebody_without_a_name_is_the_same_subject_in_every_language() -> None:
    german = only("Meine Mutter wohnt in Bremen.")
    french = only("Ma mère habite à Brême.")
    assert german.subject == french.subject == "Mira's mother"
    assert german.text == "Mutter von Mira wohnt in Bremen."


def test_a_date_that_lies_ahead_is_no_state_of_now() -> None:
    assert facts("de", "Ich wohne in zwei Wochen in Köln.") == []
    (plan,) = facts("de", "In zwei Wochen fliegen wir nach Lissabon.")
    assert (plan.relation, plan.object) == ("plans_to", "nach Lissabon fliegen")
    assert plan.when is not None
    assert plan.when.text == "2026-06-24"


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("Ich wohne seit drei Jahren in Köln.", date(2023, 1, 1)),
        ("Ich wohne seit Mai 2024 in Köln.", date(2024, 5, 1)),
        ("Seit gestern wohne ich in Köln.", date(2026, 6, 9)),
        ("Ich bin am 3. April 2021 nach Köln gezogen.", date(2021, 4, 3)),
        ("Ich bin vor zwei Monaten nach Köln gezogen.", date(2026, 4, 1)),
        ("Ich bin letztes Jahr nach Köln gezogen.", date(2025, 1, 1)),
        ("Ich bin im November nach Köln gezogen.", date(2025, 11, 1)),
    ],
)
def test_words_for_a_time_say_since_when(text: str, start: date) -> None:
    (fact,) = facts("de", text)
    assert fact.when is not None
    assert fact.when.start == start


def test_a_date_that_cannot_be_gives_nothing() -> None:
    assert facts("de", "Ich bin am 31. Februar nach Köln gezogen.") == []
    assert facts("de", "Mein Geburtstag ist der 31. Februar.") == []


@pytest.mark.parametrize(
    "text",
    [
        "I want to make my dreams come true.",
        "I hope to make my dreams a reality someday.",
        "My goal is to live life to the fullest.",
        "I believe in following my heart.",
        "I'm determined to never give up.",
    ],
)
def test_what_anybody_may_wish_says_nothing_of_somebody(text: str) -> None:
    assert extracted(turn(text)).statements == ()


def test_a_wish_with_content_is_kept_beside_slogans() -> None:
    assert only("I want to follow my dream of becoming a pilot.").relation == "wants_to"
    assert only("I work at Acme and I want to follow my heart.").object == "Acme"


# --- the language of a turn -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I moved to Lisbon last month and I love the light there.", "en"),
        ("Ich bin letzten Monat nach Lissabon gezogen.", "de"),
        ("J'ai déménagé à Lisbonne le mois dernier.", "fr"),
        ("Mieszkam w Krakowie od trzech lat i bardzo lubię to miasto.", "pl"),
        ('What does "Ich habe Angst vor Hunden" mean?', "en"),
        ("👍", "en"),
    ],
)
def test_the_language_of_a_turn_is_told(text: str, language: str) -> None:
    assert language_of(turn(text), ()) == language


def test_a_short_turn_is_read_in_the_language_of_its_session() -> None:
    before = turn("Ich suche ein gutes Rezept für einen Kuchen mit Äpfeln.", seq=1)
    assert language_of(turn("Bin 34.", seq=2), (before,)) == "de"
    (statement,) = extracted(turn("Bin 34.", seq=2), earlier=(before,)).statements
    assert (statement.relation, statement.object) == ("age", "34")


def test_a_language_without_a_pack_is_named_as_the_reason() -> None:
    polish = turn("Mieszkam w Krakowie od trzech lat i bardzo lubię to miasto.")
    result = extracted(polish)
    assert result.statements == ()
    assert result.reasons[polish.id] == "language not read by rules: pl"


@pytest.mark.parametrize(
    "text", ["Danke dir!", "Alles klar, super, danke", "D'accord, merci beaucoup", "Ja, genau"]
)
def test_words_of_thanks_are_an_acknowledgement_in_each_language(text: str) -> None:
    before = turn("Ich suche ein gutes Rezept für einen Kuchen mit Äpfeln.", seq=1)
    if "merci" in text:
        before = turn("Je cherche une bonne recette de gâteau aux pommes.", seq=1)
    reply = turn(text, seq=2)
    assert extracted(reply, earlier=(before,)).reasons[reply.id] == "acknowledgement"


# --- hostile input --------------------------------------------------------------------------------------------

RUNS = (
    "a",
    " ",
    '"',
    "'",
    "„",
    "«",
    "a ",
    "a, ",
    "a und ",
    "ich bin ",
    "mein ",
    "j'",
    "1",
    "1. ",
    "*",
    "(",
    "ich heiße A ",
)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_long_runs_of_anything_are_read_in_bounded_time(language: str) -> None:
    # Without bounds, patterns that backtrack would take longer than anybody waits.
    for run in RUNS:
        for length in (150, 390, 8_000, 100_000):
            facts(language, (run * length)[:length])


@pytest.mark.timeout(60)
def test_a_hundred_thousand_characters_of_an_unknown_script_state_nothing() -> None:
    long = turn("\U00011a0b\U00011a10 " * 33_000)
    assert extracted(long).statements == ()
