"""Write what a model is given to read: turns and memories as quoted lines between tags, each with a reference.

References instead of ids save tokens and cannot be made up unnoticed. Quoting keeps every text on its line, so that
none can close the tags or pass for another turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from zoneinfo import ZoneInfo

from memory_app.extraction.quoted_parts import split_pasted
from memory_app.records.quote import quoted, quoted_label, shortened
from memory_app.records.records import Memory, Turn

TURNS_CHARS = 48_000
"""All turns of one prompt, about 12,000 tokens; long ones are shortened to fit."""

TURN_CHARS_FLOOR, TURN_CHARS_LIMIT = 400, 12_000
"""Bounds of what stands in a prompt of one turn."""

MEMORY_CHARS = 3_000
NAMES_LIMIT = 100
"""Labels of known entities in a prompt."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Transcript:
    """Turns by reference: ``t1`` … are to be read, ``e1`` … stood before them. ``text`` is what the model sees."""

    turns: Mapping[str, Turn]
    text: str

    def referred(self, references: Iterable[str]) -> tuple[Turn, ...]:
        """Return the turns behind ``references``, in the order shown; unknown ones are ignored.

        None at all when only earlier turns are named: what they say was read when they were new.
        """
        named = set(map(plain_reference, references)) & self.turns.keys()
        if not any(reference.startswith("t") for reference in named):
            return ()
        return tuple(turn for reference, turn in self.turns.items() if reference in named)


def plain_reference(reference: str) -> str:
    """Return ``reference`` as the prompt has it; models write it as "[T1]" as well."""
    return reference.strip().strip("[]").lower()


def show_turns(
    turns: Sequence[Turn], earlier: Sequence[Turn], *, zone: ZoneInfo, labels: Sequence[str] = ()
) -> Transcript:
    """Write the new ``turns`` and those ``earlier``, with the labels of known entities for their spelling."""
    by_reference = {**_numbered("e", earlier), **_numbered("t", turns)}
    # The same for all, so that one long turn cannot take the place of the others.
    share = TURNS_CHARS // max(len(by_reference), 1)
    limit = max(TURN_CHARS_FLOOR, min(TURN_CHARS_LIMIT, share))

    def block(tag: str, letter: str, items: Sequence[Turn]) -> str:
        lines = [
            _turn_line(reference, turn, zone=zone, limit=limit)
            for reference, turn in _numbered(letter, items).items()
        ]
        return _block(tag, lines)

    names = ", ".join(map(quoted_label, labels[:NAMES_LIMIT]))
    blocks = (
        _block("known_names", [names] if labels else []),
        block("earlier_turns", "e", earlier),
        block("turns", "t", turns),
    )
    return Transcript(by_reference, "\n".join(filter(None, blocks)))


def show_memories(memories: Mapping[str, Memory], *, zone: ZoneInfo, tag: str = "memories") -> str:
    """Write memories by reference, one a line."""
    lines = [
        f"[{reference}] {memory.kind} | {memory.valid_from.astimezone(zone):%Y-%m-%d} | "
        f"{quoted(shortened(memory.text, MEMORY_CHARS))}"
        for reference, memory in memories.items()
    ]
    return _block(tag, lines)


def show_texts(texts: Sequence[str]) -> str:
    """Write plain texts, one a line."""
    lines = [f"[m{place}] {quoted(shortened(text, MEMORY_CHARS))}" for place, text in enumerate(texts, 1)]
    return _block("memories", lines)


def _numbered(letter: str, items: Sequence[Item]) -> dict[str, Item]:
    return {f"{letter}{place}": item for place, item in enumerate(items, 1)}


def numbered_memories(memories: Sequence[Memory], letter: str = "m") -> dict[str, Memory]:
    """Number memories by the references a model sees."""
    return _numbered(letter, memories)


def _turn_line(reference: str, turn: Turn, *, zone: ZoneInfo, limit: int) -> str:
    text = quoted(middle_left_out(turn.text, limit))
    when = f"{turn.at.astimezone(zone):%Y-%m-%d %H:%M}"
    return f"[{reference}] {when} | {turn.role} | {quoted_label(turn.speaker)}: {text}"


def middle_left_out(text: str, limit: int) -> str:
    """Beginning and end of a long text: people state their business first or last."""
    if len(text) <= limit:
        return text
    return f"{text[: limit * 2 // 3]} … {text[-(limit // 3) :]}"


def _block(tag: str, lines: Sequence[str]) -> str:
    return "\n".join([f"<{tag}>", *lines, f"</{tag}>"]) if lines else ""


_MEMORY_BLOCK = re.compile(r"<memory\b[^>]{0,200}>(.*?)(?:</memory>|\Z)", re.DOTALL | re.IGNORECASE)


def handed_over(turns: Iterable[Turn]) -> tuple[str, ...]:
    """Return memories that somebody put into a turn: between tags, in a context window, or as quoted lines."""
    lines: list[str] = []
    for turn in turns:
        lines.extend(_tagged(turn.text))
        lines.extend(split_pasted(turn.text).pasted)
    return tuple(lines)


def _tagged(text: str) -> Iterator[str]:
    for block in _MEMORY_BLOCK.findall(text):
        yield from filter(str.strip, block.splitlines())
