"""Which known entities a text names, and which it only seems to name."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from memory_app.memories.entity_names import WORDS_LIMIT, KnownEntity, first_words, named_in
from memory_app.memories.mentions import ties_of
from memory_app.memories.people import about_user, display_names
from memory_app.records.records import Mention, Role, Statement, Turn

PETRA = KnownEntity("person:petra_novak", "person", "Petra Novak", ("Peta",))
BERG = KnownEntity("person:anna_berg", "person", "Anna Berg")
LIND = KnownEntity("person:anna_lind", "person", "Anna Lind")
WILL = KnownEntity("person:will", "person", "Will")
CHESS = KnownEntity("concept:chess", "concept", "chess")
YORK = KnownEntity("place:new_york", "place", "New York")
REX = KnownEntity("thing:rex", "thing", "Rex")
HANAKO = KnownEntity("person:花子", "person", "花子")
NOW = datetime(2026, 11, 29, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Petra Novak is afraid of geese.", [PETRA]),
        ("I saw petra novak today", [PETRA]),
        ("Petra's geese are loud.", [PETRA]),
        ("Peta called.", [PETRA]),
        ("We met Petra, and it was fun.", [PETRA]),
        ("PETRA NOVAK won.", [PETRA]),
        ("Petra Novak’s brother plays Chess in New York.", [PETRA, CHESS, YORK]),
        ("I met Will at the station.", [WILL]),
        ("Rex barked at Anna Berg.", [REX, BERG]),
        ("花子は東京に住んでいます。", [HANAKO]),
    ],
)
def test_a_known_entity_is_found_by_each_of_its_names(text: str, named: list[KnownEntity]) -> None:
    known = (PETRA, BERG, WILL, CHESS, YORK, REX, HANAKO)

    assert named_in(text, known) == tuple(named)


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("I saw Petra's geese.", {"i", "saw", "petra", "geese"}),
        ("Jean-Luc of the U.S. Army", {"jean_luc", "of", "the", "us", "army"}),
        ("C++ and c#", {"c", "cplusplus", "and", "csharp"}),
        ("花子は", {"花子は", "花子", "子は"}),
        ("Zoë, ZOË and zoë", {"zoë", "and"}),
        ("?! ́", set()),
        ("", set()),
    ],
)
def test_names_are_looked_up_by_the_words_they_may_begin_with(text: str, begins: set[str]) -> None:
    assert set(first_words(text)) == begins


def test_a_text_without_end_asks_for_a_bounded_number_of_names() -> None:
    assert len(first_words("花子は東京に住んでいます" * 10_000)) <= WORDS_LIMIT
    assert len(first_words(" ".join(map(str, range(20_000))))) == WORDS_LIMIT


@pytest.mark.parametrize(
    "text",
    [
        "Anna is here.",
        "Anna Nowak is here.",
        "Will you come?",
        "She will come.",
        "i will come",
        "We moved a rexine chair.",
        "A petrak is no name.",
        "New books from York.",
        "",
        "?!",
    ],
)
def test_what_may_be_another_or_an_ordinary_word_names_nobody(text: str) -> None:
    assert named_in(text, (BERG, LIND, WILL, REX, PETRA, YORK)) == ()


def test_a_full_name_is_not_taken_for_another_of_the_same_first_name() -> None:
    assert named_in("My cousin Anna Lind lives in Bern.", (BERG, LIND)) == (LIND,)
    assert named_in("My cousin Anna Lind lives in Bern.", (BERG,)) == ()
    assert named_in("Anna lives in Bern.", (BERG,)) == (BERG,)


def test_a_mention_joins_the_entity_that_is_known_by_that_name() -> None:
    ties = ties_of("peta sang", [Mention("thing", "Petra Novak"), Mention("person", "peta")], (PETRA,), NOW)

    assert ties == {"person:petra_novak": ("person", "Petra Novak", NOW)}


def test_a_mention_of_another_type_stays_a_thing_of_its_own() -> None:
    paris = KnownEntity("person:paris", "person", "Paris")

    assert ties_of("Paris is old.", [Mention("place", "Paris")], (paris,), NOW).keys() == {"place:paris"}


def test_a_namesake_of_the_user_is_not_the_user() -> None:
    user = KnownEntity("person:anna", "person", "Anna")

    ties = ties_of("Anna (friend) lives in Rome.", [Mention("person", "Anna (friend)")], (user,), NOW)

    assert ties.keys() == {"person:anna_friend"}


def turn(speaker: str, role: Role = Role.USER) -> Turn:
    return Turn(UUID(int=1), "chat", 1, role, speaker, "Hello there.", NOW)


def test_display_names_are_those_that_sign_the_turns_of_the_user() -> None:
    turns = [
        turn("Mira"),
        turn("Mirabel"),
        turn("user"),
        turn("u-7"),
        turn("Ada", Role.ASSISTANT),
        turn("!!"),
    ]

    assert display_names(turns, "u-7") == {"mira": "Mira", "mirabel": "Mirabel"}
    assert display_names(turns, "mira") == {"mirabel": "Mirabel", "u_7": "u-7"}


@pytest.mark.parametrize(
    ("subject", "resolved"),
    [
        ("Mirabel", "u-7"),
        ("MIRABEL", "u-7"),
        ("Mirabel's sister", "u-7's sister"),
        ("Mirabella", "Mirabella"),
        ("Tom", "Tom"),
    ],
)
def test_a_display_name_as_a_subject_means_the_user(subject: str, resolved: str) -> None:
    statement = Statement("fact", "They live in Trier.", subject=subject, relation="lives_in", object="Trier")

    about = about_user(statement, user="u-7", names=["Mirabel"])

    assert (about.subject, about.text) == (resolved, statement.text)
    assert about.mentions == ((Mention("person", "u-7"),) if resolved == "u-7" else ())
