"""Have a model answer a question from lines of memory, and keep of its answer what these lines say. One look.

A sentence stands only on the lines that it names: with their names and numbers, mostly in their words, and without
denying what they say. Whether it answers the question is the model's judgement; that it is true is ours.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from memory_app.extraction.llm.answers import AnswerQuestion, SentenceAnswer
from memory_app.extraction.llm.guards import AUXILIARIES, NO_EVIDENCE, SAMPLE, VARIANT_LETTERS, is_said
from memory_app.extraction.llm.instructions import FROM_INSTRUCTIONS, instructed, repeats_instructions
from memory_app.extraction.llm.material import middle_left_out, plain_reference
from memory_app.extraction.llm.numbers import invents_numbers
from memory_app.extraction.llm.prompt_echo import repeats_prompt
from memory_app.extraction.llm.prompts import load_prompt
from memory_app.extraction.llm.provenance import Asking, Provenance, ask, provenance_of
from memory_app.extraction.llm.unions import NAMES, NEGATIONS, NUMBERS
from memory_app.language.text import terms
from memory_app.language.words import COMMON
from memory_app.memories.guards import NEGATION, conflicting, content_words, words_only_in
from memory_app.records.instructions import Instructions
from memory_app.records.quote import quoted, quoted_label

UNFOUNDED = "too little of it stands in memory"

FOUNDED = 0.5
"""Share of a sentence's words of meaning that its lines must have. The model is asked to use their words."""

ROW_CHARS = 1_000
"""So much is shown of one line."""

SEARCHES_LIMIT = 3
SEARCH_CHARS = 200

_TIME = content_words("since until now still currently already before after yes no")
"""Words that place a sentence in time, as an answer must and a line need not."""

_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_NAME = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_POSSESSIVE = re.compile(r"['’]s?$")


