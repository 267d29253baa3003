"""Reports of sleep cycles, of consolidation and of the end of a session, and how they are shown with texts.

A run stores ids and figures only. Texts are read from the memories when a report is shown, so that what was forgotten
stands in no report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_app.db.db import transaction
from memory_app.errors import NotFound
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run, ScopeRun
from memory_app.memories.rows import entities, merges
from memory_app.records.reports import LEFT_OUT_WHEN_EMPTY, Report
from memory_app.records.run import Trigger
from memory_app.runtime import Runtime
from memory_app.sleep.rules import SleepOptions, summary
from memory_app.tenancy.shards import where_stored


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """How many questions the quality gate asked, and the share of their memories that is still found."""

    probes: int = 0
    recall: float = 1.0
    floor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedCluster:
    """Memories that became one: ``anchor`` and those ``merged`` with it."""

    anchor: UUID
    merged: tuple[UUID, ...]
    strength_before: float
    strength_after: float
    freed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPattern:
    """A pattern that was stored: the entity it is about, and how many memories show it."""

    entity: int
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleReport(Report):
    """Of a cycle, or of the sleep pass at the end of a session.

    ``applied`` is false where nothing was changed, and then ``reason`` says why; of a dry run it is what would have
    been. ``left_alone`` and ``refused`` are the anchors of clusters that changed since the plan or failed the gate.
    ``conclusions`` and ``related`` links are a language model's.
    """

    trigger: Trigger
    applied: bool = False
    reason: str | None = None
    inspected: int = 0
    clusters: tuple[MergedCluster, ...] = ()
    left_alone: tuple[UUID, ...] = ()
    links: int = 0
    related: int = field(default=0, metadata=LEFT_OUT_WHEN_EMPTY)
    patterns: tuple[NamedPattern, ...] = ()
    conclusions: tuple[UUID, ...] = field(default=(), metadata=LEFT_OUT_WHEN_EMPTY)
    promoted: tuple[UUID, ...] = ()
    evicted: tuple[UUID, ...] = ()
    freed: int = 0
    changes: int = 0
    summary_chars: int
    timestamp: datetime
    gate: GateResult
    refused: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEndReport(CycleReport):
    """Of the end of a session. ``slept``: its sleep pass took effect; ``dropped`` counts what left its graph."""

    slept: bool
    checkpoint: UUID | None
    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidatedCluster:
    """Memories that consolidation merged, or left alone. The text is that of ``text_of``, if the model gave none."""

    members: tuple[UUID, ...]
    text_of: UUID
    similarity: float
    needs_model: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationReport(Report):
    """Of consolidation. ``applied`` and ``changes`` are what undo looks at."""

    kind: str | None
    inspected: int
    clusters: tuple[ConsolidatedCluster, ...]
    merged: int
    freed: int
    worded: int
    left_alone: tuple[ConsolidatedCluster, ...]
    applied: bool
    reason: str | None
    changes: int
    gate: GateResult


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitedMemories:
    """Memories that deep synthesis united into one. ``similarity`` is the lowest cosine of two of them."""

    members: tuple[UUID, ...]
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepReport(Report):
    """Of deep synthesis: how many unions, patterns and links took effect, or would have in a dry run.

    ``applied``, ``reason``, ``changes`` and ``gate`` are those of a sleep cycle. ``made.dropped`` counts what the model
    proposed in vain, by reason. Reports of the first version have neither, and cannot be undone.
    """

    version: int = 2
    success: bool
    agent: str
    user: str | None
    consolidated: int
    patterns: int
    links: int
    unions: tuple[UnitedMemories, ...]
    left_alone: tuple[UUID, ...]
    evicted: tuple[UUID, ...]
    applied: bool
    reason: str | None
    changes: int
    gate: GateResult
    made: Mapping[str, Any]


def empty_report(options: SleepOptions, at: datetime, *, floor: float) -> CycleReport:
    """Return the report of a cycle that did nothing. ``floor`` is that of the quality gate."""
    return CycleReport(
        trigger=options.trigger,
        summary_chars=options.summary_chars,
        timestamp=at,
        gate=GateResult(floor=floor),
    )


def end_report(cycle: CycleReport, *, checkpoint: UUID | None = None, dropped: int = 0) -> SessionEndReport:
    """Return the report of the end of a session from that of its sleep pass."""
    values = {column.name: getattr(cycle, column.name) for column in fields(cycle)}
    return SessionEndReport(**values, slept=cycle.applied, checkpoint=checkpoint, dropped=dropped)


def with_texts(runtime: Runtime, tenant_id: int, run: Run) -> Run:
    """Return the run with a ``summary`` for each cluster and a ``label`` for each pattern of its report.

    Both are null where a memory or the entity is gone. Runs whose report is not that of a sleep cycle stay as they are.
    """
    if not isinstance(run, ScopeRun) or not isinstance(run.report, dict):
        return run
    # Only reports of a cycle have this field, that of the end of a session included.
    if "summary_chars" not in run.report:
        return run
    return _with_texts(runtime, tenant_id, run.id, run=run)


@where_stored
def _with_texts(runtime: Runtime, tenant_id: int, run_id: UUID, *, run: ScopeRun) -> Run:
    report = run.report
    ids = {id for cluster in report["clusters"] for id in _members(cluster)}
    labels: dict[int, str] = {}
    with transaction(runtime.engine, tenant_id) as connection:
        if runs.read(connection, run_id) is None:
            raise NotFound(f"no run {run_id}", field="id")
        texts = {row.memory.id: row.memory.text for row in merges.rows(connection, run.scope_id, list(ids))}
        for pattern in report["patterns"]:
            profile = entities.find(connection, run.scope_id, pattern["entity"])
            if profile is not None:
                labels[pattern["entity"]] = profile.entity.label
    # The limit that the run had, so that its summaries read as they did then.
    limit = report["summary_chars"]
    clusters = [
        cluster | {"summary": _summary(cluster, texts, limit=limit)} for cluster in report["clusters"]
    ]
    patterns = [pattern | {"label": labels.get(pattern["entity"])} for pattern in report["patterns"]]
    return replace(run, report=report | {"clusters": clusters, "patterns": patterns})


def _members(cluster: Mapping[str, Any]) -> list[UUID]:
    return [UUID(id) for id in (cluster["anchor"], *cluster["merged"])]


def _summary(cluster: Mapping[str, Any], texts: Mapping[UUID, str], *, limit: int) -> str | None:
    members = _members(cluster)
    # Without the texts of all members the summary would differ from that of the merged row.
    if any(id not in texts for id in members):
        return None
    return summary([texts[id] for id in members], limit=limit)
