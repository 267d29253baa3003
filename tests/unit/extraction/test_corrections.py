"""What a turn takes back of what was said before, in each language that has a pack. All sentences are made up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo

import pytest

from memory_app.extraction.rules import extract
from memory_app.records.records import Role, Statement, Turn

NOON = datetime(2026, 6, 10, 12, tzinfo=UTC)
AGENT = "A: "


def said(*texts: str, known_people: Sequence[str] = ()) -> list[tuple[Statement, ...]]:
    """The statements of each turn of a user, of which each is read with those before it.

    What begins with `AGENT` is said by the assistant.
    """
    turns = [
        Turn(
            uuid5(UUID(int=0), f"{n} {text}"),
            "s",
            n,
            Role.ASSISTANT if text.startswith(AGENT) else Role.USER,
            "assistant" if text.startswith(AGENT) else "user",
            text.removeprefix(AGENT),
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
            known_people=known_people,
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


WITH_MORE = {
    "en": ("I work for Acme.", "sorry not acme, Apex, no idea why I typed that"),
    "de": ("Ich arbeite bei Acme.", "äh nein, nicht acme, bei Apex, bin noch müde"),
    "fr": ("Je travaille chez Acme.", "Pardon, Apex, pas Acme, je confonds toujours."),
    "es": ("Trabajo en Acme.", "perdón, quería decir Apex, el otro era el de antes"),
    "pt": ("Trabalho na Acme.", "ops, quis dizer Apex, maldito corretor"),
    "it": ("Lavoro alla Acme.", "il telefono fa danni: Apex, non Acme!"),
    "nl": ("Ik werk bij Acme.", "nee wacht ik bedoelde Apex, sorry"),
}


@pytest.mark.parametrize("turns", WITH_MORE.values(), ids=lambda turns: turns[1][:40])
def test_more_may_stand_behind_a_correction(turns: tuple[str, str]) -> None:
    assert corrections(*turns) == [("works_at", "Apex", "Acme")]


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (("im 45, what is normal", "46 actually, had a birthday last week"), ("age", "46", "45")),
        (("j'ai 36 ans, c'est normal ?", "37 en fait, j'oublie tout le temps"), ("age", "37", "36")),
        (("bin 1,78 m groß", "Korrektur: 1,87"), ("height", "1,87", "1,78")),
        (("My sister's birthday is 12 May.", "Wait, it's the 21st of May."), ("birthday", "05-21", "05-12")),
        (("i'm vegetarian", "correction: pescatarian, i do eat fish"), ("diet", "pescatarian", "vegetarian")),
    ],
)
def test_numbers_days_and_words_are_corrected_as_names_are(
    turns: tuple[str, str], expected: tuple[str, str, str]
) -> None:
    assert corrections(*turns) == [expected]


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (("Lavoro alla Banca del Lario.", "Scusa, Banca del Garda, non Lario."), "Banca del Garda"),
        (("Je joue du saxophone alto.", "Pardon, ténor, pas alto."), "saxophone ténor"),
    ],
)
def test_a_mistake_may_be_a_part_of_what_was_said(turns: tuple[str, str], expected: str) -> None:
    assert [right for _, right, _ in corrections(*turns)] == [expected]


def test_what_may_answer_a_question_has_to_be_announced() -> None:
    asked = ("I am 45 years old.", f"{AGENT}How many guests do you expect?")
    assert corrections(*asked, "46 actually") == []
    assert corrections(*asked, "Sorry, I meant 46, not 45.") == [("age", "46", "45")]


def test_what_grammar_reads_is_taken_back_too() -> None:
    assert corrections("I play the cello.", "I play the theremin, not the cello.") == [
        ("plays", "theremin", "cello")
    ]


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (
            ("My brother Amir lives in Doha.", "Sorry, Amir lives in Dubai."),
            ("Amir", "lives_in", "Dubai", "Doha"),
        ),
        (
            ("Mein Bruder Ismail ist Bäcker.", "Moment, Ismail ist Konditor."),
            ("Ismail", "job_title", "Konditor", "Bäcker"),
        ),
        (
            ("Ma sœur Inès habite à Metz.", "Pardon, Inès habite à Nancy."),
            ("Inès", "lives_in", "Nancy", "Metz"),
        ),
    ],
)
def test_somebody_who_was_named_is_known_by_that_name(
    turns: tuple[str, str], expected: tuple[str, str, str, str]
) -> None:
    told = [(each.subject, each.relation, each.object, each.corrects) for each in said(*turns)[-1]]
    assert told == [expected]


def test_people_of_earlier_sessions_are_known_by_their_names() -> None:
    text = "Amir moved on, and Amir works as a nurse."
    assert said("Amir works as a nurse.")[-1] == ()
    for words in (text, "Amir works as a nurse.", "amir works as a nurse"):
        ((statement,),) = said(words, known_people=["Amir"])
        assert (statement.subject, statement.relation, statement.object) == ("Amir", "job_title", "nurse")
        # Not what stands in for them in the pattern: a friend.
        assert "friend" not in statement.text


@pytest.mark.parametrize("before", [(), ("I have a dog called Rose.",), ("My aunt Rose is a nurse.",)])
def test_who_died_is_known_by_name(before: tuple[str, ...]) -> None:
    known = () if before else ("Rose",)
    (statement,) = said(*before, "Rose died yesterday.", known_people=known)[-1]

    assert (statement.relation, statement.object) == ("no_longer_has", "Rose")
    assert statement.text.startswith("Mira has lost Rose")


@pytest.mark.parametrize(
    "text",
    [
        "Amir said he lives in Dubai.",
        "Does Amir live in Dubai?",
        "If Amir lives in Dubai, I will visit him.",
        "Maybe Amir lives in Dubai.",
        "Mira lives in Dubai.",
    ],
)
def test_a_known_name_alone_makes_nothing_certain(text: str) -> None:
    assert said(text, known_people=["Amir", "Mira"])[-1] == ()


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
