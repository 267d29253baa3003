"""The words of languages: one record each, joined in one table."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import memory_app
from memory_app.language.language import Language
from memory_app.language.table import LANGUAGES
from memory_app.language.words import MONTH_NUMBERS, SIDES, SYNONYMS, UNITS, WEEKDAYS, stem_of
from memory_app.memories.guards import conflicting

PRODUCT = Path(memory_app.__file__).parent
ELSEWHERE = frozenset({"testing", "bench", "demo", "language"})
"""Packages that hold conversations of people, and the one that holds the words."""

ESPERANTO = """
from memory_app.language import table
from memory_app.language.language import Language, words_in

table.LANGUAGES = (*table.LANGUAGES, Language(
    name="esperanto",
    negations=words_in("ne neniam"),
    months=tuple("januaro februaro marto aprilo majo junio julio augusto septembro oktobro novembro decembro".split()),
    numbers={"kvin": 5.0, "ok": 8.0},
    quantities=("kvin",),
    units=("day tagoj",),
    opposites=("like shatas | dislike abomenas",),
    question_patterns=(r"kie\\\\b",),
    frame_openings=("cetere",),
    standing_patterns=(r"\\\\bde nun\\\\b",),
    secret_names=("pasvorto",),
))

from memory_app.memories.guards import conflicting
from memory_app.language.sentence_type import Trait, traits_of
from memory_app.language.framing import unframed
from memory_app.language.questions import question_of
from memory_app.language.secrets import holds_secret
from memory_app.language.words import SYNONYMS, stem_of

assert holds_secret("Mia pasvorto estas longa.")
assert conflicting("Mira dormas kvin tagoj.", "Mira dormas ok tagoj.") == "number"
assert conflicting("Mira shatas tion.", "Mira abomenas tion.") == "qualifier"
assert SYNONYMS[stem_of("shatas")] == stem_of("like")
assert conflicting("Mira venos la 3 majo.", "Mira venos la 3 julio.") == "date"
assert question_of("Kie vi loĝas nun") == "Kie vi loĝas nun"
assert unframed("Cetere, mi loĝas ĉi tie.") == "mi loĝas ĉi tie."
assert traits_of("De nun uzu metrojn, kvin.", by_user=True) == Trait.STANDING | Trait.QUANTITY
"""


def test_one_record_and_one_line_add_a_language() -> None:
    added = subprocess.run(
        [sys.executable, "-c", ESPERANTO.replace("\\\\", "\\")], capture_output=True, text=True
    )
    assert added.returncode == 0, added.stderr


def test_a_field_left_out_adds_nothing() -> None:
    assert not Language(name="none").numbers


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_the_calendar_of_a_language_is_whole_or_absent(language: Language) -> None:
    assert len(language.months) in (0, 12)
    assert len(language.weekdays) in (0, 7)


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_rows_of_one_meaning_begin_with_the_name_of_that_meaning(language: Language) -> None:
    names = {row.split()[0] for row in LANGUAGES[0].units}
    assert {row.split()[0] for row in language.units} <= names


def test_words_of_two_languages_that_mean_the_same_share_a_side() -> None:
    assert set(SIDES[stem_of("liebt")]) <= set(SIDES[stem_of("love")])
    assert SYNONYMS[stem_of("liebt")] == stem_of("like")
    assert UNITS["tage"] == UNITS["days"] == "day"


def test_a_word_may_stand_on_two_sides_of_different_groups() -> None:
    assert len(SIDES[stem_of("left")]) == 2


@pytest.mark.parametrize("month", range(1, 13))
def test_months_and_weekdays_are_numbered_as_the_calendar_numbers_them(month: int) -> None:
    day = datetime(2024, month, month, tzinfo=UTC)
    assert MONTH_NUMBERS[f"{day:%B}".lower()] == MONTH_NUMBERS[f"{day:%b}".lower()] == month
    assert WEEKDAYS[f"{day:%A}".lower()] == day.isoweekday()


def test_a_number_in_another_language_keeps_two_statements_apart() -> None:
    assert conflicting("Mira hat zwei Hunde.", "Mira hat drei Hunde.") == "number"


@pytest.mark.parametrize("word", ["november", "wednesday", "eleven", "\\u200b", "passcode"])
def test_the_calendar_numbers_and_secrets_stand_in_this_package_alone(word: str) -> None:
    others = [path for path in PRODUCT.rglob("*.py") if path.relative_to(PRODUCT).parts[0] not in ELSEWHERE]
    assert [str(path) for path in others if word in path.read_text(encoding="utf-8").lower()] == []
