"""A language model that is away while a thousand turns arrive: all are taken, found, and read in order afterwards."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from free_ports import free_port
from model_workers import PROCESSES, disordered, worker
from provider_stage import TEMPLATE, ProviderStage, Started, staged, wait_until
from sqlalchemy import text

from memory_app import queue
from memory_app.errors import StoreUnavailable
from memory_app.local.embedded import Servers
from memory_app.local.stack import commands
from memory_app.local.stack.api import Api, calling, user_path
from memory_app.records.scope import Scope
from memory_app.tenancy.rows import keys

SESSIONS, TURNS = 50, 20
CALLERS = 2
FAILED = re.compile(r"extraction_postponed.*error=(provider_unavailable|circuit_open)")
REST_SECONDS = 3
PAUSES = {"MEMORY_CHAT__REST_SECONDS": str(REST_SECONDS), "MEMORY_EXTRACT__RETRY_MAX_SECONDS": "3"}
"""Seconds instead of minutes."""


@pytest.fixture
def stage(servers: Servers, template: Servers, tmp_path: Path) -> Iterator[ProviderStage]:
    with staged(servers, TEMPLATE, tmp_path, **PAUSES) as stage:
        yield stage


@pytest.fixture
def callers(stage: ProviderStage) -> Iterator[list[Api]]:
    """Connections to a real API."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with stage.owner.begin() as connection:
        _, key = keys.create(connection, "acme", rights=keys.RIGHTS)
    stage.start(commands.serve(), MEMORY_HTTP__PORT=str(port))
    with ExitStack() as open_ones:
        found = [open_ones.enter_context(calling(address, key)) for _ in range(CALLERS)]
        wait_until(lambda: is_there(found[0]), "the API answers")
        yield found


def is_there(api: Api) -> bool:
    try:
        return bool(api.call("GET", "/health/live"))
    except StoreUnavailable:
        return False


def said(session: int, turn: int) -> str:
    return f"In chat {session} I told you about item number {turn} of my list."


def place(scope: Scope, session: int) -> str:
    return user_path(scope.agent, f"user-{session}")


def tell(api: Api, scope: Scope, sessions: range) -> int:
    """Every session's turns, one call each; how many were accepted."""
    for turn in range(1, TURNS + 1):
        for session in sessions:
            body = {"role": "user", "content": said(session, turn)}
            api.call("POST", f"{place(scope, session)}/sessions/chat/turns", body)
    return TURNS * len(sessions)


def amount(stage: ProviderStage, condition: str) -> int:
    with stage.owner.connect() as connection:
        found = connection.execute(text(f"SELECT count(*) FROM turns WHERE {condition}")).scalar_one()
        return int(found)


def failures(asking: Started) -> dict[str, int]:
    """Why questions were put off, and how often."""
    found = FAILED.findall(asking.log.read_text(encoding="utf-8"))
    return {kind: found.count(kind) for kind in set(found)}


@pytest.mark.slow
def test_a_thousand_turns_of_an_outage_are_stored_and_later_read_in_order(
    stage: ProviderStage, callers: list[Api]
) -> None:
    # given real workers, and a model that is away
    scope = stage.agent("llm")
    stage.stub.stop()
    began = time.monotonic()
    worker(stage, *PROCESSES)
    asking = worker(stage, queue.MODEL)
    stage.start(commands.finder())
    # when a thousand turns arrive
    shares = [range(first, SESSIONS, CALLERS) for first in range(CALLERS)]
    with ThreadPoolExecutor(CALLERS) as pool:
        accepted = sum(pool.map(lambda one: tell(one[0], scope, one[1]), zip(callers, shares, strict=True)))
    # then all are accepted, and found while nothing can be extracted
    wait_until(lambda: amount(stage, "indexed_at IS NULL") == 0, "all turns are indexed")
    for session in range(0, SESSIONS, 7):
        asked = {"query": f"item number {TURNS} of my list", "limit": 3}
        hits = callers[0].call("POST", f"{place(scope, session)}/recall", asked)["memories"]
        assert any(said(session, TURNS) in hit["text"] for hit in hits), hits
    assert (accepted, amount(stage, "extracted_at IS NOT NULL")) == (SESSIONS * TURNS, 0)
    wait_until(lambda: "provider_unavailable" in failures(asking), "the outage was noticed")
    during = failures(asking)
    rests = (time.monotonic() - began) / REST_SECONDS
    # when it is back
    stage.stub.start()
    wait_until(lambda: amount(stage, "extracted_at IS NULL OR failed_at IS NOT NULL") == 0, "all are read")
    # then each session was read in order, with hardly a call too many
    calls = stage.stub.stats()["calls"]
    assert isinstance(calls, dict)
    asked_times, fewest = sum(calls.values()), SESSIONS * -(-TURNS // stage.runtime.settings.extract.batch)
    print(f"accepted {accepted}; put off during the outage: {during}; calls {asked_times}, fewest {fewest}")
    assert disordered(stage) == []
    assert fewest <= asked_times <= fewest * 1.05
    # and during the outage the model was left alone: the first failures, and then one try for each rest
    assert during["provider_unavailable"] <= 5 + stage.runtime.settings.worker.model_threads + rests + 20
