"""What the score of a candidate is made of, as a stacked bar: a part for each signal, as wide as what it adds. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

WIDTH, HEIGHT = 400, 14
"""Units of the drawing, which is stretched to the place that it gets."""

COLOURS = 6
"""Marks of the style sheet; the strongest signals of a candidate get one each, the others share the last."""

LEAST = 0.005
"""What adds less is not told."""


@dataclass(frozen=True, slots=True)
class Part:
    """A signal, 0–1, and what it adds to the relevance; below 0 it takes away. ``mark`` is its colour."""

    name: str
    signal: float
    added: float
    mark: int


@dataclass(frozen=True, slots=True)
class Bar:
    """The parts of a score, the one that adds most first, and their drawing; empty where nothing is explained."""

    parts: tuple[Part, ...]
    drawn: Markup


def bar(explained: Mapping[str, Any]) -> Bar:
    """The bar of an explained hit; a full bar is the most that the query allows."""
    contributions: Mapping[str, float] = explained.get("contributions", {})
    told = sorted(
        ((name, added) for name, added in contributions.items() if abs(added) >= LEAST),
        key=lambda entry: -entry[1],
    )
    parts = tuple(
        Part(name, float(explained["signals"].get(name, 0.0)), added, mark=min(place, COLOURS - 1) + 1)
        for place, (name, added) in enumerate(told)
    )
    return Bar(parts, _draw(parts, full=float(explained.get("full_relevance") or 0)))


def _draw(parts: tuple[Part, ...], *, full: float) -> Markup:
    adding = [part for part in parts if part.added > 0]
    # Links may lift a row above what the signals allow; then its own sum is the full bar.
    scale = WIDTH / max(full, sum(part.added for part in adding), LEAST)
    pieces, left = Markup(""), 0.0
    for part in adding:
        width = part.added * scale
        pieces += _PIECE.format(
            mark=part.mark,
            x=f"{left:.1f}",
            width=f"{width:.1f}",
            height=HEIGHT,
            title=f"{part.name}: {part.signal:.2f}, adds {part.added:.3f}",
        )
        left += width
    return _BAR.format(width=WIDTH, height=HEIGHT, pieces=pieces)


_PIECE = Markup(
    '<rect class="mark-{mark}" x="{x}" y="0" width="{width}" height="{height}"><title>{title}</title></rect>'
)
_BAR = Markup(
    '<svg class="stack" viewBox="0 0 {width} {height}" preserveAspectRatio="none" aria-hidden="true">{pieces}</svg>'
)
