"""Reports of sleep cycles: an empty one to fill in, and one with the texts that it stands for.

A run stores ids and figures only. Texts are read from the memories when a report is shown, so that what was forgotten
stands in no report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_app.db.db import transaction
from memory_app.jobs.rows.runs import Run, ScopeRun
from memory_app.memories.rows import entities, merges
from memory_app.runtime import Runtime
from memory_app.sleep.rules import SleepOptions, summary


def empty_report(options: SleepOptions, at: datetime, *, floor: float) -> dict[str, Any]:
    """Every field of a report, of a cycle that did nothing. ``floor`` is that of the quality gate."""
    return {
        "trigger": options.trigger.value,
        "applied": False,
        "reason": None,
        "inspected": 0,
        "clusters": [],
        "left_alone": [],
        "links": 0,
        "patterns": [],
        "promoted": [],
        "evicted": [],
        "freed": 0,
        "changes": 0,
        "summary_chars": options.summary_chars,
        "timestamp": at.isoformat(),
        "gate": {"probes": 0, "recall": 1.0, "floor": floor},
        "refused": [],
    }


def with_texts(runtime: Runtime, tenant_id: int, run: Run) -> Run:
    """The run, with a ``summary`` for each cluster and a ``label`` for each pattern of its report.

    Both are null where a memory or the entity is gone. Runs whose report is not that of a sleep cycle stay as they are.
    """
    if not isinstance(run.report, dict) or not isinstance(run, ScopeRun) or "summary_chars" not in run.report:
        return run
    report = run.report
    ids = {id for cluster in report["clusters"] for id in _members(cluster)}
    labels: dict[int, str] = {}
    with transaction(runtime.engine, tenant_id) as connection:
        texts = {row.memory.id: row.memory.text for row in merges.rows(connection, run.scope_id, list(ids))}
        for pattern in report["patterns"]:
            profile = entities.find(connection, run.scope_id, pattern["entity"])
            if profile is not None:
                labels[pattern["entity"]] = profile.entity.label
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
    if any(id not in texts for id in members):
        return None
    return summary([texts[id] for id in members], limit=limit)
