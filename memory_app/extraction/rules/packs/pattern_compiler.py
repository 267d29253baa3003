"""Translate and compile the patterns of one pack, and name the pattern that cannot be translated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from memory_app.errors import Misconfigured
from memory_app.extraction.rules.packs import required_words as needed
from memory_app.extraction.rules.packs.format import PackFile
from memory_app.extraction.rules.packs.notation import BrokenPattern, translate
from memory_app.extraction.rules.packs.required_words import Words, required_words
from memory_app.extraction.rules.packs.slots import SHAPES, day_shape
from memory_app.extraction.rules.packs.word_tables import month_numbers, names_of_rows, unit_names

WORD_START, WORD_END = r"(?<![\w'])", r"(?!\w)"
_NEVER = "(?!)"


class PatternCompiler:
    """The slots of one pack, and the translation of its patterns by them.

    ``place`` is where a pattern stands in the pack, such as "stop.turn". Whatever translates patterns raises
    `Misconfigured` for a broken one, with the name of the pack, the place and the reason.
    """

    def __init__(self, file: PackFile, name: str) -> None:
        self.file = file
        self.name = name
        # Lists of words may use what stands before them here, and the subject of somebody else may use all slots.
        self.slots: dict[str, str] = {**SHAPES, **self._date_slots(), **self._people_slots()}
        self.slots["number"] = either((r"\d{1,3}", *map(re.escape, names_of_rows(file.numbers))))
        self.slots |= {key: either_word(names_of_rows(rows)) for key, rows in file.maps.items()}
        for key, row in file.words.items():
            self.slots[key] = self._list_slot(key, row)
        self.slots["they"] = self.translated("people.subject", file.people.subject)
        self._needs = self._needs_of_slots()

    def _needs_of_slots(self) -> dict[str, Words]:
        """The words of which one must be there where a slot is filled."""
        file = self.file
        lists: dict[str, Iterable[str]] = {
            "month": month_numbers(file),
            "weekday": " ".join(file.date.weekdays).split(),
            "unit": unit_names(file),
            "kin": names_of_rows(file.people.kin),
            "pet": file.people.pets,
            **{name: names_of_rows(rows) for name, rows in file.maps.items()},
        }
        needs = {
            name: needed.either([required_words(word, {}) for word in words]) for name, words in lists.items()
        }
        # A list may use the lists before it.
        for name, patterns in file.words.items():
            needs[name] = needed.either([required_words(pattern, needs) for pattern in patterns])
        needs["they"] = required_words(file.people.subject, needs)
        return needs

    def needs(self, pattern: str) -> Words:
        """The words of which a clause must have one to fit ``pattern``."""
        return required_words(pattern, self._needs)

    def _list_slot(self, key: str, row: Iterable[str]) -> str:
        slot = either(self.all_translated(f"words.{key}", row))
        try:
            re.compile(slot)
        except re.error as error:
            # Two words of a list with the same slot.
            raise Misconfigured(f"language pack {self.name}: words.{key}: {error}") from error
        return slot

    def _date_slots(self) -> dict[str, str]:
        month = either_word(month_numbers(self.file))
        return {
            "month": month,
            "weekday": either_word(" ".join(self.file.date.weekdays).split()),
            "unit": either_word(unit_names(self.file)),
            "day": day_shape(month),
        }

    def _people_slots(self) -> dict[str, str]:
        people = self.file.people
        return {"kin": either_word(names_of_rows(people.kin)), "pet": either_word(people.pets)}

    def check(self) -> None:
        """Translate all patterns, to find what is broken; a translated pattern always compiles."""
        for number, rule in enumerate(self.file.rules, 1):
            place = f"rule {number} ({rule.relation})"
            self.all_translated(place, (*rule.patterns, *rule.with_capitals, *rule.others, *rule.anywhere))
        for place, patterns in _patterns_by_place(self.file).items():
            self.all_translated(place, patterns)

    def translated(self, place: str, pattern: str) -> str:
        """The regular expression of one pattern."""
        try:
            return translate(pattern, self.slots)
        except BrokenPattern as error:
            raise Misconfigured(f"language pack {self.name}: {place}: {pattern!r}: {error}") from error

    def all_translated(self, place: str, patterns: Iterable[str]) -> list[str]:
        return [self.translated(place, pattern) for pattern in patterns]

    def choices(self, place: str, patterns: Iterable[str]) -> str:
        """The patterns as alternatives without brackets, in their order; without a pattern, what never fits."""
        return "|".join(self.all_translated(place, patterns)) or _NEVER

    def compiled_words(self, place: str, patterns: Iterable[str]) -> re.Pattern[str]:
        """One of the patterns, as whole words anywhere in a text."""
        return whole_words(self.choices(place, patterns))


def _patterns_by_place(file: PackFile) -> Mapping[str, Iterable[str]]:
    """The patterns of a pack that belong to no rule."""
    stop, clause = file.stop, file.clause
    return {
        "stop.turn": stop.turn,
        "stop.laughs": stop.laughs,
        "stop.private": stop.private,
        "stop.sentence": stop.sentence,
        "stop.rest": stop.rest,
        "stop.passing": stop.passing,
        "clause.joins": clause.joins,
        "clause.starts": clause.starts,
        "clause.questions": clause.questions,
        "clause.breaks": clause.breaks,
        "clause.cuts": clause.cuts,
        "clause.asks": clause.asks,
        "clause.openings": clause.openings,
        "clause.fillers": clause.fillers,
        "clause.tails": clause.tails,
        "people.name_behind": file.people.name_behind,
        "stop.tail": stop.tail,
        "clause.ends": clause.ends,
        "clause.beside": clause.beside,
        "clause.day_parts": clause.day_parts,
        "clause.changes": clause.changes,
        "clause.shared_verbs": clause.shared_verbs,
        "clause.speaker_words": clause.speaker_words,
        "clause.inverted": clause.inverted,
        "clause.labels": clause.labels,
        "clause.short_verbs": [
            text for row in clause.short_verbs for text in (row.who, *row.before, *row.last)
        ],
        "clause.asides": [
            text for row in clause.asides for text in (row.who, row.what, row.behind) if text is not None
        ],
        "clause.left_out": [text for row in clause.left_out for text in row.before],
        "half": [file.half] if file.half else [],
        "request.openings": file.request.openings,
        "correction.announced": file.correction.announced,
        "correction.instead": (file.correction.instead,),
        "correction.right": file.correction.right,
        "date.rule": [rule.text for rule in file.date.rules],
    }


def either(choices: Iterable[str]) -> str:
    """Alternatives of regular expressions, in brackets; without one, what never fits."""
    # The longest first, or "son" would be read in "sons".
    return "(?:" + ("|".join(sorted(choices, key=len, reverse=True)) or _NEVER) + ")"


def either_word(words: Iterable[str]) -> str:
    """Alternatives of words that stand for themselves."""
    return either(map(re.escape, words))


def any_case(pattern: str) -> re.Pattern[str]:
    """A regular expression for which case does not count."""
    return re.compile(pattern, re.IGNORECASE)


def as_whole_words(pattern: str) -> str:
    """The expression that begins and ends where words do."""
    return rf"{WORD_START}(?:{pattern}){WORD_END}"


def whole_words(pattern: str) -> re.Pattern[str]:
    """A regular expression that begins and ends where words do, for which case does not count."""
    return any_case(as_whole_words(pattern))
