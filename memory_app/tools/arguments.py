"""Arguments of the agents' tools, as models write them, and their JSON schemas.

A model sends a number as text or null for what it leaves out; both are read. What does not fit is refused with the name
of the argument, so that the model can mend it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator

from memory_app.errors import InvalidInput
from memory_app.records.importance import HIGHEST, LOWEST
from memory_app.records.kinds import recalled_kinds
from memory_app.records.records import VALENCES
from memory_app.turns.bodies import MessageBody
from memory_app.web.fields import Id, Instant
from memory_app.web.validation import dotted, invalid_input

ARGUMENTS_CHARS = 1_000_000
"""Longest arguments as JSON, in characters."""

MESSAGES_LIMIT = 100

Json = dict[str, Any]

Kind = Annotated[str, WithJsonSchema({"type": "string", "enum": list(recalled_kinds())})]
Valence = Annotated[str, WithJsonSchema({"type": "string", "enum": list(VALENCES)})]

_MESSAGE_SCHEMA = {
    "type": "object",
    "properties": {
        "role": {"type": "string", "enum": ["user", "assistant", "tool", "system"]},
        "content": {"type": "string", "description": "What was said."},
        "name": {"type": "string", "description": "Who speaks, if it is not the user or the agent."},
        "at": {"type": "string", "format": "date-time", "description": "When it was said; else now."},
    },
    "required": ["role", "content"],
}


class Arguments(BaseModel):
    """Arguments of a tool. Null counts as left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        # Some models send every argument there is, and null for those that they do not mean.
        arguments = {}
        for name, argument in value.items():
            if argument is not None:
                arguments[name] = argument
        return arguments


class SearchMemory(Arguments):
    query: str = Field(description="What to look for, in plain words: names, places, topics.")
    kinds: list[Kind] | None = Field(None, min_length=1, description="Only memories of these kinds.")
    limit: int = Field(5, ge=1, le=50, description="Most rows.")
    expand_graph: bool = Field(False, description="Add memories that are linked to those found.")
    user_message: str | None = Field(
        None, description="What the user just said, word for word, if the query leaves something of it out."
    )


class AskMemory(Arguments):
    question: str = Field(description="One question, in words that stand alone.")


class StoreMemory(Arguments):
    text: str = Field(
        description="One statement, in words that stand alone: with names, without 'he' or 'today'."
    )
    kind: Kind = Field("fact", description="What sort of memory it is.")
    importance: int | None = Field(
        None,
        ge=LOWEST,
        le=HIGHEST,
        description="1 to 10; 9 and 10 are always looked at. Left out: as is usual.",
    )
    tags: list[str] = Field(default_factory=list, description="A few words to find it by.")
    valence: Valence | None = Field(None, description="How it felt to the user.")


class OneMemory(Arguments):
    memory_id: Id = Field(description="The id of the memory, as search_memory gives it.")


class ForgetMemory(OneMemory):
    pass


class Why(OneMemory):
    pass


class GetContext(Arguments):
    query: str | None = Field(None, description="What the user just said.")
    budget_tokens: int = Field(1_000, ge=50, le=8_000, description="Most tokens of the text.")


class ListFacts(Arguments):
    subject: str | None = Field(None, description="Whom or what the facts are about.")
    relation: str | None = Field(None, description="Only this relation, such as lives_in.")
    as_of: Instant | None = Field(None, description="What held then, instead of now: 2026-01-31T09:00:00Z.")
    history: bool = Field(
        False, description="With a subject: what was true earlier, too, in the order of time."
    )
    limit: int = Field(20, ge=1, le=100, description="Most facts.")


class RecordTurns(Arguments):
    messages: Annotated[
        list[MessageBody],
        WithJsonSchema(
            {"type": "array", "items": _MESSAGE_SCHEMA, "minItems": 1, "maxItems": MESSAGES_LIMIT}
        ),
    ] = Field(min_length=1, max_length=MESSAGES_LIMIT, description="What was said, in order.")


A = TypeVar("A", bound=Arguments)


def read_arguments(model: type[A], arguments: object) -> A:
    """The arguments of a call: a mapping, or JSON as chat-completion APIs send it. Raises `InvalidInput`."""
    values = _mapping(arguments)
    _refuse_unknown(model, values)
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise invalid_input(error) from None


def _mapping(arguments: object) -> Mapping[Any, Any]:
    # A tool without arguments is called with any of these.
    if arguments is None or arguments == "":
        return {}
    if isinstance(arguments, str):
        arguments = _parsed(arguments)
    if not isinstance(arguments, Mapping):
        raise InvalidInput("arguments: send one JSON object", field="arguments")
    return arguments


def _parsed(text: str) -> object:
    if len(text) > ARGUMENTS_CHARS:
        raise InvalidInput(f"arguments: at most {ARGUMENTS_CHARS} characters", field="arguments")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("arguments: not valid JSON; send one JSON object", field="arguments") from None


def _refuse_unknown(model: type[Arguments], arguments: Mapping[Any, Any]) -> None:
    """Refuse an argument that the tool does not have. Raises `InvalidInput`."""
    for name in arguments.keys() - model.model_fields.keys():
        field = dotted((str(name),))
        # The names that there are: a model has no other page to look at.
        known = ", ".join(model.model_fields)
        raise InvalidInput(f"{field}: there is no such argument; there are {known}", field=field)


def schema_of(model: type[Arguments]) -> Json:
    """The JSON schema of the arguments as models understand it best: without titles and without null."""
    schema = model.model_json_schema()
    fields = schema.get("properties", {})
    return {
        "type": "object",
        "properties": {name: _simple(field) for name, field in fields.items()},
        "required": schema.get("required", []),
        "additionalProperties": False,
    }


def _simple(field: Json) -> Json:
    """The schema of one argument without its title, without null among its types, and without null as its default."""
    simple = dict(field)
    simple.pop("title", None)
    options = simple.pop("anyOf", [])
    # A field that may be left out is told by `required`; null is understood all the same.
    for option in options:
        if option != {"type": "null"}:
            simple = {**option, **simple}
    has_null_default = simple.get("default", "") is None
    if has_null_default:
        del simple["default"]
    return simple
