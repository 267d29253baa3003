"""Reports of sleep as they are shown. A run keeps ids and figures only; the words are read from the memories, so that
what was forgotten stands in no report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from memory_app.db.db import transaction
from memory_app.jobs.rows.runs import Run, ScopeRun
from memory_app.memories.rows import entities, merges
from memory_app.runtime import Runtime
from memory_app.sleep.rules import summary


def told(runtime: Runtime, tenant_id: int, run: Run) -> Run:
    """The run, with a ``summary`` for each cluster and the label of each pattern, where they are still there."""
    if not isinstance(run.report, dict) or not isinstance(run, ScopeRun) or "summary_chars" not in run.report:
        return run
    report = run.report
    ids = {UUID(id) for cluster in report["clusters"] for id in (cluster["anchor"], *cluster["merged"])}
    with transaction(runtime.engine, tenant_id) as connection:
        texts = {row.memory.id: row.memory.text for row in merges.rows(connection, run.scope_id, list(ids))}
        labels = {
            pattern["entity"]: found.entity.label
            for pattern in report["patterns"]
            if (found := entities.find(connection, run.scope_id, pattern["entity"])) is not None
        }
    clusters = [
        cluster | {"summary": _summary(cluster, texts, limit=report["summary_chars"])}
        for cluster in report["clusters"]
    ]
    patterns = [pattern | {"label": labels.get(pattern["entity"])} for pattern in report["patterns"]]
    return replace(run, report=report | {"clusters": clusters, "patterns": patterns})


def _summary(cluster: dict[str, Any], texts: dict[UUID, str], *, limit: int) -> str | None:
    members = [UUID(id) for id in (cluster["anchor"], *cluster["merged"])]
    if any(id not in texts for id in members):
        return None
    return summary([texts[id] for id in members], limit=limit)
