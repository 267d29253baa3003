"""The drawing of facts in time: which bars there are, where they stand, and that nothing in them is markup."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from uuid import UUID

from memory_app.memories.rows.browse import Saying, Tie, ToldFact
from memory_app.memories.rows.entities import Entity
from memory_app.page import graph, timeline
from memory_app.page.timeline import Lane, Span
from memory_app.records.records import Memory, Retirement

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPAN = Span(datetime(2016, 1, 1, tzinfo=UTC), NOW)


def fact(
    number: int,
    start: int,
    end: int | None = None,
    *,
    is_past: bool = False,
    relation: str | None = "lives_in",
    text: str = "Mira lives there.",
) -> ToldFact:
    memory = Memory(
        "fact",
        text,
        subject="mira",
        relation=relation,
        object=str(number),
        id=UUID(int=number),
        created_at=NOW,
        valid_from=datetime(start, 1, 1, tzinfo=UTC),
        valid_until=None if end is None else datetime(end, 1, 1, tzinfo=UTC),
        retired_at=NOW if is_past else None,
        retired_reason=Retirement.SUPERSEDED if is_past else None,
    )
    return ToldFact(memory, Saying("Mira", "I live there.", NOW))


def rects(svg: str) -> list[tuple[str, float, float, float]]:
    """Look, place, row and width of each bar."""
    found = re.findall(r'class="(\w+)" x="([\d.]+)" y="(\d+)" width="([\d.]+)"', svg)
    return [(look, float(x), float(y), float(width)) for look, x, y, width in found]


def test_facts_of_one_subject_and_relation_share_a_lane() -> None:
    lanes = timeline.lanes([fact(1, 2020), fact(2, 2018), fact(3, 2019, relation=None)])

    assert [(lane.label, [f.memory.id.int for f in lane.facts]) for lane in lanes] == [
        ("mira · lives in", [2, 1]),
        ("", [3]),
    ]


def test_what_is_superseded_lies_behind_what_holds() -> None:
    lane = Lane("home", (fact(1, 2016, 2021, is_past=True), fact(2, 2021)))

    (before, now) = rects(timeline.draw(lane, SPAN, "/ui/memories"))

    assert before[0] == "past" and now[0] == "holds"
    assert before[1] == 0 and abs(before[3] - now[1]) < 1
    assert abs(now[1] + now[3] - timeline.WIDTH) < 1


def test_what_holds_at_the_same_time_stands_in_rows() -> None:
    lane = Lane("plans", (fact(1, 2017), fact(2, 2018, 2019), fact(3, 2020)))

    svg = timeline.draw(lane, SPAN, "/ui/memories")

    assert [y for _, _, y, _ in rects(svg)] == [3, 27, 27]
    assert 'height="48"' in svg


def test_a_lane_of_much_that_holds_at_once_stays_low() -> None:
    svg = timeline.draw(Lane("", tuple(fact(number, 2016) for number in range(100))), SPAN, "/ui/memories")

    assert len(rects(svg)) == 100
    assert f'height="{timeline.ROWS_LIMIT * timeline.HEIGHT}"' in svg


def test_the_shortest_bar_can_still_be_seen() -> None:
    lane = Lane("", (fact(1, 2026),))

    ((_, x, _, width),) = rects(timeline.draw(lane, SPAN, "/ui/memories"))

    assert width == timeline.NARROWEST and x + width <= timeline.WIDTH


def test_a_bar_tells_the_turn_that_said_it_and_nothing_in_it_is_markup() -> None:
    told = fact(1, 2020, text='"><script>alert(1)</script>')

    svg = timeline.draw(Lane("<b>", (told,)), SPAN, "/ui/memories")

    assert "“I live there.”" in svg and "Mira, 2026-01-01" in svg
    assert "<script" not in svg and "<b>" not in svg
    assert f'href="/ui/memories/{told.memory.id}"' in svg


def test_the_time_that_is_shown_holds_every_bar_and_is_never_empty() -> None:
    assert timeline.span_of([fact(1, 2020), fact(2, 2018, 2030)], NOW) == Span(
        datetime(2018, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
    )
    short = timeline.span_of([fact(1, 2026)], NOW)
    assert short.end - short.start == timeline.SHORTEST


def entity(number: int, label: str) -> Entity:
    return Entity(number, 1, f"person:{number}", "person", label, (), None, NOW, NOW, mention_count=number)


def test_a_graph_draws_entities_and_lines_between_those_shown() -> None:
    entities = [entity(number, f"<i>{number}</i>") for number in range(40, 0, -1)]
    ties = [Tie(40, 39, 3), Tie(40, 1, 9)]

    svg = graph.draw(entities, ties, lambda entity: f"/{entity.key}")

    assert svg.count("<circle") == graph.SHOWN and svg.count("<line") == 1
    places = [float(x) for x in re.findall(r'c[xy]="([\d.]+)"', svg)]
    assert min(places) > 0 and max(places) < graph.SIZE
    assert "<i>" not in svg


def test_a_graph_of_nobody_is_empty() -> None:
    assert graph.draw([], [], lambda entity: "") == ""
