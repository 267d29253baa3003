"""Read a request for a chat completion: who speaks with whom, what is sent on, and what is asked. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from memory_app.errors import InvalidInput
from memory_app.records.chat import is_instruction
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.turns.bodies import parse_message

DEFAULT_AGENT = "assistant"
DEFAULT_SESSION = "chat"

WHOLE = "whole"
"""The history of a client that sends all of a session's conversation with each call."""

OWN_METADATA = frozenset({"agent", "session", "history"})
"""Names in `metadata` that are meant for us and are not sent on."""


@dataclass(frozen=True, slots=True)
class Named:
    """Names of the conversation, from the key or the request; None where it says nothing.

    ``history`` says what of it the client sends.
    """

    agent: str | None = None
    user: str | None = None
    session: str | None = None
    history: str | None = None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """``fields`` are sent on, with the ``messages``. ``turns`` are the messages that somebody said, without those that
    cannot be read as one. ``question`` is the last message of the user. ``is_whole``: the client vouches that it sends
    all of the session's conversation."""

    scope: Scope
    fields: Mapping[str, Any]
    messages: tuple[Mapping[str, Any], ...]
    turns: tuple[NewTurn, ...]
    question: str | None
    is_stream: bool
    is_whole: bool


def read_request(
    body: Mapping[str, Any], *, bound: Named, headers: Named, default_model: str | None
) -> ChatRequest:
    """The request as it is understood. ``bound`` are names that the key is for, ``headers`` those of headers.

    Raises `InvalidInput` naming the field.
    """
    fields = dict(body)
    messages = _messages_of(fields.pop("messages", None))
    metadata = _metadata_of(fields)
    session = _text(metadata, "session") or headers.session
    scope = Scope(
        _text(metadata, "agent") or headers.agent or bound.agent or DEFAULT_AGENT,
        _user_of(fields, bound),
        session or DEFAULT_SESSION,
    )
    is_whole = _is_whole(_text(metadata, "history") or headers.history, session)
    rest = {name: value for name, value in metadata.items() if name not in OWN_METADATA}
    # Providers take metadata only in requests that are to be stored there.
    fields |= {"metadata": rest} if rest else {}
    if fields.get("model") is None:
        fields["model"] = default_model
    if not isinstance(fields["model"], str):
        raise InvalidInput("model: the name of a model is required", field="model")
    turns = tuple(_turns(messages))
    questions = [turn.text for turn in turns if turn.role is Role.USER]
    return ChatRequest(
        scope=scope,
        fields=fields,
        messages=messages,
        turns=turns,
        question=questions[-1] if questions else None,
        is_stream=fields.get("stream") is True,
        is_whole=is_whole,
    )


def _messages_of(value: object) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not value:
        raise InvalidInput("messages: a list of at least one message is required", field="messages")
    for place, message in enumerate(value):
        if not isinstance(message, Mapping):
            raise InvalidInput(f"messages[{place}]: a JSON object is required", field=f"messages[{place}]")
    return tuple(value)


def _metadata_of(fields: dict[str, Any]) -> Mapping[str, Any]:
    metadata = fields.pop("metadata", None)
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidInput("metadata: a JSON object is required", field="metadata")
    return metadata


def _text(metadata: Mapping[str, Any], name: str) -> str | None:
    value = metadata.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"metadata.{name}: text is required", field=f"metadata.{name}")
    return value


def _is_whole(history: str | None, session: str | None) -> bool:
    if history is None:
        return False
    if history != WHOLE:
        raise InvalidInput(f"metadata.history: `{WHOLE}`, or leave it out", field="metadata.history")
    # In the usual session one conversation follows another, so none of them is all of it.
    if session is None:
        raise InvalidInput(
            "metadata.session: a whole history needs a session that is named", field="metadata.session"
        )
    return True


def _user_of(fields: dict[str, Any], bound: Named) -> str:
    """The person. The name is not sent on: a provider needs none."""
    user = fields.pop("user", None)
    if user is None:
        user = bound.user
    if user is None:
        raise InvalidInput(
            "user: name the person in the field `user`, or use a key that is for one person", field="user"
        )
    if not isinstance(user, str):
        raise InvalidInput("user: text is required", field="user")
    return user


def _turns(messages: Sequence[Mapping[str, Any]]) -> Iterator[NewTurn]:
    for message in messages:
        if not is_instruction(message):
            # What is wrong with a message is for the model's server to say.
            with suppress(InvalidInput):
                yield parse_message(message)
