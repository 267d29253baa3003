"""The ladder: what the one write path does with a statement, given its neighbours. Pure; effects are elsewhere.

Steps, in this order: the same text again, the same fact in time, the same meaning, merge, link, insert. The
caller fetches the neighbours: rows of the same canonical key, every row (closed ones too) of the same subject
with the same or an opposing relation, and the nearest by cosine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from uuid import UUID

from memory_app.domain.intervals import Cut, Interval
from memory_app.domain.records import (
    EmotionalState,
    Memory,
    Origin,
    Outcome,
    RelationalContext,
    Statement,
)

Pairs = Mapping[frozenset[UUID], float]
"""Cosine of two neighbours by the set of their ids; a pair that is absent counts as not similar.

For rows that others were merged into it is the lowest cosine between any two of the statements behind them.
"""


class Trust(IntEnum):
    """Who stands behind a statement. What is trusted less never ends what is trusted more."""

    TOOL = 1
    ASSISTANT = 2
    USER = 3


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Cosines. ``merge`` and ``fact`` belong to the embedding model; ``merge_most`` counts the new statement too.

    ``fact`` is where two wordings of one subject, relation and object count as one fact (0.20 for hashing, 0.32
    for wordllama, 0.42 for MiniLM: the best single cuts measured on restated facts).
    """

    same: float = 0.96
    merge: float = 0.85
    link: float = 0.75
    fact: float = 0.32
    merge_most: int = 5


@dataclass(frozen=True, slots=True)
class Candidate:
    """A statement with everything resolved: keys, relation (normalised), times, importance 1–10, trust."""

    statement: Statement
    canonical_key: str
    valid_from: datetime
    now: datetime
    importance: int
    valid_until: datetime | None = None
    subject_key: str | None = None
    relation: str | None = None
    object_key: str | None = None
    single_valued: bool = False
    opposes: tuple[str, ...] = ()
    session: str | None = None
    trust: Trust = Trust.USER


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored memory of the scope as seen from the candidate.

    ``similarity`` is the cosine to its text (0 when unknown). ``cohesion`` is the lowest cosine to any statement
    merged into it, None when nothing was: without it, merge after merge would drift from topic to topic.
    ``confirmed_at`` is the latest ``seen_at`` of what was stored or reinforced here; None means ``valid_from``.
    """

    memory: Memory
    canonical_key: str
    similarity: float = 0.0
    cohesion: float | None = None
    subject_key: str | None = None
    object_key: str | None = None
    single_valued: bool = False
    sources: tuple[str, ...] = ()
    confirmed_at: datetime | None = None
    trust: Trust = Trust.USER


# --- what can be decided ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reinforce:
    """Said again: repeat +1, evidence, source, confidence by `corroborated`, ``seen_at`` if it is later.

    ``valid_from`` and ``valid_until``, where set, are the wider or the newly known bounds to write.
    """

    target: UUID
    seen_at: datetime
    valid_from: datetime | None = None
    valid_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Supersede:
    """A new row (the last of ``holds``) that is true now, and the rows it ends. Write ``cuts`` first.

    Each earlier interval of ``holds``, if any, is a copy of the new row. Cut rows get the new one as successor.
    """

    holds: tuple[Interval, ...]
    cuts: tuple[Cut, ...]


@dataclass(frozen=True, slots=True)
class InsertClosed:
    """A new row of history (the last of ``holds``): it does not displace what is true now.

    ``cuts`` shorten rows of history, or interrupt a current one, of which a copy resumes.
    """

    holds: tuple[Interval, ...]
    cuts: tuple[Cut, ...] = ()


@dataclass(frozen=True, slots=True)
class MergedFields:
    """Everything of the row that takes the place of its parents."""

    kind: str
    text: str
    subtype: str | None
    subject: str | None
    relation: str | None
    object: str | None
    subject_key: str | None
    object_key: str | None
    single_valued: bool
    importance: int
    confidence: float
    tags: tuple[str, ...]
    pinned: bool
    origin: Origin
    sources: tuple[str, ...]
    emotional_state: EmotionalState | None
    relational_context: RelationalContext | None
    synthesis_type: str | None
    session: str | None
    valid_from: datetime
    valid_until: datetime | None
    created_at: datetime
    last_seen: datetime
    last_recalled: datetime | None
    repeat_count: int
    recall_count: int
    feedback_score: float
    parents: tuple[UUID, ...]
    needs_model: bool
    """The longest text would lose too much of the others: a model should word it, later if none is at hand."""


@dataclass(frozen=True, slots=True)
class Merge:
    """A new row with ``merged`` in place of ``targets``, which are retired as merged once it is stored."""

    targets: tuple[UUID, ...]
    merged: MergedFields


@dataclass(frozen=True, slots=True)
class InsertLinked:
    """A new row, linked ``similar_to`` each id with the cosine as weight.

    ``contested``: what is stored about the same thing is trusted more, so the new row must not be stored as the
    single value of its relation.
    """

    links: tuple[tuple[UUID, float], ...]
    contested: bool = False


@dataclass(frozen=True, slots=True)
class Insert:
    """A new row. ``holds`` are its intervals when they differ from the candidate's own, as in `Supersede`."""

    holds: tuple[Interval, ...] = ()


Decision = Reinforce | Supersede | InsertClosed | Merge | InsertLinked | Insert

_OUTCOMES: dict[type, Outcome] = {
    Reinforce: Outcome.REINFORCED,
    Supersede: Outcome.SUPERSEDED,
    InsertClosed: Outcome.INSERTED,
    Merge: Outcome.MERGED,
    InsertLinked: Outcome.LINKED,
    Insert: Outcome.INSERTED,
}


def outcome_of(decision: Decision) -> Outcome:
    """The word that the answer to the caller carries."""
    return _OUTCOMES[type(decision)]


def decide(
    candidate: Candidate,
    neighbours: Sequence[Neighbour],
    *,
    thresholds: Thresholds,
    pairs: Pairs,
    deduplicate: bool = True,
) -> Decision:
    """What to do with ``candidate``. The order of ``neighbours`` does not matter.

    Without ``deduplicate`` similar wordings are not taken for the same; the same text still is, and facts still
    follow each other in time, since two rows of either cannot be current at once.
    """
    raise NotImplementedError


def merge(memories: Sequence[Neighbour], candidate: Candidate | None = None) -> MergedFields:
    """The fields of the row that unites ``memories`` (at least one) and, if given, a new statement."""
    raise NotImplementedError


def cohesive(
    memories: Sequence[Neighbour], *, thresholds: Thresholds, pairs: Pairs
) -> tuple[tuple[Neighbour, ...], ...]:
    """Groups of two and more among stored ``memories`` that may be merged; no memory is in two of them."""
    raise NotImplementedError


def needs_model(texts: Sequence[str]) -> bool:
    """Would taking the longest of ``texts`` lose too much of the others?"""
    raise NotImplementedError


def corroborated(confidence: float, sources_before: Sequence[str], source: str | None) -> float:
    """Confidence after one more statement: raised only if ``source`` is another than those before."""
    raise NotImplementedError


def trust_of(origin: Origin, sources: Sequence[str]) -> Trust:
    """Trust of the best of ``sources``, which are named ``role:name``; without such names it follows ``origin``."""
    raise NotImplementedError
