"""Cleaning, sameness, entity keys and search terms: the rules, in their words."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.errors import InvalidInput, TooLarge
from memory_app.language.text import (
    TERM_IDS,
    asks,
    canonical_key,
    clean,
    indexed_text,
    is_first_person,
    normalise,
    slug,
    term_id,
    terms,
)
from memory_app.records.entity import entity_key

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=200)
"""Every code point, lone surrogates and NUL included."""


# --- cleaning -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["a\x00b", "a\ud800b", "a\x07b", "a\udfffb", "a\x1bb", "a\x7fb"])
def test_what_cannot_be_stored_is_removed_and_said(bad: str) -> None:
    assert clean(bad) == ("ab", True)


def test_line_ends_tabs_and_ordinary_text_are_left_alone() -> None:
    said = "Dear all,\r\n\tsee you – 明日 🎉"
    assert clean(said) == (said, False)


def test_letters_are_composed() -> None:
    assert clean("Jose\u0301") == ("José", False)


@given(ANY_TEXT)
def test_a_cleaned_text_can_be_stored_and_stays_as_it_is(text: str) -> None:
    cleaned, _ = clean(text)
    assert "\x00" not in cleaned
    cleaned.encode("utf-8")
    assert clean(cleaned) == (cleaned, False)


# --- sameness -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I like tea", "i LIKE  tea."),
        ("I like tea!", "I like tea…"),
        ("It’s “fine”", 'it\'s "fine"'),
        ("Straße", "STRASSE"),
        ("ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
        ("Jose\u0301", "JOSÉ"),
        ("お茶が好き。", "お茶が好き"),
        ("line\nbreak", "line break"),
        ("soft\u00adhyphen", "softhyphen"),
    ],
)
def test_case_space_width_and_the_end_do_not_make_a_statement_another(one: str, other: str) -> None:
    assert canonical_key(one) == canonical_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I have 2 cats", "I have 3 cats"),
        ("I like tea", "I don't like tea"),
        ("it is -5 outside", "it is 5 outside"),
        ("version 1.0", "version 10"),
        ("люблю чай", "люблю кофе"),
        ("I write C", "I write C++"),
        ("ресторан", "ресторана"),
        ("???", "!!!"),
    ],
)
def test_numbers_negations_and_letters_of_any_script_do(one: str, other: str) -> None:
    assert canonical_key(one) != canonical_key(other)


@given(ANY_TEXT)
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)
    assert len(canonical_key(text)) == 32


# --- entity keys --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("John Doe", "john_doe"),
        ("  John   DOE ", "john_doe"),
        ("O'Brien, Jean-Luc", "obrien_jean_luc"),
        ("U.S.A.", "usa"),
        ("José Núñez", "josé_núñez"),
        ("東京", "東京"),
        ("हिन्दी", "हिन्दी"),
        ("Лев Толстой", "лев_толстой"),
        ("C", "c"),
        ("C++", "cplusplus"),
        ("C#", "csharp"),
        ("snake_case", "snake_case"),
        ("3M", "3m"),
    ],
)
def test_a_slug_keeps_letters_and_digits_of_every_script(label: str, expected: str) -> None:
    assert slug(label) == expected


@given(ANY_TEXT)
def test_a_slug_is_never_empty_and_is_its_own_slug(text: str) -> None:
    try:
        made = slug(text)
    except InvalidInput:
        assert not any(c.isalnum() for c in unicodedata.normalize("NFKC", text))
        return
    assert made
    assert " " not in made
    assert slug(made) == made


def test_an_entity_key_is_type_and_slug() -> None:
    assert entity_key("person", "John Doe") == "person:john_doe"


@pytest.mark.parametrize("label", ["", "  ", "!?…", "\u0301"])
def test_a_label_without_letter_or_digit_is_refused(label: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        entity_key("person", label)
    assert refused.value.field == "label"


def test_an_unknown_type_and_an_overlong_label_are_refused() -> None:
    with pytest.raises(InvalidInput) as refused:
        entity_key("animal", "Rex")
    assert refused.value.field == "type"
    with pytest.raises(TooLarge):
        entity_key("person", "x" * 201)


# --- search terms -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("She was painting sunsets", "paint a sunset"),
        ("Caroline's dogs", "Caroline dog"),
        ("it cost 1,200 dollars", "1200"),
        ("pi is 3.14", "3.14"),
        ("upgraded to v2.3.1", "2.3.1"),
        ("on the 8th", "8"),
        ("due 2024-03-05", "March 5 2024"),
        ("Café", "cafe"),
        ("call get_user_name()", "get_user_name"),
        ("call get_user_name()", "user"),
        ("class HttpServer", "httpserver"),
        ("class HttpServer", "server"),
        ("mail ann.lee@example.org", "ann.lee@example.org"),
        ("mail ann.lee@example.org", "Lee"),
        ("ask @ann_lee", "ann_lee"),
        ("written in C++", "c++"),
        ("we won 🎉🎉", "🎉"),
        ("私は東京に住んでいます", "東京"),
        ("ฉันชอบแมว", "แมว"),
        ("저는 서울에 살아요", "서울"),
        ("книги на столе", "книга"),
        ("الكِتَاب", "الكتاب"),
        ("שָׁלוֹם", "שלום"),
        ("किताबें", "किताब"),
        ("٤٢ years", "42"),
        ("O’Brien came", "O'Brien"),
    ],
)
def test_what_was_written_one_way_is_found_the_other(written: str, asked: str) -> None:
    assert set(terms(asked)) <= set(terms(written))
    assert terms(asked)


def test_words_without_a_subject_are_no_terms_but_who_speaks_is() -> None:
    assert not terms("What was it that they had been doing? Don't, isn't, won't.")
    assert set(terms("Did I tell you of my dog?")) == {"i", "tell", "you", "my", "dog"}


def test_terms_are_counted() -> None:
    assert terms("tea, tea and coffee") == {"tea": 2, "coffe": 1}


@given(ANY_TEXT)
def test_terms_of_any_text_are_storable_lower_case_and_the_same_each_time(text: str) -> None:
    found = terms(text)
    assert found == terms(text)
    for term, count in found.items():
        assert term.strip()
        assert count > 0
        assert 1 <= term_id(term) <= TERM_IDS


def test_a_term_id_never_changes() -> None:
    assert term_id("dog") == 359_730_336


@pytest.mark.parametrize("piece", ["a.-+", "a@", "a@a.", "1/", "_", "a'", "aB", "2024-", "v1.", "猫", "x"])
@pytest.mark.timeout(120)
def test_no_text_makes_the_analyser_slow(piece: str) -> None:
    """A pattern that goes back and forth would need hours for this."""
    terms(piece * 100_000)


# --- what is indexed, and what is asked ---------------------------------------------------------------------


def test_speaker_and_day_are_indexed_in_the_words_of_a_question() -> None:
    said = indexed_text("Ann", datetime(2024, 3, 5, 9, 30, tzinfo=UTC), "I got a dog")
    assert said == "Ann, Tuesday 5 March 2024: I got a dog"


def test_a_question_mark_near_the_end_makes_a_question() -> None:
    assert asks("Really? I had no idea")
    assert asks("本当ですか？")
    assert not asks("I had no idea")
    assert not asks("Really? " + "I had no idea. " * 20)


def test_who_speaks_of_themselves_is_known_by_whole_words() -> None:
    assert is_first_person("Where did I park?")
    assert is_first_person("what's MY name")
    assert not is_first_person("Where does Mia live in Miami?")
