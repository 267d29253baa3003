"""What callers send to change an agent."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from memory_app.web.fields import Body, ImportanceScale, KindName, Number, Words


class DefaultMemoryBody(Body):
    """A memory that every new pair of this agent and a user begins with."""

    text: Words
    kind: KindName = "core"
    subtype: Words | None = None
    importance: Number | None = None
    importance_scale: ImportanceScale = None
    tags: list[Words] = Field(default_factory=list)
    pinned: bool = False


class AgentAmendment(Body):
    """Single fields to change; what is not named stays, and ``null`` puts a field back to its default."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "policy": {
                        "instructions": {
                            "keep": ["doses and times of medicines"],
                            "never": ["salary, debts"],
                            "entity_types": {"medicine": "thing"},
                            "relations": ["takes_medicine"],
                        }
                    }
                }
            ]
        }
    )

    policy: dict[str, Any] | None = Field(None, description="Fields of the policy.")
    persona: dict[str, Any] | None = Field(None, description="Fields of the persona.")


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
