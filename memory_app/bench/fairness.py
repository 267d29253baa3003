"""Fairness: how long single turns of one tenant wait for their index while another has handed over very many.

Real worker processes; both tenants on the same ones. What is told is the time from acceptance to index as the database
noted both, and how much of the flood was left meanwhile: with nothing left there would be nothing to be fair about.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from memory_app import MemoryApp, NewTurn, Role, Scope
from memory_app.bench.figures import time_figures
from memory_app.bench.prose import messages
from memory_app.bench.stage import TENANT, Say
from memory_app.db import db, inspection
from memory_app.errors import Misconfigured
from memory_app.local.stack import Options, Stack, running
from memory_app.local.stack.parts import API, BEAT, FINDER, WORKER
from memory_app.local.stack.tenant import ensure_key

AGENT = "assistant"
OTHER = "other"
"""The tenant who says little."""

BATCH = 500
"""Turns of the flood in one call."""

PAUSE_SECONDS = 0.25
"""Between two single turns."""

WITHIN_SECONDS = 2.0
POLL_SECONDS = 0.5
STALLED_SECONDS = 120.0


def measure(folder: Path, *, flood: int, sessions: int, singles: int, say: Say) -> Mapping[str, Any]:
    """Share of the single turns that were indexed in time, times from acceptance to index in milliseconds."""
    options = Options(folder, parts=(API, BEAT, FINDER, WORKER))
    with running(options, say=say) as stack:
        ensure_key(stack.settings, folder / "other-key", tenant=OTHER)
        with (
            MemoryApp.connect(stack.settings, tenant=TENANT) as busy,
            MemoryApp.connect(stack.settings, tenant=OTHER) as quiet,
        ):
            say(f"{flood} turns of one tenant in {sessions} sessions")
            _flood(busy, flood, sessions)
            left_before = _unindexed(busy)
            say(f"{singles} single turns of another, {left_before} turns before them")
            for place, text in enumerate(messages(singles, seed=7)):
                quiet.record(Scope(AGENT, f"user-{place % 10}", "chat"), text)
                stack.tend()
                time.sleep(PAUSE_SECONDS)
            _wait_until_indexed(quiet, stack)
            left_after = _unindexed(busy)
            waits = _waits(quiet)
    # By the database's own times of acceptance and index; nothing is polled for them.
    within = sum(wait <= WITHIN_SECONDS for wait in waits) / len(waits)
    return {
        "rates": {
            f"single turns indexed within {WITHIN_SECONDS:g} s": f"{within:.1%}",
            "turns of the flood not indexed when the first was said": left_before,
            "turns of the flood not indexed when the last was indexed": left_after,
        },
        "times": {"from acceptance to index, the other tenant": asdict(time_figures(waits))},
        "raw": {"flood": flood, "sessions": sessions, "singles": singles, "within": within},
    }


def _flood(memory: MemoryApp, count: int, sessions: int) -> None:
    texts = messages(count, seed=3)
    place = 0
    while batch := list(islice(texts, BATCH)):
        session = place % sessions
        memory.record_all(
            Scope(AGENT, f"user-{session}", f"session-{session}"),
            [NewTurn(Role.USER, text) for text in batch],
        )
        place += 1


def _unindexed(memory: MemoryApp) -> int:
    with db.transaction(memory.runtime.engine, memory.tenant_id) as connection:
        return inspection.amounts(connection).turns.get("accepted", 0)


def _waits(memory: MemoryApp) -> list[float]:
    """Seconds from acceptance to index of every turn of the tenant."""
    with db.transaction(memory.runtime.engine, memory.tenant_id) as connection:
        return list(inspection.index_waits(connection))


def _wait_until_indexed(memory: MemoryApp, stack: Stack) -> None:
    deadline = time.monotonic() + STALLED_SECONDS
    while _unindexed(memory):
        if time.monotonic() > deadline:
            raise Misconfigured(f"turns are not indexed; see {stack.folder.logs}")
        stack.tend()
        time.sleep(POLL_SECONDS)
