"""Big scopes over shards: more of them than one shard may index, and what each shard's recalls pay for its indexes.

The scopes are filled in bulk, in the home shard. Then the periodic job runs as often as it finds something to do: it
has to open shards and to move users by itself.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import chain, zip_longest
from threading import Barrier, Event, Thread
from typing import Any

from sqlalchemy import Engine

from memory_app import MemoryApp, Scope
from memory_app.bench.figures import time_figures
from memory_app.bench.plain_rows import fill
from memory_app.bench.prose import messages
from memory_app.bench.rows import bulk, plans, stored
from memory_app.bench.rows.stored import Locks
from memory_app.bench.stage import Say
from memory_app.db import directory, meter
from memory_app.db.db import transaction
from memory_app.db.shards import schema_of
from memory_app.dispatch import big_scopes
from memory_app.errors import MemoryAppError
from memory_app.recall import candidates, recall
from memory_app.recall.query import check_query, embed_query, prepare_query
from memory_app.recall.records import RecallQuery
from memory_app.recall.rows import scope_index, search
from memory_app.tenancy.access import owner_url
from memory_app.tenancy.rows import names

AGENT = "assistant"
SETTLED = ("memories", "turns", "terms", "sessions", "scopes", "users")

PLANNED_TIMES = 5
"""The first time a connection plans with new indexes it reads the catalogue besides; the median leaves that out."""

SAMPLE_SECONDS = 0.002
NONE = Locks(0, 0)
QUESTION = "My sister Nadia lives in Bergen."


@dataclass(frozen=True, slots=True)
class ShardCost:
    """What a recall of a big scope costs in one shard. ``planning_ms`` is that of the statement that searches
    memories by their vectors; ``locks`` are tables and indexes locked when the recall's transaction ends."""

    shard: int
    indexed: int
    planning_ms: float
    locks: int
    uses_index: bool


@dataclass(slots=True)
class Load:
    """Concurrent recalls: seconds of each that was answered, how many failed by reason, and the locks meanwhile."""

    seconds: list[float] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    locks: Locks = NONE


def measure(
    memory: MemoryApp, *, scopes: int, rows: int, callers: int, calls: int, say: Say
) -> Mapping[str, Any]:
    """Fill ``scopes`` scopes with ``rows`` memories each, have them indexed, then ask from ``callers`` threads.

    ``faults`` counts what must not be: recalls that failed, big scopes without indexes.
    """
    users = [f"big {place}" for place in range(scopes)]
    say(f"writing {scopes} scopes of {rows} memories")
    _fill(memory, users, rows)
    shards_before = _shards(memory)
    _settle(memory, shards_before)
    before = _cost(memory, users[0], shard=shards_before[0])
    say("indexing")
    began = time.perf_counter()
    done = _index(memory, say)
    seconds = time.perf_counter() - began
    shards_after = _shards(memory)
    _settle(memory, shards_after)
    by_shard = _users_by_shard(memory, users, shards_after)
    costs = [_cost(memory, some[0], shard=shard) for shard, some in by_shard.items() if some]
    asked = _spread(by_shard)[:callers]
    say(f"{len(asked)} recalls at once, {calls} times")
    load = _load(memory, asked, calls=calls)
    indexed = {cost.shard: cost.indexed for cost in costs}
    return {
        "size": {"big_scopes": scopes, "rows": rows, "callers": len(asked), "calls": calls},
        "rates": {
            "shards before": len(shards_before),
            "shards after": len(shards_after),
            "shards without a big scope": len(shards_after) - len(costs),
            "runs of the job that found something": len(done),
            "seconds for them": round(seconds, 1),
            **{f"shard {shard}: scopes indexed": count for shard, count in indexed.items()},
            "locks of one connection, most": load.locks.most_of_one,
            "locks of all connections, most": load.locks.total,
        },
        "planning": [asdict(cost) for cost in (before, *costs)],
        "times": {f"recall, {len(asked)} at once": asdict(time_figures(load.seconds))}
        if load.seconds
        else {},
        "refusals": dict(load.failures),
        "faults": {
            "recalls that failed": load.failures.total(),
            "big scopes without indexes": scopes - sum(indexed.values()),
        },
    }


