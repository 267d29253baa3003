"""What keeps two similar texts apart, and what does not."""

from __future__ import annotations

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.memories.guards import (
    DATE,
    FAMILY_MEMBER,
    MODALITY,
    NAME,
    NEGATION,
    NUMBER,
    ORDER,
    QUALIFIER,
    SUBSTITUTION,
    TENSE,
    TIME,
    conflicting,
    exchanged,
)

APART = [
    (NUMBER, "She runs 5 km", "She runs 10 km"),
    (NUMBER, "Anna has two dogs", "Anna has three dogs"),
    (NUMBER, "Anna has two dogs", "Anna has 3 dogs"),
    (NUMBER, "Anna has 2 dogs and 3 cats", "Anna has 3 dogs and 2 cats"),
    (NUMBER, "Growth was 5%", "Growth was 5 dollars"),
    (NUMBER, "The trail is 5 km long", "The trail is 5 miles long"),
    (NUMBER, "paid $5", "paid €5"),
    (NUMBER, "1,000 users", "10,000 users"),
    (NUMBER, "uses Python 3.11", "uses Python 3.12"),
    (NUMBER, "uses version 3.1", "uses version 3.10"),
    (NUMBER, "owns an iPhone13", "owns an iPhone14"),
    (NUMBER, "works on v2 of the API", "works on v3 of the API"),
    (NUMBER, "it was -5 degrees", "it was 5 degrees"),
    (NUMBER, "twenty five people came", "twenty six people came"),
    (NUMBER, "twice a day", "three times a day"),
    (NUMBER, "half an hour", "an hour"),
    (NUMBER, "Season II was good", "Season III was good"),
    (NUMBER, "三只猫", "两只猫"),
    (DATE, "They meet on Monday", "They meet on Tuesday"),
    (DATE, "They meet on Monday", "They meet"),
    (DATE, "born 15 March 1990", "born 16 March 1990"),
    (DATE, "born on 1990-03-15", "born on 1990-03-16"),
    (DATE, "went to Rome in May", "went to Rome in June"),
    (DATE, "moves last week", "moves next week"),
    (DATE, "llega el 3 de mayo", "llega el 3 de junio"),
    (TIME, "wakes at 7:30 am", "wakes at 7:30 pm"),
    (TIME, "wakes at 7am", "wakes at 8am"),
    (NEGATION, "likes tea", "does not like tea"),
    (NEGATION, "likes tea", "doesn't like tea"),
    (NEGATION, "likes tea", "doesnt like tea"),
    (NEGATION, "Tom can swim", "Tom cannot swim"),
    (NEGATION, "drinks coffee", "no longer drinks coffee"),
    (NEGATION, "drinks coffee", "stopped drinking coffee"),
    (NEGATION, "smoked", "never smoked"),
    (NEGATION, "tea with milk", "tea without milk"),
    (NEGATION, "doesn't like tea but likes coffee", "likes tea but doesn't like coffee"),
    (NEGATION, "Er mag Tee", "Er mag keinen Tee"),
    (NEGATION, "Elle boit du vin", "Elle ne boit pas de vin"),
    (NEGATION, "Come carne", "No come carne"),
    (NEGATION, "Она любит чай", "Она не любит чай"),
    (NEGATION, "他喜欢茶", "他不喜欢茶"),
    (NEGATION, "يحب القهوة", "لا يحب القهوة"),
    (NEGATION, "चाय पसंद है", "चाय पसंद नहीं है"),
    (FAMILY_MEMBER, "her mother is ill", "her father is ill"),
    (FAMILY_MEMBER, "Anna's mother lives in Rome", "Anna lives in Rome"),
    (MODALITY, "Anna plans to move to Rome", "Anna moves to Rome"),
    (QUALIFIER, "likes tea", "dislikes tea"),
    (QUALIFIER, "before lunch", "after lunch"),
    (QUALIFIER, "left knee", "right knee"),
    (QUALIFIER, "more sugar", "less sugar"),
    (QUALIFIER, "runs in the morning", "runs in the evening"),
    (QUALIFIER, "He likes tea", "She likes tea"),
    (QUALIFIER, "is happy", "is unhappy"),
    (QUALIFIER, "was reliable", "was unreliable"),
    (QUALIFIER, "All of them came", "Some of them came"),
    (TENSE, "Anna lives in Rome", "Anna lived in Rome"),
    (QUALIFIER, "Anna is a nurse", "Anna was a nurse"),
    (NAME, "Anna lives in Berlin", "Anna lives in Paris"),
    (NAME, "Она живёт в Москве", "Она живёт в Париже"),
    (NAME, "他住在北京", "他住在上海"),
    (NAME, "彼は猫が好き", "彼は犬が好き"),
    (ORDER, "She moved from Berlin to Paris", "She moved from Paris to Berlin"),
    (ORDER, "prefers tea over coffee", "prefers coffee over tea"),
    (ORDER, "Anna loves Bob", "Bob loves Anna"),
    (ORDER, "the dog bit the cat", "the cat bit the dog"),
    (ORDER, "likes tea and hates coffee", "likes coffee and hates tea"),
    (SUBSTITUTION, "i live in berlin", "i live in paris"),
    (SUBSTITUTION, "her favourite food is pizza", "her favourite food is sushi"),
    (SUBSTITUTION, "works out every day", "works out every week"),
]

