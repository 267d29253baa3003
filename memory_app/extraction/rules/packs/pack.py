"""The packs that ship with the product: their record, and how a file becomes one.

A pack is read at the first turn in its language, and each of its patterns compiled for the first clause that has one of
its words. Workers check all packs when they start, so that a broken one is named then and not in the middle of a
conversation.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from pydantic import ValidationError

from memory_app.errors import Misconfigured
from memory_app.extraction.rules.clauses import LAUGH
from memory_app.extraction.rules.packs.format import PackFile, PackRule
from memory_app.extraction.rules.packs.omission_patterns import OmissionPatterns, omission_patterns
from memory_app.extraction.rules.packs.pattern_compiler import (
    WORD_END,
    WORD_START,
    PatternCompiler,
    any_case,
    as_whole_words,
    either_word,
    whole_words,
)
from memory_app.extraction.rules.packs.pattern_index import DatePattern, PatternIndex, RulePattern
from memory_app.extraction.rules.packs.relations import is_known
from memory_app.extraction.rules.packs.word_tables import (
    month_numbers,
    names_of_rows,
    numbers_of_rows,
    unit_names,
    word_set,
)


@dataclass(frozen=True, slots=True)
class CorrectionPatterns:
    """What makes a sentence a correction: what announces one, and what names the mistake and the right object."""

    announcement: re.Pattern[str]
    instead: re.Pattern[str]
    right: tuple[re.Pattern[str], ...]
    alone: tuple[re.Pattern[str], ...]


@dataclass(frozen=True, slots=True)
class WordSets:
    """Words in lower case that say whether a text may be an object or a name, and those that only agree or thank."""

    not_in_objects: frozenset[str]
    not_in_requests: frozenset[str]
    verbs: frozenset[str]
    not_in_names: frozenset[str]
    not_first: frozenset[str]
    not_last: frozenset[str]
    acronyms: frozenset[str]
    articles: frozenset[str]
    item_openings: frozenset[str]
    shared_heads: frozenset[str]
    particles: frozenset[str]
    name_starts: frozenset[str]
    titles: frozenset[str]
    acknowledgements: frozenset[str]


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack whose patterns are compiled. The words that are looked up are in lower case."""

    file: PackFile
    rules: PatternIndex
    """Patterns that fit a clause as a whole."""
    anywhere: PatternIndex
    """Patterns that stand inside a clause."""
    dates: tuple[DatePattern, ...]
    stop_turn: re.Pattern[str]
    laugh: re.Pattern[str]
    stop_private: re.Pattern[str]
    stop_sentence: re.Pattern[str]
    stop_rest: re.Pattern[str]
    stop_tail: re.Pattern[str]
    stop_passing: re.Pattern[str]
    split: re.Pattern[str]
    end: re.Pattern[str]
    bare: re.Pattern[str]
    name_behind: re.Pattern[str]
    cut: re.Pattern[str]
    loose_cut: re.Pattern[str]
    question: re.Pattern[str]
    asks: re.Pattern[str]
    choice: re.Pattern[str]
    opening: re.Pattern[str]
    request: re.Pattern[str]
    request_joint: re.Pattern[str]
    contraction: re.Pattern[str]
    correction: CorrectionPatterns
    filler: re.Pattern[str]
    tail: re.Pattern[str]
    beside: re.Pattern[str]
    day_part: re.Pattern[str]
    change: re.Pattern[str]
    shared_verb: re.Pattern[str]
    speaker_word: re.Pattern[str]
    they: re.Pattern[str]
    pronoun: re.Pattern[str]
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
    half: re.Pattern[str]
    omission: OmissionPatterns
    words: WordSets
    list_join: re.Pattern[str]
    list_end: re.Pattern[str]

    def number(self, text: str) -> int:
        """The number that digits or a word of the pack, in lower case, stand for."""
        return int(text) if text.isdigit() else self.numbers[text]


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
    _check_relations(file, name)
    PatternCompiler(file, name).check()
    return file


def _check_relations(file: PackFile, name: str) -> None:
    for number, rule in enumerate(file.rules, 1):
        for relation in _relations(file, rule.relation):
            if not is_known(relation):
                raise Misconfigured(
                    f"language pack {name}: rule {number}: relation {relation!r} is unknown; "
                    "memory_app/extraction/rules/packs/relations.py lists them"
                )


