"""Forget a memory, a turn, a session, a person or an agent for good, with whatever came only from it.

Each but that of an agent is one transaction under the locks of the scopes concerned, so nothing is ever half forgotten.
Work in flight cannot bring anything back: it finds its scope gone, its session fenced or its sources missing. Where
others hold the rows for too long, the erasure waits for its turn as a run, which the answer shows.
"""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from memory_app.db.db import limit_waits, transaction
from memory_app.db.shards import HOME
from memory_app.errors import NotFound
from memory_app.forget import agent_erasure
from memory_app.forget.carry_out import Erase, WriteRun, add_to_file, carry_out, new_receipt, rehearse
from memory_app.forget.erasure_runs import BUSY, enqueue
from memory_app.forget.receipt import Receipt, Subject, receipt_line
from memory_app.forget.rows import receipts
from memory_app.forget.rows.receipts import Erasure
from memory_app.forget.settlement import Forgotten
from memory_app.forget.target import Target
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run
from memory_app.records.ids import checked_id
from memory_app.records.reports import ForgetReport
from memory_app.records.run import RunName
from memory_app.records.scope import Scope, check_name
from memory_app.runtime import Runtime
from memory_app.tenancy.digests import digests_of

LOCK_WAIT_MS = 500
"""How long a call waits for each of the locks before the erasure is left to a worker, and the call is answered."""


def forget_memory(runtime: Runtime, tenant_id: int, memory_id: UUID) -> Run:
    """Delete a memory, every row that says the same or was merged into it, and what rested on it alone.

    What was made of it and of others stays, unless it repeats it; what has no source left is retired. The turns it came
    from stay. Raises `NotFound` for an unknown memory.
    """
    return _forget(runtime, tenant_id, Target(Subject.MEMORY, (str(checked_id(memory_id)),)))


def forget_turn(runtime: Runtime, tenant_id: int, turn_id: UUID) -> Run:
    """Delete a turn, its share in every count, and the memories that came only from it.

    Raises `NotFound` for an unknown turn.
    """
    return _forget(runtime, tenant_id, Target(Subject.TURN, (str(checked_id(turn_id)),)))


def forget_session(runtime: Runtime, tenant_id: int, scope: Scope, *, dry_run: bool = False) -> Run:
    """Delete a session with its turns, its own memories and those that came only from it.

    Repeating it is harmless: what is not there leaves an empty receipt.
    """
    names = (scope.agent, scope.user or "", scope.session or "")
    return _forget(runtime, tenant_id, Target(Subject.SESSION, names), dry_run=dry_run)


def forget_user(runtime: Runtime, tenant_id: int, user: str, *, dry_run: bool = False) -> Run:
    """Delete a person with all agents: turns, sessions, memories, entities, and what of it stands elsewhere.

    The same name may come back later as somebody new. Repeating it is harmless: a user who is not there leaves an
    empty receipt. Raises `InvalidInput` for what is no name.
    """
    check_name(user, field="user")
    return _forget(runtime, tenant_id, Target(Subject.USER, (user,)), dry_run=dry_run)


def forget_agent(runtime: Runtime, tenant_id: int, agent: str, *, dry_run: bool = False) -> Run:
    """Delete an agent with all that it knows of everybody: turns, sessions, memories, persona, policy.

    Always a run that a worker does; the people stay, with what other agents know of them. The same name may come back
    later as a new agent. Repeating it is harmless. Raises `InvalidInput` for what is no name.
    """
    check_name(agent, field="agent")
    if dry_run:
        return agent_erasure.rehearse(runtime, tenant_id, agent)
    return enqueue(runtime, tenant_id, Target(Subject.AGENT, (agent,)))


def forget_again(runtime: Runtime, receipt: Receipt, erase: Erase, *, dry_run: bool = False) -> Run:
    """Do an earlier erasure again in a database that does not know it, and write its receipt down as it was first."""

    def record(connection: Connection, _: Forgotten) -> Receipt:
        receipts.record_again(connection, receipt)
        return receipt

    tenant_id = receipt.tenant_id
    write_run = _run_writer(tenant_id, {"of": receipt.of, "again": True}, dry_run=dry_run)
    if dry_run:
        return rehearse(runtime, tenant_id, erase=erase, run=write_run)
    run, _ = carry_out(
        runtime, tenant_id, of=receipt.of or "erasure", erase=erase, receipt=record, run=write_run
    )
    return run


def read_erasure(runtime: Runtime, tenant_id: int, erasure_id: UUID) -> Erasure:
    """A receipt. `NotFound` for an unknown one."""
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        erasure = receipts.read(connection, erasure_id)
    if erasure is None:
        raise NotFound(f"no erasure {erasure_id}", field="id")
    return erasure


def list_receipts(
    runtime: Runtime, tenant_id: int, *, limit: int = 50, before: UUID | None = None
) -> tuple[Receipt, ...]:
    """Receipts of the tenant, newest first; ``before`` is the last one of the page before."""
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        return receipts.listed(connection, tenant_id, limit=limit, before=before)


def read_receipt_line(runtime: Runtime, tenant_id: int, erasure_id: UUID) -> str:
    """A receipt as the line that can be kept and verified. `NotFound` for an unknown one."""
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        receipt = receipts.read_receipt(connection, tenant_id, erasure_id)
    if receipt is None:
        raise NotFound(f"no erasure {erasure_id}", field="id")
    return receipt_line(receipt, digests_of(runtime.settings))


def _forget(runtime: Runtime, tenant_id: int, target: Target, *, dry_run: bool = False) -> Run:
    """Erase now, or where others hold the rows write down that it is to be done. Only a dry run raises `StoreBusy`."""
    try:
        return target.in_its_shard(
            runtime, tenant_id, partial(_forget_here, tenant_id=tenant_id, target=target, dry_run=dry_run)
        )
    except BUSY:
        if dry_run:
            raise
        return enqueue(runtime, tenant_id, target)


def _forget_here(runtime: Runtime, *, tenant_id: int, target: Target, dry_run: bool) -> Run:
    def erase(connection: Connection) -> Forgotten:
        # Up to six locks, one after the other, each of which somebody else may hold. A dry run has no turn to wait for.
        if not dry_run:
            limit_waits(connection, milliseconds=LOCK_WAIT_MS)
        return target.erase(connection, tenant_id)

    write_run = _run_writer(tenant_id, {"of": target.of}, dry_run=dry_run)
    if dry_run:
        return rehearse(runtime, tenant_id, erase=erase, run=write_run)
    run, receipt = carry_out(
        runtime,
        tenant_id,
        of=target.of,
        erase=erase,
        receipt=new_receipt(runtime, tenant_id, target),
        run=write_run,
    )
    add_to_file(runtime, receipt)
    return run


def _run_writer(tenant_id: int, options: dict[str, Any], *, dry_run: bool) -> WriteRun[Run]:
    options = options | {"dry_run": dry_run}

    def write(connection: Connection, report: ForgetReport) -> Run:
        run_id = runs.record(
            connection, tenant_id, RunName.FORGET, scope_id=None, report=report, options=options
        )
        run = runs.read(connection, run_id)
        assert run is not None
        return run

    return write