def _fill(memory: MemoryApp, users: Sequence[str], rows: int) -> None:
    """The same memories in every scope: embedding them once is enough."""
    first, *others = users
    source = fill(memory, Scope(AGENT, first), rows)
    for user in others:
        with transaction(memory.runtime.engine, memory.tenant_id) as connection:
            scope = names.ensure_scope(connection, memory.tenant_id, Scope(AGENT, user))
            bulk.copy_memories(connection, source, [scope.id])
            bulk.copy_size(connection, source, [scope.id])


def _settle(memory: MemoryApp, shards: Sequence[int]) -> None:
    tables = [f"{schema_of(shard)}.{table}" for shard in shards for table in SETTLED]
    bulk.settle(owner_url(memory.runtime.settings), tables=tables)


def _shards(memory: MemoryApp) -> tuple[int, ...]:
    # From the table: what the process remembers of it may be two seconds old.
    with transaction(memory.runtime.engine, None) as connection:
        return tuple(shard.id for shard in directory.read(connection))


def _index(memory: MemoryApp, say: Say) -> list[int]:
    """Run the periodic job until it finds nothing more; how many scopes each run did."""
    done = []
    while count := big_scopes.index(memory.runtime):
        done.append(count)
        say(f"{sum(done)} times a scope was indexed")
    return done


def _users_by_shard(
    memory: MemoryApp, users: Sequence[str], shards: Sequence[int]
) -> Mapping[int, list[str]]:
    by_shard: dict[int, list[str]] = {shard: [] for shard in shards}
    for user in users:
        by_shard[memory.runtime.directory.shard_of_user(memory.tenant_id, user)].append(user)
    return by_shard


def _spread(by_shard: Mapping[int, Sequence[str]]) -> list[str]:
    """The users, one of each shard after the other."""
    rounds = zip_longest(*by_shard.values())
    return [user for user in chain.from_iterable(rounds) if user is not None]


# --- one recall ---------------------------------------------------------------------------------------------


def _cost(memory: MemoryApp, user: str, *, shard: int) -> ShardCost:
    runtime = memory.runtime.at(shard)
    query = check_query(runtime, RecallQuery(QUESTION))
    vectors = embed_query(runtime, query.text)
    with transaction(runtime.engine, memory.tenant_id) as connection:
        row = names.need_scope(connection, memory.tenant_id, Scope(AGENT, user))
        scoped = prepare_query(connection, runtime, row, query=query, vectors=vectors)
        recall.search(connection, runtime, scoped)
        # Locks are kept until the transaction ends, so that these are all of the recall.
        locks = meter.relation_locks(connection)
        with plans.sent(memory.runtime.engine) as statements:
            search.memory_hits(connection, candidates.probe_of(runtime, scoped))
        planned = [plans.plan(connection, *statements[0]) for _ in range(PLANNED_TIMES)]
        indexed = len(scope_index.all_indexed(connection))
    return ShardCost(
        shard=shard,
        indexed=indexed,
        planning_ms=round(statistics.median(plan["Planning Time"] for plan in planned), 3),
        locks=locks,
        uses_index=f"memories_hnsw_{row.id}_" in str(planned[0]),
    )


# --- many recalls at once -----------------------------------------------------------------------------------


def _load(memory: MemoryApp, users: Sequence[str], *, calls: int) -> Load:
    """Each user asks in a thread of their own, all at the same time."""
    load = Load()
    start = Barrier(len(users))

    def ask(place: int, user: str) -> None:
        start.wait()
        for text in messages(calls, seed=place):
            began = time.perf_counter()
            try:
                memory.recall(Scope(AGENT, user), text)
            except MemoryAppError as error:
                load.failures[f"{error.kind}: {error.message}"] += 1
                continue
            # A list's append needs no lock.
            load.seconds.append(time.perf_counter() - began)

    assert memory.runtime.owner is not None
    with _watched_locks(memory.runtime.owner, load), ThreadPoolExecutor(len(users)) as pool:
        for asking in [pool.submit(ask, place, user) for place, user in enumerate(users)]:
            asking.result()
    return load


@contextlib.contextmanager
def _watched_locks(owner: Engine, load: Load) -> Iterator[None]:
    """Look again and again what is locked during the block; the most that was seen goes to ``load``."""
    over = Event()

    def watch() -> None:
        while not over.wait(SAMPLE_SECONDS):
            now = stored.locks(owner)
            load.locks = Locks(max(load.locks.total, now.total), max(load.locks.most_of_one, now.most_of_one))

    watcher = Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
