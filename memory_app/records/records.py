"""The records that layers hand each other. Frozen, without behaviour that needs I/O or a clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID


class Role(StrEnum):
    """Who said a turn, as in chat-completion messages."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


class Stage(StrEnum):
    """How far a ticket has come. ``failed`` and ``extracted`` are terminal."""

    ACCEPTED = "accepted"
    INDEXED = "indexed"
    EXTRACTED = "extracted"
    FAILED = "failed"


class Origin(StrEnum):
    """How a memory came to be; ``declared`` and ``imported`` need no evidence."""

    DECLARED = "declared"
    EXTRACTED = "extracted"
    SYNTHESIZED = "synthesized"
    IMPORTED = "imported"


FROM_EVIDENCE = (Origin.EXTRACTED, Origin.SYNTHESIZED)
"""A memory of these origins stands on turns or other memories, and goes with the last of them."""

STATED = (Origin.DECLARED, Origin.IMPORTED)
"""A memory of these origins stands by itself."""


class Outcome(StrEnum):
    """What the write path did with a statement."""

    INSERTED = "inserted"
    LINKED = "linked"
    MERGED = "merged"
    REINFORCED = "reinforced"
    SUPERSEDED = "superseded"


class Retirement(StrEnum):
    """Why a memory is no longer current."""

    MERGED = "merged"
    SUPERSEDED = "superseded"
    EVICTED = "evicted"
    EXPIRED = "expired"
    INVALIDATED = "invalidated"


RECOVERABLE = (Retirement.EVICTED, Retirement.EXPIRED)
"""Reasons after which a memory can be revived for some days."""

HISTORICAL = (Retirement.SUPERSEDED, Retirement.INVALIDATED)
"""Reasons after which a memory still says what was true in its interval."""


class SynthesisType(StrEnum):
    """How a memory was made of others. Imported memories may have types of their own."""

    CONSOLIDATION = "consolidation"
    PATTERN = "pattern"


class LinkType(StrEnum):
    """What a link between two memories says. Imported links may have types of their own."""

    SIMILAR_TO = "similar_to"
    DERIVED_FROM = "derived_from"
    RELATED_TO = "related_to"
    CAUSES = "causes"
    PART_OF = "part_of"
    FOLLOWS = "follows"
    CONTRADICTS = "contradicts"


class Label(StrEnum):
    """What somebody thought of an answer or a memory."""

    UP = "up"
    DOWN = "down"
    RETRY = "retry"


class Tier(StrEnum):
    """What recall looks through: memories, entity cards, turns."""

    FACTS = "facts"
    ENTITIES = "entities"
    DAILY_LOGS = "daily-logs"


ENTITY_TYPES = ("person", "place", "org", "project", "thing", "concept")

VALENCES = (
    "joy",
    "curiosity",
    "concern",
    "grief",
    "frustration",
    "excitement",
    "calm",
    "neutral",
    "warmth",
    "playful",
)


@dataclass(frozen=True, slots=True)
class EmotionalState:
    """``valence`` is one of `VALENCES`, ``intensity`` 0–1, ``user_impact`` free text such as "validating"."""

    valence: str
    intensity: float = 0.5
    user_impact: str | None = None


@dataclass(frozen=True, slots=True)
class RelationalContext:
    """``bond_strength`` 0–1; the lists are united when memories merge."""

    bond_strength: float | None = None
    communication_style: tuple[str, ...] = ()
    shared_references: tuple[str, ...] = ()
    user_values: tuple[str, ...] = ()
    user_struggles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn as the caller gives it, cleaned and checked. ``at`` is aware; None means the time of acceptance."""

    role: Role
    text: str
    speaker: str | None = None
    at: datetime | None = None
    idempotency_key: str | None = None
    emotional_tone: str | None = None
    tools_used: tuple[str, ...] = ()
    metadata: dict[str, object] = field(default_factory=dict)
    replaces: UUID | None = None
    """A turn of the same session that is forgotten, and whose place in listings this one takes."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """What the caller holds for an accepted turn. ``seq`` is its gapless place in the session, from 1."""

    id: UUID
    seq: int
    stage: Stage
    duplicate: bool = False
    redacted: Mapping[str, int] = field(default_factory=dict, hash=False)
    """How many private parts of which kind were taken out before the turn was stored; empty for a duplicate."""
    cleaned: bool = False
    """True when NUL bytes or lone surrogates were removed from the text before it was stored."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A stored turn. ``speaker`` is the name shown for who said it; ``at`` is when it was said.

    ``place`` is the ``seq`` of the turn that it replaced, whose place it has in listings.
    """

    id: UUID
    session: str
    seq: int
    role: Role
    speaker: str
    text: str
    at: datetime
    place: int | None = None
    words_deleted_at: datetime | None = None
    """When the agent's retention deleted its text, which is empty since; None: it has its words."""


