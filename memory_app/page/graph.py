"""A small graph of who and what is talked about together: the most mentioned in the middle, the others around. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup

from memory_app.memories.rows.browse import Tie
from memory_app.memories.rows.entities import Entity

SIZE = 480
CENTER = SIZE / 2
RINGS = ((1, 0.0), (8, 105.0), (16, 195.0))
"""How many entities stand on a ring, and its radius."""

SHOWN = sum(count for count, _ in RINGS)
LABEL_CHARS = 18


def draw(entities: Sequence[Entity], ties: Sequence[Tie], address: Callable[[Entity], str]) -> Markup:
    """Entities as circles, by how often they are mentioned, and lines between those of the same memories."""
    places = _places(entities[:SHOWN])
    if not places:
        return Markup("")
    most = max(entity.mention_count for entity in entities) or 1
    strongest = max((tie.memories for tie in ties), default=1)
    lines = Markup("").join(
        _LINE.format(
            x1=_shown(places[tie.one][0]),
            y1=_shown(places[tie.one][1]),
            x2=_shown(places[tie.other][0]),
            y2=_shown(places[tie.other][1]),
            width=_shown(0.6 + 3.4 * tie.memories / strongest),
            title=f"{tie.memories} memories",
        )
        for tie in ties
        if tie.one in places and tie.other in places
    )
    nodes = Markup("").join(
        _NODE.format(
            address=address(entity),
            x=_shown(places[entity.id][0]),
            y=_shown(places[entity.id][1]),
            radius=_shown(5 + 9 * math.sqrt(entity.mention_count / most)),
            below=_shown(places[entity.id][1] + 25),
            type=entity.type,
            label=_short(entity.label),
            title=f"{entity.label} ({entity.type}), mentioned {entity.mention_count} times",
        )
        for entity in entities[:SHOWN]
    )
    return _GRAPH.format(size=SIZE, lines=lines, nodes=nodes)


def _places(entities: Sequence[Entity]) -> Mapping[int, tuple[float, float]]:
    """Where each entity stands, by its id."""
    places: dict[int, tuple[float, float]] = {}
    rest = list(entities)
    for ring, (count, radius) in enumerate(RINGS):
        here, rest = rest[:count], rest[count:]
        for number, entity in enumerate(here):
            # Each ring begins a little further on, so that labels of two rings do not stand above each other.
            angle = 2 * math.pi * (number + 0.5 * (ring % 2)) / len(here) - math.pi / 2
            places[entity.id] = (CENTER + radius * math.cos(angle), CENTER + radius * math.sin(angle))
    return places


def _shown(number: float) -> str:
    return f"{number:.1f}"


def _short(label: str) -> str:
    return label if len(label) <= LABEL_CHARS else label[: LABEL_CHARS - 1] + "…"


_LINE = Markup(
    '<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke-width="{width}"><title>{title}</title></line>'
)
_NODE = Markup(
    '<a href="{address}" aria-label="{title}"><circle class="{type}" cx="{x}" cy="{y}" r="{radius}">'
    '<title>{title}</title></circle><text x="{x}" y="{below}" text-anchor="middle">{label}</text></a>'
)
_GRAPH = Markup(
    '<svg class="graph" viewBox="0 0 {size} {size}" role="group" '
    'aria-label="Who and what is talked about together">{lines}{nodes}</svg>'
)
