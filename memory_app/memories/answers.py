"""What routes of memories and entities answer with: rows field by field, so that nothing leaves by accident."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field

from memory_app.records.records import Memory
from memory_app.web.answers import Answer, TurnAnswer


class RememberedAnswer(Answer):
    id: UUID
    outcome: str = Field(description="`inserted`, `linked`, `merged`, `reinforced` or `superseded`.")
    merged_count: int
    notes: list[str] = Field(
        description="What was changed before storing, such as an importance off the scale."
    )


class EmotionalStateAnswer(Answer):
    valence: str
    intensity: float
    user_impact: str | None


class RelationalContextAnswer(Answer):
    bond_strength: float | None
    communication_style: list[str]
    shared_references: list[str]
    user_values: list[str]
    user_struggles: list[str]


class MemoryAnswer(Answer):
    id: UUID
    kind: str
    subtype: str | None
    text: str
    subject: str | None
    relation: str | None
    object: str | None
    importance: int
    confidence: float
    tags: list[str]
    pinned: bool
    origin: str
    emotional_state: EmotionalStateAnswer | None
    relational_context: RelationalContextAnswer | None
    valid_from: datetime
    valid_until: datetime | None
    created_at: datetime
    last_seen: datetime | None
    last_recalled: datetime | None
    repeat_count: int
    recall_count: int
    feedback_score: float
    synthesis_type: str | None
    successor: UUID | None
    retired_at: datetime | None
    retired_reason: str | None
    session: str | None
    embedding_model: str | None


class MemoriesAnswer(Answer):
    memories: list[MemoryAnswer]
    cursor: UUID | None = Field(description="Give it back for the next page; null on the last one.")


class ParentAnswer(Answer):
    memory: MemoryAnswer
    how: str = Field(description="`merged`, `superseded` or the type of the link.")


class RunAnswer(Answer):
    id: UUID
    name: str
    state: str
    model: str | None
    prompt_version: str | None
    request_id: UUID | None = Field(description="The request that asked for it, if one did.")
    task_id: UUID | None = Field(description="The task that did it, as logs and Flower name it.")
    created_at: datetime
    finished_at: datetime | None


class WhyAnswer(Answer):
    agent: str = Field(description="The agent that knows it.")
    user: str | None = Field(description="Of whom; null: of all users of the agent.")
    memory: MemoryAnswer
    evidence: list[TurnAnswer]
    parents: list[ParentAnswer]
    successor: MemoryAnswer | None
    runs: list[RunAnswer]
    strength: float = Field(description="0 to 1; 1 is pinned.")
    fades_at: datetime | None = Field(description="When it is faded if nothing happens; null: never.")
    fate: str = Field(description="When and why it fades or goes, and what brings it back.")


class LinkAnswer(Answer):
    id: str = Field(description="Both ends and the type; `DELETE …/links/{id}` takes it.")
    source: UUID
    target: UUID
    type: str
    weight: float = Field(description="Above 0, at most 1.")
    created_at: datetime


class LinksAnswer(Answer):
    links: list[LinkAnswer]


class EntityAnswer(Answer):
    key: str
    type: str
    label: str
    aliases: list[str]
    summary: str | None
    first_seen: datetime
    last_seen: datetime
    mentions: int = Field(validation_alias="mention_count")


class EntitiesAnswer(Answer):
    entities: list[EntityAnswer]


def memory_answer(memory: Memory) -> MemoryAnswer:
    return MemoryAnswer.model_validate(memory)


class LinkedEntityAnswer(Answer):
    key: str
    label: str
    memories: int = Field(description="In so many memories the two stand together.")


class CardAnswer(EntityAnswer):
    alias_keys: list[str] = Field(description="Keys that were merged into it and lead here.")
    facts: list[MemoryAnswer] = Field(description="The strongest current memories that mention it.")
    linked: list[LinkedEntityAnswer]


class MergedEntityAnswer(Answer):
    card: CardAnswer
    run: UUID = Field(description="`POST /v1/runs/{id}/undo` takes the merge back.")


class FactAnswer(MemoryAnswer):
    """A fact as it was known at the time asked about: what was ended later is open then."""

    score: float | None = Field(None, description="With `query`: cosine, or keyword score.")
    overlapping: bool = Field(
        False, description="Another value was said of the same time, where only one can hold."
    )


class FactsAnswer(Answer):
    facts: list[FactAnswer]
    cursor: str | None = Field(description="Give it back for the next page; null on the last one.")


class FeedbackAnswer(Answer):
    target: UUID
    label: str
    moved: list[UUID] = Field(
        description="Memories whose score moved: the target or what it was merged into, or those that rest on the turn."
    )
    neighbours: list[UUID] = Field(description="Memories similar to them, which moved half as far.")
    shown: list[UUID] = Field(
        description="Memories that stood in the context window before the reply, which moved half as far."
    )


class SimilarQueryAnswer(Answer):
    id: UUID
    score: float = Field(description="The similarity, with the bias to the session; at most 1.")
    similarity: float = Field(description="Cosine.")
    text: str
    canonical_key: str
    source: str = Field(description="`session`: asked in the session going on; `agent`: elsewhere.")
    session: str | None
    repeats: int = Field(description="How often it was asked.")


class SimilarQueriesAnswer(Answer):
    queries: list[SimilarQueryAnswer]


class VersionsAnswer(Answer):
    memories: list[MemoryAnswer] = Field(description="Oldest first; the one that stands comes last.")
