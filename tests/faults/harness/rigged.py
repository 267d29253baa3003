"""A worker whose model and embedder can be made to fail: by what a text says, or for all texts while a file exists.

Start it with ``celery -A harness.rigged``. Nothing in the product knows of it.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import time_machine
from celery.exceptions import SoftTimeLimitExceeded
from celery.signals import worker_process_init

import memory_app.providers.chat.chat as asking
import memory_app.runtime as wiring
from memory_app.errors import BadModelOutput, ProviderUnavailable, RateLimited
from memory_app.extraction import rules
from workers import threads
from workers.app import app as app

OUTAGE = os.environ.get("RIGGED_OUTAGE")
"""While this file exists, its first word says how every call fails."""

SKEW = float(os.environ.get("RIGGED_SKEW_SECONDS", "0"))
"""How wrong the clock of this process is."""

TASK_SECONDS = os.environ.get("RIGGED_TASK_SECONDS")
"""The soft time limit of a task; the hard one is twice as long. Unset keeps the limits of the product, which a machine
does not reach by being slow."""

START_SECONDS = float(os.environ.get("RIGGED_START_SECONDS", "0"))
"""How much longer a child takes until it is up, as on a busy machine."""

HUGE = "x" * 50_000_000
_extract, _make_embedder, _read_answer = rules.extract, wiring.make_embedder, asking.read_answer

if TASK_SECONDS:
    app.conf.update(task_soft_time_limit=float(TASK_SECONDS), task_time_limit=2 * float(TASK_SECONDS))
threads.GRACE_SECONDS = 10


def extract(turns: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
    """As the rules do, unless a turn says which harm to do."""
    harms = {turn.text.rpartition("harm=")[2]: turn.text for turn in turns if "harm=" in turn.text}
    for harm, said in harms.items():
        do(harm, said)
    _fail_during_outage()
    found = _extract(turns, *args, **kwargs)
    if "huge" in harms:
        return replace(found, statements=tuple(replace(s, text=HUGE) for s in found.statements))
    return found


def read_answer(text: str, *args: Any, **kwargs: Any) -> Any:
    """As the product does, unless a language model's answer is one that does harm to whoever reads it."""
    for harm in re.findall(r"harm=([a-z-]+)", text):
        do(harm, "an answer of a language model")
    return _read_answer(text, *args, **kwargs)


class Embedder:
    """The real one, except for what a text or an outage orders."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def embed(self, texts: Sequence[str]) -> Any:
        for said in texts:
            if "harm=index-" in said:
                do(said.rpartition("harm=index-")[2], said)
            if "harm=write-" in said and " said: " in said:  # the statement, not the turn
                do(said.rpartition("harm=write-")[2], said)
        _fail_during_outage()
        vectors = self._real.embed(texts)
        if any("harm=index-nan" in said for said in texts):
            vectors = np.full_like(vectors, np.nan)
        return vectors


def do(harm: str, said: str) -> None:
    """What a deadly text does to its worker."""
    if harm.startswith("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    elif harm.startswith("loop"):
        while True:
            # A task that outlives its soft limit: it takes the exception and goes on.
            with contextlib.suppress(SoftTimeLimitExceeded):
                time.sleep(0.1)
    elif harm.startswith("memory"):
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, resource.RLIM_INFINITY))
        bytearray(2 << 30)
    elif harm.startswith("refused"):
        raise BadModelOutput("nothing readable after one repair")
    elif harm.startswith("words"):
        raise RuntimeError(f"an exception that quotes what it stumbled over: {said}")


def _fail_during_outage() -> None:
    if OUTAGE is None or not Path(OUTAGE).exists():
        return
    kind = Path(OUTAGE).read_text(encoding="utf-8")
    if kind == "429":
        raise RateLimited("slow down", retry_after=1)
    if kind == "late":
        # A provider whose answer comes when nobody may need it any more.
        while Path(OUTAGE).exists():
            time.sleep(0.05)
        return
    if kind == "hang":
        # A provider that does not answer for longer than lease and time limit.
        time.sleep(30)
    raise ProviderUnavailable("the provider answered 500")


# A function in the place of another of the same shape, which mypy refuses for names of a module.
rules.extract = extract  # type: ignore[assignment]
asking.read_answer = read_answer  # type: ignore[assignment]
wiring.make_embedder = lambda *args, **kwargs: Embedder(_make_embedder(*args, **kwargs))  # type: ignore[assignment,return-value]
if START_SECONDS:
    worker_process_init.connect(lambda **_: time.sleep(START_SECONDS), weak=False)
if SKEW:
    time_machine.travel(time.time() + SKEW, tick=True).start()
