"""What is counted of sleep cycles: steps with their time, outcomes, and changes that stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from counts import count

from memory_app.dispatch.job_table import JOBS
from memory_app.jobs import jobs
from memory_app.memories.remember import remember
from memory_app.records.records import Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import cycle, measures
from memory_app.sleep.rules import Step

SCOPE = Scope("ada", "bob")
SAME = (
    "Bob goes sailing on the lake with his cousin in the summer.",
    "Bob goes sailing on the lake with his cousin in summer.",
)


@pytest.fixture
def scope(runtime: Runtime, tenant: int) -> Scope:
    """A scope with two memories that say the same, as if before anybody looked for repeats."""
    for text in SAME:
        remember(runtime, tenant, SCOPE, statement=Statement("fact", text), deduplicate=False)
    return SCOPE


def slept(runtime: Runtime, tenant: int, scope: Scope, **options: Any) -> UUID:
    run = cycle.ask(runtime, tenant, scope, options=options)
    jobs.perform(runtime, run.id, JOBS)
    assert jobs.read(runtime, tenant, run.id).state == "done"
    return run.id


def outcomes() -> dict[str, float]:
    return {outcome: count("memory_sleep_cycles_total", outcome=outcome) for outcome in measures.OUTCOMES}


def rises(before: dict[str, float]) -> dict[str, float]:
    return {outcome: n - before[outcome] for outcome, n in outcomes().items() if n > before[outcome]}


def test_each_step_of_a_cycle_is_timed(runtime: Runtime, tenant: int, scope: Scope) -> None:
    def timed() -> dict[str, float]:
        return {step: count("memory_sleep_step_seconds_count", step=step) for step in measures.STEPS}

    before = timed()

    slept(runtime, tenant, scope)

    assert {step: n - before[step] for step, n in timed().items()} == dict.fromkeys(measures.STEPS, 1)


def test_changes_that_stay_are_counted_by_step(runtime: Runtime, tenant: int, scope: Scope) -> None:
    before = outcomes()
    merged = count("memory_sleep_changes_total", step=Step.MERGE)

    slept(runtime, tenant, scope)
    slept(runtime, tenant, scope)

    assert rises(before) == {measures.APPLIED: 1, measures.UNCHANGED: 1}
    assert count("memory_sleep_changes_total", step=Step.MERGE) == merged + 1


def test_what_is_rolled_back_is_no_change(runtime: Runtime, tenant: int, scope: Scope) -> None:
    before = outcomes()
    changes = count("memory_sleep_changes_total")

    slept(runtime, tenant, scope, dry_run=True)
    slept(with_recall_floor(runtime, 1.1), tenant, scope)

    assert rises(before) == {measures.DRY_RUN: 1, measures.REFUSED: 1}
    assert count("memory_sleep_changes_total") == changes


def with_recall_floor(runtime: Runtime, floor: float) -> Runtime:
    """Above 1 the gate refuses everything."""
    sleep = runtime.settings.sleep.model_copy(update={"recall_floor": floor})
    return replace(runtime, settings=runtime.settings.model_copy(update={"sleep": sleep}))


def test_a_cycle_that_cools_down_is_counted_as_such(runtime: Runtime, tenant: int, scope: Scope) -> None:
    slept(runtime, tenant, scope)
    before = outcomes()

    slept(runtime, tenant, scope, cool_down_seconds=3_600)

    assert rises(before) == {measures.COOLING_DOWN: 1}
