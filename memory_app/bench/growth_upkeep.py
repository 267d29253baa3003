"""Growth of what is done for everybody at once: claims and looks, upkeep of scopes, runs, old turns, search indexes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial

from memory_app import Scope
from memory_app.bench.growth_database import BIG, LEASE, LONG_AGO, SCOPE, Figure, MeasuredDatabase
from memory_app.bench.rows.crowd import AGENT
from memory_app.db import meter
from memory_app.db.db import transaction
from memory_app.dispatch import finder, upkeep
from memory_app.dispatch.job_table import JOBS
from memory_app.jobs import jobs
from memory_app.jobs.rows import schedules
from memory_app.memories.rows import memories, reembedding
from memory_app.ops import health
from memory_app.recall import scope_index
from memory_app.recall.rows import scope_index as scope_index_store
from memory_app.sleep import decay, synthesis
from memory_app.turns.rows import index_work, turns

BACKLOG_SCOPES = 10
"""Users whose turns wait."""

LOOKS = 60
"""So often is gone through silent sessions before that is measured once more."""


# --- a backlog ----------------------------------------------------------------------------------------------


def measure_backlog(database: MeasuredDatabase, size: int) -> Iterator[Figure]:
    """What is done every few seconds while turns wait to be indexed."""
    cost = partial(database.cost, size=size, of="waiting turns")
    runtime, each = database.memory.runtime, size // BACKLOG_SCOPES
    database.crowd.scopes(BACKLOG_SCOPES)
    database.crowd.sessions(turns=each, extracted=False)
    database.crowd.turns(each, indexed=False)
    database.crowd.settle()
    yield cost("finder: look", lambda: finder.look(runtime))
    yield cost("health: state of the pipe", lambda: health.read_pipeline(runtime))
    yield cost("claim of 64 turns", lambda: _claim(database))
    database.crowd.lend_turns()
    database.crowd.settle()
    # A claim that finds nothing must not walk through all that others hold.
    yield cost("claim where all are lent", lambda: _claim(database))


def _claim(database: MeasuredDatabase) -> None:
    with transaction(database.memory.runtime.engine, None) as connection:
        index_work.claim(connection, batch=64, lease=LEASE)


# --- many scopes --------------------------------------------------------------------------------------------


def measure_scopes(database: MeasuredDatabase, size: int) -> Iterator[Figure]:
    """What maintenance asks over everybody's scopes."""
    cost = partial(database.cost, size=size, of="scopes")
    runtime = database.memory.runtime
    database.crowd.scopes(size)
    database.crowd.scope_with_model()
    database.crowd.sessions(turns=3, extracted=True, age=timedelta(hours=2))
    database.crowd.count_terms()
    database.crowd.schedules()
    database.crowd.settle()
    model = runtime.embedder.model
    yield cost("big_scopes", lambda: scope_index.index_big_scopes(runtime))
    yield cost("stale_scopes", lambda: _stale(database, model))
    yield cost("idle_sessions", lambda: synthesis.enqueue_idle(runtime))
    # The first looks ask for what waits; the one that is measured is a look like most others.
    for _ in range(LOOKS):
        synthesis.enqueue_idle(runtime)
    yield cost("idle_sessions, once more", lambda: synthesis.enqueue_idle(runtime))
    yield cost("due_scopes (all are due)", lambda: _due_jobs(database))
    database.crowd.due_sessions()
    database.crowd.due_runs()
    database.crowd.settle()
    yield cost("finder: look, all sessions and runs due", lambda: finder.look(runtime))


def _stale(database: MeasuredDatabase, model: str) -> None:
    with transaction(database.memory.runtime.engine, None) as connection:
        reembedding.stale_scopes(connection, model=model, limit=50)


def _due_jobs(database: MeasuredDatabase) -> None:
    runtime = database.memory.runtime
    with transaction(runtime.engine, None) as connection:
        schedules.due(connection, most=runtime.settings.schedule.batch)


# --- what nobody asks for any more --------------------------------------------------------------------------


def measure_runs(database: MeasuredDatabase, size: int) -> Iterator[Figure]:
    """Runs that ended longer ago than they are kept."""
    scope_id = database.scope_id(SCOPE)
    database.crowd.old_runs(scope_id, size, age=LONG_AGO)
    database.crowd.settle()
    figure = database.cost("tidy", lambda: upkeep.tidy(database.memory.runtime), size=size, of="old runs")
    yield replace(figure, note=f"{database.crowd.count('runs')} runs left")


def measure_lapsed(database: MeasuredDatabase, size: int) -> Iterator[Figure]:
    """Turns that are too old to be searched."""
    memory = database.memory
    cost = partial(database.cost, size=size, of="old turns in the scope")
    database.crowd.scopes(1)
    database.crowd.sessions(turns=size, extracted=True, age=LONG_AGO)
    database.crowd.turns(size, indexed=True, age=LONG_AGO)
    database.crowd.count_terms()
    scope = Scope(AGENT, "crowd 1")
    run = decay.ask(memory.runtime, memory.tenant_id, scope)
    database.crowd.settle()
    yield cost("decay", lambda: jobs.perform(memory.runtime, run.id, JOBS))
    database.crowd.settle()
    memory.recall(scope, "The first call of a process plans what the others do.")
    figure = cost("recall", lambda: memory.recall(scope, "Which dog did I walk?"))
    yield replace(figure, note=f"{database.crowd.search_bytes() // size} bytes kept for search by each turn")


# --- search indexes of big scopes ---------------------------------------------------------------------------


def measure_big_scopes(database: MeasuredDatabase, size: int) -> Iterator[Figure]:
    """Scopes that are big enough for search indexes, and what a small one pays for them."""
    memory, runtime = database.memory, database.memory.runtime
    for place in range(size):
        database.crowd.memories(database.scope_id(Scope(AGENT, f"big {place}")), BIG, links_each=0)
    memory.remember(SCOPE, "I like the sea.")
    # A call builds those of a few scopes and leaves the rest to the next one.
    while scope_index.index_big_scopes(runtime):
        pass
    database.crowd.settle()
    locks = 0

    def ask() -> None:
        nonlocal locks
        with transaction(runtime.engine, memory.tenant_id) as connection:
            turns.unindexed(connection, [1], limit=1)
            memories.current_ids(connection, 1, [])
            locks = meter.relation_locks(connection)

    figure = database.cost("a look at turns and memories", ask, size=size, of="big scopes")
    with transaction(runtime.engine, memory.tenant_id) as connection:
        indexed = len(scope_index_store.indexed(connection, most=10_000))
    yield replace(figure, note=f"{indexed} scopes indexed, {locks} relations locked")
