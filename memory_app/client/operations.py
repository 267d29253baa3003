"""Calls of keys, the audit log, costs, tools, and following a piece of work."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_app.client.call import Call, answer_of, body_of, in_user, json_of, nothing, path, query_of
from memory_app.errors import InvalidInput
from memory_app.main.answers import (
    AuditAnswer,
    ChainAnswer,
    KeysAnswer,
    LimitsAnswer,
    NewKeyAnswer,
    TenantLimitsAnswer,
)
from memory_app.ops.answers import TraceAnswer
from memory_app.records.audit import Action
from memory_app.records.ids import checked_id
from memory_app.records.scope import Scope
from memory_app.sleep.answers import UsageAnswer
from memory_app.tools.answers import ToolCallAnswer, ToolsAnswer

USUAL_RIGHTS = ("read", "record", "write", "erase")


def tools(format: str = "openai") -> Call[ToolsAnswer]:
    """Definitions of the agents' tools for chat-completion APIs: ``openai`` or ``anthropic``."""
    return Call("GET", path("v1", "tools"), answer_of(ToolsAnswer), query=query_of(format=format))


def call_tool(scope: Scope, name: str, arguments: Mapping[str, Any] | str) -> Call[ToolCallAnswer]:
    """Call a tool for the person of the scope; ``arguments`` are a mapping, or JSON as a model wrote it.

    A wrong one is answered with ``is_error``, for the model to mend.
    """
    return Call(
        "POST",
        in_user(scope, "tools", name),
        answer_of(ToolCallAnswer),
        query=query_of(session=scope.session),
        body=_arguments(arguments),
        is_repeatable=False,
    )


def trace(id: UUID | str) -> Call[TraceAnswer]:
    """The way from the request to the memories, or back, by any id on it: ids and times, no text."""
    return Call("GET", path("v1", "trace", checked_id(id)), answer_of(TraceAnswer))


def usage(*, days: int = 30) -> Call[UsageAnswer]:
    """Calls, tokens and money by day (UTC) and model, newest first."""
    return Call("GET", path("v1", "usage"), answer_of(UsageAnswer), query=query_of(days=days))


def audit(
    *,
    action: Action | str | None = None,
    user: str | None = None,
    key: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    cursor: int | None = None,
    limit: int = 100,
) -> Call[AuditAnswer]:
    """Who did what, newest first; ``until`` is exclusive."""
    query = query_of(action=action, user=user, key=key, since=since, until=until, cursor=cursor, limit=limit)
    return Call("GET", path("v1", "audit"), answer_of(AuditAnswer), query=query)


def verify_audit() -> Call[ChainAnswer]:
    """Walk along the whole audit log and tell whether an entry was changed, taken out or put in."""
    return Call("GET", path("v1", "audit", "chain"), answer_of(ChainAnswer))


def keys() -> Call[KeysAnswer]:
    """The API keys of the tenant, ended ones too; never the keys themselves."""
    return Call("GET", path("v1", "keys"), answer_of(KeysAnswer))


def make_key(
    *,
    rights: Sequence[str] = USUAL_RIGHTS,
    label: str | None = None,
    days: int | None = None,
    agent: str | None = None,
    user: str | None = None,
) -> Call[NewKeyAnswer]:
    """Make a key of the tenant, perhaps for one ``agent`` or ``user`` only, which expires after ``days``."""
    body = body_of(rights=list(rights), label=label, days=days, agent=agent, user=user)
    return Call("POST", path("v1", "keys"), answer_of(NewKeyAnswer), body=body, is_repeatable=False)


def rotate_key(key: int, *, overlap_hours: float = 24) -> Call[NewKeyAnswer]:
    """Make a key like this one, which goes on for ``overlap_hours``."""
    body = body_of(overlap_hours=overlap_hours)
    address = path("v1", "keys", key, "rotate")
    return Call("POST", address, answer_of(NewKeyAnswer), body=body, is_repeatable=False)


def revoke_key(key: int) -> Call[None]:
    """End a key at once."""
    return Call("DELETE", path("v1", "keys", key), nothing)


def limits() -> Call[TenantLimitsAnswer]:
    """The limits of the tenant, which the operator sets, and how many turns it has stored."""
    return Call("GET", path("v1", "limits"), answer_of(TenantLimitsAnswer))


def limit_key(
    key: int, *, requests_per_minute: int | None = None, bytes_per_minute: int | None = None
) -> Call[LimitsAnswer]:
    """Set the limits of a key; None is none. Processes follow within seconds."""
    body = body_of(requests_per_minute=requests_per_minute, bytes_per_minute=bytes_per_minute)
    return Call("PUT", path("v1", "keys", key, "limits"), answer_of(LimitsAnswer), body=body)


def _arguments(arguments: Mapping[str, Any] | str) -> bytes:
    """The arguments as the object that the API takes. Raises `InvalidInput` for text that is no JSON."""
    try:
        return json_of(json.loads(arguments) if isinstance(arguments, str) else arguments)
    except json.JSONDecodeError as error:
        raise InvalidInput("arguments: not valid JSON; send one JSON object", field="arguments") from error
