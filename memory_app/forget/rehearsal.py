"""Count what an erasure of many transactions would delete, and write it down as a run that is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from sqlalchemy import Connection

from memory_app.db.db import transaction
from memory_app.db.shards import HOME
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run
from memory_app.records.reports import ForgetReport
from memory_app.records.run import RunName
from memory_app.runtime import Runtime
from memory_app.tenancy.shards import in_each


class Counted(Protocol):
    """Rows by table that would go in the connection's shard."""

    def __call__(self, connection: Connection, tenant_id: int, /) -> Mapping[str, int]: ...


def record_counts(runtime: Runtime, tenant_id: int, *, of: str, counted: Counted) -> Run:
    """The run of a rehearsal, with the counts of all shards. Changes nothing else."""

    def look(here: Runtime) -> Mapping[str, int]:
        with transaction(here.engine, tenant_id) as connection:
            return counted(connection, tenant_id)

    total: Counter[str] = Counter()
    for counts in in_each(runtime, look):
        total.update(counts)
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        run_id = runs.record(
            connection,
            tenant_id,
            RunName.FORGET,
            scope_id=None,
            report=ForgetReport(erasure=None, counts=dict(total)),
            options={"of": of, "dry_run": True},
        )
        run = runs.read(connection, run_id)
    assert run is not None
    return run
