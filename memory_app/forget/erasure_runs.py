"""Erasures that wait for their turn, because others hold the rows: written down as a run, done by a worker.

Whatever is stored of the target until its turn comes is erased, too. The run names the target as long as it waits.
"""

from __future__ import annotations

import random
import time
from functools import partial

import structlog
from sqlalchemy import Connection

from memory_app import queue
from memory_app.db.db import transaction, wait_in_line
from memory_app.db.shards import HOME
from memory_app.errors import MemoryAppError, Moved, NotFound, StoreBusy
from memory_app.forget import carry_out
from memory_app.forget.agent_erasure import erase_agent_in_turn
from memory_app.forget.receipt import Receipt, Subject
from memory_app.forget.rows import receipts
from memory_app.forget.settlement import NOTHING, Counts, Forgotten
from memory_app.forget.target import Target
from memory_app.forget.tenant_erasure import TENANT, erase_tenant_in_turn
from memory_app.jobs import jobs
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run, RunLease
from memory_app.records.audit import Action
from memory_app.records.erasure_order import erasure_order
from memory_app.records.reports import ForgetProgress, ForgetReport, ForgetStage
from memory_app.records.run import RunName
from memory_app.runtime import Runtime
from memory_app.tenancy.audit import noting
from memory_app.tenancy.digests import digests_of

log = structlog.get_logger(__name__)

BUSY = (StoreBusy, Moved)
"""What somebody else who holds the rows, or moves them, makes an erasure raise."""

TURN_SECONDS = 480.0
"""How long a worker tries before it gives the run back; below the soft limit of its task."""

PAUSE_SECONDS = 0.2
"""Between two tries, of which most have waited in line for much longer."""

_ACTIONS = {
    "user": Action.ERASE_USER,
    "agent": Action.ERASE_AGENT,
    "session": Action.ERASE_SESSION,
    "turn": Action.ERASE_TURN,
    "memory": Action.ERASE_MEMORY,
}


def enqueue(runtime: Runtime, tenant_id: int, target: Target) -> Run:
    """Write down that the target is to be erased, and tell a worker. One that waits already is not asked for twice."""
    home = runtime.at(HOME)
    options = erasure_order(target.of.value, target.names)
    with transaction(home.engine, tenant_id) as connection:
        run = runs.find_open(connection, tenant_id, RunName.FORGET, options=options)
        if run is None:
            run = runs.enqueue(connection, tenant_id, RunName.FORGET, scope_id=None, options=options)
    # After the commit: a worker must find the run.
    home.hint(queue.FORGET, run_id=str(run.id))
    log.info("erasure_waits", of=target.of, run=str(run.id))
    return run


def erase_in_turn(runtime: Runtime, claimed: RunLease) -> None:
    """The job of a worker: erase what the run names as soon as the rows are free. In the audit log beside the call."""
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        run = runs.read(connection, claimed.run_id)
    if run is None:
        raise NotFound(f"no run {claimed.run_id}")
    deadline = time.monotonic() + TURN_SECONDS
    if run.options["of"] == TENANT:
        with noting(runtime, claimed.tenant_id, Action.ERASE_TENANT, target=f"run {claimed.run_id}"):
            erase_tenant_in_turn(runtime, claimed, run, deadline=deadline)
        return
    target = Target.read(run.options)
    note = noting(
        runtime, claimed.tenant_id, _ACTIONS[target.of], user=target.user, target=f"run {claimed.run_id}"
    )
    receipt: Receipt | None
    with note:
        if target.of is Subject.AGENT:
            receipt = erase_agent_in_turn(runtime, claimed, run, target.names[0], deadline=deadline)
        else:
            _note_progress(runtime, claimed, ForgetStage.WAITING, {})
            receipt = _try_until_free(runtime, claimed, run, target, deadline=deadline)
    if receipt is not None:
        carry_out.add_to_file(runtime, receipt)


def _try_until_free(
    runtime: Runtime, claimed: RunLease, run: Run, target: Target, *, deadline: float
) -> Receipt | None:
    """The receipt; None where the same was erased meanwhile. Raises what `BUSY` has when the rows never were free."""
    while True:
        try:
            return target.in_its_shard(
                runtime, claimed.tenant_id, lambda here: _erase(here, claimed, run, target)
            )
        except BUSY:
            if time.monotonic() > deadline:
                raise
            # With jitter: two that waited for each other in a circle would meet again.
            time.sleep(PAUSE_SECONDS * random.uniform(0.5, 1.5))


def _erase(runtime: Runtime, claimed: RunLease, run: Run, target: Target) -> Receipt | None:
    tenant_id = claimed.tenant_id
    made = digests_of(runtime.settings)

    def erase(connection: Connection) -> Forgotten:
        wait_in_line(connection)
        return target.erase(
            connection, tenant_id, note=partial(_note_progress, runtime, claimed, ForgetStage.ERASING)
        )

    def finish(connection: Connection, report: ForgetReport) -> Run:
        jobs.complete(connection, claimed, report)
        return run

    # Somebody asked once more and was served at once: what came since is somebody new.
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        digests = made.possible(tenant_id, target.of, target.digest_name)
        earlier = receipts.since(connection, tenant_id, digests, since=run.created_at)
        if earlier is not None:
            finish(connection, ForgetReport(erasure=earlier, counts=NOTHING.counts))
            return None
    _, receipt = carry_out.carry_out(
        runtime,
        tenant_id,
        of=target.of,
        erase=erase,
        receipt=carry_out.new_receipt(runtime, tenant_id, target),
        run=finish,
    )
    return receipt


def _note_progress(runtime: Runtime, claimed: RunLease, stage: ForgetStage, counts: Counts) -> None:
    """Let whoever follows the run see how far it is. In a transaction of its own: nobody sees the erasure's before its
    end."""
    try:
        with transaction(runtime.at(HOME).engine, claimed.tenant_id) as connection:
            runs.note_progress(connection, claimed, ForgetProgress(stage=stage, counts=counts))
    except MemoryAppError as error:
        log.warning("progress_not_noted", run=str(claimed.run_id), error=error.kind)
