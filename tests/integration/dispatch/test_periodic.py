"""Periodic jobs: one run per scope and period, whoever asks; what is missed is noticed; nobody waits behind others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Barrier

import all_shards
import pytest
from queries import rows
from sqlalchemy import Engine, text

from memory_app import queue
from memory_app.agents.rows import agents
from memory_app.db import clock, inspection
from memory_app.db.db import transaction
from memory_app.dispatch import finder
from memory_app.dispatch.job_table import JOBS
from memory_app.dispatch.periodic import PeriodicRuns, enqueue_due
from memory_app.errors import Misconfigured
from memory_app.jobs import jobs, schedule
from memory_app.jobs.jobs import Job
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import RunClaim
from memory_app.memories.remember import remember
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.reports import Report
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.settings import Schedule
from memory_app.turns.record import record
from workers.schedule import DEFAULT, beat_schedule

DAY = timedelta(days=1)
EXAMPLE = Path(__file__).parents[3] / "celerybeat-schedule.example"


def kept(runtime: Runtime, tenant: int, *users: str, agent: str = "ada") -> None:
    for user in users:
        remember(runtime, tenant, Scope(agent, user), statement=Statement("fact", f"{user} likes tea."))


def now(runtime: Runtime) -> datetime:
    with transaction(runtime.engine, None) as connection:
        return clock.now(connection)


def count(owner: Engine) -> Counter[str]:
    return Counter(row.name for row in rows(owner, "SELECT name FROM runs"))


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedReport(Report):
    applied: bool = True


def done(runtime: Runtime, claimed: RunClaim) -> None:
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        jobs.complete(connection, claimed, AppliedReport())


def test_nothing_is_due_before_something_happened(runtime: Runtime, tenant: int) -> None:
    with transaction(runtime.at(0).engine, tenant) as connection:
        agents.change(connection, tenant, "ada", parts={}, copies=all_shards.copies(connection))
    assert enqueue_due(runtime, now=now(runtime) + 30 * DAY) == PeriodicRuns(0, 0)


def test_a_scope_sleeps_once_in_the_period_after_something_happened(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    kept(runtime, tenant, "bob")
    assert enqueue_due(runtime, now=now(runtime)) == PeriodicRuns(0, 0)
    tomorrow = now(runtime) + DAY
    assert enqueue_due(runtime, now=tomorrow).runs == 2, "sleep and decay"
    assert enqueue_due(runtime, now=tomorrow) == PeriodicRuns(0, 0)
    assert enqueue_due(runtime, now=tomorrow + 3 * DAY) == PeriodicRuns(0, 0), "nothing happened since"
    assert count(owner) == {"sleep": 1, "decay": 1}
    assert {
        row.options["trigger"] for row in rows(owner, "SELECT options FROM runs WHERE name = 'sleep'")
    } == {"interval"}


def test_due_times_are_spread_over_the_period(runtime: Runtime, tenant: int, owner: Engine) -> None:
    kept(runtime, tenant, *[f"user {n}" for n in range(12)])
    due = {row.due_at for row in rows(owner, "SELECT due_at FROM schedules WHERE job = 'sleep'")}
    assert len(due) == 12
    assert max(due) - min(due) > timedelta(hours=6)


@pytest.mark.one_shard
def test_deep_synthesis_is_only_for_agents_with_a_model(runtime: Runtime, tenant: int, owner: Engine) -> None:
    kept(runtime, tenant, "bob")
    kept(runtime, tenant, "eve", agent="eva")
    with transaction(runtime.at(0).engine, tenant) as connection:
        agents.change(
            connection,
            tenant,
            "eva",
            parts={"policy": {"extraction": "llm"}},
            copies=all_shards.copies(connection),
        )
    enqueue_due(runtime, now=now(runtime) + DAY)
    assert count(owner) == {"sleep": 2, "decay": 2, "synthesize_deep": 1}


def test_deep_synthesis_asks_only_about_scopes_with_something_new(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    with transaction(runtime.at(0).engine, tenant) as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"policy": {"extraction": "llm"}},
            copies=all_shards.copies(connection),
        )
    kept(runtime, tenant, "bob")
    enqueue_due(runtime, now=now(runtime) + DAY)
    (run,) = rows(owner, "SELECT id, scope_id FROM runs WHERE name = 'synthesize_deep'")
    jobs.perform(runtime, run.id, {"synthesize_deep": Job(queue.SYNTHESIZE_DEEP, done)})

    with owner.begin() as connection:
        connection.execute(text("UPDATE runs SET period = 'days ago'"))

    def next_day() -> int:
        with transaction(runtime.engine, tenant) as connection:
            schedule.wake(connection, runtime, [run.scope_id])
        enqueue_due(runtime, now=now(runtime) + DAY)
        return count(owner)["synthesize_deep"]

    assert next_day() == 1, "the scope was active, but nothing was kept of it"
    remember(
        runtime,
        tenant,
        Scope("ada", "bob"),
        statement=Statement("artifact", "Tea runs through all of Bob's days."),
    )
    with owner.begin() as connection:
        written = text("UPDATE memories SET run_id = :run WHERE kind = 'artifact'")
        connection.execute(written, {"run": run.id})
    assert next_day() == 1, "what it wrote itself is no news"
    remember(runtime, tenant, Scope("ada", "bob"), statement=Statement("fact", "Bob moved to Porto."))
    assert next_day() == 2


class PruneSchedule(Schedule):
    """The field that a new job adds to the schedule."""

    prune_hours: float = 12


def test_a_new_job_is_a_setting_and_a_line_of_the_job_table(
    runtime: Runtime, tenant: int, owner: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(JOBS, "prune", Job(queue.DECAY, done))  # type: ignore[arg-type]
    schedule_settings = runtime.settings.model_copy(update={"schedule": PruneSchedule()})
    pruning = replace(runtime, settings=schedule_settings)
    kept(pruning, tenant, "bob")
    assert enqueue_due(pruning, now=now(runtime) + DAY).runs == 3, "sleep, decay and prune"
    finder.drain(pruning)
    assert [run.state for run in rows(owner, "SELECT state FROM runs WHERE name = 'prune'")] == ["done"]


def test_periods_in_which_nobody_looked_are_noticed_and_not_made_up_for(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    kept(runtime, tenant, "bob")
    asked = enqueue_due(runtime, now=now(runtime) + 5 * DAY)
    assert (asked.runs, asked.missed >= 8) == (2, True)
    with transaction(runtime.engine, tenant) as connection:
        told = inspection.amounts(connection).missed_periods
    assert set(told) == {"sleep", "decay"}
    assert sum(told.values()) == asked.missed


def test_a_look_is_capped_and_fair_across_tenants(
    runtime: Runtime, tenant: int, other_tenant: int, owner: Engine
) -> None:
    capped = replace(runtime, settings=runtime.settings.model_copy(update={"schedule": Schedule(batch=6)}))
    kept(capped, tenant, *[f"user {n}" for n in range(8)])
    kept(capped, other_tenant, "alone")
    assert enqueue_due(capped, now=now(runtime) + DAY).runs <= 6
    assert rows(owner, "SELECT id FROM runs WHERE tenant_id = :tenant", tenant=other_tenant)


def test_a_session_that_was_left_open_is_ended(runtime: Runtime, tenant: int, owner: Engine) -> None:
    record(
        runtime, tenant, Scope("ada", "bob", "chat"), [NewTurn(Role.USER, "Hello there, I am back again.")]
    )
    finder.drain(runtime)
    with owner.begin() as connection:
        connection.execute(text("UPDATE sessions SET last_activity_at = now() - interval '25 hours'"))
    assert count(owner)["end_session"] == 0
    enqueue_due(runtime, now=now(runtime) + DAY)
    assert count(owner)["end_session"] == 1
    assert rows(owner, "SELECT ended_at FROM sessions")[0].ended_at is not None


def test_a_session_that_is_still_going_on_is_looked_at_again_later(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    record(
        runtime, tenant, Scope("ada", "bob", "chat"), [NewTurn(Role.USER, "Hello there, I am back again.")]
    )
    finder.drain(runtime)
    enqueue_due(runtime, now=now(runtime) + DAY)
    assert rows(owner, "SELECT ended_at FROM sessions")[0].ended_at is None
    assert rows(owner, "SELECT due_at FROM schedules WHERE job = 'end_sessions'")[0].due_at is not None


def test_over_a_week_two_beats_and_four_workers_do_each_periods_work_once(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    users = [f"user {n}" for n in range(10)]
    with transaction(runtime.at(0).engine, tenant) as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"policy": {"extraction": "llm"}},
            copies=all_shards.copies(connection),
        )
    kept(runtime, tenant, *users)
    scopes = [row.id for row in rows(owner, "SELECT id FROM scopes WHERE user_id IS NOT NULL")]
    table = {name: Job(job.task, done) for name, job in JOBS.items()}
    began = now(runtime)

    def together(works: Sequence[Callable[[], object]]) -> None:
        ready = Barrier(len(works))

        def work(one: Callable[[], object]) -> None:
            ready.wait()
            one()

        with ThreadPoolExecutor(len(works)) as pool:
            list(pool.map(work, works))

    def worker() -> None:
        with transaction(runtime.engine, None) as connection:
            due = runs.due(connection, most=500)
        for queued in due:
            jobs.perform(runtime, queued.run_id, table)

    for day in range(1, 8):
        at = began + day * DAY
        together([lambda at=at: enqueue_due(runtime, now=at)] * 2)  # type: ignore[misc]
        together([worker] * 4)
        with owner.begin() as connection:
            connection.execute(text("UPDATE memories SET created_at = clock_timestamp()"))  # news of the day
        with transaction(runtime.engine, tenant) as connection:
            schedule.wake(connection, runtime, scopes, at=at)

    per_period = Counter(
        (row.name, row.scope_id, row.period) for row in rows(owner, "SELECT name, scope_id, period FROM runs")
    )
    assert set(per_period.values()) == {1}
    per_scope = Counter((row.name, row.scope_id) for row in rows(owner, "SELECT name, scope_id FROM runs"))
    assert per_scope == {
        (name, scope): 7 for name in ("sleep", "decay", "synthesize_deep") for scope in scopes
    }
    finished = rows(owner, "SELECT state, starts FROM runs")
    assert {(row.state, row.starts) for row in finished} == {("done", 1)}


# --- the schedule file ----------------------------------------------------------------------------------------


def test_the_example_names_every_periodic_job_of_the_product() -> None:
    example = beat_schedule(EXAMPLE)
    assert {entry["task"] for entry in example.values()} == {job["task"] for job in DEFAULT.values()}


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ('[nap]\ntask = "memory.nap"\nevery_seconds = 5', "nap: unknown task"),
        (f'[night]\ntask = "{queue.FIND_PERIODIC}"\ncrontab = "61 3 * * *"', "night: crontab"),
        (f'[night]\ntask = "{queue.FIND_PERIODIC}"\ncrontab = "0 3 * *"', "night: crontab has five parts"),
        (f'[often]\ntask = "{queue.FIND_PERIODIC}"\nevery_seconds = 0', "often: every_seconds"),
        (
            f'[both]\ntask = "{queue.FIND_PERIODIC}"\nevery_seconds = 5\ncrontab = "* * * * *"',
            "both: give either",
        ),
        (f'[more]\ntask = "{queue.FIND_PERIODIC}"\nevery = 5', "more: unknown field every"),
        ("[broken", "schedule file"),
    ],
)
def test_what_is_wrong_with_a_schedule_file_is_named_at_the_start(
    tmp_path: Path, written: str, named: str
) -> None:
    file = tmp_path / "schedule.toml"
    file.write_text(written)
    with pytest.raises(Misconfigured, match=named):
        beat_schedule(file)
