"""Carry an erasure out: one transaction that erases, and writes the receipt and the run down."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app import metrics
from memory_app.db.db import transaction
from memory_app.db.shards import HOME, at_home
from memory_app.errors import MemoryAppError
from memory_app.forget import receipt_file
from memory_app.forget.receipt import Receipt
from memory_app.forget.rows import receipts
from memory_app.forget.settlement import Forgotten
from memory_app.forget.target import Target
from memory_app.hot import cache, stream
from memory_app.hot import erase as hot_erase
from memory_app.jobs.rows.runs import Run
from memory_app.records.reports import ForgetReport
from memory_app.runtime import Runtime
from memory_app.tenancy.digests import TURN, digests_of
from memory_app.tenancy.rows import erased

log = structlog.get_logger(__name__)

Erase = Callable[[Connection], Forgotten]
WriteReceipt = Callable[[Connection, Forgotten], Receipt]
Written = TypeVar("Written")

WriteRun = Callable[[Connection, ForgetReport], Written]
"""Writes the report down, in the transaction that erases."""


class _Rehearsed(Exception):
    """Rolls a dry run back, and carries what it would have done."""

    def __init__(self, forgotten: Forgotten) -> None:
        super().__init__("rolled back")
        self.forgotten = forgotten


def new_receipt(runtime: Runtime, tenant_id: int, target: Target) -> WriteReceipt:
    """Writes the receipt of a target that is erased for the first time."""
    made = digests_of(runtime.settings)
    name = target.digest_name

    def write(connection: Connection, forgotten: Forgotten) -> Receipt:
        # The erased memory is among those that went with it, and is put first: the table keeps one digest only.
        others = sorted({str(id) for id in forgotten.memories} - {name})
        digests = tuple(made.new(tenant_id, target.of, other) for other in (name, *others))
        return receipts.record(connection, tenant_id, of=target.of, digests=digests, counts=forgotten.counts)

    return write


@metrics.timing(metrics.erasure_seconds)
def carry_out(
    runtime: Runtime, tenant_id: int, *, of: str, erase: Erase, receipt: WriteReceipt, run: WriteRun[Written]
) -> tuple[Written, Receipt]:
    """Erase in the runtime's shard. The receipt and the run are written in the home shard."""
    with transaction(runtime.engine, tenant_id) as connection:
        forgotten = erase(connection)
        note_turns(connection, runtime, tenant_id, forgotten)
        # The receipt is part of the transaction: none without an erasure, and no erasure without one. It stays
        # in the home shard, whatever becomes of the other.
        with at_home(connection, writes=True) as home:
            written = receipt(home, forgotten)
            record = run(home, _report(forgotten, written))
    # After the commit: what is read between the two would else be put into Redis again.
    drop_hot(runtime, forgotten)
    note_erasure(of, written.id, rows=sum(forgotten.counts.values()))
    return record, written


def note_erasure(of: str, erasure_id: UUID, *, rows: int) -> None:
    """Count an erasure that has taken effect, and say so in the log."""
    metrics.erasures.labels(of).inc()
    metrics.erased_rows.inc(rows)
    log.info("forgotten", of=of, erasure=str(erasure_id), rows=rows)


@metrics.timing(metrics.erasure_seconds)
def rehearse(runtime: Runtime, tenant_id: int, *, erase: Erase, run: WriteRun[Run]) -> Run:
    """Count what would go. The same transaction, rolled back: so the counts are those a real erasure would have."""
    try:
        with transaction(runtime.engine, tenant_id) as connection:
            raise _Rehearsed(erase(connection))
    except _Rehearsed as rehearsed:
        forgotten = rehearsed.forgotten
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        return run(connection, _report(forgotten, None))


def add_to_file(runtime: Runtime, receipt: Receipt) -> None:
    """Add a receipt to the file that the settings name, if they name one."""
    path = runtime.settings.erasures_file
    if path is None:
        return
    try:
        receipt_file.append(path, [receipt], digests_of(runtime.settings))
    except OSError as error:
        # It is erased all the same, and the table has the receipt; doctor names what the file lacks.
        log.error("receipt_not_written", erasure=str(receipt.id), error=error.strerror)


def note_turns(connection: Connection, runtime: Runtime, tenant_id: int, forgotten: Forgotten) -> None:
    """Remember which turns were erased, so that a caller who sends one again does not bring it back."""
    made = digests_of(runtime.settings)
    digests = [made.new(tenant_id, TURN, name) for name in forgotten.sent]
    keep = timedelta(days=runtime.settings.erasure.keep_days)
    erased.add_turns(connection, tenant_id, digests, keep=keep)


def _report(forgotten: Forgotten, receipt: Receipt | None) -> ForgetReport:
    digests = () if receipt is None else receipt.digests
    # A single digest is in the row of the receipt.
    if len(digests) == 1:
        digests = ()
    return ForgetReport(
        erasure=None if receipt is None else receipt.id,
        counts=forgotten.counts,
        digests=tuple(digest.hex() for digest in digests),
    )


def drop_hot(runtime: Runtime, forgotten: Forgotten) -> None:
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
