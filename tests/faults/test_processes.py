"""Processes that die, freeze or are asked to go, at the worst places."""

from __future__ import annotations

import signal

import pytest
from free_ports import free_port
from harness import oracle
from harness.api import is_live, over_http
from harness.fleet import Member, kept_running
from harness.stage import Stage
from harness.waiting import wait_until
from sqlalchemy import text

from memory_app.dispatch.finder import find_due
from memory_app.forget.forget import forget_user

pytestmark = pytest.mark.faults

HOUR_SECONDS = 3_600
"""Time limit of a worker that freezes: its clock runs on meanwhile."""

PLACES = (
    "index.after_claim",
    "index.before_commit",
    "index.after_commit",
    "extract.after_claim",
    "extract.before_answer",
    "extract.after_answer",
    "extract.before_commit",
    "extract.after_commit",
)


@pytest.mark.parametrize("place", ["record.before_commit", "record.after_commit"])
def test_F01_F02_api_killed_around_its_commit(stage: Stage, api_key: str, place: str) -> None:
    # given an API that dies at every 40th acceptance, and a supervisor
    port = free_port()
    stage.fleet.finder()
    worker = stage.fleet.worker()
    with kept_running(lambda: stage.fleet.api(port, MEMORY_FAILPOINTS=f"{place}=kill@40")) as generations:
        wait_until(lambda: is_live(port), "the API answers", seconds=30)
        stage.wait_for(worker)
        # when clients record, and send again what was not answered
        under_way = stage.clients(seconds=3, send=over_http(lambda: port, api_key))
        retries = under_way.retries()
    # then a retry got the first ticket again: one row per key, numbers without a gap
    assert len(generations) > 2
    assert retries > 0
    stage.settle(under_way)


@pytest.mark.slow
def test_F45_children_that_take_long_to_start_are_waited_for(stage: Stage) -> None:
    """On a busy machine one needs longer than the 4 s after which Celery would end it, and start it again."""
    stage.fleet.finder()
    stage.worker(app="harness.rigged", RIGGED_START_SECONDS="6")
    under_way = stage.clients(turns=20, sessions=4, seconds=1)
    under_way.retries()
    stage.settle(under_way)


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_F03_worker_child_killed_at(stage: Stage, place: str) -> None:
    stage.fleet.finder()
    worker = stage.worker(MEMORY_FAILPOINTS=f"{place}=kill@2")
    under_way = stage.clients(turns=300, sessions=12, seconds=3)
    under_way.retries()
    wait_for_killed_child(worker)
    worker.kill()
    stage.worker()
    stage.settle(under_way)


def test_F03_worker_children_killed_everywhere(stage: Stage) -> None:
    stage.fleet.finder()
    everywhere = ",".join(f"{place}=kill@{3 + number}" for number, place in enumerate(PLACES))
    worker = stage.worker(MEMORY_FAILPOINTS=everywhere)
    under_way = stage.clients(seconds=4)
    under_way.retries()
    wait_for_killed_child(worker)
    worker.kill()
    stage.worker()
    stage.settle(under_way)


def wait_for_killed_child(worker: Member) -> None:
    """A busy machine may not have come to the failpoint when the last turn was accepted."""
    wait_until(lambda: "WorkerLostError" in worker.said(), "a child was killed", seconds=60)


def test_F05_worker_main_killed_and_children_orphaned(stage: Stage) -> None:
    stage.fleet.finder()
    worker = stage.worker()
    under_way = stage.clients()
    stage.wait_for_progress(100)
    orphans = worker.children()
    worker.signal_main(signal.SIGKILL)
    stage.worker()
    stage.settle(under_way)
    wait_until(lambda: not any(orphan.is_running() for orphan in orphans), "orphans end", seconds=30)


@pytest.mark.parametrize("place", ["extract.after_answer", "index.after_claim"])
def test_F06_worker_frozen_beyond_its_lease(stage: Stage, place: str) -> None:
    # given a worker that freezes with a claim in its hands, and another one beside it
    stage.fleet.finder()
    frozen = stage.worker(concurrency=1, time_limit=HOUR_SECONDS, MEMORY_FAILPOINTS=f"{place}=stop@3")
    under_way = stage.clients()
    wait_until(frozen.has_frozen_child, "the child froze itself", seconds=30)
    # only now, since on a busy machine it might have done all the work itself
    stage.worker()
    # when the others have gone on beyond the lease and it wakes up
    under_way.retries()
    oracle.wait_for_quiet(stage.owner, seconds=60)
    frozen.signal_group(signal.SIGCONT)
    wait_until(lambda: not frozen.has_frozen_child(), "the child works again", seconds=10)
    # then what it had in hand is dropped
    if place.startswith("extract"):
        wait_until(lambda: "extraction_fenced" in frozen.said(), "the fence was noticed", seconds=30)
    frozen.stop()
    stage.settle(under_way)


def test_F06_worker_frozen_inside_its_transaction(stage: Stage) -> None:
    # given a server that ends idle transactions before the lease of a session is over, as it does by default
    with stage.owner.begin() as connection:
        database = connection.execute(text("SELECT current_database()")).scalar_one()
        connection.execute(
            text(
                f"ALTER ROLE memory_app IN DATABASE {database} SET idle_in_transaction_session_timeout = '2s'"
            )
        )
    stage.fleet.finder()
    frozen = stage.worker(
        concurrency=1, time_limit=HOUR_SECONDS, MEMORY_FAILPOINTS="extract.before_commit=stop@3"
    )
    under_way = stage.clients()
    wait_until(frozen.has_frozen_child, "the child froze itself", seconds=30)
    # only now, since on a busy machine it might have done all the work itself
    stage.worker()
    under_way.retries()
    oracle.wait_for_quiet(stage.owner, seconds=60)
    frozen.signal_group(signal.SIGCONT)
    wait_until(
        lambda: "store_unavailable" in frozen.said(),
        "the lost transaction was noticed",
        seconds=30,
    )
    frozen.kill()
    stage.settle(under_way)


def test_F07_work_that_takes_longer_than_its_lease(stage: Stage) -> None:
    stage.fleet.finder()
    stage.worker(MEMORY_FAILPOINTS="extract.after_answer=sleep:5@9,index.after_claim=sleep:5@9")
    stage.worker()
    stage.settle(stage.clients())


@pytest.mark.slow
@pytest.mark.parametrize("place", ["extract.after_answer", "index.after_claim"])
def test_F33_forgetting_wins_over_work_in_flight(stage: Stage, place: str) -> None:
    # given a worker that is frozen with what a person said in its hands
    frozen = stage.worker(concurrency=1, MEMORY_FAILPOINTS=f"{place}=stop@1")
    under_way = stage.clients(turns=20, sessions=2, seconds=0)
    under_way.retries()
    find_due(stage.runtime)
    wait_until(frozen.has_frozen_child, "the child froze itself", seconds=30)
    # when the person is forgotten and the worker goes on
    forget_user(stage.runtime, stage.tenant, "run-user-0")
    frozen.signal_group(signal.SIGCONT)
    wait_until(lambda: not frozen.has_frozen_child(), "the child works again", seconds=10)
    frozen.stop()
    # then nothing of it comes back
    with stage.owner.connect() as connection:
        counts = {
            table: connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()
            for table in ("users", "sessions", "turns", "memories", "evidence", "entities", "terms")
        }
    assert set(counts.values()) == {0}, counts
