"""A small store in memory that plays the write path, and short ways to say a statement for tests of the ladder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from uuid import UUID

from memory_app.language.text import canonical_key, slug
from memory_app.memories.intervals import Cut, Interval, contains, overlaps
from memory_app.memories.ladder import (
    Candidate,
    Decision,
    Insert,
    InsertClosed,
    InsertLinked,
    Merge,
    Neighbour,
    Reinforce,
    Supersede,
    Thresholds,
    Trust,
    decide,
    neighbour_of,
    row_of,
)
from memory_app.memories.relations import relation_of
from memory_app.records.records import Statement

NOW = datetime(2024, 6, 1, tzinfo=UTC)
THRESHOLDS = Thresholds()
Similarity = Callable[[str, str], float]


def day(number: int) -> datetime:
    return datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=number)


def said(
    text: str,
    fact: tuple[str, str, str] | None = None,
    *,
    at: int = 0,
    until: int | None = None,
    trust: Trust = Trust.USER,
    session: str | None = None,
    kind: str = "fact",
    source: str | None = None,
    importance: int = 5,
    confirmed: int | None = None,
) -> Candidate:
    subject, relation, obj = fact or (None, None, None)
    row = relation_of(relation) if relation else None
    return Candidate(
        statement=Statement(kind, text, subject=subject, relation=relation, object=obj, source=source),
        canonical_key=canonical_key(text),
        valid_from=day(at),
        now=NOW,
        importance=importance,
        valid_until=None if until is None else day(until),
        subject_key=slug(subject) if subject else None,
        relation=row.name if row else None,
        object_key=slug(obj) if obj else None,
        single_valued=bool(row and row.single_valued),
        opposes=row.opposes if row else (),
        session=session,
        trust=trust,
        said_at=None if confirmed is None else day(confirmed),
    )


def stored(
    candidate: Candidate, number: int, *, similarity: float = 0.0, cohesion: float | None = None
) -> Neighbour:
    """The candidate as the row that was inserted for it."""
    row = row_of(candidate)
    memory = replace(row.memory, id=UUID(int=number), created_at=day(0) + timedelta(seconds=number))
    neighbour = neighbour_of(replace(row, memory=memory), {}, similarity=similarity, cohesion=cohesion)
    return replace(neighbour, trust=candidate.trust)


def judged(
    candidate: Candidate, *neighbours: Neighbour, alike: float = 0.0, deduplicate: bool = True
) -> Decision:
    """The decision when every two neighbours have the cosine ``alike``."""
    pairs = {frozenset({a.memory.id, b.memory.id}): alike for a, b in combinations(neighbours, 2)}
    return decide(candidate, neighbours, thresholds=THRESHOLDS, pairs=pairs, deduplicate=deduplicate)


@dataclass
class Shelf:
    """Does what is decided, as the store would, and checks what the store's constraints would refuse."""

    similarity: Similarity = lambda one, other: 1.0 if one == other else 0.0
    rows: dict[UUID, Neighbour] = field(default_factory=dict)
    origins: dict[UUID, tuple[str, ...]] = field(default_factory=dict)

    def remember(self, candidate: Candidate, *, deduplicate: bool = True) -> Decision:
        text = candidate.statement.text
        neighbours = [
            replace(
                row,
                similarity=self.similarity(text, row.memory.text),
                cohesion=min(self.similarity(text, origin) for origin in self.origins[id]),
            )
            for id, row in self.rows.items()
        ]
        pairs = {
            frozenset({a, b}): min(self.similarity(x, y) for x in self.origins[a] for y in self.origins[b])
            for a, b in combinations(self.rows, 2)
        }
        decision = decide(candidate, neighbours, thresholds=THRESHOLDS, pairs=pairs, deduplicate=deduplicate)
        self._apply(candidate, decision)
        self._check_constraints()
        return decision

    def _apply(self, candidate: Candidate, decision: Decision) -> None:
        whole = Interval(candidate.valid_from, candidate.valid_until)
        match decision:
            case Reinforce():
                self._reinforce(decision)
            case Supersede() | InsertClosed():
                for cut in decision.cuts:
                    self._cut(cut)
                for interval in decision.holds:
                    self._insert(candidate, interval)
            case Merge():
                self._merge(candidate, decision)
            case InsertLinked():
                self._insert(
                    candidate, whole, single_valued=candidate.single_valued and not decision.contested
                )
            case Insert():
                for interval in decision.holds or (whole,):
                    self._insert(candidate, interval)

    def _insert(self, candidate: Candidate, interval: Interval, *, single_valued: bool | None = None) -> None:
        row = stored(
            replace(candidate, valid_from=interval.start, valid_until=interval.until), len(self.rows) + 1
        )
        if single_valued is not None:
            row = replace(row, single_valued=single_valued)
        confirmed_at = candidate.confirmed_at
        self.rows[row.memory.id] = replace(row, confirmed_at=confirmed_at, first_confirmed_at=confirmed_at)
        self.origins[row.memory.id] = (candidate.statement.text,)

    def _reinforce(self, decision: Reinforce) -> None:
        for cut in decision.cuts:
            self._cut(cut)
        row = self.rows[decision.target]
        memory = replace(
            row.memory,
            repeat_count=row.memory.repeat_count + 1,
            valid_from=decision.valid_from or row.memory.valid_from,
            valid_until=decision.valid_until or row.memory.valid_until,
        )
        confirmed_at = max(row.confirmed_at or row.memory.valid_from, decision.confirmed_at)
        first = min(row.first_confirmed_at or row.memory.valid_from, decision.confirmed_at)
        self.rows[decision.target] = replace(
            row, memory=memory, confirmed_at=confirmed_at, first_confirmed_at=first
        )

    def _cut(self, cut: Cut) -> None:
        row = self.rows[cut.target]
        ended = replace(row.memory, valid_until=cut.at, retired_at=NOW, retired_reason="superseded")
        self.rows[cut.target] = replace(row, memory=ended)
        for interval in cut.resumes:
            id = UUID(int=len(self.rows) + 1)
            memory = replace(row.memory, id=id, valid_from=interval.start, valid_until=interval.until)
            self.rows[id] = replace(row, memory=memory)
            self.origins[id] = self.origins[cut.target]

    def _merge(self, candidate: Candidate, decision: Merge) -> None:
        for id in decision.targets:
            row = self.rows[id]
            self.rows[id] = replace(row, memory=replace(row.memory, retired_at=NOW, retired_reason="merged"))
        merged, id = decision.merged, UUID(int=len(self.rows) + 1)
        row = neighbour_of(replace(merged, memory=replace(merged.memory, id=id)), {})
        self.rows[id] = replace(row, trust=candidate.trust)
        origins = (origin for target in decision.targets for origin in self.origins[target])
        self.origins[id] = (candidate.statement.text, *origins)

    def _check_constraints(self) -> None:
        opened = [row for row in self.live if row.memory.valid_until is None]
        keys = [(row.memory.session, row.memory.kind, row.canonical_key) for row in opened]
        single = [
            (row.memory.session, row.subject_key, row.memory.relation) for row in opened if row.single_valued
        ]
        assert len(keys) == len(set(keys)), "two current rows of one text"
        assert len(single) == len(set(single)), "two current rows of one single-valued relation"
        for one, other in combinations((row for row in self.live if row.single_valued), 2):
            if (one.subject_key, one.memory.relation) == (other.subject_key, other.memory.relation):
                assert _reach_back(one, other) or not overlaps(held(one), held(other)), "two values at once"

    @property
    def live(self) -> list[Neighbour]:
        """Rows that say something: what is true, and what was in its time."""
        return [row for row in self.rows.values() if row.memory.retired_reason in (None, "superseded")]

    @property
    def current(self) -> list[str | None]:
        return sorted(
            (row.memory.object or row.memory.text) for row in self.live if row.memory.valid_until is None
        )

    def as_of(self, at: int) -> list[str | None]:
        return [row.memory.object for row in self.live if contains(held(row), day(at))]


def _reach_back(*rows: Neighbour) -> bool:
    """Whether one of them was said of a time before: then both may have been said of one time."""
    return any((row.confirmed_at or day(0)) > row.memory.valid_from for row in rows)


def held(row: Neighbour) -> Interval:
    return Interval(row.memory.valid_from, row.memory.valid_until)


def lives_in(
    place: str,
    *,
    at: int,
    until: int | None = None,
    trust: Trust = Trust.USER,
    confirmed: int | None = None,
) -> Candidate:
    return said(
        f"Anna lives in {place}",
        ("Anna", "lives_in", place),
        at=at,
        until=until,
        trust=trust,
        confirmed=confirmed,
    )


def rich(number: int, **changes: object) -> Neighbour:
    row = stored(said("Anna likes olives"), number)
    return replace(row, memory=replace(row.memory, **changes))  # type: ignore[arg-type]
