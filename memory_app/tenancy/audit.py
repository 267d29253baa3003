"""Write down who did what: an entry when an action begins and one when it ends.

An action that cannot be written down is not begun. Whoever reads the log reads it as the tenant; only the operator can
change it, and the chain shows that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from uuid import UUID

import structlog

from memory_app.db.db import steady, transaction
from memory_app.db.shards import HOME
from memory_app.errors import InvalidInput, MemoryAppError
from memory_app.records.audit import BEGUN, BROKE, DONE, Action, Chain, Entry, Event, follow
from memory_app.records.scope import NAME_LIMIT
from memory_app.runtime import Runtime
from memory_app.tenancy.digests import USER, digests_of
from memory_app.tenancy.rows import audit

log = structlog.get_logger(__name__)

PAGE_LIMIT = 500


@dataclass(frozen=True, slots=True)
class Noting:
    """One action of a tenant that is written down; ``with`` writes both entries."""

    runtime: Runtime
    tenant_id: int
    event: Event

    def begin(self) -> None:
        """Raises `StoreUnavailable`, and then the action must not be done."""
        self._add(BEGUN)

    def end(self, error: BaseException | None) -> None:
        """How it ended; ``error`` is what it was refused with, None where it was done. Raises nothing."""
        outcome = DONE if error is None else error.kind if isinstance(error, MemoryAppError) else BROKE
        try:
            self._add(outcome)
        except MemoryAppError as failure:
            # Its beginning is written down, so that somebody can ask what became of it.
            log.error("audit_end_not_written", action=self.event.action, error=failure.kind)

    def __enter__(self) -> None:
        self.begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(error)

    def _add(self, outcome: str) -> None:
        with transaction(self.runtime.at(HOME).engine, self.tenant_id) as connection:
            audit.add(connection, self.event, outcome=outcome)


def noting(
    runtime: Runtime,
    tenant_id: int,
    action: Action,
    *,
    key_id: int | None = None,
    agent: str | None = None,
    user: str | None = None,
    target: str | None = None,
    request_id: UUID | None = None,
) -> Noting:
    """An action that is to be written down. ``user`` goes into the log as a digest.

    What is no name is left out: it is not checked yet, and the call is about to be refused for it.
    """
    subject = None if user is None else digests_of(runtime.settings).new(tenant_id, USER, user)
    event = Event(action, key_id, _shown(agent), subject, _shown(target), request_id)
    return Noting(runtime, tenant_id, event)


def _shown(name: str | None) -> str | None:
    return name if name is not None and name.isprintable() and len(name) <= NAME_LIMIT else None


def entries(
    runtime: Runtime,
    tenant_id: int,
    *,
    limit: int = 100,
    before: int | None = None,
    action: Action | None = None,
    user: str | None = None,
    key_id: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> tuple[Entry, ...]:
    """Entries of the tenant, newest first: all, or those of one action, about one person, with one key, in a time.

    ``until`` is exclusive.
    """
    if not 1 <= limit <= PAGE_LIMIT:
        raise InvalidInput(f"limit: 1 to {PAGE_LIMIT}", field="limit")
    subjects = None if user is None else digests_of(runtime.settings).possible(tenant_id, USER, user)
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        return audit.listed(
            connection,
            tenant_id,
            limit=limit,
            before=before,
            action=action,
            subjects=subjects,
            key_id=key_id,
            since=since,
            until=until,
        )


def all_entries(runtime: Runtime, tenant_id: int) -> Iterator[Entry]:
    """All entries of the tenant in their order. Whoever stops reading must close the iterator."""
    with steady(runtime.at(HOME).engine, tenant_id) as connection:
        yield from audit.all_of(connection, tenant_id)


def verify(runtime: Runtime, tenant_id: int) -> Chain:
    """Walk along the whole log of the tenant."""
    return follow(all_entries(runtime, tenant_id))
