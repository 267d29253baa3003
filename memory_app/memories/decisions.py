"""What the ladder weighs, and what it can decide: the records between it and the write path.

No rule lives here but the meaning of each field. The rules are in `ladder`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from uuid import UUID

from memory_app.memories.intervals import Cut, Interval
from memory_app.records.records import MemoryRow, Outcome, Statement

Pairs = Mapping[frozenset[UUID], float]
"""Cosine of two neighbours by the set of their ids; a pair that is absent counts as not similar.

For rows that others were merged into it is the lowest cosine between any two of the statements behind them.
"""

Triple = tuple[str | None, str | None, str | None]
"""Slug of the subject, normalised relation, slug of the object; None for what a statement leaves open."""

MERGE_LIMIT = 5
"""Most statements in one merge: more would be summed up from more than one can check."""


class Trust(IntEnum):
    """Who stands behind a statement. What is trusted less never ends what is trusted more."""

    TOOL = 1
    ASSISTANT = 2
    USER = 3


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Cosines. ``merge`` and ``fact`` belong to the embedding model; a ``merge`` above 1 merges nothing.

    ``fact`` is where two wordings of one subject, relation and object count as one fact (0.20 for hashing,
    0.32 for wordllama, 0.42 for MiniLM: the best single cuts measured on restated facts). ``merge_most`` is
    the most statements in one merge, the new one included.
    """

    same: float = 0.96
    merge: float = 0.85
    link: float = 0.75
    fact: float = 0.32
    merge_most: int = MERGE_LIMIT


@dataclass(frozen=True, slots=True)
class Candidate:
    """A statement with everything resolved: keys, relation (normalised), times, importance 1–10, trust.

    ``said_at`` is when somebody said it; None means when it begins. ``opposes`` are relations that it ends for its own
    object, ``ends`` those that it ends for every object. ``corrected_key`` is the slug of an object that was said by
    mistake.
    """

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
    ends: tuple[str, ...] = ()
    corrected_key: str | None = None
    session: str | None = None
    trust: Trust = Trust.USER
    said_at: datetime | None = None

    @property
    def triple(self) -> Triple:
        return self.subject_key, self.relation, self.object_key

    @property
    def confirmed_at(self) -> datetime:
        """The latest instant for which the statement vouches: when it was said, if it was still true then."""
        if self.said_at is None:
            return self.valid_from
        is_still_true = self.valid_until is None or self.valid_until > self.said_at
        # What is announced begins after it was said.
        return max(self.valid_from, self.said_at) if is_still_true else self.valid_from


@dataclass(frozen=True, slots=True)
class Neighbour(MemoryRow):
    """A stored memory of the scope as seen from the candidate; its slugs are those of the entities' heirs.

    ``similarity`` is the cosine to the candidate's text (0 when unknown). ``cohesion`` is the lowest cosine to any
    statement merged into it, None when nothing was: without it, merge after merge would drift from topic to topic.
    """

    similarity: float = 0.0
    cohesion: float | None = None
    trust: Trust = Trust.USER

    @property
    def triple(self) -> Triple:
        return self.subject_key, self.memory.relation, self.object_key


# --- what can be decided ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reinforce:
    """Said again: repeat +1, last seen, evidence, source, confidence by `corroborated`.

    ``confirmed_at`` is the instant at which the repetition says that it holds. ``valid_from`` and
    ``valid_until``, where set, are bounds to write: an earlier start, an end that was not known. ``cuts`` are rows that
    an earlier start ends; write them first.
    """

    target: UUID
    confirmed_at: datetime
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    cuts: tuple[Cut, ...] = ()


@dataclass(frozen=True, slots=True)
class Supersede:
    """A new row (the last of ``holds``) that is true now, and the rows it ends. Write ``cuts`` first.

    Each earlier interval of ``holds``, if any, is a copy of the new row. Cut rows get the new one as successor
    and copies of them, where they resume, keep their own ``confirmed_at``.
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
class Merge:
    """A new row with ``merged`` in place of ``targets``, which are retired as merged once it is stored."""

    targets: tuple[UUID, ...]
    merged: MemoryRow


@dataclass(frozen=True, slots=True)
class InsertLinked:
    """A new row, linked ``similar_to`` each id with the cosine as weight.

    ``contested``: what is stored about the same thing is trusted more, so the new row must not be stored as
    the single value of its relation.
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
