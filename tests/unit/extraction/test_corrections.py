"""What a turn takes back of what was said before, in each language that has a pack. All sentences are made up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo

import pytest

from memory_app.extraction.rules import extract
from memory_app.records.records import Role, Statement, Turn

NOON = datetime(2026, 6, 10, 12, tzinfo=UTC)


def said(*texts: str) -> list[tuple[Statement, ...]]:
    """The statements of each turn of a user, of which each is read with those before it."""
    turns = [
        Turn(
            uuid5(UUID(int=0), f"{n} {text}"),
            "s",
            n,
            Role.USER,
            "user",
            text,
            NOON + timedelta(minutes=n),
        )
        for n, text in enumerate(texts, 1)
    ]
    return [
        extract(
            [turn],
            turns[: turn.seq - 1],
            user_label="Mira",
            agent_label="Nova",
            time_zone=ZoneInfo("UTC"),
        ).statements
        for turn in turns
    ]


def corrections(*texts: str) -> list[tuple[str | None, str | None, str | None]]:
    """Relation, object and what it takes back, of all that the last of the turns states."""
    return [(each.relation, each.object, each.corrects) for each in said(*texts)[-1]]


WORK = {
    "en": ("I work at Acme as a tester.", "Sorry, I meant to say I work at Apex, not Acme."),
    "de": ("Ich arbeite bei Acme.", "Nein, warte, ich arbeite bei Apex, nicht bei Acme."),
    "fr": ("Je travaille chez Acme.", "Non, attends, je travaille chez Apex, pas chez Acme."),
    "es": ("Trabajo en Acme.", "No, espera, trabajo en Apex, no en Acme."),
    "pt": ("Trabalho na Acme.", "Não, espera, trabalho na Apex, não na Acme."),
    "it": ("Lavoro alla Acme.", "No, aspetta, lavoro alla Apex, non alla Acme."),
    "nl": ("Ik werk bij Acme.", "Nee, wacht, ik werk bij Apex, niet bij Acme."),
}
SHORT = {
    "en": ("I work at Acme.", "No wait, I meant Apex, not Acme."),
    "de": ("Ich arbeite bei Acme.", "Ich meinte Apex, nicht Acme."),
    "fr": ("Je travaille chez Acme.", "Je voulais dire Apex, pas Acme."),
    "es": ("Trabajo en Acme.", "Quise decir Apex, no Acme."),
    "pt": ("Trabalho na Acme.", "Queria dizer Apex, não Acme."),
    "it": ("Lavoro alla Acme.", "Volevo dire Apex, non Acme."),
    "nl": ("Ik werk bij Acme.", "Ik bedoelde Apex, niet Acme."),
}
HOME = {
    "en": ("I live in Ghent.", "Actually it's Aalst, not Ghent."),
    "de": ("Ich wohne in Gent.", "Eigentlich ist es Aalst, nicht Gent."),
    "fr": ("J'habite à Gand.", "En fait c'est Aalst, pas Gand."),
    "es": ("Vivo en Gante.", "En realidad es Aalst, no Gante."),
    "pt": ("Moro em Gante.", "Na verdade é Aalst, não Gante."),
    "it": ("Abito a Gand.", "In realtà è Aalst, non Gand."),
    "nl": ("Ik woon in Gent.", "Eigenlijk is het Aalst, niet Gent."),
}


@pytest.mark.parametrize("turns", [*WORK.values(), *SHORT.values()], ids=lambda turns: turns[1][:40])
def test_a_correction_takes_the_wrong_claim_back(turns: tuple[str, str]) -> None:
    assert corrections(*turns) == [("works_at", "Apex", "Acme")]


@pytest.mark.parametrize("turns", HOME.values(), ids=lambda turns: turns[1][:40])
def test_a_correction_without_a_verb_of_its_own_is_read(turns: tuple[str, str]) -> None:
    ((relation, right, wrong),) = corrections(*turns)

    assert (relation, right) == ("lives_in", "Aalst")
    assert wrong in turns[0]


def test_a_correction_may_say_the_preposition_again() -> None:
    turns = ("Wir sind letzten Monat nach Jena gezogen.", "Nein warte, nach Weimar, nicht nach Jena.")
    assert corrections(*turns) == [("lives_in", "Weimar", "Jena")]


def test_what_is_announced_takes_back_what_was_said_just_before() -> None:
    assert corrections("Ich wohne in Köln.", "Moment, ich wohne in Bonn.") == [("lives_in", "Bonn", "Köln")]
    assert corrections("Ich wohne in Köln.", "Sorry. Ich wohne in Bonn.") == [("lives_in", "Bonn", "Köln")]


def test_the_sentence_is_that_of_the_wrong_claim_with_the_right_object() -> None:
    (statement,) = said("Ich arbeite seit 2019 bei Acme.", "Ich meinte Apex, nicht Acme.")[-1]

    assert statement.text == "Mira arbeitet bei Apex (seit 2019)."


def test_what_a_turn_takes_back_itself_is_not_stated() -> None:
    assert corrections("Ich arbeite bei Acme. Nein, warte: Apex.") == [("works_at", "Apex", "Acme")]
    # The last word of a turn that contradicts itself is meant.
    assert corrections("Ich arbeite bei Acme. Nein, warte: Apex. Sorry, Acme, nicht Apex.") == [
        ("works_at", "Acme", "Apex")
    ]


@pytest.mark.parametrize(
    "turns",
    [
        ("Ich arbeite bei Acme.", "Apex, nicht Debeka."),
        ("Ich arbeite bei Acme.", "Ich meinte nicht dich."),
        ("Ich arbeite bei Acme.", "Ich meinte 35, nicht 34."),
        ("Wie geht es dir heute?", "Ich meinte Apex, nicht Acme."),
        ("Ich bin 34 Jahre alt.", "Warte, was hast du gesagt?"),
    ],
)
def test_nothing_is_taken_back_that_was_not_said(turns: tuple[str, str]) -> None:
    assert corrections(*turns) == []


@pytest.mark.parametrize(
    "text",
    [
        "Ich bin doch nicht gegen Erdnüsse allergisch.",
        "Ich wohne in Köln, nicht mehr in Bonn.",
        "Ich mag Tee, nicht so sehr Kaffee.",
    ],
)
def test_a_negation_that_corrects_nothing_takes_nothing_back(text: str) -> None:
    assert [correction for *_, correction in corrections(text)] == [None]


GONE = {
    "en": "I don't have a girlfriend any more.",
    "de": "Ich habe keine Freundin mehr.",
    "fr": "Je n'ai plus de copine.",
    "es": "Ya no tengo novia.",
    "pt": "Já não tenho namorada.",
    "it": "Non ho più la ragazza.",
    "nl": "Ik heb geen vriendin meer.",
}


@pytest.mark.parametrize("text", GONE.values(), ids=GONE)
def test_a_couple_that_is_over_is_told_without_a_name(text: str) -> None:
    assert corrections(text) == [("no_longer_with", "girlfriend", None)]
