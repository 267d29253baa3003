"""Compile the patterns of a pack for what people leave out, or put between commas; `omissions` reads by them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory_app.extraction.rules.packs.format import PackFile
from memory_app.extraction.rules.packs.pattern_compiler import (
    WORD_END,
    WORD_START,
    PatternCompiler,
    any_case,
    either_word,
    whole_words,
)
from memory_app.extraction.rules.packs.required_words import Words

SHORT_VERB = "'s"


@dataclass(frozen=True, slots=True)
class ShortVerb:
    """The verb that `SHORT_VERB` stands for behind what ``pattern`` finds."""

    pattern: re.Pattern[str]
    verb: str


@dataclass(frozen=True, slots=True)
class Aside:
    """What stands in commas or brackets behind somebody; ``says`` is the sentence that it stands for.

    A sentence with none of the words that it ``needs`` has none.
    """

    pattern: re.Pattern[str]
    behind: re.Pattern[str] | None
    says: str
    needs: Words


@dataclass(frozen=True, slots=True)
class OmissionPatterns:
    """``left_out`` is how a turn begins, each with the subject that it leaves out."""

    short_verbs: tuple[ShortVerb, ...]
    asides: tuple[Aside, ...]
    left_out: tuple[tuple[re.Pattern[str], str], ...]


def omission_patterns(compiler: PatternCompiler, file: PackFile) -> OmissionPatterns:
    """Those of a pack. Raises `Misconfigured` for a broken pattern."""
    return OmissionPatterns(
        short_verbs=tuple(_short_verbs(compiler, file)),
        asides=tuple(_asides(compiler, file)),
        left_out=tuple(
            (any_case(rf"(?:{compiler.choices('clause.left_out', row.before)}){WORD_END}"), row.subject)
            for row in file.clause.left_out
        ),
    )


def _clause_end(compiler: PatternCompiler, file: PackFile) -> str:
    joins = compiler.choices("clause.joins", file.clause.joins)
    return rf"(?=\s*(?:[,.;:!?)\u2026]|$)|\s+(?:{joins}){WORD_END})"


def _short_verbs(compiler: PatternCompiler, file: PackFile) -> Iterator[ShortVerb]:
    end = _clause_end(compiler, file)
    for row in file.clause.short_verbs:
        who = compiler.translated("clause.short_verbs", row.who)
        before = compiler.choices("clause.short_verbs", row.before)
        last = compiler.choices("clause.short_verbs", row.last)
        pattern = rf"{WORD_START}(?P<who>{who}){SHORT_VERB}(?= (?:(?:{before}){WORD_END}|(?:{last}){end}))"
        yield ShortVerb(any_case(pattern), row.verb)


def _asides(compiler: PatternCompiler, file: PackFile) -> Iterator[Aside]:
    end = _clause_end(compiler, file)
    for row in file.clause.asides:
        who = compiler.translated("clause.asides", row.who)
        what = compiler.translated("clause.asides", row.what)
        if row.behind is None:
            joint = r",?\s+" if row.is_clause else r"(?:,\s+|\s+\()"
            pattern = rf"{WORD_START}(?P<who>{who}){joint}(?:{what})(?:\)|,(?=\s)|{end})"
            yield Aside(any_case(pattern), None, row.says, compiler.needs(f"{row.who} {row.what}"))
            continue
        joins = either_word(file.list_joins)
        pattern = rf"[\s,;:(]*(?:{joins}\s+)?(?P<who>{who}),?\s+\(?(?:{what})(?:\)|{end})"
        behind = compiler.translated("clause.asides", row.behind)
        yield Aside(any_case(pattern), whole_words(behind), row.says, compiler.needs(row.behind))
