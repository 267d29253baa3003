"""Read the packs that ship with the product, check them, and compile their patterns.

A pack takes a third of a second to read and compile, which waits for the first turn in its language. Workers check
all packs when they start, so that a broken one is named then and not in the middle of a conversation.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TypeVar

from pydantic import ValidationError

from memory_app.errors import Misconfigured
from memory_app.extraction.rules.packs.format import DateRule, PackFile, PackRule
from memory_app.extraction.rules.packs.notation import BrokenPattern, translate
from memory_app.extraction.rules.packs.relations import is_known
from memory_app.extraction.rules.packs.slots import SHAPES, day_shape

_WORD_START, _WORD_END = r"(?<![\w'])", r"(?!\w)"
_NEVER = "(?!)"
_Value = TypeVar("_Value", int, str)


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule and its patterns; those of ``others`` are about somebody of the speaker's."""

    rule: PackRule
    own: tuple[re.Pattern[str], ...]
    others: tuple[re.Pattern[str], ...]
    anywhere: tuple[re.Pattern[str], ...]


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack that is ready to read. The words that are looked up are in lower case."""

    file: PackFile
    rules: tuple[CompiledRule, ...]
    dates: tuple[tuple[DateRule, re.Pattern[str]], ...]
    stop_turn: re.Pattern[str]
    stop_sentence: re.Pattern[str]
    stop_rest: re.Pattern[str]
    stop_passing: re.Pattern[str]
    split: re.Pattern[str]
    cut: re.Pattern[str]
    loose_cut: re.Pattern[str]
    question: re.Pattern[str]
    asks: re.Pattern[str]
    choice: re.Pattern[str]
    opening: re.Pattern[str]
    filler: re.Pattern[str]
    tail: re.Pattern[str]
    inverted: re.Pattern[str]
    label: re.Pattern[str]
    abbreviation: re.Pattern[str]
    ordinal: re.Pattern[str]
    numbers: Mapping[str, int]
    kin: Mapping[str, str]
    maps: Mapping[str, Mapping[str, str]]
    units: Mapping[str, str]
    months: Mapping[str, int]
    weekdays: Mapping[str, int]
    not_in_objects: frozenset[str]
    not_in_names: frozenset[str]
    not_last: frozenset[str]
    articles: frozenset[str]
    item_openings: frozenset[str]
    particles: frozenset[str]
    name_starts: frozenset[str]
    titles: frozenset[str]
    list_join: re.Pattern[str]
    list_end: re.Pattern[str]
    acknowledgements: frozenset[str]


def parse(text: str, *, name: str) -> PackFile:
    """Read and check a pack. Raises `Misconfigured`, which names the pack and what is wrong in it."""
    try:
        file = PackFile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise Misconfigured(f"language pack {name}: is not TOML ({error})") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise Misconfigured(f"language pack {name}: {field}: {first['msg']}") from error
    for number, rule in enumerate(file.rules, 1):
        for relation in _relations(file, rule.relation):
            if not is_known(relation):
                raise Misconfigured(
                    f"language pack {name}: rule {number}: relation {relation!r} is unknown; "
                    "memory_app/extraction/rules/packs/relations.py lists them"
                )
    # Translated once to find what is broken; a translated pattern always compiles.
    _Translator(file, name).check()
    return file


def _relations(file: PackFile, template: str) -> Iterable[str]:
    """The relations that a rule may give: its own, or those of the list whose name is the whole of it."""
    name = template.strip("{}")
    if not template.startswith("{"):
        return (template,)
    return file.people.kin if name == "kin" else file.maps.get(name, {template: ()})


class _Translator:
    """Translates the patterns of one pack, and names the pattern that cannot be."""

    def __init__(self, file: PackFile, name: str) -> None:
        self.file = file
        self.name = name
        self.slots: dict[str, str] = {}
        words = {key: _either(self.all(f"words.{key}", rows)) for key, rows in file.words.items()}
        maps = {key: _either(map(re.escape, _inverted(table))) for key, table in file.maps.items()}
        date = {
            "month": _either(map(re.escape, months_of(file))),
            "weekday": _either(map(re.escape, " ".join(file.date.weekdays).split())),
            "unit": _either(map(re.escape, _inverted(dict(file.date.units)))),
        }
        people = {
            "kin": _either(map(re.escape, _inverted(file.people.kin))),
            "pet": _either(map(re.escape, file.people.pets)),
        }
        number = _either((r"\d{1,3}", *map(re.escape, _inverted(file.numbers))))
        self.slots = {
            **SHAPES,
            **words,
            **maps,
            **date,
            **people,
            "number": number,
            "day": day_shape(date["month"]),
        }
        self.slots["they"] = self.one("people.subject", file.people.subject)

    def one(self, place: str, pattern: str) -> str:
        try:
            return translate(pattern, self.slots)
        except BrokenPattern as error:
            raise Misconfigured(f"language pack {self.name}: {place}: {pattern!r}: {error}") from error

    def all(self, place: str, patterns: Iterable[str]) -> list[str]:
        return [self.one(place, pattern) for pattern in patterns]

    def either(self, place: str, patterns: Iterable[str]) -> str:
        return "|".join(self.all(place, patterns)) or _NEVER

    def check(self) -> None:
        file = self.file
        for number, rule in enumerate(file.rules, 1):
            place = f"rule {number} ({rule.relation})"
            self.all(place, (*rule.patterns, *rule.others, *rule.anywhere))
        for place, patterns in (
            ("stop.turn", file.stop.turn),
            ("stop.sentence", file.stop.sentence),
            ("stop.rest", file.stop.rest),
            ("stop.passing", file.stop.passing),
            ("clause.joins", file.clause.joins),
            ("clause.starts", file.clause.starts),
            ("clause.questions", file.clause.questions),
            ("clause.breaks", file.clause.breaks),
            ("clause.cuts", file.clause.cuts),
            ("clause.asks", file.clause.asks),
            ("clause.openings", file.clause.openings),
            ("clause.fillers", file.clause.fillers),
            ("clause.tails", file.clause.tails),
            ("clause.inverted", file.clause.inverted),
            ("clause.labels", file.clause.labels),
            ("date.rule", [rule.text for rule in file.date.rules]),
        ):
            self.all(place, patterns)


def compile_pack(file: PackFile, *, name: str) -> Pack:
    """Compile the patterns of a checked pack."""
    make = _Translator(file, name)
    clause, stop = file.clause, file.stop
    joins, starts = make.either("clause.joins", clause.joins), make.either("clause.starts", clause.starts)
    breaks = make.either("clause.breaks", clause.breaks)
    cuts = make.either("clause.cuts", clause.cuts)
    months = "|".join(map(re.escape, months_of(file)))
    return Pack(
        file=file,
        rules=tuple(_compiled_rule(make, rule) for rule in file.rules),
        dates=tuple((rule, _words(make.one("date.rule", rule.text))) for rule in file.date.rules),
        stop_turn=_words(make.either("stop.turn", stop.turn)),
        stop_sentence=_words(make.either("stop.sentence", stop.sentence)),
        stop_rest=_words(make.either("stop.rest", stop.rest)),
        stop_passing=_words(make.either("stop.passing", stop.passing)),
        split=_any_case(
            r"(?P<comma>,\s+)|\s*[;:()\u2013\u2014]\s*|\s+-+\s+"
            rf"|(?P<join>,?\s+(?:{joins})\s+(?={_WORD_START}(?:{starts}){_WORD_END})|\s+(?=(?:{breaks}){_WORD_END}))"
        ),
        cut=_any_case(
            rf",?\s+(?:(?:{joins}|{_either(map(re.escape, file.list_joins))})\s+(?=(?-i:[a-zß-öø-ÿ]))|(?:{cuts})\s)"
        ),
        loose_cut=_any_case(rf",?\s+(?:{joins}|{_either(map(re.escape, file.list_joins))}|{cuts})\s"),
        question=_any_case(rf"^(?:{make.either('clause.questions', clause.questions)}){_WORD_END}"),
        choice=_any_case(rf"^{_either(map(re.escape, file.list_joins))}{_WORD_END}"),
        asks=_any_case(rf"^(?:{make.either('clause.asks', clause.asks)}){_WORD_END}"),
        opening=_any_case(rf"^(?:{make.either('clause.openings', clause.openings)}){_WORD_END}[\s,!:-]*"),
        filler=_words(make.either("clause.fillers", clause.fillers)),
        tail=_any_case(rf"\s+(?:{make.either('clause.tails', clause.tails)})$"),
        inverted=_any_case(
            rf"^(?P<verb>[\w']+) (?P<subject>{make.either('clause.inverted', clause.inverted)}){_WORD_END}"
        ),
        label=_any_case(rf"^\s*(?P<label>{make.either('clause.labels', clause.labels)})\s*:\s+"),
        abbreviation=_words(rf"(?P<short>{_either(map(re.escape, clause.abbreviations))})\.(?=\s)"),
        ordinal=_any_case(rf"(?<!\d)(\d{{1,2}})\. ?(?=(?:{months}){_WORD_END})"),
        numbers=_inverted(file.numbers),
        kin=_inverted(file.people.kin),
        maps={name: _inverted(table) for name, table in file.maps.items()},
        units=_inverted(dict(file.date.units)),
        months=months_of(file),
        weekdays=_numbers(file.date.weekdays),
        not_in_objects=_lower(file.not_in_objects),
        not_in_names=_lower(file.not_in_names),
        not_last=_lower(file.not_last),
        articles=_lower(file.articles),
        item_openings=_lower(file.item_openings),
        particles=_lower(file.particles),
        name_starts=_lower(file.name_starts),
        titles=_lower(file.titles),
        list_join=_any_case(rf",? (?:{_either(map(re.escape, file.list_joins))}) |, "),
        list_end=_any_case(rf" (?:{_either(map(re.escape, file.list_joins))}) [^,]+$"),
        acknowledgements=_lower(file.acknowledgements),
    )


def _compiled_rule(make: _Translator, rule: PackRule) -> CompiledRule:
    place = f"rule ({rule.relation})"
    return CompiledRule(
        rule,
        own=tuple(_any_case(rf"(?:{one})") for one in make.all(place, rule.patterns)),
        others=tuple(_any_case(rf"(?:{one})") for one in make.all(place, rule.others)),
        anywhere=tuple(_words(one) for one in make.all(place, rule.anywhere)),
    )


def months_of(file: PackFile) -> dict[str, int]:
    """Each spelling of a month to its number."""
    return _numbers(file.date.months, first=1)


def _numbers(rows: Iterable[str], *, first: int = 0) -> dict[str, int]:
    return {word.lower(): number for number, row in enumerate(rows, first) for word in row.split()}


def _inverted(table: Mapping[_Value, Iterable[str]]) -> dict[str, _Value]:
    """Each word of the rows, in lower case, to the name of its row."""
    return {word.lower(): name for name, row in table.items() for word in row}


def _lower(words: Iterable[str]) -> frozenset[str]:
    # A row may hold many words, so that a list reads like a text.
    return frozenset(word for row in words for word in row.lower().split())


def _either(choices: Iterable[str]) -> str:
    # The longest first, or "son" would be read in "sons".
    return "(?:" + ("|".join(sorted(choices, key=len, reverse=True)) or _NEVER) + ")"


def _any_case(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _words(pattern: str) -> re.Pattern[str]:
    return _any_case(rf"{_WORD_START}(?:{pattern}){_WORD_END}")


def _files() -> dict[str, Traversable]:
    entries = (entry for entry in files(__package__).iterdir() if entry.name.endswith(".toml"))
    return {entry.name.removesuffix(".toml"): entry for entry in entries}


_FILES = _files()

LANGUAGES = frozenset(_FILES)
"""The languages that have a pack, by their codes."""


@cache
def pack_of(language: str) -> Pack | None:
    """The pack of a language, read and compiled at the first call; None where there is none."""
    file = _FILES.get(language)
    if file is None:
        return None
    return compile_pack(parse(file.read_text(encoding="utf-8"), name=file.name), name=file.name)


def check_packs() -> None:
    """Read and check all packs, without compiling them. Raises `Misconfigured`."""
    for file in _FILES.values():
        parse(file.read_text(encoding="utf-8"), name=file.name)
