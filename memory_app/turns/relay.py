"""Relay: turns from producers that reach only the broker. Does what the API does; the promise begins when the row is
written.

The one message that carries text. It carries a key too, since a message by itself has no authority, and it is stored
once however often it is delivered: without an idempotency key of its own it is known by the id of its message.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from memory_app.errors import Forbidden, InvalidInput, StoreUnavailable, Unauthorized
from memory_app.records.records import NewTurn, Role, Ticket
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy import access
from memory_app.tenancy.rows.keys import is_well_formed
from memory_app.turns.record import record

TRIES = 6
FIRST_WAIT_SECONDS = 0.5
"""Doubles; all waits together stay below a task's soft time limit."""


@dataclass(frozen=True, slots=True)
class RelayedTurn:
    """The fields of ``memory.record_turn``: those of `POST …/turns`, whose turn it is, and the API key."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    api_key: str = field(repr=False)
    agent: str
    user: str
    session: str
    role: Role
    content: str = field(repr=False)
    name: str | None = None
    at: datetime | None = None
    idempotency_key: str | None = None
    emotional_tone: str | None = None
    tools_used: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict, repr=False)


_FIELDS = TypeAdapter(RelayedTurn)


def relay(runtime: Runtime, given: Mapping[str, Any], *, message_id: str) -> Ticket:
    """Store the turn of one message. Waits out a short outage of the database, since the message is gone by then.

    Raises `InvalidInput` naming the field, `Unauthorized`, `Forbidden`, or `StoreUnavailable` when it stays away.
    """
    turn = _checked(given)
    new = NewTurn(
        role=turn.role,
        text=turn.content,
        speaker=turn.name,
        at=turn.at,
        idempotency_key=turn.idempotency_key or f"message:{message_id}",
        emotional_tone=turn.emotional_tone,
        tools_used=turn.tools_used,
        metadata=turn.metadata,
    )
    for attempt in range(TRIES):
        try:
            (ticket,) = record(
                runtime, _tenant(runtime, turn), Scope(turn.agent, turn.user, turn.session), [new]
            )
            return ticket
        except StoreUnavailable:
            if attempt == TRIES - 1:
                raise
            time.sleep(FIRST_WAIT_SECONDS * 2**attempt * random.uniform(0.8, 1.2))
    raise AssertionError


def _checked(given: Mapping[str, Any]) -> RelayedTurn:
    try:
        return _FIELDS.validate_python(dict(given))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"]) or "turn"
        raise InvalidInput(f"{name}: {first['msg']}", field=name) from None


def _tenant(runtime: Runtime, turn: RelayedTurn) -> int:
    if not is_well_formed(turn.api_key):
        raise Unauthorized("api_key: not a key of ours")
    caller = access.look_up(runtime, turn.api_key)
    if "write" not in caller.rights:
        raise Forbidden("the key may not write")
    return caller.tenant_id
