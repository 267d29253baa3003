"""Turns as callers give them: over HTTP, over the broker and in Python. All doors read a turn here.

A turn may be a chat message of OpenAI's or Anthropic's APIs as it is; `memory_app.turns.message` reads its form.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from memory_app.records.records import NewTurn, Role
from memory_app.turns.message import PARTS_LIMIT, as_mapping, turn_fields
from memory_app.web.fields import Body, Id, Metadata, Name, Words, instant_of, words_of
from memory_app.web.validation import invalid_input, refuse

MILLISECONDS_FROM = 100_000_000_000
"""A number this large counts milliseconds: in seconds it would be the year 5138, in milliseconds it is 1973."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_CONTENT_SCHEMA = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "maxItems": PARTS_LIMIT, "items": {"type": "object"}},
        {"type": "null"},
    ]
}
_TIME_SCHEMA = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "number"}]}
_MESSAGE_SCHEMA = {
    "tool_calls": {
        "anyOf": [{"type": "array", "items": {"type": "object"}}, {"type": "null"}],
        "description": "Calls of tools, as in chat completions: names go to `tools_used`, the rest to the metadata.",
    },
    "tool_call_id": {
        "anyOf": [{"type": "string"}, {"type": "null"}],
        "description": "Of a tool's answer; goes to the metadata.",
    },
}


def moment_of(value: object) -> datetime:
    """RFC 3339 with a zone, or seconds or milliseconds since 1970; in Python also a `datetime`."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        unit = timedelta(milliseconds=1) if abs(value) >= MILLISECONDS_FROM else timedelta(seconds=1)
        try:
            value = (_EPOCH + value * unit).isoformat(timespec="microseconds")
        except (OverflowError, ValueError):
            refuse(
                (), "seconds or milliseconds since 1970 are required, or a time such as 2026-01-31T09:00:00Z"
            )
    return instant_of(value)


Moment = Annotated[datetime, PlainValidator(moment_of), WithJsonSchema(_TIME_SCHEMA)]
"""A time as callers give it."""


def _describe(schema: dict[str, Any]) -> None:
    """Add to the JSON schema what is read of a message and is no field of a turn."""
    schema["properties"] |= _MESSAGE_SCHEMA
    # Or null, and a message with calls of tools may be without.
    schema["required"].remove("content")
    schema["examples"] = [
        {
            "role": "user",
            "content": "I moved to Lisbon last month and I started bouldering.",
            "name": "Mira",
            "at": "2026-01-31T09:00:00+01:00",
            "idempotency_key": "message-4711",
        }
    ]


class TurnBody(Body):
    """One message of a conversation."""

    model_config = ConfigDict(json_schema_extra=_describe)

    takes_unknown: ClassVar[bool] = False
    """Whether an unknown field goes to the metadata, whatever form the turn has."""

    role: Literal["user", "assistant", "tool", "system", "developer", "function"] = Field(
        description="Who speaks, as in chat completions; `developer` is stored as `system`, `function` as `tool`."
    )
    content: Annotated[str, PlainValidator(words_of), WithJsonSchema(_CONTENT_SCHEMA)] = Field(
        repr=False,
        description="What was said: text, or the parts of a message. Text is joined; an image, a recording or a file "
        "leaves a mark. Characters that cannot be stored are removed.",
    )
    name: Name | None = Field(None, description="The speaker's name; else the user's or the agent's.")
    at: Moment | None = Field(
        None,
        description="When it was said: RFC 3339 with zone, or seconds or milliseconds since 1970; else now.",
    )
    idempotency_key: Words | None = Field(
        None, description="Sending the same turn again with the same key gives the first ticket again."
    )
    emotional_tone: Words | None = Field(None, description="One or two words, such as `relieved`.")
    tools_used: list[Name] = Field(default_factory=list, description="Names of the tools used for this turn.")
    replaces: Id | None = Field(
        None,
        description="A turn of this session that this one is the new wording of: it is forgotten with what came only "
        "from it, and this one stands in its place. The key needs the right `erase`.",
    )
    metadata: Metadata = Field(
        default_factory=dict, repr=False, description="Kept with the turn; a small JSON object."
    )

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: object) -> object:
        """The fields of the turn that a message stands for."""
        message = as_mapping(value)
        if not isinstance(message, Mapping):
            return message
        return turn_fields(message, known=cls.model_fields, takes_unknown=cls.takes_unknown)


def _describe_message(schema: dict[str, Any]) -> None:
    _describe(schema)
    schema["additionalProperties"] = True


class MessageBody(TurnBody):
    """A chat message as it is: a field that is unknown goes to the metadata, as far as there is room."""

    model_config = ConfigDict(json_schema_extra=_describe_message)

    takes_unknown: ClassVar[bool] = True


class TurnsBody(Body):
    """Several turns of one session, in order."""

    turns: list[TurnBody] = Field(description="Stored all or none.")


class MessagesBody(Body):
    """Several chat messages of one session, in order."""

    messages: list[MessageBody] = Field(description="Stored all or none.")


def _shape(body: object) -> str:
    # By a field and not by trying all: the error of a batch is then about the batch.
    if isinstance(body, TurnsBody) or (isinstance(body, dict) and "turns" in body):
        return "batch"
    if isinstance(body, MessagesBody) or (isinstance(body, dict) and "messages" in body):
        return "history"
    return "one"


def parse_turn(value: object, *, place: str = "") -> NewTurn:
    """The turn of a mapping, or of a message object of a client library.

    Raises `InvalidInput` naming the field; ``place`` stands before its path.
    """
    return _parsed(TurnBody, value, place)


def parse_message(value: object) -> NewTurn:
    """The turn of a chat message as it is, whose unknown fields go to the metadata. Raises `InvalidInput`."""
    return _parsed(MessageBody, value, "")


def _parsed(body: type[TurnBody], value: object, place: str) -> NewTurn:
    try:
        return new_turn(body.model_validate(value))
    except ValidationError as error:
        raise invalid_input(error, place=place) from None


_OTHERWISE_NAMED = {"role", "content", "name", "tools_used"}
_SAME_IN_BOTH = TurnBody.model_fields.keys() - _OTHERWISE_NAMED


def new_turn(body: TurnBody) -> NewTurn:
    """The turn as it is recorded. A field of the body that is not named here has the same name and type in both."""
    return NewTurn(
        role=Role(body.role),
        text=body.content,
        speaker=body.name,
        tools_used=tuple(body.tools_used),
        **body.model_dump(include=_SAME_IN_BOTH),
    )


OneOrManyTurns = Annotated[
    Annotated[TurnBody, Tag("one")]
    | Annotated[TurnsBody, Tag("batch")]
    | Annotated[MessagesBody, Tag("history")],
    Discriminator(_shape),
]
