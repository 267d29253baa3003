"""Questions to a model wait at the same time, as threads of one process; what kills it takes nobody along."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator
from pathlib import Path
from uuid import UUID

import provider_stage
import pytest
from deadly import POISON
from model_workers import PROCESSES, disordered, worker
from provider_stage import TEMPLATE, ProviderStage, Started, staged

from memory_app import queue
from memory_app.local.embedded import Servers
from memory_app.records.records import Role, Stage
from memory_app.records.scope import Scope
from memory_app.testing import Rule

SESSIONS = 40


LEASES = {"MEMORY_EXTRACT__LEASE_SECONDS": "4", "MEMORY_EXTRACT__MODEL_LEASE_SECONDS": "4"}


@pytest.fixture
def stage(
    servers: Servers, template: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ProviderStage]:
    """With leases that run out soon, and the patience that several deaths take."""
    monkeypatch.setattr(provider_stage, "PATIENCE_SECONDS", 500.0)
    with staged(servers, TEMPLATE, tmp_path, **LEASES) as stage:
        yield stage


@pytest.fixture
def patient_stage(
    servers: Servers, template: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ProviderStage]:
    """Where a question may take as long as a slow machine needs to ask thirty of them."""
    monkeypatch.setattr(provider_stage, "PATIENCE_SECONDS", 500.0)
    limits = {"MEMORY_CHAT__TOTAL_SECONDS": "140", "MEMORY_CHAT__QUESTION_SECONDS": "145"}
    with staged(servers, TEMPLATE, tmp_path, **limits) as stage:
        yield stage


@contextlib.contextmanager
def supervised(stage: ProviderStage, *queues: str, app: str) -> Iterator[list[Started]]:
    """Whenever the worker has died another is started; all there were, latest last."""
    over = threading.Event()
    generations = [worker(stage, *queues, app=app)]

    def watch() -> None:
        while not over.wait(0.1):
            if generations[-1].running.poll() is not None:
                generations.append(worker(stage, *queues, app=app))

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield generations
    finally:
        over.set()
        watching.join()


def tell_many(
    stage: ProviderStage, scope: Scope, *, poisoned: Collection[int] = ()
) -> dict[int, tuple[UUID, ...]]:
    """Three turns in each of many sessions, the second of some a poison; ids by session."""
    told = {}
    for session in range(SESSIONS):
        words = [f"In session {session} I said thing number {turn} aloud." for turn in range(3)]
        if session in poisoned:
            words[1] = f"In session {session} I said something {POISON}."
        told[session] = stage.tell(scope, *[(Role.USER, said) for said in words], session=f"s{session}")
    return told


def test_many_questions_run_at_once_and_each_session_keeps_its_order(
    patient_stage: ProviderStage,
) -> None:
    # given a model that answers once thirty questions wait, one worker with processes, and one with threads
    stage = patient_stage
    stage.stub.follow(Rule(until_in_flight=30))
    worker(stage, *PROCESSES)
    worker(stage, queue.MODEL)
    # when many people talk
    told = tell_many(stage, stage.agent("llm"))
    stage.settled([id for ids in told.values() for id in ids])
    # then none had to be asked again
    stats = stage.stub.stats()
    print(f"calls {stats['calls']}, most in flight {stats['in_flight_most']}")
    assert stats["modes"] == {"good": SESSIONS}
    # and what was said first in a session was remembered first
    assert disordered(stage) == []


@pytest.mark.slow
def test_turns_that_kill_the_process_of_threads_are_set_aside_alone(stage: ProviderStage) -> None:
    # given three poisoned sessions among many, and workers that come back
    stage.stub.follow(Rule(seconds=1.0))
    scope, poisoned = stage.agent("llm"), {7, 20, 33}
    with (
        supervised(stage, *PROCESSES, app="deadly"),
        supervised(stage, queue.MODEL, app="deadly") as generations,
    ):
        told = tell_many(stage, scope, poisoned=poisoned)
        settled = [(session, row) for session, ids in told.items() for row in stage.settled(ids)]
    # then their second turns are set aside, and nothing else
    failed = [(session, row.seq) for session, row in settled if row.stage is Stage.FAILED]
    assert failed == [(session, 2) for session in sorted(poisoned)]
    assert {row.stage for _, row in settled} == {Stage.EXTRACTED, Stage.FAILED}
    reasons = [row.reason or "" for _, row in settled if row.stage is Stage.FAILED]
    assert all(reason.startswith("quarantined") for reason in reasons)
    # and each of them ended the shared process once at most
    print(f"deaths of the process of threads: {len(generations) - 1}")
    assert 1 <= len(generations) - 1 <= len(poisoned)
    assert disordered(stage) == []


def test_a_worker_that_is_asked_to_end_lets_its_questions_be_answered(stage: ProviderStage) -> None:
    # given a worker of threads with a question on its way
    stage.stub.follow(Rule(seconds=1.5))
    worker(stage, *PROCESSES)
    asking = worker(stage, queue.MODEL)
    (told,) = stage.tell(stage.agent("llm"), (Role.USER, "I moved to Lisbon last month."))
    provider_stage.wait_until(lambda: stage.stub.stats()["in_flight"] == 1, "the question is on its way")
    # when it is asked to end
    asking.running.terminate()
    # then it ends in order, and the answer took effect
    assert asking.running.wait(timeout=120) == 0
    assert stage.ticket(told).stage is Stage.EXTRACTED
