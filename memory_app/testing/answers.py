"""Answer for the stub's model where nothing is scripted: the smallest answer that fits the schema of the request.

A statement is made of each turn that stands in the request (``[t1] … | user | Name: text``), so that real workers
can be run against the stub and every turn leaves a trace that tests can count and order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from memory_app.testing.schemas import message_texts, schema_of, smallest_instance
from memory_app.testing.script import Json

TURN_LINE = re.compile(r"^\[(t\d+)\] [^|\n]+\| (\w+) \| ([^:\n]+): (.*)$", re.MULTILINE)
"""A turn as prompts of this product show it: reference, time, role, speaker, text."""

SAMPLE = re.compile(r"<sample>.*?</sample>", re.DOTALL)
"""An example inside a prompt, whose turns nobody said."""

FACT_LISTS = frozenset({"statements", "facts"})
"""Lists of a schema that get one entry for each turn of the user."""


def answer_of(body: Json) -> object:
    """Return an instance of the schema in ``body``; without a schema the last message's words."""
    request = "\n".join(message_texts(body))
    schema = schema_of(body)
    if schema is None:
        return request[-200:] or "I have nothing to add."
    statements = list(_statements(SAMPLE.sub("", request)))
    answer = smallest_instance(schema, text=_summary(statements))
    # The rest of the answer is as small as it can be; what was said in each turn must be in it.
    return answer | dict.fromkeys(FACT_LISTS & answer.keys(), statements)


def with_references(answer: object, body: Json) -> object:
    """Return ``answer`` with "@words" in its lists of evidence replaced; see `memory_app.testing.script.Rule`."""
    request = SAMPLE.sub("", "\n".join(message_texts(body)))
    lines = {text: reference for reference, _, _, text in TURN_LINE.findall(request)}
    return _resolved(answer, lines)


def _resolved(part: object, lines: Mapping[str, str]) -> object:
    """``part`` with references by words replaced; None for one whose words stand in no line."""
    if isinstance(part, list):
        resolved = (_resolved(inner, lines) for inner in part)
        return [inner for inner in resolved if inner is not None]
    if not isinstance(part, Mapping):
        return part
    evidence = part.get("evidence")
    if not isinstance(evidence, list) or not any(str(words).startswith("@") for words in evidence):
        return {key: _resolved(inner, lines) for key, inner in part.items()}
    references = list(filter(None, (_reference(str(words), lines) for words in evidence)))
    return {**part, "evidence": references} if references else None


def _reference(words: str, lines: Mapping[str, str]) -> str | None:
    if not words.startswith("@"):
        return words
    return next((reference for text, reference in lines.items() if words[1:] in text), None)


def _statements(request: str) -> Iterator[Json]:
    """One statement for each turn of the user."""
    for reference, role, speaker, text in TURN_LINE.findall(request):
        # Short turns of the test load state nothing.
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


def _summary(statements: list[Json]) -> str:
    """A text that says how many turns stood in the request."""
    return f"They talked; {len(statements)} things were said." if statements else "They talked."
