"""A commit on two servers: whatever dies between its phases, it takes effect on both or on none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta

import all_shards
import pytest
from queries import rows
from sqlalchemy import Engine, text
from two_servers import BOB, East, say

from memory_app import MemoryApp, failpoint
from memory_app.db import in_doubt
from memory_app.db.in_doubt import Settled
from memory_app.dispatch import finder
from memory_app.errors import StoreUnavailable
from memory_app.runtime import Runtime
from memory_app.settings import Settings

pytestmark = [pytest.mark.one_shard, pytest.mark.usefixtures("tenant")]

AT_ONCE = timedelta(0)
PREPARED = "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()"


def settle(runtime: Runtime) -> Settled:
    servers = runtime.directory.servers
    return in_doubt.settle(servers.home, [servers.engine("east")], after=AT_ONCE)


def record_and_die(environment: dict[str, str], settings: Settings, place: str) -> None:
    """Record the first turn of a new user in a process that is killed at a failpoint."""
    command = ["record", "I live in Porto.", "--agent", "ada", "--user", "bob", "--session", "s"]
    done = subprocess.run(
        [sys.executable, "-m", "memory_app", *command, "--tenant", "acme"],
        env={
            **environment,
            **all_shards.variables(settings),
            failpoint.VARIABLE: f"{place}=kill",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def test_what_died_before_it_was_decided_did_not_happen(
    runtime: Runtime,
    app: MemoryApp,
    east: East,
    owner: Engine,
    environment: dict[str, str],
    in_east: Settings,
) -> None:
    record_and_die(environment, in_east, "branches.prepared")
    assert rows(east.engine(), PREPARED) == [(1,)]
    assert settle(runtime) == Settled(rolled_back=1)
    assert rows(east.engine(), PREPARED) == [(0,)]
    assert rows(owner, "SELECT name FROM users") == rows(east.engine(), "SELECT name FROM users") == []
    say(app, "I live in Porto.")
    assert rows(east.engine(), "SELECT text FROM turns") == [("I live in Porto.",)]


def test_what_died_after_it_was_decided_takes_effect(
    runtime: Runtime,
    app: MemoryApp,
    east: East,
    owner: Engine,
    environment: dict[str, str],
    in_east: Settings,
) -> None:
    record_and_die(environment, in_east, "branches.decided")
    assert rows(owner, "SELECT name, shard FROM users") == [("bob", 1)]
    assert rows(east.engine(), "SELECT count(*) FROM turns") == [(0,)]
    assert settle(runtime) == Settled(committed=1)
    assert rows(east.engine(), "SELECT text FROM turns") == [("I live in Porto.",)]
    (turn,) = app.turns(BOB)
    assert turn.text == "I live in Porto."


def test_a_finder_ends_what_was_left(
    runtime: Runtime,
    east: East,
    environment: dict[str, str],
    in_east: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record_and_die(environment, in_east, "branches.decided")
    monkeypatch.setattr(in_doubt, "AFTER", AT_ONCE)
    finder.run(runtime, should_stop=lambda _: True)
    assert rows(east.engine(), PREPARED) == [(0,)]


def test_who_comes_too_late_to_decide_changes_nothing(
    runtime: Runtime, app: MemoryApp, east: East, owner: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process was only slow: meanwhile it was decided that it is dead."""

    def be_slow(place: str) -> None:
        if place == "branches.prepared":
            with owner.begin() as connection:
                # What the server does to a transaction that is idle for too long.
                connection.execute(
                    text(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE datname = current_database() AND state = 'idle in transaction' "
                        "AND pid <> pg_backend_pid()"
                    )
                )
            assert settle(runtime) == Settled(rolled_back=1)

    monkeypatch.setattr(failpoint, "reach", be_slow)
    with pytest.raises(StoreUnavailable):
        say(app, "I live in Porto.")
    assert rows(owner, "SELECT name FROM users") == rows(east.engine(), "SELECT name FROM users") == []
    assert rows(owner, "SELECT is_commit FROM decisions") == [(False,)]


def test_two_who_settle_do_not_meet(
    runtime: Runtime, east: East, environment: dict[str, str], in_east: Settings
) -> None:
    record_and_die(environment, in_east, "branches.decided")
    ((name,),) = rows(east.engine(), "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()")
    engine = runtime.directory.servers.engine("east")
    assert in_doubt.end(engine, name, is_commit=True)
    assert not in_doubt.end(engine, name, is_commit=True), "somebody else was faster"


def test_decisions_are_dropped_when_nothing_waits_for_them(
    runtime: Runtime, app: MemoryApp, owner: Engine
) -> None:
    say(app, "I live in Porto.")
    assert rows(owner, "SELECT is_commit FROM decisions") == [(True,)]
    settle(runtime)
    assert rows(owner, "SELECT is_commit FROM decisions") == []


def test_a_server_that_is_away_keeps_its_decisions(
    runtime: Runtime,
    owner: Engine,
    environment: dict[str, str],
    in_east: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record_and_die(environment, in_east, "branches.decided")

    def be_away(*_: object) -> None:
        raise StoreUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(in_doubt, "_prepared", be_away)
        assert settle(runtime) == Settled()
    assert rows(owner, "SELECT is_commit FROM decisions") == [(True,)]
    assert settle(runtime) == Settled(committed=1)
