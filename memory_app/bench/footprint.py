"""What a turn, a search and a context window cost the machine, and what ``memory up`` holds while nobody calls.

Everything goes over HTTP to a whole stack; what counts is the processor time of all its processes, the servers
included. A second checkout of the project may be measured beside: both run at the same time, and are asked by turns, so
that what else the machine does falls on both.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import memory_app
from memory_app.bench.figures import time_figures
from memory_app.bench.processes import Family, family_of
from memory_app.bench.prose import messages
from memory_app.bench.stage import Say
from memory_app.errors import MemoryAppError, Misconfigured
from memory_app.local.embedded import place
from memory_app.local.stack.api import Api, calling, user_path
from memory_app.local.stack.folder import Folder, temporary_folder

AGENT = "assistant"
CALLERS = 4
LONGEST_SECONDS = 300.0
"""For a start, and for a turn until it is extracted."""

POLL_SECONDS = 0.05

SETTLE_SECONDS = 10.0
"""After its start a stack still does what it does once."""

REST_SECONDS = 30.0
"""In which the processor time of a stack at rest is taken: several rounds of all that looks for work."""

HERE = "here"
"""The name of the checkout that measures."""

USER = "user-0-0"
"""Whose memories are searched: the first of those who tell something."""

USERS_OF_CALLER = 10


@dataclass(frozen=True, slots=True)
class Start:
    """What starting a stack took, and what it holds while nobody calls."""

    first_turn_seconds: float
    """Until it had accepted a turn."""
    cpu_seconds: float
    """Processor time of all processes until then."""
    memory_mb: float
    percent_of_core: float


@dataclass(slots=True)
class Version:
    """A stack at work, and what it was measured at: one value for each round."""

    name: str
    address: str
    key: str = field(repr=False)
    family: Family
    start: Start
    cpu_ms: dict[str, list[float]] = field(default_factory=dict)
    """Of all processes for each call, by what was called."""
    callers_cpu_ms: list[float] = field(default_factory=list)
    """Of our own for each turn."""
    turns_per_second: list[float] = field(default_factory=list)
    """Until the last one was extracted."""
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """Of each call."""


def measure(
    data: Path | None, *, beside: Path | None, turns: int, calls: int, rounds: int, flower: bool, say: Say
) -> Mapping[str, Mapping[str, Any]]:
    """Figures by version: ``here``, and the name of the folder ``beside``."""
    checkouts = {HERE: Path(memory_app.__file__).parent.parent}
    if beside is not None:
        checkouts = {beside.resolve().name: beside.resolve(), **checkouts}
    with ExitStack() as stack:
        versions = [
            stack.enter_context(_running(name, path, data, flower=flower, say=say))
            for name, path in checkouts.items()
        ]
        # The first round fills caches, and is not counted.
        for number in range(rounds + 1):
            say(f"round {number} of {rounds}" if number else "warming up")
            for version in versions:
                _round(version, number, turns=turns, calls=calls)
    return {version.name: figures_of(version) for version in versions}


def figures_of(version: Version) -> dict[str, Any]:
    """Medians over the rounds, and percentiles over all calls."""
    return {
        "start": asdict(version.start),
        "rates": {
            **{f"cpu ms for each {name}": _median(values) for name, values in version.cpu_ms.items()},
            "cpu ms of the callers for each turn": _median(version.callers_cpu_ms),
            "turns indexed and extracted/s": _median(version.turns_per_second),
        },
        "times": {name: asdict(time_figures(values)) for name, values in version.seconds.items()},
    }


def _median(values: Sequence[float]) -> float:
    return round(statistics.median(values), 2)


@contextmanager
def _running(name: str, checkout: Path, data: Path | None, *, flower: bool, say: Say) -> Iterator[Version]:
    with temporary_folder(None if data is None else data / name) as folder:
        say(f"starting {name}")
        began = time.monotonic()
        process = _start(checkout, folder, flower=flower)
        try:
            address, key = _first_turn(process, folder)
            seconds = time.monotonic() - began
            family = family_of(process.pid, folder)
            cpu_seconds = family.cpu_seconds()
            say(f"{name} at rest")
            memory_mb, percent = _at_rest(family)
            start = Start(round(seconds, 2), round(cpu_seconds, 2), memory_mb, percent)
            yield Version(name, address, key, family, start)
        finally:
            process.terminate()
            process.wait()


def _start(checkout: Path, folder: Path, *, flower: bool) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "memory_app", "up", "--data", str(folder), "--port", "0"]
    return subprocess.Popen(
        command if flower else [*command, "--no-flower"],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _first_turn(process: subprocess.Popen[bytes], folder: Path) -> tuple[str, str]:
    """Where the API is and its key, once it has accepted a turn."""
    files = Folder(folder)
    deadline = time.monotonic() + LONGEST_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        text = place.read(files.addresses)
        if text is not None:
            # Not all of it: another version may write other fields.
            address, key = json.loads(text)["api"], files.key.read_text(encoding="utf-8").strip()
            with suppress(MemoryAppError), calling(address, key) as api:
                _accept(api, "first", "Hello.")
                return address, key
        time.sleep(POLL_SECONDS)
    raise Misconfigured(f"`memory up` does not start; see {files.logs}")


def _at_rest(family: Family) -> tuple[float, float]:
    """Megabytes, and percent of a core."""
    time.sleep(SETTLE_SECONDS)
    cpu, began = family.cpu_seconds(), time.monotonic()
    time.sleep(REST_SECONDS)
    share = (family.cpu_seconds() - cpu) / (time.monotonic() - began)
    return round(family.memory_mb(), 1), round(share * 100, 2)


def _round(version: Version, number: int, *, turns: int, calls: int) -> None:
    began, own, cpu = time.perf_counter(), time.process_time(), version.family.cpu_seconds()
    seconds = _add(version, number, turns)
    if number:
        version.cpu_ms.setdefault("turn", []).append(_each(version.family.cpu_seconds() - cpu, turns))
        version.callers_cpu_ms.append(_each(time.process_time() - own, turns))
        version.turns_per_second.append(turns / (time.perf_counter() - began))
        version.seconds.setdefault(f"accept over HTTP, {CALLERS} callers", []).extend(seconds)
    for name in ("recall", "context"):
        cpu = version.family.cpu_seconds()
        seconds = _ask_all(version, name, messages(calls, seed=1_000 + number))
        if number:
            version.cpu_ms.setdefault(name, []).append(_each(version.family.cpu_seconds() - cpu, calls))
            version.seconds.setdefault(f"{name} over HTTP, one caller", []).extend(seconds)


def _each(cpu_seconds: float, calls: int) -> float:
    return cpu_seconds / calls * 1000


def _add(version: Version, number: int, turns: int) -> list[float]:
    """Record turns one by one, and wait until the last of each session is extracted; seconds of each call."""
    texts = list(messages(turns, seed=number))
    with ExitStack() as stack:
        apis = [stack.enter_context(calling(version.address, version.key)) for _ in range(CALLERS)]
        with ThreadPoolExecutor(CALLERS) as pool:
            done = pool.map(
                lambda place: _record_all(apis[place], place, texts[place::CALLERS]), range(CALLERS)
            )
            return [seconds for of_caller in done for seconds in of_caller]


def _record_all(api: Api, caller: int, texts: Sequence[str]) -> list[float]:
    seconds: list[float] = []
    last_turns: dict[str, str] = {}
    for number, text in enumerate(texts):
        user = f"user-{caller}-{number % USERS_OF_CALLER}"
        began = time.perf_counter()
        last_turns[user] = _accept(api, user, text)
        seconds.append(time.perf_counter() - began)
    for turn in last_turns.values():
        _wait_until_extracted(api, turn)
    return seconds


def _accept(api: Api, user: str, text: str) -> str:
    """The id of the turn."""
    path = f"{user_path(AGENT, user)}/sessions/{user}/turns"
    return str(api.call("POST", path, {"role": "user", "content": text})["tickets"][0]["id"])


def _wait_until_extracted(api: Api, turn: str) -> None:
    deadline = time.monotonic() + LONGEST_SECONDS
    while api.call("GET", f"/v1/turns/{turn}?wait_seconds=20")["stage"] != "extracted":
        if time.monotonic() > deadline:
            raise Misconfigured(f"turn {turn} is not extracted")


def _ask_all(version: Version, name: str, texts: Iterable[str]) -> list[float]:
    """Ask one question after the other; seconds of each."""
    seconds = []
    with calling(version.address, version.key) as api:
        for text in texts:
            began = time.perf_counter()
            api.call("POST", f"{user_path(AGENT, USER)}/{name}", {"query": text})
            seconds.append(time.perf_counter() - began)
    return seconds