TOGETHER = [
    ("Anna has two dogs", "Anna has 2 dogs"),
    ("two hundred users", "200 users"),
    ("twenty-five people", "25 people"),
    ("1,000 users", "1000 users"),
    ("10% off", "10 percent off"),
    ("$5", "5 dollars"),
    ("a 5km run", "a 5 kilometres run"),
    ("2 kids and 3 dogs", "two children and three dogs"),
    ("Season II", "Season 2"),
    ("born on 2024-03-15", "born on March 15, 2024"),
    ("born on the 15th of March 2024", "born on March 15, 2024"),
    ("wakes at 7:30 pm", "wakes at 19:30"),
    ("wakes at 7pm", "wakes at 7 p.m."),
    ("She doesn't like tea", "She does not like tea"),
    ("Loves hiking", "Enjoys hiking"),
    ("likes olives and cheese", "likes cheese and olives"),
    ("Anna likes olives", "Anna really likes olives a lot"),
    ("I live in Berlin", "Anna lives in Berlin"),
    ("User is allergic to peanuts", "User has a peanut allergy"),
    ("User enjoys hiking on weekends", "User loves hiking every weekend"),
    ("Anna adopted Rex from the shelter", "Anna adopted Rex from the shelter in Berlin"),
    ("Alice works as a software engineer at Acme", "Alice is a software engineer working at Acme"),
    ("The user works remotely from Lisbon", "The user is working remotely out of Lisbon"),
    ("We had a great conversation about jazz", "We had a wonderful conversation about jazz"),
    ("The user prefers concise answers", "The user prefers short answers"),
    ("Anna’s dog is called Rex", "Anna's dog is called Rex"),
]


@pytest.mark.parametrize(("reason", "one", "other"), APART)
def test_texts_that_differ_in_a_word_that_matters_are_kept_apart(reason: str, one: str, other: str) -> None:
    assert conflicting(one, other) == reason
    assert conflicting(other, one) == reason


@pytest.mark.parametrize(("one", "other"), TOGETHER)
def test_another_spelling_or_wording_of_the_same_is_no_conflict(one: str, other: str) -> None:
    assert conflicting(one, other) is None
    assert conflicting(other, one) is None


WORDS = re.findall(
    r"\S+", "Anna Bob likes not two 3 tea May 7:30 before mother lived 喜欢 никогда was from to , . I 5 %"
)
sentences = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)


@given(sentences | st.text(max_size=40), sentences | st.text(max_size=40))
def test_the_guard_is_symmetric(one: str, other: str) -> None:
    assert conflicting(one, other) == conflicting(other, one)


@given(sentences | st.text(max_size=80))
def test_a_text_never_conflicts_with_itself(text: str) -> None:
    assert conflicting(text, text) is None


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_different_figures_always_conflict(one: int, other: int) -> None:
    found = conflicting(f"Anna ran {one} metres", f"Anna ran {other} metres")

    assert (found == NUMBER) == (one != other)


@given(st.dates(), st.dates())
def test_different_days_always_conflict_in_whatever_spelling(one: date, other: date) -> None:
    found = conflicting(
        f"Anna was born on {one.isoformat()}", f"Anna was born on {other.strftime('%d %B')} {other.year:04}"
    )

    assert (found == DATE) == (one != other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Aiko stores steam engines in the attic.", "Aiko collects steam engines at the market."),
        ("Jonas sketches stone bridges in the harbour.", "Jonas sketches stone bridges under the bridge."),
    ],
)
def test_what_says_one_thing_in_place_of_another_is_exchanged(one: str, other: str) -> None:
    assert exchanged(one, other)
    assert exchanged(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Aiko stores steam engines in the attic.",
            "Aiko stores steam engines in the attic of her old house.",
        ),
        ("In the attic Aiko stores steam engines.", "Aiko stores steam engines in the attic."),
    ],
)
def test_what_holds_the_other_is_not_exchanged(one: str, other: str) -> None:
    assert not exchanged(one, other)
    assert not exchanged(other, one)
