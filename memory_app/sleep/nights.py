"""What a sleep cycle, consolidation or deep synthesis did to a person's memories: before, after and why.

A report holds ids and figures; texts are read from the memories, so that what was forgotten is not shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any
from uuid import UUID

from memory_app.db.db import transaction
from memory_app.errors import NotFound
from memory_app.jobs.rows import listed_runs, runs
from memory_app.jobs.rows.listed_runs import ListedRun
from memory_app.jobs.rows.runs import ScopeRun
from memory_app.memories.rows import merges
from memory_app.records.records import Memory
from memory_app.records.run import Change, RunName
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep.rows import images, nights
from memory_app.sleep.rows.images import RowImage
from memory_app.sleep.rows.nights import NightOf
from memory_app.sleep.rules import summary
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_scopes_shard, in_usable

NIGHTS = (RunName.SLEEP, RunName.CONSOLIDATE, RunName.SYNTHESIZE_DEEP, RunName.END_SESSION)

PAGE_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Union:
    """Memories that became one, or would have. ``before`` has None for what was forgotten since.

    ``after`` is the memory that stands for them now; without one ``text`` is what would have, where it is known.
    ``figures`` are those of the report that say why: similarity, strengths, places that became free.
    """

    before: tuple[Memory | None, ...]
    after: Memory | None
    text: str | None
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Night:
    """A run and its changes. ``added`` are new memories that no union made; ``evicted`` and ``promoted`` are lists of
    its report."""

    run: ScopeRun
    unions: tuple[Union, ...]
    added: tuple[Memory, ...]
    evicted: tuple[Memory, ...]
    promoted: tuple[Memory, ...]


@in_scopes_shard
def list_nights(
    runtime: Runtime, tenant_id: int, scope: Scope, *, limit: int = 50, before: UUID | None = None
) -> tuple[ListedRun, ...]:
    """Runs of the scope, newest first; ``before`` is the last of the page before. `NotFound` for an unknown scope."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        return listed_runs.of_scope(
            connection, row.id, names=NIGHTS, limit=min(limit, PAGE_LIMIT), before=before
        )


def latest(runtime: Runtime, tenant_id: int, *, limit: int = 50) -> tuple[NightOf, ...]:
    """Nights of the tenant that have ended, the newest first, whoever they are about."""

    def look(here: Runtime) -> tuple[NightOf, ...]:
        with transaction(here.engine, tenant_id) as connection:
            return nights.latest(connection, tenant_id, names=NIGHTS, limit=min(limit, PAGE_LIMIT))

    rows = chain.from_iterable(in_usable(runtime, look))
    return tuple(
        sorted(rows, key=lambda night: night.run.finished_at or night.run.created_at, reverse=True)[:limit]
    )


@in_scopes_shard
def night(runtime: Runtime, tenant_id: int, scope: Scope, run_id: UUID) -> Night:
    """One of them with its changes. `NotFound` for a run of another scope or of another job."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        run = runs.read(connection, run_id)
        if not isinstance(run, ScopeRun) or run.scope_id != row.id or run.name not in NIGHTS:
            raise NotFound(f"no night {run_id} of this agent and user", field="id")
        changes = images.rows_of_run(connection, row.id, run_id)
        report = run.report or {}
        inserted = [change.id for change in changes if change.change is Change.INSERT]
        listed = {name: _ids(report.get(name)) for name in ("evicted", "promoted")}
        clusters = _clusters(report)
        wanted = {id for cluster in clusters for id in _members(cluster)}
        wanted.update(inserted, *listed.values())
        texts = {row.memory.id: row.memory for row in merges.rows(connection, row.id, sorted(wanted))}
    successors = _successors(changes)
    unions = tuple(_union(cluster, texts, successors, report) for cluster in clusters)
    made = {union.after.id for union in unions if union.after is not None}
    return Night(
        run=run,
        unions=unions,
        added=tuple(texts[id] for id in inserted if id in texts and id not in made),
        evicted=tuple(texts[id] for id in listed["evicted"] if id in texts),
        promoted=tuple(texts[id] for id in listed["promoted"] if id in texts),
    )


def _clusters(report: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    # Deep synthesis calls them unions.
    return report.get("clusters") or report.get("unions") or ()


def _members(cluster: Mapping[str, Any]) -> list[UUID]:
    # A cycle tells apart the one into which the others go.
    members = cluster.get("members") or (cluster["anchor"], *cluster["merged"])
    return list(map(UUID, members))


def _ids(listed: object) -> list[UUID]:
    return [UUID(id) for id in listed] if isinstance(listed, list) else []


def _successors(changes: Sequence[RowImage]) -> dict[UUID, UUID]:
    """What each memory was merged into by the run."""
    return {
        change.id: UUID(change.after["successor"])
        for change in changes
        if change.after is not None and change.after.get("successor")
    }


def _union(
    cluster: Mapping[str, Any],
    texts: Mapping[UUID, Memory],
    successors: Mapping[UUID, UUID],
    report: Mapping[str, Any],
) -> Union:
    members = _members(cluster)
    before = tuple(texts.get(id) for id in members)
    successor = next((successors[id] for id in members if id in successors), None)
    after = None if successor is None else texts.get(successor)
    figures = {name: value for name, value in cluster.items() if isinstance(value, float | int)}
    figures.pop("needs_model", None)
    return Union(before, after, None if after else _planned(cluster, before, report), figures)


def _planned(
    cluster: Mapping[str, Any], before: Sequence[Memory | None], report: Mapping[str, Any]
) -> str | None:
    """What the memory would say, where no model has to word it and no part was forgotten."""
    present = [memory for memory in before if memory is not None]
    if len(present) < len(before):
        return None
    if "summary_chars" in report:
        return summary([memory.text for memory in present], limit=report["summary_chars"])
    if "text_of" in cluster and not cluster["needs_model"]:
        return next((memory.text for memory in present if str(memory.id) == cluster["text_of"]), None)
    return None
