"""Runs: asked for once, done by one worker, retried or failed with a reason."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import Engine, text

from memory_app import queue
from memory_app.db.db import transaction
from memory_app.errors import BadModelOutput, ProviderUnavailable
from memory_app.jobs import jobs
from memory_app.jobs.jobs import Job
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import RunClaim
from memory_app.records.reports import Report
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names


@dataclass(frozen=True, slots=True, kw_only=True)
class NapReport(Report):
    fence: int


def done(runtime: Runtime, claimed: RunClaim) -> None:
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        jobs.complete(connection, claimed, NapReport(fence=claimed.fence))


def unreachable(runtime: Runtime, claimed: RunClaim) -> None:
    raise ProviderUnavailable("away", retry_after=30)


def unreadable(runtime: Runtime, claimed: RunClaim) -> None:
    raise BadModelOutput("unreadable")


TABLE = {
    "nap": Job(queue.SLEEP, done),
    "away": Job(queue.SLEEP, unreachable),
    "broken": Job(queue.SLEEP, unreadable),
}


def asked(runtime: Runtime, tenant: int, name: str, period: str | None = None) -> UUID:
    with transaction(runtime.engine, tenant) as connection:
        scope = names.ensure_scope(connection, tenant, Scope("ada", "mira"))
    return jobs.ask(runtime, tenant, name, task=queue.SLEEP, scope_id=scope.id, period=period).id


def test_a_run_is_done_once_and_keeps_its_report(runtime: Runtime, tenant: int) -> None:
    run_id = asked(runtime, tenant, "nap")
    jobs.perform(runtime, run_id, TABLE)
    jobs.perform(runtime, run_id, TABLE)
    run = jobs.read(runtime, tenant, run_id)
    assert (run.state, run.report) == ("done", {"version": 1, "fence": 1})


def test_one_run_per_period_however_often_it_is_asked_for(runtime: Runtime, tenant: int) -> None:
    assert asked(runtime, tenant, "nap", "2026-01-01") == asked(runtime, tenant, "nap", "2026-01-01")
    assert asked(runtime, tenant, "nap", "2026-01-01") != asked(runtime, tenant, "nap", "2026-01-02")


def test_an_error_that_passes_gives_the_run_back_for_later(runtime: Runtime, tenant: int) -> None:
    run_id = asked(runtime, tenant, "away")
    jobs.perform(runtime, run_id, TABLE)
    run = jobs.read(runtime, tenant, run_id)
    assert (run.state, run.attempts) == ("running", 1)
    with transaction(runtime.engine, None) as connection:
        assert runs.due(connection, most=10) == (), "it waits"


@pytest.mark.parametrize(("name", "reason"), [("broken", "unreadable"), ("unheard-of", "knows no job")])
def test_an_error_that_stays_fails_the_run_with_its_reason(
    runtime: Runtime, tenant: int, name: str, reason: str
) -> None:
    run_id = asked(runtime, tenant, name)
    jobs.perform(runtime, run_id, TABLE)
    run = jobs.read(runtime, tenant, run_id)
    assert run.state == "failed"
    assert reason in (run.reason or "")


def test_a_worker_that_was_overtaken_commits_nothing(runtime: Runtime, tenant: int, owner: Engine) -> None:
    run_id = asked(runtime, tenant, "nap")
    with transaction(runtime.engine, None) as connection:
        slow = runs.claim(connection, run_id, timedelta(minutes=1))
    assert slow is not None
    with owner.begin() as connection:
        connection.execute(text("UPDATE runs SET lease_until = now() - interval '1 second'"))
    jobs.perform(runtime, run_id, TABLE)
    with pytest.raises(jobs.Fenced):
        done(runtime, slow)
    assert jobs.read(runtime, tenant, run_id).report == {"version": 1, "fence": 2}


def test_a_run_that_kills_its_workers_fails_after_three(runtime: Runtime, tenant: int, owner: Engine) -> None:
    run_id = asked(runtime, tenant, "nap")
    for _ in range(jobs.STARTS_LIMIT):
        with transaction(runtime.engine, None) as connection:
            assert runs.claim(connection, run_id, timedelta(minutes=1)) is not None
        with owner.begin() as connection:
            connection.execute(text("UPDATE runs SET lease_until = now() - interval '1 second'"))
    jobs.perform(runtime, run_id, TABLE)
    run = jobs.read(runtime, tenant, run_id)
    assert run.state == "failed"
    assert "died 3 times" in (run.reason or "")
