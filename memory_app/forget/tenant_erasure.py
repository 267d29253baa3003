"""Erase a tenant: every person and every agent with a receipt of its own, and then what is of neither.

The keys end first, so that nobody records meanwhile. The tenant's name, its keys, its audit log and the receipts stay:
they prove what was done. A worker does it person by person; one that takes over goes on from there.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from functools import partial

from sqlalchemy import Connection

from memory_app import queue
from memory_app.db.db import transaction, wait_in_line
from memory_app.db.shards import HOME
from memory_app.errors import StoreBusy
from memory_app.forget import carry_out, rehearsal
from memory_app.forget.agent_erasure import erase_agent
from memory_app.forget.progress import Progress
from memory_app.forget.receipt import Receipt, Subject
from memory_app.forget.rows import tenants
from memory_app.forget.settlement import Forgotten, added
from memory_app.forget.target import Target
from memory_app.jobs import jobs
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run, RunLease
from memory_app.records.erasure_order import erasure_order
from memory_app.records.reports import ForgetReport
from memory_app.records.run import RunName
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import keys
from memory_app.tenancy.shards import in_each

TENANT = "tenant"
"""What the order of such an erasure says that it is of."""

AT_ONCE = 200
"""Names that are listed at a time."""


def forget_tenant(runtime: Runtime, tenant_id: int, *, dry_run: bool = False) -> Run:
    """Revoke the tenant's keys, and write down that all that it has is to be erased; or only count it.

    Repeating it is harmless. Keys that are made later open the tenant again, empty.
    """
    home = runtime.at(HOME)
    if dry_run:
        return rehearsal.record_counts(runtime, tenant_id, of=TENANT, counted=tenants.counts)
    order = erasure_order(TENANT, [])
    with transaction(home.engine, tenant_id) as connection:
        keys.revoke_all(connection, tenant_id)
        run = runs.find_open(connection, tenant_id, RunName.FORGET, options=order)
        if run is None:
            run = runs.enqueue(connection, tenant_id, RunName.FORGET, scope_id=None, options=order)
    home.hint(queue.FORGET, run_id=str(run.id))
    return run


def erase_tenant_in_turn(runtime: Runtime, claimed: RunLease, run: Run, *, deadline: float) -> None:
    """Do the run. Raises as `agent_erasure.erase_agent_in_turn`: then it goes on later."""
    progress = Progress.of_run(claimed, run)
    # Again while somebody came meanwhile, who may have had a connection to the database and no key.
    while _erase_people(runtime, progress, deadline) + _erase_agents(runtime, progress, deadline):
        pass
    in_each(runtime, partial(_erase_rest, progress=progress))
    with transaction(runtime.at(HOME).engine, claimed.tenant_id) as connection:
        jobs.complete(connection, claimed, ForgetReport(erasure=None, counts=dict(progress.total)))


def _erase_people(runtime: Runtime, progress: Progress, deadline: float) -> int:
    """How many went."""
    tenant_id = progress.claimed.tenant_id
    count = 0
    for name in _names(runtime, tenant_id, tenants.people):
        _check(deadline)
        target = Target(Subject.USER, (name,))
        receipt = target.in_its_shard(
            runtime, tenant_id, partial(_erase_person, target=target, progress=progress)
        )
        carry_out.add_to_file(runtime, receipt)
        count += "users" in receipt.counts
    return count


def _erase_person(runtime: Runtime, *, target: Target, progress: Progress) -> Receipt:
    tenant_id = progress.claimed.tenant_id

    def erase(connection: Connection) -> Forgotten:
        wait_in_line(connection)
        return target.erase(connection, tenant_id)

    def note(connection: Connection, report: ForgetReport) -> ForgetReport:
        options = {"of": target.of, "dry_run": False}
        runs.record(connection, tenant_id, RunName.FORGET, scope_id=None, report=report, options=options)
        progress.add(connection, report.counts)
        return report

    report, receipt = carry_out.carry_out(
        runtime,
        tenant_id,
        of=target.of,
        erase=erase,
        receipt=carry_out.new_receipt(runtime, tenant_id, target),
        run=note,
    )
    progress.total.update(report.counts)
    return receipt


def _erase_agents(runtime: Runtime, progress: Progress, deadline: float) -> int:
    """How many went."""
    claimed = progress.claimed
    count = 0
    for name in _names(runtime, claimed.tenant_id, tenants.agents):
        _check(deadline)
        own = Progress(claimed, {}, earlier=progress.total)

        def note(connection: Connection, receipt: Receipt, own: Progress = own) -> None:
            report = ForgetReport(erasure=receipt.id, counts=receipt.counts)
            options = {"of": Subject.AGENT, "dry_run": False}
            runs.record(
                connection, claimed.tenant_id, RunName.FORGET, scope_id=None, report=report, options=options
            )
            own.add(connection, {"agents": receipt.counts.get("agents", 0)})

        receipt = erase_agent(runtime, name, own, complete=note, deadline=deadline)
        carry_out.add_to_file(runtime, receipt)
        progress.total.update(receipt.counts)
        count += "agents" in receipt.counts
    return count


def _names(runtime: Runtime, tenant_id: int, listed: tenants.Listed) -> Iterator[str]:
    after = ""
    while True:
        with transaction(runtime.at(HOME).engine, tenant_id) as connection:
            names = listed(connection, tenant_id, after=after, limit=AT_ONCE)
        yield from names
        if len(names) < AT_ONCE:
            return
        after = names[-1]


def _erase_rest(runtime: Runtime, *, progress: Progress) -> None:
    tenant_id = progress.claimed.tenant_id
    with transaction(runtime.engine, tenant_id) as connection:
        counts = tenants.delete_rest(connection, tenant_id, besides=progress.claimed.run_id)
        progress.add(connection, counts)
    progress.total = Counter(added(progress.total, counts))


def _check(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise StoreBusy("there is more to erase than fits into one turn; it goes on", retry_after=1)
