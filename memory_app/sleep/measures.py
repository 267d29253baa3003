"""Metrics of cycles: how long each step takes, how cycles end, and what they change."""

from __future__ import annotations

from typing import Final

from memory_app import metrics
from memory_app.sleep.report import CycleReport
from memory_app.sleep.rules import Step

PLAN: Final = "plan"
PROBE: Final = "probe"
"""The questions of the gate, asked before anything changes."""
CONCLUDE: Final = "conclude"
RELATE: Final = "relate"
GATE: Final = "gate"
"""Steps of a cycle besides those that an option may leave out; `RELATE` draws the links that a model proposed."""

STEPS: Final = (PLAN, PROBE, *Step, CONCLUDE, RELATE, GATE)

APPLIED, UNCHANGED, REFUSED, DRY_RUN, COOLING_DOWN = OUTCOMES = (
    "applied",
    "unchanged",
    "refused",
    "dry_run",
    "cooling_down",
)

# From the start, so that the first cycle is a rise and not the beginning of a series.
for _step in STEPS:
    metrics.sleep_step_seconds.labels(_step)
for _outcome in OUTCOMES:
    metrics.sleep_cycles.labels(_outcome)


def count(report: CycleReport, *, is_dry: bool) -> None:
    """Count a cycle that was carried out, and what it changed by the step that did it."""
    if is_dry:
        metrics.sleep_cycles.labels(DRY_RUN).inc()
        return
    if not report.applied:
        metrics.sleep_cycles.labels(REFUSED).inc()
        return
    metrics.sleep_cycles.labels(APPLIED if report.changes else UNCHANGED).inc()
    changes = {
        Step.MERGE: len(report.clusters),
        Step.LINK: report.links,
        Step.NAME_PATTERNS: len(report.patterns),
        Step.PROMOTE: len(report.promoted),
        Step.EVICT: len(report.evicted),
        CONCLUDE: len(report.conclusions),
        RELATE: report.related,
    }
    for step, number in changes.items():
        metrics.sleep_changes.labels(step).inc(number)


def count_cooling_down() -> None:
    """Count a cycle that was left out, as the last one of the scope ended a short while ago."""
    metrics.sleep_cycles.labels(COOLING_DOWN).inc()
