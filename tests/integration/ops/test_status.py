"""`memory status`: what waits and why, the jobs of the last day, cost; and doctor as monitors ask it."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console
from sqlalchemy import Engine, text

from memory_app.dispatch import finder
from memory_app.errors import StoreUnavailable
from memory_app.hot.keys import LIFE
from memory_app.ops import status_view
from memory_app.ops.status import Status, status
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import decay
from memory_app.turns.record import record

CHAT = Scope("ada", "mira", "chat")
SAID = "I have a dog called Bruno from Lisbon."


def say(runtime: Runtime, tenant: int) -> None:
    record(runtime, tenant, CHAT, [NewTurn(Role.USER, SAID)])


@pytest.mark.one_shard
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("due_at = now() - interval '9 s'", "due"),
        ("due_at = now() + interval '1 h'", "until it falls silent"),
        ("due_at = now(), failures = 3", "after 3 failures"),
        ("due_at = now(), lease_until = now() + interval '1 h'", "in hand"),
        ("due_at = NULL, parked_reason = 'refused'", "stopped: refused"),
    ],
)
def test_a_session_that_waits_says_why(
    runtime: Runtime, tenant: int, owner: Engine, change: str, why: str
) -> None:
    say(runtime, tenant)
    with owner.begin() as connection:
        connection.execute(text(f"UPDATE sessions SET {change}"))

    (waiting,) = status(runtime.settings).activity["acme"].waiting

    assert (waiting.agent, waiting.user, waiting.session, waiting.turns) == ("ada", "mira", "chat", 1)
    assert waiting.why == why


def test_what_is_done_waits_no_more_and_jobs_of_the_day_are_counted(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant)
    finder.drain(runtime)
    decay.ask(runtime, tenant, Scope("ada", "mira"))
    finder.drain(runtime)

    activity = status(runtime.settings).activity["acme"]

    assert activity.waiting == ()
    assert [(job.job, job.done, job.failed) for job in activity.jobs] == [("decay", 1, 0)]
    assert (activity.tokens_today, activity.dollars_today) == (0, 0)


def test_the_command_prints_once_where_nobody_watches(runtime: Runtime, tenant: int, memory: Any) -> None:
    say(runtime, tenant)

    plain, as_json = memory("status"), memory("status", "--json")

    assert (plain.status, as_json.status) == (0, 0)
    assert "backlog: 1 turns to index" in plain.out
    assert "sessions that wait" in plain.out
    assert as_json.json["activity"]["acme"]["waiting"][0]["session"] == "chat"
    assert "Bruno" not in plain.out + as_json.out


@pytest.mark.one_shard
def test_a_part_that_is_silent_is_named(runtime: Runtime, tenant: int, memory: Any) -> None:
    key = runtime.hot.named_key(LIFE, "worker-ingest")
    seconds, _ = runtime.hot.redis.time()
    runtime.hot.redis.hset(key, "vm:4711", f"{(seconds - 90) * 1_000} 0")
    runtime.hot.redis.pexpire(key, 600_000)

    shown = memory("status", "--once").out

    assert re.search(r"^worker-ingest silent: vm:4711 for (9|1\d)\d s, and no other is heard$", shown, re.M)


def test_the_live_view_goes_on_after_a_look_that_fails(
    runtime: Runtime, tenant: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(status_view, "wrapped", Console(file=screen, force_terminal=True, width=120))
    looks = iter(["away", "well", "end"])

    def look() -> Status:
        step = next(looks)
        if step == "away":
            raise StoreUnavailable("PostgreSQL does not answer")
        if step == "end":
            raise KeyboardInterrupt
        return status(runtime.settings)

    status_view.watch(look, every_seconds=0)

    written = screen.getvalue()
    assert written.index("PostgreSQL does not answer") < written.index("backlog: 0 turns")


def test_a_monitor_gets_one_line_and_its_status(
    runtime: Runtime, tenant: int, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No worker runs in this test, which is a warning or a failure and never unknown.
    seen = memory("doctor", "--monitor")
    monkeypatch.setenv("MEMORY_DATABASE__URL", "postgresql+psycopg://memory_app:x@127.0.0.1:1/memory")
    away = memory("doctor", "--monitor")

    assert (seen.status, seen.out.split(" - ")[0]) in {(1, "WARNING"), (2, "CRITICAL")}
    assert len(seen.out.splitlines()) == 1
    assert (away.status, away.out.split(" - ")[0]) == (2, "CRITICAL")
