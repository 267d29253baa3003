"""Throughput with real processes: turns go in as fast as they are taken, workers index and extract them meanwhile.

Accepting is measured one call at a time beside the barest committed write, then with several callers, in this process
and over HTTP. The clock of "indexed" and "extracted" runs until the very last turn is through.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from memory_app import MemoryApp, Scope
from memory_app.bench.figures import time_figures
from memory_app.bench.prose import messages
from memory_app.bench.rows import bulk
from memory_app.bench.stage import TENANT, Say
from memory_app.db import db, inspection
from memory_app.db.inspection import Amounts
from memory_app.errors import Misconfigured
from memory_app.local.stack import Options, Stack, running
from memory_app.local.stack.api import calling, user_path
from memory_app.local.stack.parts import API, BEAT, FINDER, WORKER
from memory_app.tenancy.access import owner_connection

AGENT = "assistant"

ALONE_CALLS = 300
"""Calls of one caller, each beside a bare write."""

HTTP_SHARE = 4
"""One turn over HTTP for so many in process."""

POLL_SECONDS = 0.2
STALLED_SECONDS = 120.0

Accept = Callable[[str, str], object]
"""Takes a session and a message."""


def measure(
    folder: Path, *, turns: int, sessions: int, clients: int, say: Say
) -> Mapping[str, dict[str, Any]]:
    """Rates per second, times of calls in milliseconds, and the raw numbers behind them."""
    options = Options(folder, parts=(API, BEAT, FINDER, WORKER))
    with running(options, say=say) as stack, MemoryApp.connect(stack.settings, tenant=TENANT) as memory:
        say("one caller, beside a bare write")
        alone, bare = _alone(memory)
        _wait_until_through(memory, stack)
        say(f"{clients} callers in this process, {turns} turns in {sessions} sessions")
        inside = load(memory, stack, in_process(memory), turns=turns, sessions=sessions, clients=clients)
        say(f"{clients} callers over HTTP, {turns // HTTP_SHARE} turns")
        with _over_http(stack, clients) as accept:
            outside = load(
                memory, stack, accept, turns=turns // HTTP_SHARE, sessions=sessions, clients=clients
            )
        with db.transaction(memory.runtime.engine, memory.tenant_id) as connection:
            lags = {stage: asdict(lag) for stage, lag in inspection.lags(connection).items()}
    return {
        "rates": {
            "accepted/s in process": inside["accepted_per_second"],
            "accepted/s over HTTP": outside["accepted_per_second"],
            "indexed/s": inside["indexed_per_second"],
            "extracted/s": inside["extracted_per_second"],
            "seconds from the last acceptance to the last extraction": inside["lag_seconds"],
        },
        "times": {
            "bare committed INSERT, one caller": asdict(time_figures(bare)),
            "accept, one caller": asdict(time_figures(alone)),
            f"accept, {clients} callers": inside.pop("times"),
            f"accept over HTTP, {clients} callers": outside.pop("times"),
        },
        "raw": {
            "turns": turns,
            "sessions": sessions,
            "clients": clients,
            "in_process": inside,
            "http": outside,
        },
        "lags": lags,
    }


def _alone(memory: MemoryApp) -> tuple[list[float], list[float]]:
    """Seconds of accepting, and of one committed row in a table without anything, by turns."""
    with owner_connection(memory.runtime.settings) as connection:
        bulk.make_bare_table(connection)
    accepting, bare = [], []
    scope = Scope(AGENT, "alone", "chat")
    # By turns, so that both meet the same disk: its speed drifts while this runs.
    for text in messages(ALONE_CALLS, seed=1):
        began = time.perf_counter()
        memory.record(scope, text)
        between = time.perf_counter()
        with db.transaction(memory.runtime.engine, memory.tenant_id) as connection:
            bulk.insert_bare(connection, text)
        accepting.append(between - began)
        bare.append(time.perf_counter() - between)
    return accepting, bare


def in_process(memory: MemoryApp) -> Accept:
    return lambda session, text: memory.record(Scope(AGENT, f"user-{session}", session), text)


@contextlib.contextmanager
def _over_http(stack: Stack, clients: int) -> Iterator[Accept]:
    """Callers with a kept connection each; a thread takes one that is free."""
    with contextlib.ExitStack() as connections:
        free = [connections.enter_context(calling(stack.addresses.api, stack.key)) for _ in range(clients)]

        def accept(session: str, text: str) -> object:
            # Never empty: there are as many threads as connections. A list's pop and append need no lock.
            api = free.pop()
            try:
                path = f"{user_path(AGENT, f'web-{session}')}/sessions/{session}/turns"
                return api.call("POST", path, {"role": "user", "content": text})
            finally:
                free.append(api)

        yield accept


def load(
    memory: MemoryApp, stack: Stack, accept: Accept, *, turns: int, sessions: int, clients: int
) -> dict[str, Any]:
    """Send all turns, wait until the last is extracted; rates and times of this load alone."""
    before = _amounts(memory)
    # Made before the clock runs, which is to time the calls alone.
    work = [(session_of(place, sessions), text) for place, text in enumerate(messages(turns, seed=2))]
    began = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        seconds = list(pool.map(lambda item: _seconds(accept, *item), work))
    accepted = time.perf_counter() - began
    indexed, extracted = _wait_until_through(memory, stack, began)
    after = _amounts(memory)
    return {
        "accepted_per_second": round(turns / accepted, 1),
        "indexed_per_second": round(turns / indexed, 1),
        "extracted_per_second": round(turns / extracted, 1),
        "lag_seconds": round(max(extracted - accepted, 0.0), 2),
        "seconds": {"accepted": accepted, "indexed": indexed, "extracted": extracted},
        "turns_before": before.turns,
        "turns_after": after.turns,
        "memories": sum(after.memories.values()) - sum(before.memories.values()),
        "times": asdict(time_figures(seconds)),
    }


def session_of(place: int, sessions: int) -> str:
    """The session of a turn by its place in the load."""
    return f"session-{place % sessions}"


def _seconds(accept: Accept, session: str, text: str) -> float:
    began = time.perf_counter()
    accept(session, text)
    return time.perf_counter() - began


def _wait_until_through(memory: MemoryApp, stack: Stack, began: float = 0.0) -> tuple[float, float]:
    """Seconds since ``began`` at which nothing was unindexed, and nothing unextracted, any more."""
    indexed: float | None = None
    last_counts: Mapping[str, int] = {}
    moved_at = time.monotonic()
    while True:
        counts = _amounts(memory).turns
        if indexed is None and not counts.get("accepted"):
            indexed = time.perf_counter() - began
        if indexed is not None and not counts.get("indexed") and not counts.get("accepted"):
            return indexed, time.perf_counter() - began
        # Time alone says nothing on a slow machine; counts that stay the same do.
        if counts != last_counts:
            last_counts, moved_at = counts, time.monotonic()
        if time.monotonic() - moved_at > STALLED_SECONDS:
            raise Misconfigured(f"nothing moves any more ({dict(counts)}); see {stack.folder.logs}")
        # Restarts a part that fell over, as `memory up` would.
        stack.tend()
        time.sleep(POLL_SECONDS)


def _amounts(memory: MemoryApp) -> Amounts:
    with db.transaction(memory.runtime.engine, memory.tenant_id) as connection:
        return inspection.amounts(connection)
