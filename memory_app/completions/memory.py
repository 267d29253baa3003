"""What memory does for a chat: the window before the reply, and both sides of it recorded.

Everything here may fail without any harm to the chat: what was not recorded comes again with the next call, since
clients send the whole conversation each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from memory_app.completions.chat_request import ChatRequest, as_turn
from memory_app.completions.history import KEY_PREFIX, digest, key_after, known_messages
from memory_app.db.db import transaction
from memory_app.errors import NotFound
from memory_app.language.redaction import Rules
from memory_app.recall.context import ContextRequest, context
from memory_app.records.records import ListedTurn, NewTurn
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import Policy, parse_policy
from memory_app.tenancy.redaction import for_provider
from memory_app.tenancy.rows import names
from memory_app.turns.record import record
from memory_app.turns.stream import latest_turns

LOOKED_THROUGH = 500
"""Turns of the session beside which a conversation is laid, the latest ones."""

SPARE_TURNS = 20
"""Turns looked at beyond as many as were sent: others may have recorded in the session as well."""

BATCH = 50
"""Messages recorded in one call."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What is needed of an agent's policy. ``rules`` say what is taken out before anything is stored or sent on."""

    is_on: bool = True
    rules: Rules = field(default_factory=lambda: Policy().redaction_rules)


def memory_of(runtime: Runtime, tenant_id: int, agent: str) -> Memory:
    """The policy of the agent, by default that of one that nobody has met."""
    with transaction(runtime.directory.engine, tenant_id) as connection:
        start = names.agent_start(connection, tenant_id, agent)
    policy = Policy() if start is None else parse_policy(start.policy)
    return Memory(policy.memory, policy.redaction_rules)


def window_of(runtime: Runtime, tenant_id: int, chat: ChatRequest) -> tuple[str, tuple[str, ...]]:
    """The context window for the reply, and the sections that it lacks."""
    settings = runtime.settings
    question = chat.question
    request = ContextRequest(
        # The end of a long message is what is asked.
        query=None if question is None else question[-settings.recall.query_limit_chars :],
        session=chat.scope.session,
        budget_tokens=settings.completions.budget_tokens,
        # A client that sends the conversation has the latest turns itself.
        turns=0 if len(chat.said) > 1 else None,
    )
    window = context(runtime, tenant_id, replace(chat.scope, session=None), request=request)
    return window.text, window.degraded


def redacted(messages: Mapping[str, Any], memory: Memory) -> Mapping[str, Any]:
    """A message as the provider may see it: its texts without what the agent's redaction takes out."""
    content = messages.get("content")
    if isinstance(content, str):
        return {**messages, "content": for_provider(content, memory.rules)}
    if not isinstance(content, list):
        return messages
    return {**messages, "content": [_redacted_part(part, memory) for part in content]}


def _redacted_part(part: object, memory: Memory) -> object:
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return {**part, "text": for_provider(part["text"], memory.rules)}
    return part


def record_said(runtime: Runtime, tenant_id: int, chat: ChatRequest, memory: Memory) -> str:
    """Record the messages that are new; what the next one follows, as `record_reply` takes it.

    Raises what `record` raises; a part of the messages may be recorded then.
    """
    sent = [_digest(turn, memory) for turn in chat.said]
    recorded = _recorded(runtime, tenant_id, chat)
    known = known_messages(
        sent,
        [_listed_digest(turn, memory) for turn in recorded],
        is_whole=not recorded or recorded[0].seq == 1,
    )
    previous = _begin(chat) if known.place is None else _key_of(recorded[known.place])
    new = []
    for turn, said in zip(chat.said[known.count :], sent[known.count :], strict=True):
        previous = key_after(previous, said)
        new.append(replace(turn, idempotency_key=previous))
    for start in range(0, len(new), BATCH):
        record(runtime, tenant_id, chat.scope, new=new[start : start + BATCH])
    return previous


def record_reply(
    runtime: Runtime,
    tenant_id: int,
    chat: ChatRequest,
    memory: Memory,
    *,
    message: Mapping[str, Any],
    previous: str,
) -> None:
    """Record what the model said behind ``previous``. Raises what `record` raises, and `InvalidInput`."""
    turn = as_turn(message)
    key = key_after(previous, _digest(turn, memory))
    record(runtime, tenant_id, chat.scope, new=[replace(turn, idempotency_key=key)])


def _begin(chat: ChatRequest) -> str:
    """What the first message of a conversation follows. Keys count per person, so the names belong to it."""
    return f"{chat.scope.agent}\0{chat.scope.session}"


def _key_of(turn: ListedTurn) -> str:
    """What stands for a turn in the keys of those behind it: its own, or its id where another door recorded it."""
    key = turn.idempotency_key
    return key if key is not None and key.startswith(KEY_PREFIX) else str(turn.id)


def _recorded(runtime: Runtime, tenant_id: int, chat: ChatRequest) -> tuple[ListedTurn, ...]:
    limit = min(len(chat.said) + SPARE_TURNS, LOOKED_THROUGH)
    try:
        return latest_turns(runtime, tenant_id, chat.scope, limit=limit)
    except NotFound:
        return ()


def _digest(turn: NewTurn, memory: Memory) -> str:
    return digest(turn.role, turn.text, turn.tools_used, memory.rules)


def _listed_digest(turn: ListedTurn, memory: Memory) -> str:
    return digest(turn.role, turn.text, turn.tools_used, memory.rules)
