"""Record turns of producers that reach only the broker, as the API does. A turn is safe once its row is committed.

This is the one message that carries text. It carries an API key, too, since a message by itself has no authority.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from memory_app.errors import Forbidden, InvalidInput, StoreUnavailable, Unauthorized
from memory_app.records.records import NewTurn, Ticket
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy import access
from memory_app.tenancy.rows.keys import is_well_formed
from memory_app.turns.record import record

# The wait doubles; all of them together stay below a task's soft time limit.
TRIES = 6
FIRST_WAIT_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class RelayedTurn(NewTurn):
    """The fields of ``memory.record_turn``: those of `POST …/turns`, whose turn it is, and the API key."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    text: Annotated[str, Field(alias="content")] = field(repr=False)
    speaker: Annotated[str | None, Field(alias="name")] = None
    metadata: dict[str, Any] = field(default_factory=dict, repr=False)
    api_key: str = field(repr=False, kw_only=True)
    agent: str = field(kw_only=True)
    user: str = field(kw_only=True)
    session: str = field(kw_only=True)


_FIELDS = TypeAdapter(RelayedTurn)


def relay(runtime: Runtime, arguments: Mapping[str, Any], *, message_id: str) -> Ticket:
    """Store the turn of one message. Waits for the database during a short outage.

    Raises `InvalidInput` naming the field, `Unauthorized`, `Forbidden`, or `StoreUnavailable` when it stays away.
    """
    turn = _checked(arguments)
    values = {field.name: getattr(turn, field.name) for field in fields(NewTurn)}
    # A message may be delivered twice; its id stands for a key that the producer did not send.
    values["idempotency_key"] = turn.idempotency_key or f"message:{message_id}"
    scope = Scope(turn.agent, turn.user, turn.session)
    for attempt in range(TRIES):
        try:
            (ticket,) = record(runtime, _tenant(runtime, turn), scope, new=[NewTurn(**values)])
            return ticket
        except StoreUnavailable:
            if attempt == TRIES - 1:
                raise
            # Here and not by a retry of the task: the broker has forgotten the message by now.
            time.sleep(FIRST_WAIT_SECONDS * 2**attempt * random.uniform(0.8, 1.2))
    raise AssertionError


def _checked(arguments: Mapping[str, Any]) -> RelayedTurn:
    try:
        return _FIELDS.validate_python(dict(arguments))
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
