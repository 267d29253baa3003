"""A circuit breaker per provider, shared by all processes.

    closed ──5 failures in a row──► open ──60 s──► one probe ──answered──► closed
                                     ▲                │
                                     └────failed──────┘

Without Redis it lets everything through.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from memory_app.errors import CircuitOpen, Permanent
from memory_app.hot.client import Hot
from memory_app.hot.faults import HotUnavailable
from memory_app.hot.keys import BREAKER, milliseconds


@dataclass(frozen=True, slots=True)
class Circuit:
    """``failures`` in a row open it for ``rest``; a probe that says nothing for ``probe`` is given up.

    While one is under way the others wait for ``outcome`` at most: it may soon be over, and then all of them may call.
    """

    failures: int = 5
    rest: timedelta = timedelta(seconds=60)
    probe: timedelta = timedelta(seconds=60)
    outcome: timedelta = timedelta(seconds=2)


@contextmanager
def guarded(hot: Hot, name: str, *, circuit: Circuit = Circuit()) -> Iterator[None]:
    """Around a call of provider ``name``. Raises `CircuitOpen` with ``retry_after`` while it rests.

    A `Permanent` error is an answer: the provider lives. Whatever else leaves the block counts as a failure,
    a time limit of the worker included.
    """
    is_probe = _admit(hot, name, circuit)
    answered = False
    try:
        yield
        answered = True
    except Permanent:
        answered = True
        raise
    finally:
        # Here and not in an except: a call that a signal ends has failed as well.
        if answered:
            succeeded(hot, name)
        else:
            failed(hot, name, circuit=circuit, is_probe=is_probe)


def succeeded(hot: Hot, name: str) -> None:
    """Close the circuit. Never raises for Redis."""
    try:
        with hot.calling() as redis:
            redis.delete(hot.named_key(BREAKER, name))
    except HotUnavailable:
        return


def failed(hot: Hot, name: str, *, circuit: Circuit = Circuit(), is_probe: bool = False) -> None:
    """Count a failure; enough of them open the circuit, as does a failed probe. Never raises for Redis."""
    arguments = [circuit.failures, milliseconds(circuit.rest), int(is_probe), _life(circuit)]
    try:
        hot.run("breaker_failed", [hot.named_key(BREAKER, name)], arguments)
    except HotUnavailable:
        return


def rest_left(hot: Hot, name: str) -> float:
    """Seconds until provider ``name`` may be asked again; 0 while its circuit is closed. Raises `HotUnavailable`."""
    with hot.calling() as redis:
        until = redis.hget(hot.named_key(BREAKER, name), "open_until")
        # By the clock of Redis, which wrote the instant: that of this machine may be off.
        seconds, microseconds = redis.time()
    return 0.0 if until is None else max(float(until) / 1000 - seconds - microseconds / 1e6, 0.0)


def _admit(hot: Hot, name: str, circuit: Circuit) -> bool:
    """Whether this call is the probe."""
    arguments = [milliseconds(circuit.probe), _life(circuit), milliseconds(circuit.outcome)]
    try:
        verdict, wait_ms = hot.run("breaker_admit", [hot.named_key(BREAKER, name)], arguments)
    except HotUnavailable:
        # Not shared, a count of failures would open late and at each process by itself.
        return False
    if verdict == b"open":
        raise CircuitOpen(f"{name} failed too often; it rests", retry_after=wait_ms / 1000)
    return bool(verdict == b"probe")


def _life(circuit: Circuit) -> int:
    """Longer than the rest and the probe, or an open circuit would close by being forgotten."""
    return milliseconds(max(BREAKER.life, 2 * (circuit.rest + circuit.probe)))