def _relations(file: PackFile, template: str) -> Iterable[str]:
    """The relations that a rule may give: its own, or those of the list whose name is the whole of it."""
    if not template.startswith("{"):
        return (template,)
    name = template.strip("{}")
    if name == "kin":
        return file.people.kin
    return file.maps.get(name, {template: ()})


def compile_pack(file: PackFile, *, name: str) -> Pack:
    """Compile the patterns of a checked pack."""
    compiler = PatternCompiler(file, name)
    clause, stop = file.clause, file.stop
    joins = compiler.choices("clause.joins", clause.joins)
    starts = compiler.choices("clause.starts", clause.starts)
    breaks = compiler.choices("clause.breaks", clause.breaks)
    cuts = compiler.choices("clause.cuts", clause.cuts)
    list_joins = either_word(file.list_joins)
    verbs_of_names = compiler.choices("people.name_behind", file.people.name_behind)
    months = month_numbers(file)
    month = "|".join(map(re.escape, months))
    return Pack(
        file=file,
        rules=PatternIndex(_rule_patterns(compiler, file.rules)),
        anywhere=PatternIndex(_anywhere_patterns(compiler, file.rules)),
        dates=tuple(
            DatePattern(
                rule,
                as_whole_words(compiler.translated("date.rule", rule.text)),
                compiler.needs(rule.text),
            )
            for rule in file.date.rules
        ),
        stop_turn=compiler.compiled_words("stop.turn", stop.turn),
        laugh=any_case(rf"{WORD_START}(?:{compiler.choices('stop.laughs', stop.laughs)}){WORD_END}|{LAUGH}"),
        stop_private=compiler.compiled_words("stop.private", stop.private),
        stop_sentence=compiler.compiled_words("stop.sentence", stop.sentence),
        stop_rest=compiler.compiled_words("stop.rest", stop.rest),
        stop_tail=any_case(rf"{WORD_START}(?:{compiler.choices('stop.tail', stop.tail)})[\s.,!?\u2026]*$"),
        stop_passing=compiler.compiled_words("stop.passing", stop.passing),
        split=any_case(
            r"(?P<comma>,\s+)|\s*(?:[;()\u2013\u2014]|:(?!\w))\s*|\s+-+\s+"
            rf"|(?P<join>,?\s+(?:{joins})\s+(?={WORD_START}(?:{starts}){WORD_END})|\s+(?=(?:{breaks}){WORD_END}))"
        ),
        end=any_case(rf",?\s+(?:{compiler.choices('clause.ends', clause.ends)})\s"),
        bare=any_case(rf"^{either_word(file.people.bare)}(?= )"),
        name_behind=any_case(rf"^(?P<front>.{{0,40}}?)\b(?P<verb>{verbs_of_names}) (?P<rest>.+)$"),
        cut=any_case(rf",?\s+(?:(?:{joins}|{list_joins})\s+(?=(?-i:[a-zß-öø-ÿ]))|(?:{cuts})\s)"),
        loose_cut=any_case(rf",?\s+(?:{joins}|{list_joins}|{cuts})\s"),
        question=any_case(rf"^(?:{compiler.choices('clause.questions', clause.questions)}){WORD_END}"),
        choice=any_case(rf"^{list_joins}{WORD_END}"),
        asks=any_case(rf"^(?:{compiler.choices('clause.asks', clause.asks)}){WORD_END}"),
        opening=any_case(rf"^(?:{compiler.choices('clause.openings', clause.openings)}){WORD_END}[\s,!:-]*"),
        request=any_case(
            rf"^(?:{compiler.choices('request.openings', file.request.openings)}){WORD_END}[\s,:;-]*"
        ),
        request_joint=any_case(rf",? (?:{list_joins}) {re.escape(file.request.that or '')} "),
        contraction=whole_words(either_word(file.contractions)),
        correction=_correction_patterns(compiler, file),
        filler=compiler.compiled_words("clause.fillers", clause.fillers),
        tail=any_case(rf"\s+(?:{compiler.choices('clause.tails', clause.tails)})$"),
        beside=compiler.compiled_words("clause.beside", clause.beside),
        day_part=any_case(rf"\s+(?P<part>{compiler.choices('clause.day_parts', clause.day_parts)})$"),
        change=compiler.compiled_words("clause.changes", clause.changes),
        shared_verb=any_case(
            rf"^(?:{compiler.choices('clause.shared_verbs', clause.shared_verbs)}){WORD_END}"
        ),
        speaker_word=compiler.compiled_words("clause.speaker_words", clause.speaker_words),
        they=any_case(rf"{WORD_START}(?:{compiler.slots['they']}){WORD_END}"),
        pronoun=any_case(rf"^{either_word(file.people.pronouns)}{WORD_END}"),
        inverted=any_case(
            rf"^(?P<verb>[\w']+) (?P<subject>{compiler.choices('clause.inverted', clause.inverted)}){WORD_END}"
        ),
        label=any_case(rf"^\s*(?P<label>{compiler.choices('clause.labels', clause.labels)})\s*:\s+"),
        abbreviation=whole_words(rf"(?P<short>{either_word(clause.abbreviations)})\.(?=\s)"),
        ordinal=any_case(rf"(?<!\d)(\d{{1,2}})\. ?(?=(?:{month}){WORD_END})"),
        numbers=names_of_rows(file.numbers),
        kin=names_of_rows(file.people.kin),
        maps={name: names_of_rows(table) for name, table in file.maps.items()},
        units=unit_names(file),
        months=months,
        weekdays=numbers_of_rows(file.date.weekdays),
        half=any_case(rf"(?<![\w'])(?:{compiler.choices('half', [file.half] if file.half else [])})$"),
        omission=omission_patterns(compiler, file),
        words=_word_sets(file),
        list_join=any_case(rf",? (?:{list_joins}) |, "),
        list_end=any_case(rf" (?:{list_joins}) [^,]+$"),
    )


