"""What memory gives to a chat: the policy of the agent, the window before the reply, and texts without private parts.

Everything here may fail without any harm to the chat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from memory_app.completions.chat_request import ChatRequest
from memory_app.db.db import transaction
from memory_app.language.redaction import Rules
from memory_app.recall.context import ContextRequest, context
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import Policy, parse_policy
from memory_app.tenancy.redaction import for_provider
from memory_app.tenancy.rows import names


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
