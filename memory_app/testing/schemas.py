"""The JSON schema of a request to a language model, and the smallest value that fits a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from memory_app.testing.script import Json

SCHEMA_BEGINNING = re.compile(r'\{"\$defs"|\{"additionalProperties"')
"""How `shape.strict_schema` begins, with definitions and without."""

_NULL = {"type": "null"}


def schema_of(body: Json) -> Json | None:
    """Return the JSON schema of a request: from ``response_format``, or written into its messages."""
    form = body.get("response_format")
    wrapped = form.get("json_schema") if isinstance(form, dict) else None
    if isinstance(wrapped, dict):
        return _object(wrapped.get("schema"))
    # The last message first: earlier ones may quote the schema of another question.
    quoted = map(_quoted_schema, reversed(message_texts(body)))
    return next((schema for schema in quoted if schema is not None), None)


def _quoted_schema(text: str) -> Json | None:
    beginning = SCHEMA_BEGINNING.search(text)
    if beginning is None:
        return None
    schema, _ = json.JSONDecoder().raw_decode(text[beginning.start() :])
    return _object(schema)


def _object(value: object) -> Json | None:
    return value if isinstance(value, dict) else None


def message_texts(body: Json) -> list[str]:
    """The texts of a request's messages, in order."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return []
    return [str(message.get("content", "")) for message in messages if isinstance(message, dict)]


def smallest_instance(schema: Json, *, text: str) -> dict[str, object]:
    """The smallest object that fits ``schema``, with ``text`` for each text; empty for the schema of anything else."""
    definitions = schema.get("$defs")
    instance = _smallest(schema, definitions if isinstance(definitions, Mapping) else {}, text=text)
    return instance if isinstance(instance, dict) else {}


def _smallest(part: object, definitions: Mapping[str, object], *, text: str) -> object:
    if not isinstance(part, Mapping):
        return None
    # Schemas of pydantic put nested models below "$defs" and refer to them.
    if "$ref" in part:
        name = str(part["$ref"]).rpartition("/")[2]
        return _smallest(definitions.get(name), definitions, text=text)
    if "anyOf" in part:
        return _smallest_option(part["anyOf"], definitions, text=text)
    if "enum" in part:
        return part["enum"][0]
    if part.get("type") == "object":
        properties = part.get("properties", {})
        return {name: _smallest(inner, definitions, text=text) for name, inner in properties.items()}
    values = {"array": [], "string": text, "integer": 1, "number": 0.5, "boolean": False}
    return values.get(str(part.get("type")))


def _smallest_option(options: Sequence[object], definitions: Mapping[str, object], *, text: str) -> object:
    if _NULL in options:
        return None
    return _smallest(options[0], definitions, text=text)
