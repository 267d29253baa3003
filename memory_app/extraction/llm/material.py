"""What a model is given to read: turns and memories as quoted lines between tags, each with a short reference.

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

SHOWN_CHARS = 48_000
"""All turns of one question, about 12,000 tokens; long ones are shortened to fit."""

LEAST_CHARS, MOST_CHARS = 400, 12_000
"""Bounds of what is shown of one turn."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Shown:
    """Turns by reference: ``t1`` … are to be read, ``e1`` … stood before them. ``text`` is what the model sees."""

    turns: Mapping[str, Turn]
    text: str

    def referred(self, references: Iterable[str]) -> tuple[Turn, ...]:
        """The turns behind ``references``, in their order; unknown ones are ignored.

        None at all when only earlier turns are named: what they say was read when they were new.
        """
        keys = {reference.strip().strip("[]").lower() for reference in references}
        if not any(reference in keys and reference.startswith("t") for reference in self.turns):
            return ()
        return tuple(turn for reference, turn in self.turns.items() if reference in keys)


def show_turns(
    turns: Sequence[Turn], earlier: Sequence[Turn], *, zone: ZoneInfo, known: Sequence[str] = ()
) -> Shown:
    """The new ``turns`` and those ``earlier``, with the labels that are already ``known`` for spelling."""
    by_reference = {**_numbered("e", earlier), **_numbered("t", turns)}
    most = max(LEAST_CHARS, min(MOST_CHARS, SHOWN_CHARS // max(len(by_reference), 1)))
    lines = {reference: _turn_line(reference, turn, zone, most) for reference, turn in by_reference.items()}
    blocks = [
        _block("known_names", [", ".join(quoted_label(label) for label in known[:100])] if known else []),
        _block("earlier_turns", [line for reference, line in lines.items() if reference.startswith("e")]),
        _block("turns", [line for reference, line in lines.items() if reference.startswith("t")]),
    ]
    return Shown(by_reference, "\n".join(block for block in blocks if block))


def show_memories(memories: Mapping[str, Memory], *, zone: ZoneInfo, tag: str = "memories") -> str:
    """Memories by reference, one a line."""
    lines = [
        f"[{reference}] {memory.kind} | {memory.valid_from.astimezone(zone):%Y-%m-%d} | "
        f"{quoted(shortened(memory.text, MOST_CHARS // 4))}"
        for reference, memory in memories.items()
    ]
    return _block(tag, lines)


def show_texts(texts: Sequence[str]) -> str:
    """Plain texts, one a line."""
    lines = [f"[m{place}] {quoted(shortened(text, MOST_CHARS // 4))}" for place, text in enumerate(texts, 1)]
    return _block("memories", lines)


def _numbered(letter: str, items: Sequence[Item]) -> dict[str, Item]:
    return {f"{letter}{place}": item for place, item in enumerate(items, 1)}


def numbered_memories(memories: Sequence[Memory], letter: str = "m") -> dict[str, Memory]:
    """Memories by the references a model sees."""
    return _numbered(letter, memories)


def _turn_line(reference: str, turn: Turn, zone: ZoneInfo, limit: int) -> str:
    text = quoted(_middle_left_out(turn.text, limit))
    when = f"{turn.at.astimezone(zone):%Y-%m-%d %H:%M}"
    return f"[{reference}] {when} | {turn.role} | {quoted_label(turn.speaker)}: {text}"


def _middle_left_out(text: str, limit: int) -> str:
    """Beginning and end of a long text: people state their business first or last."""
    if len(text) <= limit:
        return text
    return f"{text[: limit * 2 // 3]} … {text[-(limit // 3) :]}"


def _block(tag: str, lines: Sequence[str]) -> str:
    return "\n".join([f"<{tag}>", *lines, f"</{tag}>"]) if lines else ""


_MEMORY_BLOCK = re.compile(r"<memory\b[^>]{0,200}>(.*?)(?:</memory>|\Z)", re.DOTALL | re.IGNORECASE)


def handed_over(turns: Iterable[Turn]) -> tuple[str, ...]:
    """Memories that somebody put into a turn: between tags, in a context window, or as quoted lines."""
    return tuple(line for turn in turns for line in (*_tagged(turn.text), *split_pasted(turn.text).pasted))


def _tagged(text: str) -> Iterator[str]:
    for block in _MEMORY_BLOCK.findall(text):
        yield from (line for line in block.splitlines() if line.strip())
