"""What callers send. Only shapes and types are checked here; what a turn or a statement must be is the domain's."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from memory_app.records.records import EmotionalState, NewTurn, RelationalContext, Role, Statement
from memory_app.web.fields import (
    Body,
    CleanWords,
    Instant,
    KindName,
    Metadata,
    Name,
    Number,
    SubtypeName,
    Words,
)


class TurnBody(Body):
    """One message of a conversation."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "role": "user",
                    "content": "I moved to Lisbon last month and I started bouldering.",
                    "name": "Mira",
                    "at": "2026-01-31T09:00:00+01:00",
                    "idempotency_key": "message-4711",
                }
            ]
        }
    )

    role: Literal["user", "assistant", "tool", "system"] = Field(
        description="Who speaks, as in chat completions."
    )
    content: Words = Field(description="What was said. Characters that cannot be stored are removed.")
    name: Name | None = Field(None, description="The speaker's name; else the user's or the agent's.")
    at: Instant | None = Field(None, description="When it was said, RFC 3339 with zone; else now.")
    idempotency_key: Words | None = Field(
        None, description="Sending the same turn again with the same key gives the first ticket again."
    )
    emotional_tone: Words | None = Field(None, description="One or two words, such as `relieved`.")
    tools_used: list[Name] = Field(default_factory=list, description="Names of the tools used for this turn.")
    metadata: Metadata = Field(default_factory=dict, description="Kept with the turn; a small JSON object.")


class TurnsBody(Body):
    """Several turns of one session, in order."""

    turns: list[TurnBody] = Field(description="Stored all or none.")


def _shape(body: object) -> str:
    return "batch" if isinstance(body, TurnsBody) or (isinstance(body, dict) and "turns" in body) else "one"


OneOrManyTurns = Annotated[
    Annotated[TurnBody, Tag("one")] | Annotated[TurnsBody, Tag("batch")], Discriminator(_shape)
]


class ContextBody(Body):
    """What the context window is for."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "Any plans for the weekend?", "session": "chat-1"}]}
    )

    query: CleanWords | None = Field(
        None, description="What the user just said; decides which memories are shown."
    )
    session: Name | None = Field(None, description="The conversation going on.")
    budget_tokens: int | None = Field(
        None, ge=1, le=200_000, description="Never exceeded; 2000 if not given."
    )
    turns: int | None = Field(None, ge=0, le=200, description="Latest turns shown; 20 if not given.")
    preset: Words | None = Field(None, description="Scoring preset; `balanced` if not given.")
    format: Literal["text", "json", "messages"] = Field("text", description="`messages` adds chat messages.")


class RecallBody(Body):
    """What is looked for, and where."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "Where does Mira live?", "limit": 5, "tiers": ["facts"]}]}
    )

    query: CleanWords | None = Field(None, description="In plain words; without it the strongest come.")
    limit: int = Field(10, ge=1, le=500, description="Most rows in the answer.")
    kinds: list[KindName] | None = Field(None, min_length=1, description="Only memories of these kinds.")
    tiers: list[Literal["facts", "entities", "daily-logs"]] | None = Field(
        None, min_length=1, description="Only these tiers; all if not given."
    )
    tags: list[CleanWords] | None = Field(
        None, min_length=1, description="Only memories with one of these tags."
    )
    subtypes: list[SubtypeName] | None = Field(
        None, min_length=1, description="Only memories of these subtypes."
    )
    session: Name | None = Field(
        None, description="Only rows of this session, and memories that belong to none."
    )
    min_importance: int | None = Field(
        None, ge=1, le=10, description="Only memories at least this important."
    )
    after: Instant | None = Field(None, description="Only what was said, or holds from, this time or later.")
    before: Instant | None = Field(None, description="Only what was said, or holds from, before this time.")
    as_of: Instant | None = Field(None, description="What was true at this time, instead of now.")
    preset: Words | None = Field(
        None, description="`balanced`, `entity_first`, `hybrid`, `keyword` or `vector`."
    )
    expand_graph: bool = Field(False, description="Add memories linked to those found.")
    depth: int = Field(1, ge=1, le=3, description="With `expand_graph`: how many links away.")
    explain: bool = Field(False, description="Every signal of every candidate.")


