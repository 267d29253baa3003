"""Erasures of what somebody else works on: answered at once, done in turn by a worker, with a receipt at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any
from uuid import UUID

import pytest
from commands import Memory
from queries import tables_with
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.db import app_role
from memory_app.dispatch.finder import drain
from memory_app.dispatch.job_table import JOBS
from memory_app.errors import StoreBusy
from memory_app.forget import forget, receipts
from memory_app.jobs import jobs
from memory_app.main.http import create_app
from memory_app.memories import remember
from memory_app.records.audit import Action
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.run import RunState
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Settings
from memory_app.tenancy import audit
from memory_app.turns.record import record

pytestmark = pytest.mark.one_shard

CHAT = Scope("ada", "mira", "chat")
SCOPES = "SELECT id FROM scopes FOR UPDATE"


@pytest.fixture
def hasty(settings: Settings, owner: Engine) -> Iterator[Runtime]:
    """Gives up waiting for a lock at once."""
    with owner.begin() as connection:
        app_role.write_defaults(connection, {"lock_timeout": "50"})
    runtime = build(settings)
    yield runtime
    runtime.close()


@contextmanager
def held(owner: Engine) -> Iterator[Callable[[], None]]:
    """Somebody works on all scopes until the function is called, or to the end of the block."""
    with owner.connect() as connection:
        connection.execute(text(SCOPES))
        yield connection.rollback
        connection.rollback()


def client_of(runtime: Runtime, api_key: str) -> TestClient:
    return TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})


def live(runtime: Runtime, tenant: int) -> tuple[UUID, UUID]:
    """A turn and a memory of the person."""
    (ticket,) = record(runtime, tenant, CHAT, [NewTurn(Role.USER, "I live in Lisbon.")])
    stored = remember.remember(runtime, tenant, CHAT, statement=Statement("fact", "Mira lives in Lisbon."))
    return ticket.id, stored.id


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


ADDRESSES = {
    "user": "/v1/users/mira",
    "session": "/v1/agents/ada/users/mira/sessions/chat",
    "turn": "/v1/turns/{turn}",
    "memory": "/v1/memories/{memory}",
}


@pytest.mark.parametrize("of", ADDRESSES)
def test_an_erasure_in_a_busy_scope_is_taken_and_done_in_turn(
    hasty: Runtime, tenant: int, api_key: str, owner: Engine, of: str
) -> None:
    turn, memory = live(hasty, tenant)
    address = ADDRESSES[of].format(turn=turn, memory=memory)
    client = client_of(hasty, api_key)
    with held(owner):
        taken = client.delete(address)
        again = client.delete(address)
    assert (taken.status_code, taken.json()["state"]) == (202, "queued")
    assert again.json()["id"] == taken.json()["id"], "asked twice, done once"

    drain(hasty)

    run = client.get(f"/v1/runs/{taken.json()['id']}").json()
    assert run["state"] == "done"
    counted = run["report"]["counts"]
    assert counted.get("memories" if of == "memory" else "turns") == 1
    receipt = client.get(f"/v1/erasures/{run['report']['erasure']}").json()
    assert receipt["counts"] == counted
    assert receipts.list_receipts(hasty, {tenant: "acme"})[0].of == of
    with owner.connect() as connection:
        options = connection.execute(text("SELECT options FROM runs WHERE name = 'forget'")).scalars().all()
    assert options == [{"of": of, "dry_run": False}], "the name goes with what it named"
    if of == "user":
        assert tables_with(owner, "mira") == []


def test_a_worker_waits_in_line_and_shows_how_far_it_is(hasty: Runtime, tenant: int, owner: Engine) -> None:
    live(hasty, tenant)
    with held(owner) as release, ThreadPoolExecutor(1) as pool:
        run = forget.forget_user(hasty, tenant, "mira")
        working = pool.submit(jobs.perform, hasty, run.id, JOBS)
        wait_until(lambda: blocked(owner) > 0, "the worker waits for the rows")
        # Longer than the usual patience of this role: 50 ms.
        time.sleep(0.3)
        assert jobs.read(hasty, tenant, run.id).report["stage"] == "waiting"
        # Behind the erasure: what is accepted until then goes as well.
        record(hasty, tenant, Scope("ben", "mira", "late"), [NewTurn(Role.USER, "Still here?")])
        release()
        working.result(60)
    done = jobs.read(hasty, tenant, run.id)
    assert (done.state, done.attempts) == (RunState.DONE, 0)
    assert done.report["counts"]["turns"] == 2
    assert tables_with(owner, "mira") == []


def blocked(owner: Engine) -> int:
    with owner.connect() as connection:
        return int(
            connection.execute(
                text(
                    "SELECT count(*) FROM pg_stat_activity "
                    "WHERE wait_event_type = 'Lock' AND datname = current_database()"
                )
            ).scalar_one()
        )


def test_how_many_rows_are_deleted_is_seen_before_the_end(
    hasty: Runtime, tenant: int, owner: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(hasty, tenant)
    with held(owner):
        run = forget.forget_user(hasty, tenant, "mira")
    shown: list[Any] = []
    note = jobs.runs.note_progress

    def see(*arguments: Any) -> None:
        note(*arguments)
        shown.append(arguments[2])

    monkeypatch.setattr(jobs.runs, "note_progress", see)
    drain(hasty)

    assert [report.stage for report in shown[:2]] == ["waiting", "erasing"]
    assert shown[1].counts == {}
    assert shown[-1].counts["turns"] == 1
    assert shown[-1].counts["memories"] >= 1
    assert jobs.read(hasty, tenant, run.id).state is RunState.DONE


def test_who_came_back_after_an_erasure_at_once_is_left_alone(
    hasty: Runtime, tenant: int, owner: Engine
) -> None:
    live(hasty, tenant)
    with held(owner):
        waiting = forget.forget_user(hasty, tenant, "mira")
    at_once = forget.forget_user(hasty, tenant, "mira")
    record(hasty, tenant, CHAT, [NewTurn(Role.USER, "I am back.")])

    drain(hasty)

    run = jobs.read(hasty, tenant, waiting.id)
    assert (run.state, run.report["erasure"]) == (RunState.DONE, at_once.report["erasure"])
    with owner.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM turns")).scalar_one() == 1


def test_a_dry_run_does_not_wait(hasty: Runtime, tenant: int, api_key: str, owner: Engine) -> None:
    live(hasty, tenant)
    with held(owner):
        with pytest.raises(StoreBusy):
            forget.forget_user(hasty, tenant, "mira", dry_run=True)
        answer = client_of(hasty, api_key).delete("/v1/users/mira", params={"dry_run": "true"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")


def test_an_erasure_that_failed_names_nobody(hasty: Runtime, tenant: int, owner: Engine) -> None:
    turn, _ = live(hasty, tenant)
    with held(owner):
        run = forget.forget_turn(hasty, tenant, turn)
    with owner.begin() as connection:
        connection.execute(text("DELETE FROM turns"))
    drain(hasty)

    failed = jobs.read(hasty, tenant, run.id)
    assert (failed.state, failed.reason) == (RunState.FAILED, f"no turn {turn}")
    assert failed.options == {"of": "turn", "dry_run": False}


def test_the_audit_log_has_the_call_and_the_turn(hasty: Runtime, tenant: int, owner: Engine) -> None:
    live(hasty, tenant)
    with held(owner):
        run = forget.forget_user(hasty, tenant, "mira")
    drain(hasty)
    lines = [
        (entry.action, entry.target, entry.outcome) for entry in audit.entries(hasty, tenant, user="mira")
    ]
    assert lines == [(Action.ERASE_USER, f"run {run.id}", outcome) for outcome in ("done", "begun")], (
        "of the worker; who called writes the other two"
    )


def test_the_command_follows_an_erasure_to_its_receipt(
    hasty: Runtime, tenant: int, owner: Engine, memory: Memory
) -> None:
    live(hasty, tenant)
    is_over = Event()

    def work(release: Callable[[], None]) -> None:
        wait_until(lambda: waiting_runs(owner) == 1, "the command has asked")
        release()
        while not is_over.is_set():
            drain(hasty)
            is_over.wait(0.1)

    with held(owner) as release, ThreadPoolExecutor(1) as pool:
        working = pool.submit(work, release)
        try:
            done = memory("forget", "mira", "--yes", "--tenant", "acme")
        finally:
            is_over.set()
        working.result(60)
    assert done.status == 0
    assert "receipt: " in done.out
    assert ": queued" in done.err
    assert tables_with(owner, "mira") == []


def waiting_runs(owner: Engine) -> int:
    with owner.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM runs WHERE state = 'queued'")).scalar_one())
