"""What a chat completion means to memory: the question it asks, and which turns are new. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from memory_app.records.chat import Json, is_instruction
from memory_app.records.scope import Scope

KEYED = ("role", "content", "tool_calls", "tool_call_id")
"""Fields of a message that make it the same message."""


def question_of(messages: Sequence[Json]) -> str | None:
    """The text of the last message of the user, or None."""
    for message in reversed(messages):
        if message.get("role") == "user":
            return _text_of(message.get("content")) or None
    return None


def new_turns(messages: Sequence[Json], scope: Scope) -> list[Json]:
    """What was said since the assistant's last message, to be recorded in the scope's session.

    Where earlier messages come along, a turn has an idempotency key made of all of them up to it: a completion that is
    asked for once more records nothing again. Without them the same words may well have been said twice.
    """
    spoken = [message for message in messages if not is_instruction(message)]
    answers = [place for place, message in enumerate(spoken) if message.get("role") == "assistant"]
    if not answers:
        return spoken
    return [
        {"idempotency_key": _key_of(spoken[: place + 1], scope), **spoken[place]}
        for place in range(answers[-1] + 1, len(spoken))
    ]


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _key_of(messages: Sequence[Json], scope: Scope) -> str:
    """Keys count for a person, whose sessions may begin with the same words: so the names belong to it."""
    spoken = [{name: message.get(name) for name in KEYED} for message in messages]
    text = json.dumps([scope.agent, scope.session, spoken], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
