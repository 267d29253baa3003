"""Forget a memory, a turn, a session or a person for good, with whatever came only from it.

Each is one transaction under the locks of the scopes concerned, so nothing is ever half forgotten. Work in flight
cannot bring anything back: it finds its scope gone, its session fenced or its sources missing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app import metrics
from memory_app.db.db import transaction
from memory_app.db.shards import HOME, at_home
from memory_app.errors import MemoryAppError, NotFound
from memory_app.forget import receipt_file
from memory_app.forget.erasure import erase_memory, erase_session, erase_turn, erase_user
from memory_app.forget.receipt import Receipt, Subject, receipt_line
from memory_app.forget.rows import receipts
from memory_app.forget.rows.receipts import Erasure
from memory_app.forget.settlement import Forgotten
from memory_app.hot import cache, stream
from memory_app.hot import erase as hot_erase
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run
from memory_app.records.reports import ForgetReport
from memory_app.records.run import RunName
from memory_app.records.scope import Scope, check_name
from memory_app.runtime import Runtime
from memory_app.tenancy.digests import TURN, digests_of, session_name
from memory_app.tenancy.rows import erased
from memory_app.tenancy.shards import in_scopes_shard, in_users_shard, where_stored

log = structlog.get_logger(__name__)

Erase = Callable[[Connection], Forgotten]


class _Rehearsed(Exception):
    """Rolls a dry run back, and carries what it would have done."""

    def __init__(self, forgotten: Forgotten) -> None:
        super().__init__("rolled back")
        self.forgotten = forgotten


@where_stored
def forget_memory(runtime: Runtime, tenant_id: int, memory_id: UUID) -> Run:
    """Delete a memory, every row that says the same or was merged into it, and what rested on it alone.

    What was made of it and of others stays, unless it repeats it; what has no source left is retired. The turns it came
    from stay. Raises `NotFound` for an unknown memory.
    """

    def erase(connection: Connection) -> Forgotten:
        forgotten = erase_memory(connection, tenant_id, memory_id)
        if forgotten is None:
            raise NotFound(f"no memory {memory_id}", field="id")
        return forgotten

    return _forget(runtime, tenant_id, erase, of=Subject.MEMORY, name=str(memory_id))


@where_stored
def forget_turn(runtime: Runtime, tenant_id: int, turn_id: UUID) -> Run:
    """Delete a turn, its share in every count, and the memories that came only from it.

    Raises `NotFound` for an unknown turn.
    """

    def erase(connection: Connection) -> Forgotten:
        forgotten = erase_turn(connection, tenant_id, turn_id)
        if forgotten is None:
            raise NotFound(f"no turn {turn_id}", field="id")
        return forgotten

    return _forget(runtime, tenant_id, erase, of=Subject.TURN, name=str(turn_id))


@in_scopes_shard
def forget_session(runtime: Runtime, tenant_id: int, scope: Scope, *, dry_run: bool = False) -> Run:
    """Delete a session with its turns, its own memories and those that came only from it.

    Repeating it is harmless: what is not there leaves an empty receipt.
    """

    def erase(connection: Connection) -> Forgotten:
        return erase_session(connection, tenant_id, scope)

    name = session_name(scope.agent, scope.user, scope.session)
    return _forget(runtime, tenant_id, erase, of=Subject.SESSION, name=name, dry_run=dry_run)


def forget_user(runtime: Runtime, tenant_id: int, user: str, *, dry_run: bool = False) -> Run:
    """Delete a person with all agents: turns, sessions, memories, entities, and what of it stands elsewhere.

    The same name may come back later as somebody new. Repeating it is harmless: a user who is not there leaves an
    empty receipt. Raises `InvalidInput` for what is no name.
    """
    check_name(user, field="user")

    def erase(connection: Connection) -> Forgotten:
        return erase_user(connection, tenant_id, user)

    return in_users_shard(
        runtime,
        tenant_id,
        user,
        lambda here: _forget(here, tenant_id, erase, of=Subject.USER, name=user, dry_run=dry_run),
    )


def forget_again(runtime: Runtime, receipt: Receipt, erase: Erase, *, dry_run: bool = False) -> Run:
    """Do an earlier erasure again in a database that does not know it, and write its receipt down as it was first."""

    def record(connection: Connection, _: Forgotten) -> Receipt:
        receipts.record_again(connection, receipt)
        return receipt

    run, _ = _carry_out(
        runtime,
        receipt.tenant_id,
        erase=erase,
        record=record,
        options={"of": receipt.of, "again": True},
        dry_run=dry_run,
    )
    return run


def read_erasure(runtime: Runtime, tenant_id: int, erasure_id: UUID) -> Erasure:
    """A receipt. `NotFound` for an unknown one."""
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        erasure = receipts.read(connection, erasure_id)
    if erasure is None:
        raise NotFound(f"no erasure {erasure_id}", field="id")
    return erasure


def read_receipt_line(runtime: Runtime, tenant_id: int, erasure_id: UUID) -> str:
    """A receipt as the line that can be kept and verified. `NotFound` for an unknown one."""
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        receipt = receipts.read_receipt(connection, tenant_id, erasure_id)
    if receipt is None:
        raise NotFound(f"no erasure {erasure_id}", field="id")
    return receipt_line(receipt, digests_of(runtime.settings))


def _forget(
    runtime: Runtime,
    tenant_id: int,
    erase: Erase,
    *,
    of: Subject,
    name: str,
    dry_run: bool = False,
) -> Run:
    """Erase for the first time; the receipt also goes to the file that the settings name."""
    made = digests_of(runtime.settings)

    def record(connection: Connection, forgotten: Forgotten) -> Receipt:
        # The erased memory is among those that went with it, and is put first: the table keeps one digest only.
        others = sorted({str(id) for id in forgotten.memories} - {name})
        digests = tuple(made.new(tenant_id, of, other) for other in (name, *others))
        return receipts.record(connection, tenant_id, of=of, digests=digests, counts=forgotten.counts)

    run, receipt = _carry_out(
        runtime,
        tenant_id,
        erase=erase,
        record=record,
        options={"of": of},
        dry_run=dry_run,
    )
    path = runtime.settings.erasures_file
    if receipt is not None and path is not None:
        try:
            receipt_file.append(path, [receipt], made)
        except OSError as error:
            # It is erased all the same, and the table has the receipt; doctor names what the file lacks.
            log.error("receipt_not_written", erasure=str(receipt.id), error=error.strerror)
    return run


@metrics.timing(metrics.erasure_seconds)
def _carry_out(
    runtime: Runtime,
    tenant_id: int,
    *,
    erase: Erase,
    record: Callable[[Connection, Forgotten], Receipt],
    options: dict[str, Any],
    dry_run: bool,
) -> tuple[Run, Receipt | None]:
    """Erase, or rehearse it, and write down the run and the receipt; a rehearsal has none."""
    try:
        with transaction(runtime.engine, tenant_id) as connection:
            forgotten = erase(connection)
            if dry_run:
                # The same transaction, rolled back: so the counts are those that a real erasure would have.
                raise _Rehearsed(forgotten)
            _note_turns(connection, runtime, tenant_id, forgotten)
            # The receipt is part of the transaction: none without an erasure, and no erasure without one. It stays
            # in the home shard, whatever becomes of the other.
            with at_home(connection):
                receipt = record(connection, forgotten)
                run = _write_run(connection, tenant_id, options=options, forgotten=forgotten, receipt=receipt)
    except _Rehearsed as rehearsed:
        forgotten = rehearsed.forgotten
        with transaction(runtime.at(HOME).engine, tenant_id) as connection:
            run = _write_run(connection, tenant_id, options=options, forgotten=forgotten, receipt=None)
        return run, None
    # After the commit: what is read between the two would else be put into Redis again.
    _drop_hot(runtime, forgotten)
    rows = sum(forgotten.counts.values())
    metrics.erasures.labels(options["of"]).inc()
    metrics.erased_rows.inc(rows)
    log.info("forgotten", of=options["of"], erasure=str(receipt.id), rows=rows)
    return run, receipt


def _note_turns(connection: Connection, runtime: Runtime, tenant_id: int, forgotten: Forgotten) -> None:
    """Remember which turns were erased, so that a caller who sends one again does not bring it back."""
    made = digests_of(runtime.settings)
    digests = [made.new(tenant_id, TURN, name) for name in forgotten.sent]
    keep = timedelta(days=runtime.settings.erasure.keep_days)
    erased.add_turns(connection, tenant_id, digests, keep=keep)


def _write_run(
    connection: Connection,
    tenant_id: int,
    *,
    options: dict[str, Any],
    forgotten: Forgotten,
    receipt: Receipt | None,
) -> Run:
    digests = () if receipt is None else receipt.digests
    # A single digest is in the row of the receipt.
    if len(digests) == 1:
        digests = ()
    report = ForgetReport(
        erasure=None if receipt is None else receipt.id,
        counts=forgotten.counts,
        digests=tuple(digest.hex() for digest in digests),
    )
    options = options | {"dry_run": receipt is None}
    run_id = runs.record(connection, tenant_id, RunName.FORGET, scope_id=None, report=report, options=options)
    run = runs.read(connection, run_id)
    assert run is not None
    return run


def _drop_hot(runtime: Runtime, forgotten: Forgotten) -> None:
    """Drop what Redis has of what was forgotten."""
    try:
        hot_erase.erase(runtime.hot, forgotten.erased)
        for scope_id in forgotten.touched:
            stream.clear(runtime.hot, scope_id)
            cache.drop(runtime.hot, scope_id)
    except MemoryAppError as error:
        # No reason to fail: the keys hold ids of rows that are gone, and expire; a narrative within 300 seconds.
        # Nobody finds the way to them, since the scope is gone.
        log.warning("hot_memory_not_dropped", error=error.kind)
