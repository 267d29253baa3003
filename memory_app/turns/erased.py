"""Refuse what would bring back somebody, or something, that was erased; list the messages that were refused."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app.db.db import transaction
from memory_app.db.shards import HOME
from memory_app.errors import Erased, InvalidInput
from memory_app.records.erased import Refusal, refusal_of
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.digests import AGENT, SESSION, USER, Digests, session_name
from memory_app.tenancy.rows import erased
from memory_app.tenancy.rows.erased import RefusedMessage

log = structlog.get_logger(__name__)

PAGE_LIMIT = 500

_WORDS = {
    Refusal.SENT_BEFORE: "the person, the session or the agent was erased after this was sent",
    Refusal.UNTIMED: "the person, the session or the agent was erased within a day, and sent_at, the time at which "
    "this was sent, is missing or lies in the future",
}


@dataclass(frozen=True, slots=True)
class Waited:
    """Of a turn that waited as a message: when it was sent, by its producer's clock; None where it does not say."""

    sent_at: datetime | None


def hold(connection: Connection, tenant_id: int, scope: Scope) -> None:
    """Let no erasure of the person come between the check and the end of the transaction."""
    assert scope.user is not None
    erased.hold_name(connection, tenant_id, scope.user)


def check_waited(
    connection: Connection, tenant_id: int, scope: Scope, *, waited: Waited, made: Digests
) -> None:
    """Raise `Erased` where the person, the session or the agent was erased after the turn was sent."""
    assert scope.user is not None
    session = session_name(scope.agent, scope.user, scope.session)
    digests = (
        *made.possible(tenant_id, USER, scope.user),
        *made.possible(tenant_id, SESSION, session),
        *made.possible(tenant_id, AGENT, scope.agent),
    )
    erased_at, now = erased.newest(connection, tenant_id, digests)
    reason = refusal_of(sent_at=waited.sent_at, erased_at=erased_at, now=now)
    if reason is not None:
        raise Erased(_WORDS[reason], field="sent_at", reason=reason)


def check_turns(digests: Collection[bytes], erased_digests: Collection[bytes]) -> None:
    """Raise `Erased` where one of the turns was erased."""
    if not set(digests).isdisjoint(erased_digests):
        raise Erased(
            "idempotency_key: the turn of this key was erased; a new key records it anew",
            field="idempotency_key",
            reason=Refusal.TURN,
        )


def list_refused(
    runtime: Runtime, tenant_id: int, *, limit: int = 100, before: UUID | None = None
) -> tuple[RefusedMessage, ...]:
    """Messages of the broker that were refused for an erasure or a limit, newest first: their ids, nothing of what they
    carry."""
    if not 1 <= limit <= PAGE_LIMIT:
        raise InvalidInput(f"limit: 1 to {PAGE_LIMIT}", field="limit")
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        return erased.messages(connection, tenant_id, limit=limit, before=before)


def note_refused(
    runtime: Runtime, tenant_id: int, *, message_id: str, waited: Waited, reason: Refusal
) -> None:
    """List a message that was refused; a second delivery changes nothing."""
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        erased.add_message(
            connection,
            tenant_id,
            message_id=message_id,
            reason=reason,
            sent_at=waited.sent_at,
            keep=timedelta(days=runtime.settings.erasure.keep_days),
        )
    log.warning("message_refused", message=message_id, reason=reason.value)
