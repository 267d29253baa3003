"""Texts that kill their worker, providers that fail or hang for long: order stays, the guilty are set aside alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from harness import load, oracle
from harness.stage import Stage
from harness.turns import failed_texts, with_harm
from harness.waiting import wait_until

pytestmark = pytest.mark.faults


@pytest.mark.parametrize(
    ("harms", "limits"),
    [
        pytest.param(("kill", "index-kill"), {}, id="kill"),
        pytest.param(
            ("loop", "memory", "huge", "refused", "index-loop", "index-nan"),
            {"RIGGED_TASK_SECONDS": "4"},
            id="others",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_F04_deadly_turns(stage: Stage, harms: tuple[str, ...], limits: dict[str, str]) -> None:
    # given turns that kill their worker each time, between innocent ones
    stage.fleet.finder()
    stage.worker(app="harness.rigged", **limits)
    calls = load.plan(seed=4, turns=200, sessions=10)
    under_way = stage.clients(calls=with_harm(calls, harms), seconds=2)
    # then they alone are set aside, after three starts, and their sessions go on
    verdict = stage.settle(under_way, dead=len(harms))
    assert all("harm=" in said for said in failed_texts(stage.owner))
    assert verdict.applied == 200


@pytest.mark.parametrize("kind", ["429", pytest.param("500", marks=pytest.mark.slow)])
def test_F23_F24_provider_outage(stage: Stage, tmp_path: Path, kind: str) -> None:
    """For however long: nothing is set aside, everything is applied in order when it is over."""
    outage = tmp_path / "outage"
    outage.write_text(kind, encoding="utf-8")
    stage.fleet.finder()
    stage.worker(app="harness.rigged", RIGGED_OUTAGE=str(outage), MEMORY_EXTRACT__RETRY_MAX_SECONDS="2")
    under_way = stage.clients(turns=200, seconds=4)
    under_way.retries()
    assert oracle.applied(stage.owner) == 0
    outage.unlink()
    stage.settle(under_way)


@pytest.mark.slow
def test_F23_provider_hangs_longer_than_lease_and_time_limit(stage: Stage, tmp_path: Path) -> None:
    outage = tmp_path / "outage"
    outage.write_text("hang", encoding="utf-8")
    stage.fleet.finder()
    worker = stage.worker(app="harness.rigged", RIGGED_OUTAGE=str(outage), RIGGED_TASK_SECONDS="4")
    under_way = stage.clients(turns=200, seconds=3)
    wait_until(lambda: "oft time limit" in worker.said(), "a task has taken too long", seconds=60)
    outage.unlink()
    stage.settle(under_way)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", ["7200", "-7200"])
def test_F25_clock_of_a_worker_two_hours_off(stage: Stage, seconds: str) -> None:
    """The database's clock decides: no lease is taken early, none stays, and nothing waits for the wrong clock."""
    stage.fleet.finder()
    stage.worker(app="harness.rigged", RIGGED_SKEW_SECONDS=seconds)
    stage.worker()
    stage.settle(stage.clients(seed=random.Random(seconds).randrange(100)))
