"""Listeners miss no event, whatever is killed and however late a transaction commits.

``EVENT_TURNS`` (1000) is how many turns are recorded.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Lock, Thread

import httpx2
import pytest
from free_ports import free_port
from harness import load, oracle
from harness.api import is_live
from harness.fleet import Fleet, is_ready
from harness.ledger import Ledger
from harness.waiting import wait_for_more, wait_until
from sqlalchemy import Engine, event, text

from memory_app.client import MemoryClient
from memory_app.runtime import Runtime

pytestmark = pytest.mark.faults

TURNS = int(os.environ.get("EVENT_TURNS", "1000"))
WRITERS = 8
SLOW_SHARE, SLOW_SECONDS = 0.02, (0.2, 1.5)
"""How many commits of writers are held up after everything was written, and for how long."""

STAGES = ("turn.accepted", "turn.indexed", "turn.extracted")


@dataclass(slots=True)
class Heard:
    """What a listener heard: how often each (type, turn), and how often it had to connect. Safe between threads."""

    connections: int = 0
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def add(self, type: str, turn: str) -> None:
        with self._lock:
            self._counts[type, turn] += 1

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        """A copy: the listener goes on."""
        with self._lock:
            return self._counts.copy()


def listen_to_stream(url: str, key: str, after: str, heard: Heard, is_over: Event) -> None:
    """Read the stream as a browser does: connect again with the last id, for as long as it takes."""
    headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {key}", "Last-Event-ID": after}
    while not is_over.is_set():
        heard.connections += 1
        try:
            with httpx2.stream("GET", f"{url}/v1/events?types=turn", headers=headers, timeout=5) as answer:
                for line in answer.iter_lines():
                    name, _, value = line.partition(": ")
                    if name == "data":
                        told = json.loads(value)
                        heard.add(told["type"], told["target"])
                        headers["Last-Event-ID"] = told["id"]
                    if is_over.is_set():
                        return
        except httpx2.HTTPError:
            time.sleep(0.1)


def listen_as_client(url: str, key: str, after: str, heard: Heard, is_over: Event) -> None:
    with MemoryClient(url, key) as memory:
        for told in memory.events(after=after, types="turn"):
            heard.add(told.type, str(told.target))
            if is_over.is_set():
                return


def commit_slowly(runtime: Runtime) -> list[float]:
    """Let some transactions of this process come to their end and commit late; how late each did."""
    dice = random.Random(1)
    pauses: list[float] = []

    def wait(_: object) -> None:
        if dice.random() < SLOW_SHARE:
            pauses.append(dice.uniform(*SLOW_SECONDS))
            time.sleep(pauses[-1])

    event.listen(runtime.engine, "commit", wait)
    return pauses


@pytest.mark.timeout(1_800)
def test_listeners_that_reconnect_miss_nothing(
    fleet: Fleet,
    runtime: Runtime,
    tenant: int,
    owner: Engine,
    ledger: Ledger,
    api_key: str,
    report: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    # given an API, a worker and two listeners, and writers of whom some commit late
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    api, worker = fleet.api(port), fleet.worker()
    fleet.finder()
    wait_until(lambda: is_live(port), "the API answers", seconds=30)
    wait_until(lambda: is_ready(worker), "the worker is ready", seconds=30)
    with MemoryClient(url, api_key) as memory:
        start = memory.event_page().cursor
    is_over = Event()
    streamed, followed = Heard(), Heard()
    listeners = [
        Thread(target=listen_to_stream, args=(url, api_key, start, streamed, is_over)),
        Thread(target=listen_as_client, args=(url, api_key, start, followed, is_over)),
    ]
    for listener in listeners:
        listener.start()
    pauses = commit_slowly(runtime)
    calls = load.plan(seed=1, turns=TURNS, sessions=WRITERS)
    under_way = load.play(calls, load.in_process(runtime, tenant), ledger, seconds=TURNS / 80, seed=1)

    # when worker and API are killed in turn
    for round in range(4):
        wait_for_more(lambda: oracle.applied(owner), TURNS // 8, "work goes on", seconds=120)
        if round % 2:
            worker.kill()
            worker = fleet.worker()
        else:
            api.kill()
            api = fleet.api(port)
    under_way.retries()
    recovery = oracle.wait_for_quiet(owner, seconds=300)

    # then each listener heard of each stage of each turn, once
    with owner.connect() as connection:
        turns = [str(id) for id in connection.execute(text("SELECT id FROM turns")).scalars()]
    expected = Counter({(stage, turn): 1 for turn in turns for stage in STAGES})
    wait_until(
        lambda: not expected - streamed.counts and not expected - followed.counts,
        "both have heard of everything",
        seconds=60,
    )
    report(oracle.judge(owner, ledger), recovery)
    is_over.set()
    # The last words, without which both would wait on.
    load.in_process(runtime, tenant)(calls[0][0].scope, [load.turn("last", 1, random.Random(1))])
    for listener in listeners:
        listener.join(60)
    with capsys.disabled():
        print(
            f"\n{len(turns)} turns by {WRITERS} writers, {len(pauses)} commits held up to {max(pauses):.1f} s, API and "
            f"worker killed twice each: {expected.total()} events, missed by the stream "
            f"{(expected - streamed.counts).total()}, by the client {(expected - followed.counts).total()}, doubled "
            f"{(streamed.counts - expected).total()}, {streamed.connections} connections"
        )
    assert len(turns) == TURNS
    assert pauses
    assert streamed.connections >= 3
    last = {key for key in streamed.counts | followed.counts if key[1] not in turns}
    assert {key: count for key, count in (streamed.counts - expected).items() if key not in last} == {}
    assert {key: count for key, count in (followed.counts - expected).items() if key not in last} == {}
