"""Learn what a server understands of the OpenAI API by trying: the strictest form first, then simpler ones.

    JSON schema ──► JSON object ──► plain text with the schema written into the message

A server that does not take a parameter says so with 400 before it computes anything, so a step down costs no tokens.
What was learnt is kept by the `Chat`, which belongs to one server and one model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from memory_app.providers.chat.shape import Shape


class Form(StrEnum):
    """How the form of an answer is asked for."""

    SCHEMA = "json_schema"
    OBJECT = "json_object"
    TEXT = "text"


_SIMPLER = {Form.SCHEMA: Form.OBJECT, Form.OBJECT: Form.TEXT}

_FORM_WORDS = (
    "response_format",
    "json_schema",
    "json_object",
    "schema",
    "grammar",
    "requested parameters",
)
"""Words in refusals by which servers name the form of the answer."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request. ``role`` is system, user or assistant."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """What is sent to one server for one model."""

    form: Form = Form.SCHEMA
    temperature: bool = True
    limit_name: str = "max_tokens"
    """Newer models of OpenAI only know ``max_completion_tokens``."""


def simpler(dialect: Dialect, hint: str) -> Dialect | None:
    """Return the next thing to try after a server refused ``dialect`` for the reason ``hint`` (lower case), or None.

    None when the hint names nothing of the dialect: then the request itself is at fault, such as its length.
    """
    if dialect.temperature and "temperature" in hint:
        return replace(dialect, temperature=False)
    names_limit = "max_tokens" in hint and "response_format" not in hint
    if names_limit and dialect.limit_name == "max_tokens":
        return replace(dialect, limit_name="max_completion_tokens")
    if any(word in hint for word in _FORM_WORDS):
        simpler_form = _SIMPLER.get(dialect.form)
        return replace(dialect, form=simpler_form) if simpler_form else None
    return None


def request_body(
    dialect: Dialect,
    model: str,
    *,
    messages: Sequence[Message],
    shape: Shape[Any],
    temperature: float,
    output_limit_tokens: int,
) -> dict[str, object]:
    """Return the JSON of one request for a chat completion."""
    sent = [{"role": message.role, "content": _sendable(message.text)} for message in messages]
    body: dict[str, object] = {"model": model, "messages": sent, dialect.limit_name: output_limit_tokens}
    if dialect.temperature:
        body["temperature"] = temperature
    if dialect.form is Form.SCHEMA:
        # The server enforces it. Written into the message as well, the schema would be paid for twice.
        wrapped = {"name": shape.name, "strict": True, "schema": shape.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": wrapped}
        return body
    sent[-1]["content"] += "\n\n" + schema_in_words(shape)
    if dialect.form is Form.OBJECT:
        body["response_format"] = {"type": "json_object"}
    return body


def _sendable(text: str) -> str:
    """Half an emoji, as a model may have written it, cannot be sent back."""
    return text.encode("utf-8", "replace").decode()


def schema_in_words(shape: Shape[Any]) -> str:
    """Return the schema as words of a message, for models whose server does not enforce it."""
    schema = json.dumps(shape.schema, ensure_ascii=False)
    return f"Answer with one JSON object and nothing else. It must fit this JSON schema:\n{schema}"