@dataclass(frozen=True, slots=True)
class Row:
    """A line of memory. ``id`` is that of a memory or a turn; ``until`` is the end of what holds no more."""

    id: UUID
    text: str
    label: str
    """Its kind, or who said it."""
    at: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of an answer and the ids of the lines that it rests on, at least one."""

    text: str
    ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """What one look gave: sentences that stand, and words to look for where nothing does."""

    sentences: tuple[Sentence, ...]
    search: tuple[str, ...]
    provenance: Provenance


def look(
    asking: Asking, question: str, rows: Sequence[Row], *, zone: ZoneInfo, names: Sequence[str] = ()
) -> Look:
    """Answer ``question`` from ``rows``. ``names`` are those of the two who talk, which need no source.

    Asks the model once; raises what `Chat.complete` does.
    """
    prompt = instructed(load_prompt("answer_question"), asking.instructions)
    shown = Shown.of(rows, zone=zone, names=names, instructions=asking.instructions)
    material = [shown.text, f"<question>{quoted(question)}</question>"]
    answer = ask(asking, prompt, material, shape=AnswerQuestion)
    sentences, dropped = shown.standing(answer.value.sentences)
    return Look(
        sentences=sentences,
        search=_searches(answer.value.search, question),
        provenance=provenance_of(prompt, answer, dropped),
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """Rows as a model sees them, by reference, and what its sentences about them are held against."""

    rows: Mapping[str, Row]
    lines: Mapping[str, str]
    names: tuple[str, ...]
    instructions: Instructions

    @classmethod
    def of(
        cls, rows: Sequence[Row], *, zone: ZoneInfo, names: Sequence[str], instructions: Instructions
    ) -> Shown:
        by_reference = {f"r{place}": row for place, row in enumerate(rows, 1)}
        lines = {reference: _line(reference, row, zone=zone) for reference, row in by_reference.items()}
        return cls(by_reference, lines, tuple(names), instructions)

    @property
    def text(self) -> str:
        return "\n".join(["<memory>", *self.lines.values(), "</memory>"])

    def standing(self, items: Sequence[SentenceAnswer]) -> tuple[tuple[Sentence, ...], Counter[str]]:
        """The sentences that stand, each once; the others counted by what is wrong with them."""
        sentences: dict[str, Sentence] = {}
        dropped: Counter[str] = Counter()
        for item in items:
            ground = self._ground(item)
            fault = fault_of_sentence(item.text, ground)
            if fault is None:
                sentences.setdefault(item.text, Sentence(item.text, tuple(row.id for row in ground.rows)))
            else:
                dropped[fault] += 1
        return tuple(sentences.values()), dropped

    def _ground(self, item: SentenceAnswer) -> _Ground:
        named = set(map(plain_reference, item.evidence))
        references = [reference for reference in self.rows if reference in named]
        return _Ground(
            lines=tuple(self.lines[reference] for reference in references),
            rows=tuple(self.rows[reference] for reference in references),
            names=self.names,
            instructions=self.instructions,
        )


@dataclass(frozen=True, slots=True)
class _Ground:
    """What a sentence is held against: its rows, and the same as lines that the model saw."""

    lines: tuple[str, ...]
    rows: tuple[Row, ...]
    names: tuple[str, ...]
    instructions: Instructions

    @property
    def said(self) -> str:
        # With dates and speakers, which stand before the text.
        return "\n".join(self.lines)


def fault_of_sentence(text: str, ground: _Ground) -> str | None:
    """Return why a sentence of an answer may not stand, in words that may be counted, or None."""
    if not ground.rows:
        return NO_EVIDENCE
    sources = [*ground.lines, *ground.names]
    if repeats_prompt(text, sources):
        return SAMPLE
    if repeats_instructions(text, sources, ground.instructions):
        return FROM_INSTRUCTIONS
    if invents_numbers(text, ground.lines):
        return NUMBERS
    if _has_new_name(text, sources):
        return NAMES
    if not _is_founded(text, ground):
        return UNFOUNDED
    if _denies(text, ground):
        return NEGATIONS
    return None


def _has_new_name(text: str, sources: Sequence[str]) -> bool:
    """Whether a word with a capital letter, at the beginning of a sentence too, stands in no source."""
    words = {_bare(word) for source in sources for word in _NAME.findall(source)}
    beginnings = {word[:VARIANT_LETTERS] for word in words}
    names = (_bare(name) for name in _NAME.findall(text) if name[0].isupper())
    # "She", "Yes" and the like begin a sentence and name nobody.
    return any(not is_said(name, words, beginnings) for name in names if name not in COMMON)


def _bare(word: str) -> str:
    return _POSSESSIVE.sub("", word).casefold()


def _is_founded(text: str, ground: _Ground) -> bool:
    names = " ".join(ground.names)
    # In a script without blanks a sentence is one word: pairs of its characters are compared instead.
    if " " not in text:
        pairs = terms(text).keys() - terms(names).keys()
        return len(pairs & terms(ground.said).keys()) >= FOUNDED * len(pairs)
    telling = content_words(text) - content_words(names) - AUXILIARIES - _TIME
    unfounded = telling & words_only_in(text, ground.said)
    return len(telling) - len(unfounded) >= FOUNDED * len(telling)


def _denies(text: str, ground: _Ground) -> bool:
    """Whether every sentence that ``text`` can rest on says the opposite. Of what is past, "no longer" is true."""
    if any(row.until is not None for row in ground.rows):
        return False
    telling = content_words(text) - content_words(" ".join(ground.names))
    sentences = [part for row in ground.rows for part in _SENTENCE.findall(row.text)]
    bearing = [part for part in sentences if telling & content_words(part)]
    return bool(bearing) and all(conflicting(text, part) == NEGATION for part in bearing)


def _searches(phrases: Sequence[str], question: str) -> tuple[str, ...]:
    asked = question.casefold()
    cut = (phrase[:SEARCH_CHARS].strip() for phrase in phrases)
    return tuple(dict.fromkeys(phrase for phrase in cut if phrase and phrase.casefold() != asked))[
        :SEARCHES_LIMIT
    ]


def _line(reference: str, row: Row, *, zone: ZoneInfo) -> str:
    when = f"{row.at.astimezone(zone):%Y-%m-%d}" if row.at else ""
    until = f" until {row.until.astimezone(zone):%Y-%m-%d}" if row.until else ""
    text = quoted(middle_left_out(row.text, ROW_CHARS))
    return f"[{reference}] {quoted_label(row.label)} | {when}{until} | {text}"
