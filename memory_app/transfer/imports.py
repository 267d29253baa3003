"""Import a file of another program into a scope: by a worker, for a file that came over HTTP, or in this process.

A file is read twice: to its end before anything is stored, so that one that was cut brings nothing, and then item by
item. Doing it again, or going on after a fault, stores nothing twice: turns have keys of their own, and statements are
known by their words.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import BinaryIO, TypeVar

import structlog

from memory_app import queue
from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.errors import Conflict, InvalidInput, NotFound, Permanent, QuotaExceeded, RateLimited
from memory_app.jobs import jobs
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run, RunClaim
from memory_app.records.reports import ImportProgress, ImportReport, ImportSurvey
from memory_app.records.run import RunName
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.tenancy.shards import in_scopes_shard, in_usable
from memory_app.transfer.import_order import Order
from memory_app.transfer.import_storage import Storage
from memory_app.transfer.importers.plan import Planned, planned
from memory_app.transfer.importers.records import Source
from memory_app.transfer.importers.survey import check, survey
from memory_app.transfer.rows import imports
from memory_app.transfer.waiting_file import WaitingFile
from memory_app.turns.erased import Waited

log = structlog.get_logger(__name__)

T = TypeVar("T")

PART_BYTES = 1_000_000
"""A file waits in rows of this size."""

WAITING_LIMIT = 8
"""Files of a tenant that may wait for their import."""

WAITING_SECONDS = 30.0

# Other runs of the same worker wait meanwhile.
SLICE_SECONDS = 20.0
"""How long a worker imports before it gives the run back, to go on when its turn comes."""

NOTE_SECONDS = 2.0
"""How often the progress is written down."""

PATIENCE_SECONDS = 600.0
"""How long an import in this process waits while the workers have too much to do."""

OnProgress = Callable[[ImportReport], None]


@in_scopes_shard
def ask(runtime: Runtime, tenant_id: int, scope: Scope, *, order: Order, file: BinaryIO) -> Run:
    """Keep the file until a worker has imported it, and enqueue the run. The workers write its progress to the report.

    Raises `InvalidInput` for an empty file, `Conflict` where the agent's memory is off, `RateLimited` while too many
    files of the tenant wait.
    """
    _check_user(scope)
    # Counted in every shard, and before this transaction: a brake against many, not a promise to one.
    waiting = sum(in_usable(runtime, lambda here: _waiting(here, tenant_id)))
    if waiting >= WAITING_LIMIT:
        raise RateLimited(
            f"{waiting} files wait for their import; try again when one is done", retry_after=WAITING_SECONDS
        )
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.ensure_scope(connection, tenant_id, replace(scope, session=None))
        _check_memory(row)
        run = runs.enqueue(
            connection, tenant_id, RunName.IMPORT_FILE, scope_id=row.id, options=order.stored()
        )
        parts = iter(lambda: file.read(PART_BYTES), b"")
        if not imports.add_parts(connection, tenant_id, row.id, run_id=run.id, parts=parts):
            raise InvalidInput("file: is empty; nothing was imported", field="file")
    # After the commit: a worker must find the run.
    runtime.hint(queue.IMPORT_FILE, run_id=str(run.id))
    return run


@in_scopes_shard
def import_now(
    runtime: Runtime,
    tenant_id: int,
    scope: Scope,
    *,
    order: Order,
    source: Source,
    on_progress: OnProgress | None = None,
) -> Run:
    """Import a file in this process; the run that is returned is done and has the report.

    Waits while the workers have too much to do. Raises `InvalidInput` naming the place or the field, `Conflict` where
    the agent's memory is off, `RateLimited` or `StoreUnavailable`; what is stored by then is known when it is tried
    again. A dry run stores nothing but its run.
    """
    _check_user(scope)
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.ensure_scope(connection, tenant_id, replace(scope, session=None))
        _check_memory(row)
        began_at = clock.now(connection)
    options = order.options_in(row)
    found = survey(source, options, format=order.format)
    storage = Storage(runtime, tenant_id, scope, Waited(began_at), ImportProgress())

    def report() -> ImportReport:
        return ImportReport(dry_run=order.dry_run, survey=found, progress=storage.progress)

    if not order.dry_run:
        check(found)
        for item in planned(source, options, format=order.format)[1]:
            is_stored = _patiently(partial(storage.add, item))
            if is_stored and on_progress is not None:
                on_progress(report())
        _patiently(storage.store)
    with transaction(runtime.engine, tenant_id) as connection:
        run_id = runs.record(
            connection, tenant_id, RunName.IMPORT_FILE, scope_id=row.id, report=report(), options={}
        )
        run = runs.read(connection, run_id)
    assert run is not None
    return run


def import_waiting(runtime: Runtime, claimed: RunClaim) -> None:
    """Do one run: import the file that waits for it, or the next piece of it."""
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        row = names.read_scope(connection, claimed.scope_id)
        run = runs.read(connection, claimed.run_id)
        size = imports.size(connection, claimed.run_id)
    if row is None or run is None or row.user is None:
        raise NotFound("the person was erased while this ran")
    if not size:
        raise Permanent("the file is gone; send it again")
    order = Order.read(run.options)
    source = WaitingFile(runtime, claimed, PART_BYTES)
    try:
        _import(runtime, claimed, row=row, run=run, order=order, source=source)
    except (InvalidInput, Conflict) as error:
        # Nobody is there to be told but whoever reads the run.
        raise Permanent(error.message) from error


def _import(
    runtime: Runtime, claimed: RunClaim, *, row: ScopeRow, run: Run, order: Order, source: Source
) -> None:
    options = order.options_in(row)
    found = survey(source, options, format=order.format)
    progress = ImportProgress() if run.report is None else ImportProgress.read(run.report["progress"])
    scope = Scope(row.agent, row.user)
    storage = Storage(runtime, claimed.tenant_id, scope, Waited(run.created_at), progress)
    slice = _Slice(runtime, claimed, order=order, survey=found, storage=storage)
    if not order.dry_run:
        _check_memory(row)
        check(found)
        _, items = planned(source, options, format=order.format)
        try:
            is_whole = _store(storage, islice(items, progress.items, None), slice)
        except QuotaExceeded as error:
            # Somebody has to make room first, and then sends the file again.
            slice.note()
            raise Permanent(error.message) from error
        except RateLimited as error:
            slice.give_back(wait_seconds=error.retry_after or WAITING_SECONDS)
            return
        if not is_whole:
            slice.give_back()
            return
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        imports.drop_parts(connection, claimed)
        jobs.complete(connection, claimed, slice.report())
    log.info("file_imported", run=str(claimed.run_id), format=found.format, turns=storage.progress.recorded)


def _store(storage: Storage, items: Iterable[Planned], slice: _Slice) -> bool:
    """Store the items; False where others have their turn before the last of them."""
    for item in items:
        is_stored = storage.add(item)
        if is_stored and slice.is_over():
            return False
    storage.store()
    return True


@dataclass(slots=True)
class _Slice:
    """The piece of an import that a worker does at once."""

    runtime: Runtime
    claimed: RunClaim
    order: Order
    survey: ImportSurvey
    storage: Storage
    until: float = field(default_factory=lambda: time.monotonic() + SLICE_SECONDS)
    noted_at: float = field(default_factory=time.monotonic)

    def report(self) -> ImportReport:
        return ImportReport(dry_run=self.order.dry_run, survey=self.survey, progress=self.storage.progress)

    def note(self) -> None:
        """Write down how far the import is."""
        self.noted_at = time.monotonic()
        with transaction(self.runtime.engine, self.claimed.tenant_id) as connection:
            runs.note_progress(connection, self.claimed, self.report())

    def is_over(self) -> bool:
        """Whether others have their turn now; notes the progress meanwhile."""
        now = time.monotonic()
        if now - self.noted_at >= NOTE_SECONDS:
            self.note()
        return now >= self.until

    def give_back(self, *, wait_seconds: float = 0.0) -> None:
        """Let the run go on later, from where it is."""
        with transaction(self.runtime.engine, self.claimed.tenant_id) as connection:
            runs.note_progress(connection, self.claimed, self.report())
            runs.give_back(connection, self.claimed, timedelta(seconds=wait_seconds))
        if not wait_seconds:
            self.runtime.hint(queue.IMPORT_FILE, run_id=str(self.claimed.run_id))


def _waiting(here: Runtime, tenant_id: int) -> int:
    with transaction(here.engine, tenant_id) as connection:
        return imports.waiting(connection, tenant_id)


def _patiently(act: Callable[[], T]) -> T:
    """Act, again and again while the workers have too much to do. A quota does not pass by itself."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return act()
        except QuotaExceeded:
            raise
        except RateLimited as error:
            if time.monotonic() > until:
                raise
            time.sleep(error.retry_after or 1.0)


def _check_user(scope: Scope) -> None:
    if scope.user is None:
        raise InvalidInput("user: a file is imported for a user; name the user", field="user")


def _check_memory(row: ScopeRow) -> None:
    if not parse_policy(row.policy).memory:
        raise Conflict(
            f"agent {row.agent!r}: its memory is off; switch `memory` on in its policy to import",
            field="agent",
        )
