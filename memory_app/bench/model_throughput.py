"""Throughput where each extraction waits for a language model: our own server, which takes so long for each answer.

What is told: how many questions were asked beside the fewest possible, how many waited at once, whether each session
kept its order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_app import MemoryApp, Scope
from memory_app.agents.agents import AgentChange, change_agent
from memory_app.bench.stage import TENANT, Say
from memory_app.bench.throughput import AGENT, in_process, load, session_of
from memory_app.db import db, inspection
from memory_app.local.stack import Options, running
from memory_app.local.stack.parts import NEEDED
from memory_app.testing import Rule, StubProcess


def measure(
    folder: Path, *, turns: int, sessions: int, clients: int, model_seconds: float, say: Say
) -> Mapping[str, dict[str, Any]]:
    """Rates, times of accepting in milliseconds, and what the model saw."""
    with StubProcess(Rule(seconds=model_seconds)) as stub:
        options = Options(
            folder,
            parts=NEEDED,
            environment={"MEMORY_CHAT__BASE_URL": stub.base_url, "MEMORY_CHAT__MODEL": "stub"},
        )
        with running(options, say=say) as stack, MemoryApp.connect(stack.settings, tenant=TENANT) as memory:
            _let_it_ask(memory)
            say(f"{clients} callers, {turns} turns in {sessions} sessions, {model_seconds:g} s for an answer")
            figures = load(memory, stack, in_process(memory), turns=turns, sessions=sessions, clients=clients)
            # While the stack runs: its database and the stub's counts go with it.
            model_stats, violations = stub.stats(), _violations(memory)
    calls = model_stats["calls"]
    assert isinstance(calls, dict)
    fewest = fewest_calls(turns, sessions, batch=stack.settings.extract.batch)
    return {
        "rates": {
            "accepted/s in process": figures["accepted_per_second"],
            "extracted/s": figures["extracted_per_second"],
            "calls of the model": sum(calls.values()),
            "fewest calls possible": fewest,
            "most calls in flight at once": model_stats["in_flight_most"],
            "order violations": violations,
        },
        "times": {f"accept, {clients} callers": figures.pop("times")},
        "raw": {"turns": turns, "sessions": sessions, "clients": clients, "in_process": figures},
    }


def fewest_calls(turns: int, sessions: int, *, batch: int) -> int:
    """If every session waited until all its turns were there: one call for each ``batch`` of them."""
    each = Counter(session_of(place, sessions) for place in range(turns))
    return sum(-(-count // batch) for count in each.values())


def _let_it_ask(memory: MemoryApp) -> None:
    change = AgentChange(frozenset({"policy"}), policy={"extraction": "llm"})
    change_agent(memory.runtime, memory.tenant_id, Scope(AGENT), change=change)


def _violations(memory: MemoryApp) -> int:
    with db.transaction(memory.runtime.engine, memory.tenant_id) as connection:
        return inspection.order_violations(connection)
