"""What sort of thing a text says, and which sort a query is after."""

from __future__ import annotations

import pytest

from memory_app.language.sentence_type import NONE, Trait, addressing, expected_traits, traits_of
from memory_app.language.text import prose


@pytest.mark.parametrize(
    "said",
    [
        "Always include the version when I ask about libraries.",
        "Thanks. Please always answer in German.",
        "Please never call me by my last name.",
        "Make sure to always cite the page.",
        "From now on, use metric units.",
        "Whenever I ask about food, mention allergens.",
        "Don't ever suggest meat.",
    ],
)
def test_only_the_user_instructs_how_to_do_things_from_now_on(said: str) -> None:
    assert Trait.STANDING in traits_of(said, by_user=True)
    assert Trait.STANDING not in traits_of(said, by_user=False)


@pytest.mark.parametrize(
    "said",
    [
        "Always happy to help!",
        "Never give up, you can do it.",
        "I never saw this coming.",
        "They always remind me of home.",
        "I'll always remember that day.",
        "Keep going forward with it.",
        "Never mind.",
        "",
    ],
)
def test_cheering_and_telling_is_no_instruction(said: str) -> None:
    assert Trait.STANDING not in traits_of(said, by_user=True)


def test_an_instruction_within_code_is_none() -> None:
    said = "Look at this:\n```\n# Always include a header.\nrun()\n```"
    assert Trait.STANDING not in traits_of(said, by_user=True)


@pytest.mark.parametrize(
    ("said", "trait"),
    [
        ("I prefer tea.", Trait.PREFERENCE),
        ("I'd rather walk.", Trait.PREFERENCE),
        ("I’d really prefer a window seat", Trait.PREFERENCE),
        ("We have three dogs.", Trait.QUANTITY),
        ("It costs 12 euros.", Trait.QUANTITY),
        ("I went there last week.", Trait.MOMENT),
        ("See you on Friday", Trait.MOMENT),
        ("That was in March", Trait.MOMENT),
        ("本当ですか？", Trait.ASKS),
    ],
)
def test_a_trait_is_told_from_the_words(said: str, trait: Trait) -> None:
    assert traits_of(said, by_user=True) == trait


def test_a_plain_statement_has_no_trait() -> None:
    assert traits_of("My sister is a nurse.", by_user=True) == NONE


def test_a_number_far_down_a_long_text_says_nothing_about_it() -> None:
    assert Trait.QUANTITY not in traits_of("word " * 400 + "42", by_user=True)


@pytest.mark.parametrize(
    ("query", "traits"),
    [
        ("How many dogs does Ann have?", Trait.QUANTITY),
        ("What is the average price?", Trait.QUANTITY),
        ("When did we meet?", Trait.MOMENT),
        ("How many days did it take?", Trait.QUANTITY | Trait.MOMENT),
        ("What would you suggest for dinner?", Trait.PREFERENCE),
        ("Can you recommend a library?", Trait.PREFERENCE),
        ("Where do I live?", NONE),
    ],
)
def test_a_query_wants_what_would_answer_it(query: str, traits: Trait) -> None:
    assert expected_traits(query) == traits


@pytest.mark.parametrize("piece", ["\n", " ", "from now on ", "to ", "last a", "```", "?", "always "])
def test_a_huge_text_of_one_piece_is_told_as_quickly_as_any(piece: str) -> None:
    # looked through once for each piece, it would outlast the time limit of a test
    assert Trait.STANDING not in traits_of(piece * (2_000_000 // len(piece)), by_user=True)


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("no code", "no code"),
        ("before ```x = 1``` after", "before   after"),
        ("never closed ```x = 1", "never closed  "),
        ("```only code```", "```only code```"),
        ("``` ```", "``` ```"),
    ],
)
def test_prose_is_what_is_said_around_code(said: str, left: str) -> None:
    assert prose(said) == left


def test_praise_speaks_of_the_other_and_news_of_oneself() -> None:
    praise = addressing("Wow, you look great. Your garden must make you proud!")
    assert 0.5 < praise < 1
    assert praise > addressing("You know, I sold my boat.") > addressing("I sold my boat.") == 0.0
    assert addressing("") == 0.0
