"""Follow a piece of work from the request to the memories that came of it, or back, by any id on its way.

Ids, names, times and reasons; never a text. What was erased is not there any more, and old runs are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from memory_app.db.db import transaction
from memory_app.errors import NotFound
from memory_app.ops.origin import Origin
from memory_app.ops.rows import trace as rows
from memory_app.ops.rows.trace import TracedMemory, TracedRun, TracedTurn
from memory_app.records.run import RunState
from memory_app.runtime import Runtime
from memory_app.tenancy.shards import in_usable
from memory_app.turns.tickets import ticket

Row = TypeVar("Row", TracedTurn, TracedRun, TracedMemory)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened. The ids of what it happened to, and of the request or task in which it did."""

    at: datetime
    event: str
    turn_id: UUID | None = None
    run_id: UUID | None = None
    memory_id: UUID | None = None
    request_id: UUID | None = None
    task_id: UUID | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """The whole way: the rows on it, and what happened in the order of time. ``waiting_for`` says what a turn that is
    not through waits for."""

    id: UUID
    origin: Origin
    turns: tuple[TracedTurn, ...]
    runs: tuple[TracedRun, ...]
    memories: tuple[TracedMemory, ...]
    waiting_for: str | None = None

    @property
    def steps(self) -> tuple[Step, ...]:
        steps = [
            *(step for turn in self.turns for step in _turn_steps(turn)),
            *(step for run in self.runs for step in _run_steps(run)),
            *(step for memory in self.memories for step in _memory_steps(memory)),
        ]
        return tuple(sorted(steps, key=lambda step: step.at))


def trace(runtime: Runtime, tenant_id: int, id: UUID) -> Trace:
    """The way of a turn, a memory or a run, or of all that a request or a task did. Looks into every shard.

    Raises `NotFound` where no row has to do with the id.
    """

    def look(here: Runtime) -> Trace | None:
        return _in_shard(here, tenant_id, id)

    parts = [part for part in in_usable(runtime, look) if part is not None]
    if not parts:
        raise NotFound(f"no turn, memory, run, request or task {id}; it may have been erased", field="id")
    # A task may have worked in several shards.
    return Trace(
        id=id,
        origin=parts[0].origin,
        turns=tuple(turn for part in parts for turn in part.turns),
        runs=tuple(run for part in parts for run in part.runs),
        memories=tuple(memory for part in parts for memory in part.memories),
        waiting_for=_obstacle(runtime, tenant_id, id) if parts[0].origin is Origin.TURN else None,
    )


def _obstacle(runtime: Runtime, tenant_id: int, turn_id: UUID) -> str | None:
    try:
        return ticket(runtime, tenant_id, turn_id).waiting_for
    except NotFound:
        # It was forgotten a moment ago.
        return None


def _in_shard(runtime: Runtime, tenant_id: int, id: UUID) -> Trace | None:
    with transaction(runtime.engine, tenant_id) as connection:
        turns = rows.turns_by_id(connection, id)
        runs = rows.runs_by_id(connection, [id])
        memories = rows.memory(connection, id)
        if not turns and not runs and not memories:
            return None
        origin = _origin(id, turns, runs, memories)
        # Back from what was found to the turns, then on to the runs behind everything.
        turns = _distinct(
            (*turns, *rows.turns_of_memories(connection, memories), *rows.turns_of_runs(connection, runs))
        )
        memories = _distinct((*memories, *rows.memories_of_runs(connection, runs)))
        # From a memory the way leads back, and not on to what else came of its turns.
        if origin in (Origin.TURN, Origin.REQUEST, Origin.TASK):
            memories = _distinct((*memories, *rows.memories_of_turns(connection, turns)))
        writers = [memory.run_id for memory in memories if memory.run_id is not None]
        runs = _distinct(
            (*runs, *rows.runs_of_turns(connection, turns), *rows.runs_by_id(connection, writers))
        )
    return Trace(id, origin, turns, runs, memories)


def _distinct(found: Iterable[Row]) -> tuple[Row, ...]:
    return tuple({row.id: row for row in found}.values())


def _origin(
    id: UUID, turns: Iterable[TracedTurn], runs: Iterable[TracedRun], memories: Iterable[TracedMemory]
) -> Origin:
    if any(memory.id == id for memory in memories):
        return Origin.MEMORY
    if any(turn.id == id for turn in turns):
        return Origin.TURN
    if any(run.id == id for run in runs):
        return Origin.RUN
    requests = {turn.request_id for turn in turns} | {run.request_id for run in runs}
    return Origin.REQUEST if id in requests else Origin.TASK


def _turn_steps(turn: TracedTurn) -> Iterator[Step]:
    yield Step(turn.accepted_at, "turn accepted", turn_id=turn.id, request_id=turn.request_id)
    if turn.indexed_at is not None:
        yield Step(turn.indexed_at, "turn indexed", turn_id=turn.id, task_id=turn.index_task_id)
    if turn.extracted_at is not None:
        yield Step(turn.extracted_at, "turn extracted", turn_id=turn.id, reason=turn.reason)
    if turn.failed_at is not None:
        yield Step(turn.failed_at, "turn failed", turn_id=turn.id, reason=turn.reason)


def _run_steps(run: TracedRun) -> Iterator[Step]:
    if run.request_id is not None or run.started_at is None:
        yield Step(run.created_at, f"{run.name} asked for", run_id=run.id, request_id=run.request_id)
    if run.started_at is not None:
        yield Step(run.started_at, f"{run.name} started", run_id=run.id, task_id=run.task_id)
    if run.finished_at is not None:
        event = f"{run.name} {'failed' if run.state == RunState.FAILED else 'done'}"
        yield Step(run.finished_at, event, run_id=run.id, task_id=run.task_id, reason=run.reason)


def _memory_steps(memory: TracedMemory) -> Iterator[Step]:
    yield Step(memory.stored_at, f"{memory.kind} stored", memory_id=memory.id, run_id=memory.run_id)
    if memory.retired_at is not None:
        yield Step(
            memory.retired_at, f"{memory.kind} retired", memory_id=memory.id, reason=memory.retired_reason
        )
