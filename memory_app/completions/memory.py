"""What memory does for a chat: the window before the reply, and both sides of it recorded.

Everything here may fail without any harm to the chat: what was not recorded comes again with the next call, since
clients send the whole conversation each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from memory_app.completions.chat_request import ChatRequest
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
from memory_app.turns.bodies import parse_message
from memory_app.turns.record import record
from memory_app.turns.stream import latest_turns

LOOKED_THROUGH = 500
"""Turns of the session beside which a conversation is laid, the latest ones."""

SPARE_TURNS = 20
"""Turns looked at beyond as many as were sent: others may have recorded in the session as well."""

BATCH = 50
"""Messages recorded in one call."""


@dataclass(frozen=True, slots=True)
class ChatPolicy:
    """What a chat needs of an agent's policy. ``rules`` say what is taken out before anything is stored or sent on."""

    has_memory: bool
    rules: Rules


def policy_of(runtime: Runtime, tenant_id: int, agent: str) -> ChatPolicy:
    """The policy of the agent, by default that of one that nobody has met."""
    with transaction(runtime.directory.engine, tenant_id) as connection:
        start = names.agent_start(connection, tenant_id, agent)
    policy = Policy() if start is None else parse_policy(start.policy)
    return ChatPolicy(policy.memory, policy.redaction_rules)


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
        turns=0 if len(chat.turns) > 1 else None,
    )
    window = context(runtime, tenant_id, replace(chat.scope, session=None), request=request)
    return window.text, window.degraded


def redacted(message: Mapping[str, Any], policy: ChatPolicy) -> Mapping[str, Any]:
    """A message as the provider may see it: its texts, and what it hands to tools, without what the agent's redaction
    takes out."""
    if not policy.rules.is_on:
        return message
    changed = dict(message)
    content = message.get("content")
    if isinstance(content, str):
        changed["content"] = for_provider(content, policy.rules)
    elif isinstance(content, list):
        changed["content"] = [_with_redacted(part, "text", policy) for part in content]
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        changed["tool_calls"] = [_redacted_call(call, policy) for call in calls]
    return changed


def _redacted_call(call: object, policy: ChatPolicy) -> object:
    if not isinstance(call, Mapping):
        return call
    return {**call, "function": _with_redacted(call.get("function"), "arguments", policy)}


def _with_redacted(value: object, name: str, policy: ChatPolicy) -> object:
    """The object with one text of its redacted; anything else as it is, for the provider to say what is wrong."""
    if isinstance(value, Mapping) and isinstance(value.get(name), str):
        return {**value, name: for_provider(value[name], policy.rules)}
    return value


def record_messages(runtime: Runtime, tenant_id: int, chat: ChatRequest, policy: ChatPolicy) -> str:
    """Record the messages that are new; what the next one follows, as `record_reply` takes it.

    Raises what `record` raises; a part of the messages may be recorded then.
    """
    sent = [_digest(turn, policy) for turn in chat.turns]
    recorded = _recorded(runtime, tenant_id, chat)
    known = known_messages(
        sent,
        [_digest(turn, policy) for turn in recorded],
        is_whole=not recorded or (recorded[0].place or recorded[0].seq) == 1,
    )
    previous = _begin(chat) if known.place is None else _key_of(recorded[known.place])
    new = []
    for turn, own in zip(chat.turns[known.count :], sent[known.count :], strict=True):
        previous = key_after(previous, own)
        new.append(replace(turn, idempotency_key=previous))
    for start in range(0, len(new), BATCH):
        record(runtime, tenant_id, chat.scope, new=new[start : start + BATCH])
    return previous


def record_reply(
    runtime: Runtime,
    tenant_id: int,
    chat: ChatRequest,
    policy: ChatPolicy,
    *,
    reply: Mapping[str, Any],
    previous: str,
) -> None:
    """Record what the model said behind ``previous``. Raises what `record` raises, and `InvalidInput`."""
    turn = parse_message(reply)
    key = key_after(previous, _digest(turn, policy))
    record(runtime, tenant_id, chat.scope, new=[replace(turn, idempotency_key=key)])


def _begin(chat: ChatRequest) -> str:
    """What the first message of a conversation follows. Keys count per person, so the names belong to it."""
    return f"{chat.scope.agent}\0{chat.scope.session}"


def _key_of(turn: ListedTurn) -> str:
    """What stands for a turn in the keys of those behind it: its own, or its id where another door recorded it."""
    key = turn.idempotency_key
    return key if key is not None and key.startswith(KEY_PREFIX) else str(turn.id)


def _recorded(runtime: Runtime, tenant_id: int, chat: ChatRequest) -> tuple[ListedTurn, ...]:
    limit = min(len(chat.turns) + SPARE_TURNS, LOOKED_THROUGH)
    try:
        return latest_turns(runtime, tenant_id, chat.scope, limit=limit)
    except NotFound:
        return ()


def _digest(turn: NewTurn | ListedTurn, policy: ChatPolicy) -> str:
    return digest(turn.role, turn.text, turn.tools_used, policy.rules)
