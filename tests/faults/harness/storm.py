"""The storm: faults in random order, from a seed, as long as clients send."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from threading import Event

import psutil
from redis import Redis
from sqlalchemy import Engine, text

from harness.fleet import Member
from harness.load import Load

Fault = Callable[[], None]

FREEZE_SECONDS = 3.0
"""Longer than a lease in these tests."""


def storm(
    under_way: Load, faults: Mapping[str, Fault], *, seed: int, pause_seconds: tuple[float, float]
) -> Counter[str]:
    """Strike with a random fault after each pause until the load is over; how often which one did."""
    dice, struck, over = random.Random(seed), Counter[str](), Event()
    while not under_way.is_done():
        over.wait(dice.uniform(*pause_seconds))
        name = dice.choice(sorted(faults))
        faults[name]()
        struck[name] += 1
    return struck


def faults_of(
    workers: list[list[Member]], others: list[list[Member]], redis: Redis, engine: Engine, *, seed: int
) -> dict[str, Fault]:
    """Faults for a fleet whose members are started again when they end."""
    dice, over = random.Random(seed), Event()

    def some(kinds: list[list[Member]]) -> Member:
        return dice.choice(kinds)[-1]

    def child() -> psutil.Process | None:
        children = some(workers).children()
        return dice.choice(children) if children else None

    def signal_child(number: signal.Signals) -> None:
        found = child()
        if found is not None and found.is_running():
            found.send_signal(number)

    def freeze() -> None:
        member = some(workers)
        member.signal_group(signal.SIGSTOP)
        over.wait(FREEZE_SECONDS)
        member.signal_group(signal.SIGCONT)

    def terminate_backends() -> None:
        with engine.begin() as connection:
            connection.execute(
                text(
                    """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND pid <> pg_backend_pid()"""
                )
            )

    def delete_a_key() -> None:
        key = redis.randomkey()
        if key is not None:
            redis.delete(key)

    faults: dict[str, Fault] = {
        "worker killed": lambda: some(workers).signal_group(signal.SIGKILL),
        "worker main killed": lambda: some(workers).signal_main(signal.SIGKILL),
        "worker child killed": lambda: signal_child(signal.SIGKILL),
        "worker asked to go": lambda: some(workers).signal_main(signal.SIGTERM),
        "worker frozen": freeze,
        "Redis emptied": lambda: redis.flushall(),
        "Redis clients cut": lambda: redis.execute_command(
            "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"
        ),
        "a key deleted": delete_a_key,
        "database connections ended": terminate_backends,
    }
    if others:
        faults["finder or beat killed"] = lambda: some(others).signal_group(signal.SIGKILL)
    return faults
