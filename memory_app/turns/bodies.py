"""Bodies of requests that record turns."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from memory_app.records.records import NewTurn, Role
from memory_app.web.fields import Body, Instant, Metadata, Name, Words


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
    # By a field and not by trying both: the error of a batch is then about the batch.
    is_batch = isinstance(body, TurnsBody) or (isinstance(body, dict) and "turns" in body)
    return "batch" if is_batch else "one"


def new_turn(body: TurnBody) -> NewTurn:
    """The turn as it is recorded. A field of the body that is not named here has the same name and type in both."""
    return NewTurn(
        role=Role(body.role),
        text=body.content,
        speaker=body.name,
        tools_used=tuple(body.tools_used),
        **body.model_dump(exclude={"role", "content", "name", "tools_used"}),
    )


OneOrManyTurns = Annotated[
    Annotated[TurnBody, Tag("one")] | Annotated[TurnsBody, Tag("batch")], Discriminator(_shape)
]
