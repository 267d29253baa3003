"""What a context window is made of, as the services gather it: records only, each part strongest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from uuid import UUID

from memory_app.memories.rows.cards import CardFact
from memory_app.recall.records import Hit
from memory_app.records.records import EmotionalState, Memory, Turn


@dataclass(frozen=True, slots=True)
class ExpressionPart:
    """How to speak now: the persona's text, memories that tune it, and the mood."""

    persona: str = ""
    memories: tuple[Memory, ...] = ()
    mood: EmotionalState | None = None
    last_tone: str | None = None
    """Emotional tone of the last interaction, as the producer named it."""


@dataclass(frozen=True, slots=True)
class Card:
    """An entity: ``key`` is ``type:slug``, ``linked`` are labels of entities beside it. ``is_own``: the user's own."""

    key: str
    label: str
    type: str
    summary: str = ""
    facts: tuple[CardFact, ...] = ()
    linked: tuple[str, ...] = ()
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class SessionPart:
    """The conversation going on. ``turns`` are the latest, oldest first.

    ``last_interaction_at`` is the user's last turn before this session; None when there was none.
    """

    name: str
    started_at: datetime | None = None
    last_interaction_at: datetime | None = None
    turns: tuple[Turn, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextParts:
    """What a window is made of; each part strongest first. An absent part is empty."""

    core: tuple[Memory, ...] = ()
    expression: ExpressionPart = ExpressionPart()
    anchors: tuple[Memory, ...] = ()
    vocabulary: tuple[str, ...] = ()
    artifacts: tuple[Memory, ...] = ()
    identity: tuple[Memory, ...] = ()
    cards: tuple[Card, ...] = ()
    rows: tuple[Hit, ...] = ()
    log: tuple[Turn, ...] = ()
    """Turns for the room that is left, best first."""
    past: Mapping[str, str] = field(default_factory=dict)
    """By the id of a turn, what it says that is no longer held, in the words of the memory."""
    words: Mapping[str, float] = field(default_factory=dict)
    """Beginnings of the query's words with their weights: of a long turn the passage is shown where they stand."""
    narrative: str = ""
    narrative_ids: tuple[UUID, ...] = ()
    session: SessionPart | None = None
    zone: tzinfo = UTC
    """The user's time zone; every time is shown in it."""
    degraded: tuple[str, ...] = ()
    """Names of what could not be read in time; passed on."""
    hidden: frozenset[UUID] = frozenset()
    """Memories that are not shown: the agent began with them once and no longer does, or they say no more than the
    name by which the user is shown."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the session section."""
        return self.session.turns if self.session else ()


def shared_vocabulary(memories: Sequence[Memory]) -> tuple[str, ...]:
    """Shared references of ``memories``, in order, each once (case does not count)."""
    first: dict[str, str] = {}
    for memory in memories:
        context = memory.relational_context
        references = context.shared_references if context else ()
        for reference in references:
            # The spelling of the strongest memory stands: `memories` come in that order.
            first.setdefault(reference.casefold(), reference)
    return tuple(first.values())