def _correction_patterns(compiler: PatternCompiler, file: PackFile) -> CorrectionPatterns:
    announced = compiler.choices("correction.announced", file.correction.announced)
    instead = compiler.translated("correction.instead", file.correction.instead)
    right = compiler.all_translated("correction.right", file.correction.right)
    alone = compiler.all_translated("correction.alone", file.correction.alone)
    return CorrectionPatterns(
        announcement=any_case(rf"^(?:{announced}){WORD_END}[\s,!:;.-]*"),
        # Without a comma "not allergic to nuts" is a statement of its own.
        instead=any_case(rf"(?:,|\s[\u2013\u2014-])\s+(?:{instead})(?=,|$)"),
        right=tuple(any_case(f"(?:{pattern})") for pattern in right),
        alone=tuple(any_case(f"(?:{pattern})") for pattern in alone),
    )


def _word_sets(file: PackFile) -> WordSets:
    return WordSets(
        not_in_objects=word_set(file.not_in_objects),
        not_in_requests=word_set(file.request.not_about),
        verbs=word_set(file.request.verbs),
        not_in_names=word_set(file.not_in_names),
        not_first=word_set(file.not_first),
        not_last=word_set(file.not_last),
        acronyms=word_set(file.clause.acronyms),
        articles=word_set(file.articles),
        item_openings=word_set(file.item_openings),
        shared_heads=word_set(file.shared_heads),
        particles=word_set(file.particles),
        name_starts=word_set(file.name_starts),
        titles=word_set(file.titles),
        acknowledgements=word_set(file.acknowledgements),
    )


def _rule_patterns(compiler: PatternCompiler, rules: Sequence[PackRule]) -> Iterator[RulePattern]:
    for place, rule in enumerate(rules):
        for pattern in rule.patterns:
            yield _whole_pattern(compiler, place, rule, pattern)
        for pattern in rule.with_capitals:
            yield replace(_whole_pattern(compiler, place, rule, pattern), needs_capitals=True)
        for pattern in rule.others:
            yield replace(_whole_pattern(compiler, place, rule, pattern), is_other=True)


def _whole_pattern(compiler: PatternCompiler, place: int, rule: PackRule, pattern: str) -> RulePattern:
    translated = compiler.translated(f"rule ({rule.relation})", pattern)
    return RulePattern(
        place,
        rule,
        f"(?:{translated})",
        compiler.needs(pattern),
        unless=word_set(rule.unless),
    )


def _anywhere_patterns(compiler: PatternCompiler, rules: Sequence[PackRule]) -> Iterator[RulePattern]:
    for place, rule in enumerate(rules):
        for pattern in rule.anywhere:
            translated = compiler.translated(f"rule ({rule.relation})", pattern)
            yield RulePattern(place, rule, as_whole_words(translated), compiler.needs(pattern))


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
