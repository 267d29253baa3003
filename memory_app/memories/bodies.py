"""What callers send to remember a statement."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from memory_app.records.records import EmotionalState, RelationalContext, Statement
from memory_app.web.fields import Body, ImportanceScale, Instant, KindName, Name, Number, Words


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


SaidIn = Annotated[
    Name | None, Field(description="The session in which it was said; a turn of it was recorded before.")
]


class _StatementFields(Body):
    """What every statement may say."""

    text: Words = Field(description="The statement, in words that stand alone.")
    kind: KindName = Field("fact", description="What sort of memory it is.")
    subtype: Words | None = Field(
        None, description="For `fact`: fact, preference, relationship, friction, habit."
    )
    importance: Number | None = Field(
        None, description="1 to 10, stored as given; the answer's notes say what was changed."
    )
    importance_scale: ImportanceScale = None
    tags: list[Words] = Field(default_factory=list)
    emotional_state: EmotionalStateBody | None = None
    relational_context: RelationalContextBody | None = None
    subject: Words | None = Field(None, description="Whom or what it is about; goes with `relation`.")
    relation: Words | None = Field(None, description="Such as `lives_in`.")
    object: Words | None = Field(None, description="The other end of the relation.")
    valid_from: Instant | None = Field(None, description="Since when it is true; else since now.")
    said_at: Instant | None = Field(
        None, description="When it was said, if not of `valid_from`: the newest word about now counts."
    )
    valid_until: Instant | None = Field(None, description="Until when, exclusive; open means still true.")
    pinned: bool = Field(False, description="Never fades and is always considered.")
    deduplicate: bool = Field(True, description="`false` stores it even if the same is known already.")


class StatementBody(_StatementFields):
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

    session: SaidIn = None


class AgentStatementBody(_StatementFields):
    """One statement that all users of an agent are shown."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"text": "Never give medical dosage advice.", "kind": "core", "importance": 10}]
        }
    )

    kind: KindName = Field(description="What sort of memory it is.")
    shared: bool = Field(
        False, description="`true` is required for kinds that are not about the agent itself, such as `fact`."
    )


class CorrectionBody(Body):
    """The right words for a memory, and the fact that they state, if any."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Mira lives in Lisbon."}]})

    text: Words = Field(description="The statement in other words, which stand alone.")
    subject: Words | None = Field(None, description="Whom or what it is about; else as it was.")
    relation: Words | None = Field(None, description="Such as `lives_in`; else as it was.")
    object: Words | None = Field(None, description="The other end of the relation; else as it was.")


def statement_of(body: StatementBody | AgentStatementBody) -> Statement:
    """The statement as the write path takes it: declared by the caller."""
    feeling, relationship = body.emotional_state, body.relational_context
    return Statement(
        **body.model_dump(
            exclude={"deduplicate", "session", "shared", "tags", "emotional_state", "relational_context"}
        ),
        tags=tuple(body.tags),
        emotional_state=None if feeling is None else EmotionalState(**feeling.model_dump()),
        relational_context=None if relationship is None else _relational_context(relationship),
    )


def _relational_context(body: RelationalContextBody) -> RelationalContext:
    lists = {name: tuple(items) for name, items in body.model_dump(exclude={"bond_strength"}).items()}
    return RelationalContext(bond_strength=body.bond_strength, **lists)
