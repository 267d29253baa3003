"""Latency with a full store: a scope of so many memories among many times as many of other users.

The rows are written in bulk, past the ladder, which would need hours; what is timed is the product's own path.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from memory_app import MemoryApp, NewTurn, Role, Scope, blas_threads
from memory_app.bench.figures import time_figures
from memory_app.bench.plain_rows import BATCH, fill
from memory_app.bench.prose import messages
from memory_app.bench.rows import bulk
from memory_app.bench.stage import Say
from memory_app.db import db
from memory_app.recall.scope_index import index_big_scopes
from memory_app.records.scoring import PRESETS
from memory_app.tenancy.access import owner_connection, owner_url
from memory_app.tenancy.rows import names
from memory_app.tenancy.schema import add_shards
from memory_app.transfer.shards import move_user
from memory_app.turns import index

AGENT, USER, SESSION = "assistant", "me", "chat"
SCOPE = Scope(AGENT, USER, SESSION)

TURNS_SHARE = 10
"""One turn for so many memories: only the last weeks' turns are searched."""

WARM_UP_CALLS = 5


def measure(
    memory: MemoryApp, *, memories: int, other_users: int, calls: int, shards: int, say: Say
) -> Mapping[str, dict[str, Any]]:
    """Times of each call in milliseconds, after the rows were written; of a user in the last of ``shards``."""
    turns = max(memories // TURNS_SHARE, 100)
    say(f"writing {memories} memories and {turns} turns")
    scope_id = fill(memory, Scope(AGENT, USER), memories)
    _converse(memory, turns)
    say(f"copying them to {other_users} other users")
    written = _fill_others(memory, scope_id, other_users)
    if shards > 1:
        say(f"moving the user to the last of {shards} shards")
        *_, last = add_shards(memory.runtime.settings, shards - 1)
        move_user(memory.runtime, memory.tenant_id, USER, to=last)
    indexed = index_big_scopes(memory.runtime)
    # As the API does when it starts to serve.
    blas_threads.take_one()
    gc.collect()
    # And the collector does not stop a call that is timed for what stands for good.
    gc.freeze()
    say(f"timing {calls} calls of each kind")
    times = {name: asdict(time_figures(_timed(call, calls))) for name, call in _calls(memory).items()}
    rows = {
        "memories": memories,
        "turns": turns,
        "memories_of_others": written,
        "scopes_with_own_index": indexed,
    }
    return {"rows": rows, "times": dict(times)}


def _converse(memory: MemoryApp, count: int) -> None:
    texts = messages(count, seed=2)
    while batch := list(islice(texts, BATCH)):
        memory.record_all(SCOPE, [NewTurn(Role.USER, text) for text in batch])
    index.index_turns(memory.runtime, most_batches=count, most_seconds=math.inf)


def _fill_others(memory: MemoryApp, scope_id: int, users: int) -> int:
    written = 0
    for place in range(users):
        with db.transaction(memory.runtime.engine, memory.tenant_id) as connection:
            other = names.ensure_scope(connection, memory.tenant_id, Scope(AGENT, f"other-{place}"))
            written += bulk.copy_memories(connection, scope_id, [other.id])
    with owner_connection(memory.runtime.settings) as connection:
        bulk.make_bare_table(connection)
    bulk.settle(owner_url(memory.runtime.settings), tables=("memories", "turns", "terms", "sessions"))
    return written


def _calls(memory: MemoryApp) -> Mapping[str, Callable[[str], object]]:
    """What is timed: each takes a message that was never seen before."""

    def recall_with(preset: str) -> Callable[[str], object]:
        return lambda text: memory.recall(SCOPE, text, preset=preset)

    def write_bare(text: str) -> None:
        with db.transaction(memory.runtime.engine, memory.tenant_id) as connection:
            bulk.insert_bare(connection, text)

    return {
        **{f"recall {preset}": recall_with(preset) for preset in PRESETS},
        "recall as of now": lambda text: memory.recall(SCOPE, text, as_of=datetime.now(UTC)),
        "context": lambda text: memory.context(SCOPE, text),
        "bare committed INSERT": write_bare,
        # Last: no worker runs here, and what it leaves unindexed is looked through by every recall.
        "accept": lambda text: memory.record(SCOPE, text),
    }


def _timed(call: Callable[[str], object], count: int) -> list[float]:
    texts: Iterator[str] = messages(count + WARM_UP_CALLS, seed=3)
    # The first calls open connections, plan statements and fill caches.
    for text in islice(texts, WARM_UP_CALLS):
        call(text)
    return [_seconds(call, text) for text in texts]


def _seconds(call: Callable[[str], object], text: str) -> float:
    began = time.perf_counter()
    call(text)
    return time.perf_counter() - began
