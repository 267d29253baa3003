"""Record turns of producers that reach only the broker, as the API does. A turn is safe once its row is committed.

This is the one message that carries text. It carries an API key, too, since a message by itself has no authority.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import Field, ValidationError

from memory_app import correlation
from memory_app.errors import Erased, Forbidden, RateLimited, StoreUnavailable, Unauthorized
from memory_app.records.erased import Refusal
from memory_app.records.records import NewTurn, Ticket
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy import access, rates
from memory_app.tenancy.rows.keys import Caller, is_well_formed
from memory_app.turns.bodies import Moment, TurnBody, new_turn
from memory_app.turns.erased import Waited, note_refused
from memory_app.turns.record import record
from memory_app.turns.replaced import replacing
from memory_app.web.fields import Words
from memory_app.web.validation import invalid_input

# The wait doubles; all of them together stay below a task's soft time limit.
TRIES = 6
FIRST_WAIT_SECONDS = 0.5


class RelayedTurn(TurnBody):
    """The fields of ``memory.record_turn``: those of `POST …/turns`, whose turn it is, and the API key."""

    api_key: Words = Field(repr=False)
    agent: Words
    user: Words
    session: Words
    # By the producer's clock: what waited here while its person was erased must not be stored.
    sent_at: Moment | None = None


def relay(runtime: Runtime, arguments: Mapping[str, Any], *, message_id: str) -> Ticket:
    """Store the turn of one message, whose id stands for that of a request. Waits for the database during a short
    outage.

    Raises `InvalidInput` naming the field, `Unauthorized`, `Forbidden`, `StoreUnavailable` when it stays away,
    `Erased` for what was erased since it was sent, or `RateLimited` above a limit; after these two the message is
    listed among those that were refused, since nobody waits for its answer.
    """
    with correlation.request(correlation.parse_id(message_id) or correlation.new_id()):
        return _relay(runtime, arguments, message_id=message_id)


def _relay(runtime: Runtime, arguments: Mapping[str, Any], *, message_id: str) -> Ticket:
    relayed = _checked(arguments)
    # A message may be delivered twice; its id stands for a key that the producer did not send.
    key = relayed.idempotency_key or f"message:{message_id}"
    turn = replace(new_turn(relayed), idempotency_key=key)
    scope = Scope(relayed.agent, relayed.user, relayed.session)
    waited = Waited(relayed.sent_at)
    for attempt in range(TRIES):
        try:
            return _store(runtime, relayed.api_key, scope, turn=turn, waited=waited, message_id=message_id)
        except StoreUnavailable:
            if attempt == TRIES - 1:
                raise
            # Here and not by a retry of the task: the broker has forgotten the message by now.
            time.sleep(FIRST_WAIT_SECONDS * 2**attempt * random.uniform(0.8, 1.2))
    raise AssertionError


def _store(
    runtime: Runtime, api_key: str, scope: Scope, *, turn: NewTurn, waited: Waited, message_id: str
) -> Ticket:
    caller = _caller(runtime, api_key, scope)
    bound = runtime.bound(caller.agent, caller.user)
    note = partial(note_refused, runtime, caller.tenant_id, message_id=message_id, waited=waited)
    try:
        # Its words alone are counted: how a message is written is the producer's library's matter.
        rates.admit(runtime, caller, size_bytes=len(turn.text.encode()))
        with replacing(bound, caller.tenant_id, scope, [turn], caller=caller):
            (ticket,) = record(bound, caller.tenant_id, scope, new=[turn], waited=waited)
    except Erased as error:
        assert error.reason is not None
        note(reason=Refusal(error.reason))
        raise
    except RateLimited as error:
        note(reason=Refusal(error.kind))
        raise
    return ticket


def _checked(arguments: Mapping[str, Any]) -> RelayedTurn:
    try:
        return RelayedTurn.model_validate(dict(arguments))
    except ValidationError as error:
        raise invalid_input(error) from None


def _caller(runtime: Runtime, api_key: str, scope: Scope) -> Caller:
    if not is_well_formed(api_key):
        raise Unauthorized("api_key: not a key of ours")
    caller = access.look_up(runtime, api_key)
    if "record" not in caller.rights:
        raise Forbidden("this key lacks the right 'record'")
    caller.check_bound(agent=scope.agent, user=scope.user)
    return caller
