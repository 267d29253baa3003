"""Erase an agent with all that it knows of everybody: scope after scope, each in a transaction of its own.

An agent may know a million people, so this is always the work of a worker. What went so far is counted in the run, in
the transaction that erases it; a worker that takes over goes on from there. At the end no scope is left, and the entry
of the agent goes together with the receipt. Whoever records for the agent meanwhile is erased, too, or waits for the
end and begins with a new agent of that name.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from functools import partial

from sqlalchemy import Connection

from memory_app.db.db import transaction, wait_in_line
from memory_app.db.shards import HOME, at_home
from memory_app.errors import StoreBusy
from memory_app.forget import carry_out, rehearsal
from memory_app.forget.erasure import erase_older
from memory_app.forget.progress import Progress
from memory_app.forget.receipt import Receipt, Subject
from memory_app.forget.rows import agents, erase, receipts
from memory_app.forget.rows.agents import AgentScope
from memory_app.forget.settlement import NOTHING, Forgotten, added, united
from memory_app.jobs import jobs
from memory_app.jobs.rows.runs import Run, RunLease
from memory_app.records.reports import ForgetReport
from memory_app.runtime import Runtime
from memory_app.tenancy.digests import digests_of, sent_name
from memory_app.tenancy.rows import erased
from memory_app.tenancy.shards import in_each, other_places

SCOPES_AT_ONCE = 200
"""Scopes that are listed at a time."""

Complete = Callable[[Connection, Receipt], None]
"""Told of the receipt in the transaction that writes it, in the home shard."""


def rehearse(runtime: Runtime, tenant_id: int, agent: str) -> Run:
    """Count what would go, and write it down as a run that is over. Changes nothing else."""
    return rehearsal.record_counts(
        runtime, tenant_id, of=Subject.AGENT.value, counted=partial(agents.counts, agent=agent)
    )


def erase_agent_in_turn(
    runtime: Runtime, claimed: RunLease, run: Run, agent: str, *, deadline: float
) -> Receipt:
    """Do the run. Raises `StoreBusy` at the ``deadline`` (of `time.monotonic`), or when others hold rows: then the run
    goes on later."""
    progress = Progress.of_run(claimed, run)

    def complete(connection: Connection, receipt: Receipt) -> None:
        jobs.complete(connection, claimed, ForgetReport(erasure=receipt.id, counts=receipt.counts))

    return erase_agent(runtime, agent, progress, complete=complete, deadline=deadline)


def erase_agent(
    runtime: Runtime, agent: str, progress: Progress, *, complete: Complete, deadline: float
) -> Receipt:
    """Erase the agent as a part of a run, which is told of its end by ``complete``. Raises as `erase_agent_in_turn`."""
    while True:
        done = in_each(runtime, partial(_erase_scopes, agent=agent, progress=progress, deadline=deadline))
        if any(done):
            continue
        receipt = _finish(runtime, agent, progress, complete)
        # None: somebody has recorded for the agent since its scopes were listed.
        if receipt is not None:
            return receipt


def _erase_scopes(runtime: Runtime, *, agent: str, progress: Progress, deadline: float) -> bool:
    """Erase the next scopes of the agent in the runtime's shard; False: there are none."""
    tenant_id = progress.claimed.tenant_id
    with transaction(runtime.engine, tenant_id) as connection:
        scopes = agents.listed(connection, tenant_id, agent, limit=SCOPES_AT_ONCE)
    for scope in scopes:
        if time.monotonic() > deadline:
            raise StoreBusy("there is more to erase than fits into one turn; it goes on", retry_after=1)
        with transaction(runtime.engine, tenant_id) as connection:
            wait_in_line(connection)
            forgotten = _erase_scope(connection, tenant_id, scope)
            carry_out.note_turns(connection, runtime, tenant_id, forgotten)
            progress.add(connection, forgotten.counts)
        # After the commit: until then the counts of the run are those before.
        progress.total.update(forgotten.counts)
        carry_out.drop_hot(runtime, forgotten)
    return bool(scopes)


def _erase_scope(connection: Connection, tenant_id: int, scope: AgentScope) -> Forgotten:
    if scope.user is not None:
        # First of all locks, as when the person is erased.
        erased.take_name(connection, tenant_id, scope.user)
    if not agents.close(connection, tenant_id, scope.id):
        return NOTHING
    sent = tuple(sent_name(scope.user, key, hash) for key, hash in erase.sent_turns(connection, [scope.id]))
    counts = agents.delete_scope(connection, tenant_id, scope.id)
    return Forgotten(counts, erased=(scope.id,), sent=sent)


def _finish(runtime: Runtime, agent: str, progress: Progress, complete: Complete) -> Receipt | None:
    """Delete the agent's entry, and write the receipt; None where it has a scope again."""
    tenant_id = progress.claimed.tenant_id
    digest = digests_of(runtime.settings).new(tenant_id, Subject.AGENT, agent)
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        wait_in_line(connection)
        entry = agents.delete_entry(connection, tenant_id, agent, copies=other_places(runtime, connection))
        if entry is None:
            return None
        total = added(progress.total, entry)
        receipt = receipts.record(connection, tenant_id, of=Subject.AGENT, digests=(digest,), counts=total)
        complete(connection, receipt)
    carry_out.note_erasure(Subject.AGENT, receipt.id, rows=sum(total.values()))
    return receipt


def erase_agent_older(connection: Connection, tenant_id: int, agent: str, *, before: datetime) -> Forgotten:
    """Erase again, in one shard, what an agent had before an earlier erasure; what came since stays."""
    total = NOTHING
    for scope in agents.listed(connection, tenant_id, agent, limit=None):
        if scope.user is not None:
            erased.take_name(connection, tenant_id, scope.user)
        if not agents.close(connection, tenant_id, scope.id):
            continue
        if erase.holds_rows(connection, [scope.id], since=before):
            forgotten = erase_older(connection, tenant_id, scope_ids=(scope.id,), before=before)
        else:
            counts = agents.delete_scope(connection, tenant_id, scope.id)
            forgotten = Forgotten(counts, erased=(scope.id,))
        total = united(total, forgotten)
    entry = agents.delete_if_old(connection, tenant_id, agent, before=before)
    with at_home(connection, writes=True) as home:
        named = agents.delete_named(home, tenant_id, agent, before=before)
    return united(total, Forgotten({**named, "agents": entry} if entry else named))
