"""Runs: asked for once, done by one worker, retried or failed with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection, Engine, text

from memory_app import queue
from memory_app.db import app_role
from memory_app.db.db import transaction
from memory_app.errors import BadModelOutput, ProviderUnavailable, StoreUnavailable
from memory_app.jobs import jobs
from memory_app.jobs.jobs import Job
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import RunClaim
from memory_app.records.reports import Report
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Settings
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


def expire_lease(owner: Engine) -> None:
    """As if the lease, or the pause after an error, were over."""
    with owner.begin() as connection:
        connection.execute(
            text(
                "UPDATE runs SET lease_until = now() - interval '1 second', due_at = now() - interval '1 second'"
            )
        )


@pytest.fixture
def hasty(settings: Settings, owner: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """Gives up waiting for a lock, and giving a run back, at once."""
    monkeypatch.setattr(jobs, "PATIENCE_SECONDS", 0.0)
    with owner.begin() as connection:
        app_role.write_defaults(connection, {"lock_timeout": "50"})
    runtime = build(settings)
    yield runtime
    runtime.close()


@pytest.mark.one_shard
def test_a_run_whose_row_is_locked_each_time_is_done_once_it_is_free(
    hasty: Runtime, tenant: int, owner: Engine
) -> None:
    run_id, other = asked(hasty, tenant, "nap"), uuid4()
    for _ in range(jobs.STARTS_LIMIT + 2):
        with owner.connect() as stranger:

            def met(runtime: Runtime, claimed: RunClaim, stranger: Connection = stranger) -> None:
                stranger.execute(text("SELECT FROM runs FOR UPDATE"))
                done(runtime, claimed)

            with pytest.raises(StoreUnavailable):
                jobs.perform(hasty, run_id, {"nap": Job(queue.SLEEP, met)})
        jobs.perform(hasty, other, TABLE)  # whatever the process does next, it first gives the run back
        expire_lease(owner)
    jobs.perform(hasty, run_id, TABLE)
    assert jobs.read(hasty, tenant, run_id).state == "done"


@pytest.mark.one_shard
def test_workers_that_overtake_each_other_at_a_lock_fail_no_run(
    hasty: Runtime, tenant: int, owner: Engine
) -> None:
    run_id = asked(hasty, tenant, "nap")
    claims: list[RunClaim] = []

    def claim() -> None:
        with transaction(hasty.engine, None) as connection:
            claimed = runs.claim(connection, run_id, timedelta(minutes=1))
        assert isinstance(claimed, RunClaim)
        claims.append(claimed)

    def overtaken(runtime: Runtime, claimed: RunClaim) -> None:
        """The lease of the one that waits is over before its wait is."""
        expire_lease(owner)
        claim()
        with transaction(runtime.engine, claimed.tenant_id) as connection:
            names.lock_scope(connection, claimed.tenant_id, claimed.scope_id)

    claim()
    with owner.connect() as stranger:
        stranger.execute(text("SELECT FROM scopes FOR NO KEY UPDATE"))
        for _ in range(jobs.STARTS_LIMIT + 2):
            jobs._call(hasty, claims[-1], Job(queue.SLEEP, overtaken))
    assert [claimed.starts for claimed in claims] == [1, *[2] * (jobs.STARTS_LIMIT + 2)]
    jobs._call(hasty, claims[-1], TABLE["nap"])
    assert jobs.read(hasty, tenant, run_id).state == "done"


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