WITHHELD = "the person asked that it is not kept"
"""Reason of a turn that is neither remembered nor shown again; its listing alone has it."""

REPLACED = "another turn has taken its place, and it is about to be forgotten"
"""Reason of a turn that nothing shows any more; it waits for its erasure."""

WORDS_DELETED = "its words were deleted, as the retention of its agent says"
"""Reason of a turn whose row says only that there was one."""

HIDDEN = (WITHHELD, REPLACED, WORDS_DELETED)
"""Reasons of turns that are in no window, no search and no prompt."""


@dataclass(frozen=True, slots=True)
class ListedTurn(Turn):
    """A stored turn with what its caller gave beside the text; what builds a reply reads `Turn` alone."""

    idempotency_key: str | None = None
    emotional_tone: str | None = None
    tools_used: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    redacted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity that a statement or turn talks about: ``type`` of `ENTITY_TYPES`, ``label`` as written."""

    type: str
    label: str


@dataclass(frozen=True, slots=True)
class Content:
    """What a statement says and a memory keeps unchanged. A field that stands here is in both."""

    kind: str
    text: str
    subtype: str | None = None
    subject: str | None = None
    relation: str | None = None
    object: str | None = None
    confidence: float = 0.8
    tags: tuple[str, ...] = ()
    pinned: bool = False
    origin: Origin = Origin.DECLARED
    emotional_state: EmotionalState | None = None
    relational_context: RelationalContext | None = None
    valid_until: datetime | None = None
    synthesis_type: str | None = None


def content_of(item: Content) -> dict[str, Any]:
    """The fields of `Content` by name, to make a memory of a statement or the reverse."""
    return {field.name: getattr(item, field.name) for field in fields(Content)}


@dataclass(frozen=True, slots=True)
class Statement(Content):
    """A candidate memory, from any door, before the write path has judged it.

    ``importance`` None takes the kind's default. ``valid_from`` None means the time it was said or declared.
    ``evidence`` are turn ids of the same scope, ``parents`` memory ids. ``single_valued`` overrides the table of
    relations that hold one object at a time.
    """

    importance: float | None = None
    importance_scale: str | None = None
    """One of `SCALES` of `records.importance`; None is 1 to 10."""
    valid_from: datetime | None = None
    said_at: datetime | None = None
    """When it was said; None means that its evidence shows it, or else that it was said of ``valid_from``."""
    corrects: str | None = None
    """Another object, of the same subject and relation, that was said by mistake: that claim was never true."""
    is_beside: bool = False
    """It holds beside others of a relation that has one object at a time: a second job in the evenings."""
    mentions: tuple[Mention, ...] = ()
    evidence: tuple[UUID, ...] = ()
    parents: tuple[UUID, ...] = ()
    source: str | None = None
    """Who stands behind it (a speaker's name, a tool, an import); repetition by one source adds no confidence."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """What an extractor made of a batch of turns.

    ``statements`` carry evidence; ``mentions`` are the entities of each turn; ``reasons`` says for each turn
    without a statement why there is none ("nothing noteworthy", "language not read by rules: pl", …).
    """

    statements: tuple[Statement, ...]
    mentions: dict[UUID, tuple[Mention, ...]]
    reasons: dict[UUID, str]


UNSTORED = UUID(int=0)
"""The id of a memory that is not stored yet. The database gives out ids, since their order in time counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(Content):
    """A memory. Open ``valid_until`` means still true; ``retired_at`` set means no longer current."""

    id: UUID = UNSTORED
    created_at: datetime
    valid_from: datetime
    importance: int = 5
    last_seen: datetime | None = None
    last_recalled: datetime | None = None
    repeat_count: int = 1
    recall_count: int = 0
    feedback_score: float = 0.0
    successor: UUID | None = None
    retired_at: datetime | None = None
    retired_reason: Retirement | None = None
    session: str | None = None
    embedding_model: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """A memory with what only the write path reads of its row: the keys by which repeats and facts are recognised.

    ``subject_key`` and ``object_key`` are slugs. ``sources`` are those who said it. ``confirmed_at`` is the latest
    instant for which one of the statements that were stored or reinforced here vouches, ``first_confirmed_at`` the
    earliest; None when only its beginning is known. Never the time of writing, or imported history would seem confirmed
    today.
    """

    memory: Memory
    canonical_key: str
    subject_key: str | None = None
    object_key: str | None = None
    single_valued: bool = False
    sources: tuple[str, ...] = ()
    confirmed_at: datetime | None = None
    first_confirmed_at: datetime | None = None
