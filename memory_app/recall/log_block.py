"""The lines of the log that fill the room left in a window: the best are chosen first, and shown in the order of time.

One block holds all of them, and a date stands only where the day changes: marks and digits cost a model more tokens
than words.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memory_app.language.budget import count_tokens
from memory_app.recall.lines import local_time, log_line
from memory_app.recall.parts import ContextParts
from memory_app.records.records import Tier

LINE_CHARS = 400
"""A longer turn is shown by its passage of this length."""

LEAST_TOKENS = 12
"""Less room than this holds no line."""

MISSES_LIMIT = 6
"""Lines that did not fit, one after the other: then the rest of the room is too small to look for more."""

_OPENING = f'<memory tier="{Tier.DAILY_LOGS.value}">'
_CLOSING = "</memory>"
_FRAME_TOKENS = count_tokens(_OPENING) + count_tokens(_CLOSING)
_DATE_TOKENS = count_tokens("[2026-01-31 09:00] A") - count_tokens("[09:00] A")


@dataclass(frozen=True, slots=True)
class LogBlock:
    """Lines in order of time between their opening and closing line, the ids of their turns, and the tokens of all."""

    lines: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class _Chosen:
    at: datetime
    session: str
    seq: int
    id: str
    day: str
    text: str


def log_block(parts: ContextParts, *, room: int) -> LogBlock:
    """Choose from ``parts.log``, best first, what fits into ``room`` tokens; each line is counted once."""
    left = room - _FRAME_TOKENS
    chosen: list[_Chosen] = []
    days: set[str] = set()
    misses = 0
    for turn in parts.log:
        if left < LEAST_TOKENS or misses == MISSES_LIMIT:
            break
        line = log_line(turn, parts)
        text = line.cut_to(LINE_CHARS)
        day = local_time(turn.at, parts.zone)[:10]
        tokens = count_tokens(text) + (0 if day in days else _DATE_TOKENS)
        if tokens > left:
            misses += 1
            continue
        misses = 0
        left -= tokens
        days.add(day)
        chosen.append(_Chosen(turn.at, turn.session, turn.seq, str(turn.id), day, text))
    if not chosen:
        return LogBlock()
    chosen.sort(key=lambda row: (row.at, row.session, row.seq))
    return LogBlock(
        lines=(_OPENING, *_dated(chosen), _CLOSING),
        ids=tuple(row.id for row in chosen),
        tokens=room - left,
    )


def _dated(chosen: list[_Chosen]) -> list[str]:
    lines = []
    day = ""
    for row in chosen:
        # The line begins with the bracket of its time.
        lines.append(row.text if row.day == day else f"[{row.day} {row.text[1:]}")
        day = row.day
    return lines
