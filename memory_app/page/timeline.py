"""The timeline of facts: a lane for each subject and relation, a bar for each interval in which it held. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from memory_app.memories.rows.browse import ToldFact
from memory_app.page.words import day

WIDTH, HEIGHT = 1_000, 24
"""Units of the drawing of a lane, which is stretched to the place that it gets."""

NARROWEST = 4
"""Units of the shortest bar, so that an hour among years can still be seen and clicked."""

ROWS_LIMIT = 8
"""Rows of a lane; where more holds at the same time, the last bars lie upon each other, and the list below has all."""

SHORTEST = timedelta(days=1)
"""Of the time that is shown."""


@dataclass(frozen=True, slots=True)
class Span:
    """The time that is shown, from the first beginning to now or to the last end."""

    start: datetime
    end: datetime

    def place(self, at: datetime) -> float:
        """Where an instant stands, in units of the drawing."""
        share = (at - self.start) / (self.end - self.start)
        return min(max(share, 0.0), 1.0) * WIDTH


@dataclass(frozen=True, slots=True)
class Lane:
    """Facts of one subject and relation, the one that began first first; a fact without them has a lane of its own."""

    label: str
    facts: tuple[ToldFact, ...]


def lanes(facts: Iterable[ToldFact]) -> tuple[Lane, ...]:
    """The facts by subject and relation, in the order in which these come."""
    by_label: dict[tuple[str, ...], list[ToldFact]] = {}
    for fact in facts:
        memory = fact.memory
        is_triple = memory.subject is not None and memory.relation is not None
        key = (str(memory.subject), str(memory.relation)) if is_triple else (str(memory.id),)
        by_label.setdefault(key, []).append(fact)
    return tuple(
        Lane(
            " · ".join(key).replace("_", " ") if len(key) == 2 else "",
            tuple(sorted(facts, key=lambda fact: (fact.memory.valid_from, fact.memory.id))),
        )
        for key, facts in by_label.items()
    )


def span_of(facts: Sequence[ToldFact], now: datetime) -> Span:
    """The time that all of the facts need."""
    start = min((fact.memory.valid_from for fact in facts), default=now)
    ends = [fact.memory.valid_until for fact in facts if fact.memory.valid_until is not None]
    end = max([now, *ends])
    return Span(start, end) if end - start >= SHORTEST else Span(end - SHORTEST, end)


def draw(lane: Lane, span: Span, address: str) -> Markup:
    """The bars of a lane: what held before lies behind, in a fainter colour. ``address`` is that of memories.

    What holds at the same time stands in rows below each other.
    """
    former = [fact for fact in lane.facts if fact.memory.retired_at is not None]
    rows = _rows([fact for fact in lane.facts if fact.memory.retired_at is None])
    # Drawn in this order, so that what holds now covers what it took the place of.
    bars = [_bar(fact, span, address, row=0) for fact in former]
    bars += [_bar(fact, span, address, row=row) for row, facts in enumerate(rows) for fact in facts]
    height = HEIGHT * max(len(rows), 1)
    return Markup(
        '<svg class="lane" viewBox="0 0 {width} {height}" height="{height}" preserveAspectRatio="none" role="group" '
        'aria-label="{label}">{bars}</svg>'
    ).format(width=WIDTH, height=height, label=lane.label or "A fact", bars=Markup("").join(bars))


def _rows(facts: Iterable[ToldFact]) -> list[list[ToldFact]]:
    """Facts, each in the first row in which the one before has ended; in the last row where there is none."""
    rows: list[list[ToldFact]] = []
    for fact in facts:
        start = fact.memory.valid_from
        free = (row for row in rows if (end := row[-1].memory.valid_until) is not None and end <= start)
        row = next(free, None)
        if row is not None:
            row.append(fact)
        elif len(rows) < ROWS_LIMIT:
            rows.append([fact])
        else:
            rows[-1].append(fact)
    return rows


def _bar(fact: ToldFact, span: Span, address: str, *, row: int) -> Markup:
    memory = fact.memory
    start = span.place(memory.valid_from)
    end = span.place(memory.valid_until or span.end)
    is_past = memory.retired_at is not None
    return Markup(
        '<a href="{address}/{id}" aria-label="{text}"><rect class="{look}" x="{x:.1f}" y="{y}" width="{width:.1f}" '
        'height="{height}" rx="3"><title>{title}</title></rect></a>'
    ).format(
        address=address,
        id=memory.id,
        text=memory.text[:200],
        look="past" if is_past else "holds",
        x=min(start, WIDTH - NARROWEST),
        y=row * HEIGHT + (6 if is_past else 3),
        width=max(end - start, NARROWEST),
        height=HEIGHT - (12 if is_past else 6),
        title=title(fact),
    )


def title(fact: ToldFact) -> str:
    """What a fact says, from when to when, and the turn that said it."""
    memory = fact.memory
    until = "still holds" if memory.valid_until is None else f"until {day(memory.valid_until)}"
    lines = [memory.text, f"from {day(memory.valid_from)}, {until}"]
    if fact.said is not None:
        lines.append(f"{fact.said.speaker}, {day(fact.said.at)}: “{fact.said.text}”")
    return "\n".join(lines)