class EmotionalStateBody(Body):
    """How it felt."""

    valence: Words = Field(description="Such as `joy`, `concern`, `calm`.")
    intensity: Number = Field(0.5, description="0 to 1.")
    user_impact: Words | None = Field(None, description="Such as `validating` or `challenging`.")


class RelationalContextBody(Body):
    """What it says about the two."""

    bond_strength: Number | None = Field(None, description="0 to 1.")
    communication_style: list[Words] = Field(default_factory=list)
    shared_references: list[Words] = Field(default_factory=list)
    user_values: list[Words] = Field(default_factory=list)
    user_struggles: list[Words] = Field(default_factory=list)


class StatementBody(Body):
    """One statement to remember."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "text": "Mira lives in Lisbon.",
                    "kind": "fact",
                    "subject": "Mira",
                    "relation": "lives_in",
                    "object": "Lisbon",
                    "importance": 7,
                    "tags": ["home"],
                }
            ]
        }
    )

    text: Words = Field(description="The statement, in words that stand alone.")
    kind: KindName = Field("fact", description="What sort of memory it is.")
    subtype: Words | None = Field(
        None, description="For `fact`: fact, preference, relationship, friction, habit."
    )
    importance: Number | None = Field(
        None, description="1 to 10; 0 to 3 count as a coarse scale. The answer's notes say what was stored."
    )
    tags: list[Words] = Field(default_factory=list)
    emotional_state: EmotionalStateBody | None = None
    relational_context: RelationalContextBody | None = None
    subject: Words | None = Field(None, description="Whom or what it is about; goes with `relation`.")
    relation: Words | None = Field(None, description="Such as `lives_in`.")
    object: Words | None = Field(None, description="The other end of the relation.")
    valid_from: Instant | None = Field(None, description="Since when it is true; else since now.")
    valid_until: Instant | None = Field(None, description="Until when, exclusive; open means still true.")
    pinned: bool = Field(False, description="Never fades and is always considered.")
    deduplicate: bool = Field(True, description="`false` stores it even if the same is known already.")


class DefaultMemoryBody(Body):
    """A memory that every new pair of this agent and a user begins with."""

    text: Words
    kind: KindName = "core"
    subtype: Words | None = None
    importance: Number | None = None
    tags: list[Words] = Field(default_factory=list)
    pinned: bool = False


class AgentBody(Body):
    """What to change about an agent. A part that is absent stays; ``null`` puts it back to the default."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "persona": {"name": "Ada", "style": "casual", "tone": ["friendly"]},
                    "policy": {"extraction": "rules"},
                    "default_memories": [{"text": "Ada never gives medical advice.", "kind": "core"}],
                }
            ]
        }
    )

    persona: dict[str, Any] | None = Field(
        None, description="How the agent speaks; see the shipped personas."
    )
    policy: dict[str, Any] | None = Field(
        None, description="Switches and limits; absent ones take their default."
    )
    default_memories: list[DefaultMemoryBody] | None = Field(None, max_length=100)


def new_turn(body: TurnBody) -> NewTurn:
    return NewTurn(
        role=Role(body.role),
        text=body.content,
        speaker=body.name,
        at=body.at,
        idempotency_key=body.idempotency_key,
        emotional_tone=body.emotional_tone,
        tools_used=tuple(body.tools_used),
        metadata=body.metadata,
    )


def statement_of(body: StatementBody) -> Statement:
    """The statement as the write path takes it: declared by the caller."""
    felt, between = body.emotional_state, body.relational_context
    return Statement(
        **body.model_dump(exclude={"deduplicate", "tags", "emotional_state", "relational_context"}),
        tags=tuple(body.tags),
        emotional_state=None if felt is None else EmotionalState(**felt.model_dump()),
        relational_context=None if between is None else _relational_context(between),
    )


def _relational_context(body: RelationalContextBody) -> RelationalContext:
    lists = {name: tuple(items) for name, items in body.model_dump(exclude={"bond_strength"}).items()}
    return RelationalContext(bond_strength=body.bond_strength, **lists)
