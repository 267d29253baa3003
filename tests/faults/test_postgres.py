"""Postgres killed, cut off, slow, locked or full: 503 instead of a promise, and nothing twice after a retry."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from free_ports import free_port
from harness import oracle
from harness.api import call, is_live, over_http
from harness.disk import filled, small_disk
from harness.stage import Stage, own_database, seen_through
from harness.waiting import wait_until
from sqlalchemy import make_url, text
from sqlalchemy.exc import OperationalError
from tcp_proxy import postgres_address, postgres_through, proxied

from memory_app.local import embedded
from memory_app.local.embedded import postgres

pytestmark = pytest.mark.faults

RESUME_SECONDS = 60
"""Bound for half-open connections: work goes on within this time."""


@contextmanager
def own_postgres(stage: Stage, folder: Path) -> Iterator[Stage]:
    """A stage on Postgres of this test alone, which keeps what it has committed."""
    try:
        with own_database(stage, embedded.start(folder, durable=True)) as own:
            yield own
            own.fleet.kill_all()
    finally:
        embedded.remove(folder)


def database_url(stage: Stage) -> str:
    return stage.runtime.settings.database.url.get_secret_value()


@pytest.mark.slow
@pytest.mark.parametrize("who", ["clients", "workers"])
def test_F13_half_open_connections_to_postgres(stage: Stage, who: str) -> None:
    with (
        proxied(postgres_address(database_url(stage))) as proxy,
        seen_through(stage, database_url=postgres_through(database_url(stage), proxy)) as through,
    ):
        far, near = (stage, through) if who == "clients" else (through, stage)
        far.fleet.finder()
        far.worker()
        under_way = near.clients(seconds=8)
        stage.wait_for_progress(80)
        assert proxy.freeze() > 1
        if who == "clients":
            told = len(list(stage.ledger))
            # On a slow machine the first load may be over.
            more = near.clients(run="more", turns=60, sessions=4, seconds=1)
            resumed = wait_until(
                lambda: len(list(stage.ledger)) > told + 40, "accepting", seconds=RESUME_SECONDS
            )
            more.retries()
        else:
            resumed = stage.wait_for_progress(80, seconds=RESUME_SECONDS)
        stage.settle(under_way, recovery=resumed)


@pytest.mark.slow
@pytest.mark.parametrize("weather", ["latency", "resets"])
def test_F14_slow_and_broken_connections_to_postgres(stage: Stage, weather: str) -> None:
    with (
        proxied(postgres_address(database_url(stage))) as proxy,
        seen_through(stage, database_url=postgres_through(database_url(stage), proxy)) as through,
    ):
        through.fleet.finder()
        through.worker()
        under_way = through.clients(turns=200, seconds=6)
        stage.wait_for_progress(30)
        proxy.delay_seconds = 0.02 if weather == "latency" else 0
        while weather == "resets" and not under_way.is_done():
            proxy.cut()
            wait_until(lambda: proxy.links, "somebody connects again", seconds=30)
        under_way.retries()
        proxy.delay_seconds = 0
        through.settle(under_way)


@pytest.mark.slow
def test_F26_postgres_killed_and_down(stage: Stage, tmp_path: Path) -> None:
    """While it is down nothing is accepted; after each restart what was told to be accepted is there."""
    folder = tmp_path / "servers"
    with own_postgres(stage, folder) as own:
        own.fleet.finder()
        own.worker()
        for place, number in enumerate((signal.SIGKILL, signal.SIGQUIT, signal.SIGKILL)):
            under_way = own.clients(run=f"run{place}", turns=200, seconds=10, clients=3)
            wait_until(lambda load=under_way: len(load.accepted) >= 10, "turns come in", seconds=60)
            os.kill(int((postgres.cluster(folder) / "postmaster.pid").read_text().split()[0]), number)
            wait_until(lambda: not answers(own), "Postgres is down", seconds=20)
            down, failed = time.monotonic(), len(under_way.failures)
            wait_until(
                lambda load=under_way, failed=failed: len(load.failures) >= failed + 18,
                "clients fail",
                seconds=20,
            )
            # A commit that was under way when its server was killed may still end well and be told late.
            late = [call for call in under_way.accepted if call.lies_within(down, time.monotonic())]
            assert late == [], "accepted while there was no database"
            embedded.start(folder, durable=True)
            assert under_way.retries() > 0
        own.settle(under_way)


def answers(stage: Stage) -> bool:
    try:
        oracle.pending(stage.owner)
    except OperationalError:
        return False
    return True


def test_F26_api_says_503_while_postgres_is_away(stage: Stage, api_key: str) -> None:
    with (
        proxied(postgres_address(database_url(stage))) as proxy,
        seen_through(stage, database_url=postgres_through(database_url(stage), proxy)) as through,
    ):
        port = free_port()
        through.fleet.api(port)
        stage.fleet.finder(
            MEMORY_FINDER__DRAIN_AFTER_SECONDS="0.1", MEMORY_REDIS__URL="redis://127.0.0.1:1/0"
        )
        wait_until(lambda: is_live(port), "the API answers", seconds=30)
        path = "/v1/agents/ada/users/bob/sessions/s/turns"
        turn = {"role": "user", "content": "I bought clock number 1 in Lima."}
        # An API that has just started on a busy machine may ask for another try.
        wait_until(
            lambda: call(port, "POST", path, key=api_key, body=turn)[0] == 202,
            "a turn is accepted",
            seconds=30,
        )
        proxy.refuses = True
        proxy.cut()
        status, body = call(port, "POST", path, key=api_key, body=turn)
        assert (status, body["error"]["type"]) == (503, "store_unavailable")
        assert call(port, "GET", "/health/ready")[0] == 503
        assert call(port, "GET", "/health/live")[0] == 200
        proxy.refuses = False
        stage.settle(stage.clients(turns=60, sessions=4, seconds=0.5, send=over_http(lambda: port, api_key)))


def test_F27_connection_cut_right_behind_a_commit(stage: Stage) -> None:
    """The client cannot know whether its turn was stored: it asks again with the same key."""
    with (
        proxied(postgres_address(database_url(stage))) as proxy,
        seen_through(stage, database_url=postgres_through(database_url(stage), proxy)) as through,
    ):
        stage.fleet.finder()
        stage.worker()
        proxy.cut_behind, proxy.cut_every = b"COMMIT", 7
        under_way = through.clients(seconds=3)
        assert under_way.retries() > 10
        assert proxy.cuts > 10
        stage.settle(under_way)


@pytest.mark.slow
def test_F27_workers_cut_right_behind_their_commits(stage: Stage) -> None:
    with (
        proxied(postgres_address(database_url(stage))) as proxy,
        seen_through(stage, database_url=postgres_through(database_url(stage), proxy)) as through,
    ):
        through.fleet.finder()
        through.worker()
        proxy.cut_behind, proxy.cut_every = b"COMMIT", 23
        under_way = stage.clients(seconds=3)
        stage.wait_for_progress(200)
        proxy.cut_behind = None
        assert proxy.cuts > 3
        stage.settle(under_way)


def test_F27_backends_terminated_again_and_again(stage: Stage) -> None:
    stage.fleet.finder()
    stage.worker()
    under_way = stage.clients(seconds=4)
    with stage.owner.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while not under_way.is_done():
            connection.execute(
                text(
                    """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE usename = 'memory_app' AND datname = current_database()"""
                )
            )
            stage.wait_for_progress(20)
    stage.settle(under_way)


@pytest.mark.slow
def test_F27_too_few_connections(stage: Stage) -> None:
    stage.fleet.finder()
    stage.worker(concurrency=4)
    under_way = stage.clients(seconds=10, clients=8)
    stage.wait_for_progress(50)
    with stage.owner.begin() as connection:
        name = connection.execute(text("SELECT current_database()")).scalar_one()
        connection.execute(text(f"ALTER DATABASE {name} CONNECTION LIMIT 2"))
        connection.execute(
            text(
                """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE usename = 'memory_app' AND datname = current_database()"""
            )
        )
    # On a slow machine the first load may be over.
    more = stage.clients(run="more", turns=100, seconds=2, clients=8)
    wait_until(lambda: under_way.failures or more.failures, "clients are turned away", seconds=30)
    with stage.owner.begin() as connection:
        connection.execute(text(f"ALTER DATABASE {name} CONNECTION LIMIT -1"))
    more.retries()
    stage.settle(under_way)


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE",
        "SELECT count(*) FROM turns, sessions",
        "UPDATE scopes SET seeded_at = seeded_at",
    ],
    ids=["locked sessions", "a long transaction", "locked scopes"],
)
def test_F28_somebody_holds_locks_for_long(stage: Stage, statement: str) -> None:
    stage.fleet.finder()
    stage.worker()
    under_way = stage.clients(seconds=6)
    stage.wait_for_progress(50)
    with stage.owner.begin() as connection:
        connection.execute(text(statement))
        connection.execute(text("SELECT pg_sleep(8)"))
    stage.settle(under_way)


@pytest.mark.slow
def test_F28_tables_rewritten_and_rows_locked_in_the_wrong_order(stage: Stage) -> None:
    stage.fleet.finder()
    stage.worker()
    under_way = stage.clients(seconds=8)
    over = Event()
    blocking = Thread(target=lock_in_the_wrong_order, args=(stage, over))
    blocking.start()
    try:
        with stage.owner.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for table in ("turns", "sessions", "memories"):
                stage.wait_for_progress(30)
                connection.execute(text(f"VACUUM FULL {table}"))
    finally:
        over.set()
        blocking.join()
    stage.settle(under_way)


def lock_in_the_wrong_order(stage: Stage, over: Event) -> None:
    """Wants sessions first and their scopes afterwards, which ends in deadlocks."""
    while not over.wait(0.05):
        try:
            with stage.owner.begin() as connection:
                connection.execute(text("SET LOCAL deadlock_timeout = '10s'"))
                connection.execute(text("SET LOCAL lock_timeout = '3s'"))
                connection.execute(text("SELECT FROM sessions ORDER BY random() LIMIT 4 FOR UPDATE"))
                connection.execute(text("SELECT FROM scopes ORDER BY random() LIMIT 4 FOR UPDATE"))
        except OperationalError:
            continue


@pytest.mark.slow
def test_F28_statements_cut_short(stage: Stage) -> None:
    stage.fleet.finder()
    hasty = {"options": "-c statement_timeout=3 -c lock_timeout=2"}
    url = make_url(database_url(stage)).update_query_dict(hasty).render_as_string(hide_password=False)
    worker = stage.worker(MEMORY_DATABASE__URL=url)
    under_way = stage.clients()
    under_way.retries()
    worker.kill()
    stage.worker()
    stage.settle(under_way)


@pytest.mark.slow
def test_F31_disk_full(stage: Stage) -> None:
    """503 while there is no room; when there is some again, clients get through and nothing is doubled."""
    with small_disk(700) as disk, own_postgres(stage, disk / "servers") as own:
        own.fleet.finder()
        own.worker()
        under_way = own.clients(turns=300, seconds=6)
        own.wait_for_progress(50)
        with filled(disk):
            # On a slow machine the first load may be over.
            more = own.clients(run="more", turns=60, sessions=4, seconds=1)
            wait_until(lambda: under_way.failures or more.failures, "there is no room", seconds=60)
        embedded.start(disk / "servers", durable=True)
        more.retries()
        own.settle(under_way)
