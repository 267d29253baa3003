"""All faults at once, in random order; and the same storm over plain tasks, which shows what the oracle can see."""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from harness import control
from harness.fleet import BESIDE_MODEL, WORKER, Member, kept_running
from harness.model import CHAT, bad_answers, calls, with_model
from harness.stage import Stage
from harness.storm import faults_of, storm
from harness.waiting import wait_until
from sqlalchemy import text

from memory_app.testing import Mode, Rule

pytestmark = [pytest.mark.faults, pytest.mark.slow]

MINUTES = float(os.environ.get("STORM_MINUTES", "3"))
SEED = int(os.environ.get("STORM_SEED", "1"))
TURNS_PER_MINUTE = 6_700
"""About what two cores work off, so that three minutes carry 20,000 turns."""

MODEL_MINUTES = MINUTES / 3
MODEL_TURNS_PER_MINUTE = 3_000

ERRORS = (
    Rule(Mode.SERVER_ERROR, path=CHAT, share=0.01),
    Rule(Mode.RATE_LIMITED, path=CHAT, share=0.01, retry_after="1"),
    Rule(Mode.CUT, path=CHAT, share=0.01),
    Rule(Mode.NOT_JSON, path=CHAT, share=0.01),
    Rule(Mode.HANG, path=CHAT, share=0.01, seconds=6),
)
"""One answer in twenty."""

CALLS = {
    "MEMORY_CHAT__TOTAL_SECONDS": "4",
    "MEMORY_CHAT__QUESTION_SECONDS": "5",
    "MEMORY_EXTRACT__MODEL_LEASE_SECONDS": "10",
}


@pytest.mark.timeout(int(MINUTES * 60 * 3 + 300))
def test_storm(stage: Stage) -> None:
    turns = int(TURNS_PER_MINUTE * MINUTES)
    with ExitStack() as running, stage.redis() as redis:
        workers = [running.enter_context(kept_running(stage.fleet.worker)) for _ in range(2)]
        finders = [running.enter_context(kept_running(stage.fleet.finder)) for _ in range(2)]
        beats = [running.enter_context(kept_running(stage.fleet.beat)) for _ in range(2)]
        stage.wait_for(*(generations[0] for generations in workers))
        under_way = stage.clients(turns=turns, sessions=200, seconds=MINUTES * 60, seed=SEED, most_per_call=8)
        faults = faults_of(workers, [*finders, *beats], redis, stage.owner, seed=SEED)
        struck = storm(under_way, faults, seed=SEED, pause_seconds=(1, 4))
        verdict = stage.settle(under_way, fault=f"storm: {sum(struck.values())} faults, seed {SEED}")
    assert verdict.accepted == turns
    assert len(struck) > 5


@pytest.mark.timeout(int(MODEL_MINUTES * 60 * 3 + 300))
def test_storm_with_a_language_model(stage: Stage) -> None:
    """Questions are threads of one process, and one answer in twenty is an error."""
    turns = int(MODEL_TURNS_PER_MINUTE * MODEL_MINUTES)
    with ExitStack() as running, with_model(stage, **CALLS) as (stage, model), stage.redis() as redis:
        processes = partial(stage.fleet.worker, queues=BESIDE_MODEL)
        kinds = (processes, processes, stage.fleet.model_worker, stage.fleet.model_worker)
        workers = [running.enter_context(kept_running(start)) for start in kinds]
        others = [
            running.enter_context(kept_running(start)) for start in (stage.fleet.finder, stage.fleet.beat)
        ]
        stage.wait_for(*(generations[0] for generations in workers))
        model.follow(*ERRORS)
        under_way = stage.clients(
            turns=turns, sessions=150, seconds=MODEL_MINUTES * 60, seed=SEED, most_per_call=8
        )
        faults = faults_of(workers, others, redis, stage.owner, seed=SEED)
        struck = storm(under_way, faults, seed=SEED, pause_seconds=(1, 4))
        name = f"storm with a model: {sum(struck.values())} faults, seed {SEED}"
        verdict = stage.settle(under_way, fault=name, model_calls=calls(model))
        assert bad_answers(model) > calls(model)() / 40
    assert verdict.accepted == turns


def test_the_same_storm_over_plain_tasks(stage: Stage, tmp_path: Path) -> None:
    """The negative control: late acknowledgement and retries, one task per turn. It must not come out clean."""
    settings = stage.runtime.settings
    database_url = str(stage.owner.url.render_as_string(hide_password=False)).replace("+psycopg", "")
    with stage.owner.begin() as connection:
        connection.execute(text(control.TABLE))
    command = [word.replace("workers.app", "harness.control") for word in WORKER]

    def worker() -> Member:
        name = f"control{len(stage.fleet.members)}@here"
        options = ("-Q", "control", "-n", name, "--concurrency", "2", "-l", "INFO")
        return stage.fleet.start("control", (*command, *options), CONTROL_DATABASE=database_url)

    with ExitStack() as running, stage.redis() as redis:
        workers = [running.enter_context(kept_running(worker)) for _ in range(2)]
        stage.wait_for(*(generations[0] for generations in workers))
        send = control.publishing(stage.redis_url, settings.redis.prefix)
        under_way = stage.clients(turns=2_000, sessions=40, seconds=20, seed=SEED, send=send)
        faults = faults_of(workers, [], redis, stage.owner, seed=SEED)
        storm(under_way, faults, seed=SEED, pause_seconds=(1, 3))
        under_way.retries()
        wait_until(quiet(database_url), "the control is quiet", seconds=60)
    verdict = control.judge(database_url, stage.ledger)
    stage.report(verdict, 0.0, fault="negative control: plain tasks")
    assert verdict.lost + verdict.doubled + verdict.disordered > 0, "the harness must be able to see loss"


def quiet(database_url: str):  # type: ignore[no-untyped-def]
    """Whether no effect came for a few looks in a row."""
    counts: list[int] = []

    def is_quiet() -> bool:
        counts.append(control.effects(database_url))
        return len(counts) > 160 and len(set(counts[-160:])) == 1

    return is_quiet
