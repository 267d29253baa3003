"""What the stub's model says when nothing else is scripted: the smallest answer that fits the schema asked for.

A statement is made of each turn that stands in the request (``[t1] … | user | Name: text``), so that real workers
can be run against the stub and every turn leaves a trace that tests can count and order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from memory_app.testing.script import Json

TURN_LINE = re.compile(r"^\[(t\d+)\] [^|\n]+\| (\w+) \| ([^:\n]+): (.*)$", re.MULTILINE)
"""A turn as prompts of this product show it: reference, time, role, speaker, text."""

SAMPLE = re.compile(r"<sample>.*?</sample>", re.DOTALL)
"""An example inside a prompt, whose turns nobody said."""

FACT_LISTS = frozenset({"statements", "facts"})
"""Lists of a schema that get one entry for each turn of the user."""


def answer_of(body: Json) -> object:
    """An instance of the schema in ``body``; without a schema the last message's words."""
    said = "\n".join(_texts(body))
    schema = schema_of(body)
    if schema is None:
        return said[-200:] or "I have nothing to add."
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    defs = schema.get("$defs", {})
    told = list(_told(SAMPLE.sub("", said)))
    return {
        name: told if name in FACT_LISTS else _smallest(part, defs, told) for name, part in properties.items()
    }


def with_references(answer: object, body: Json) -> object:
    """``answer`` with "@words" in its lists of evidence replaced; see `memory_app.testing.script.Rule`."""
    request = SAMPLE.sub("", "\n".join(_texts(body)))
    lines = {text: reference for reference, _, _, text in TURN_LINE.findall(request)}
    return _placed(answer, lines)


def _placed(part: object, lines: Mapping[str, str]) -> object:
    if isinstance(part, list):
        placed = (_placed(inner, lines) for inner in part)
        return [inner for inner in placed if inner is not None]
    if not isinstance(part, Mapping):
        return part
    evidence = part.get("evidence")
    if not isinstance(evidence, list) or not any(str(words).startswith("@") for words in evidence):
        return {key: _placed(inner, lines) for key, inner in part.items()}
    found = [_reference(str(words), lines) for words in evidence]
    known = [reference for reference in found if reference]
    return {**part, "evidence": known} if known else None


def _reference(words: str, lines: Mapping[str, str]) -> str | None:
    if not words.startswith("@"):
        return words
    return next((reference for text, reference in lines.items() if words[1:] in text), None)


def schema_of(body: Json) -> Json | None:
    """The JSON schema of a request: from ``response_format``, or written into its messages."""
    form = body.get("response_format")
    wrapped = form.get("json_schema") if isinstance(form, dict) else None
    if isinstance(wrapped, dict):
        schema = wrapped.get("schema")
        return schema if isinstance(schema, dict) else None
    for text in reversed(_texts(body)):
        start = text.find('{"$defs"')
        start = start if start >= 0 else text.find('{"additionalProperties"')
        if start >= 0:
            schema, _ = json.JSONDecoder().raw_decode(text[start:])
            return schema if isinstance(schema, dict) else None
    return None


def _texts(body: Json) -> list[str]:
    messages = body.get("messages")
    if not isinstance(messages, list):
        return []
    return [str(message.get("content", "")) for message in messages if isinstance(message, dict)]


def _told(said: str) -> Iterator[Json]:
    """One statement for each turn of the user."""
    for reference, role, speaker, text in TURN_LINE.findall(said):
        if role == "user" and len(text) >= 20:
            yield {
                "text": f"{speaker} said: {text[:200]}",
                "evidence": [reference],
                "subtype": "fact",
                "subject": None,
                "relation": None,
                "object": None,
                "importance": 5,
                "confidence": 0.8,
                "when": None,
                "entities": [],
            }


def _smallest(part: object, defs: object, told: list[Json]) -> object:
    """The least value of a schema's type; a text tells how many turns were seen."""
    if not isinstance(part, Mapping):
        return None
    if "$ref" in part and isinstance(defs, Mapping):
        return _smallest(defs.get(str(part["$ref"]).rpartition("/")[2]), defs, told)
    options = part.get("anyOf")
    if isinstance(options, list):
        return None if {"type": "null"} in options else _smallest(options[0], defs, told)
    if isinstance(part.get("enum"), list):
        return part["enum"][0]
    if part.get("type") == "object":
        properties = part.get("properties", {})
        return {name: _smallest(inner, defs, told) for name, inner in properties.items()}
    summary = f"They talked; {len(told)} things were said." if told else "They talked."
    return {"array": [], "string": summary, "integer": 1, "number": 0.5, "boolean": False}.get(
        str(part.get("type"))
    )
