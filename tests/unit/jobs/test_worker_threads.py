"""A worker whose tasks are threads: what breaks its bounds, and how it leaves."""

from __future__ import annotations

import subprocess
import sys

import psutil

from workers.threads import Bounds

MUCH_KB = 1 << 40
LEAVING = """
import signal, time
from workers import threads
threads.LOOK_SECONDS, threads.GRACE_SECONDS = 0.01, 0.2
signal.signal(signal.SIGTERM, lambda *_: print("asked to take no new task", flush=True))
bounds = threads.Bounds(1 << 40)
bounds.began("stuck", -1)
threads.Thread(target=threads._keep, args=(bounds,), daemon=True).start()
while True:
    time.sleep(0.01)
"""


def test_tasks_within_their_time_break_nothing() -> None:
    bounds = Bounds(MUCH_KB)
    bounds.began("one", 60)
    assert bounds.broken() is None


def test_a_task_that_outlives_its_time_breaks_it_until_it_ends() -> None:
    bounds = Bounds(MUCH_KB)
    bounds.began("one", -1)
    assert bounds.broken() == "time"
    bounds.ended("one")
    assert bounds.broken() is None


def test_a_process_that_grew_too_big_breaks_its_memory() -> None:
    assert Bounds(1).broken() == "memory"


def test_what_a_process_held_once_breaks_nothing() -> None:
    """Its peak may come from whoever started it, too."""
    held_kb = psutil.Process().memory_info().rss // 1024
    much = bytearray(200_000_000)
    much[::4096] = b"x" * len(much[::4096])
    assert Bounds(held_kb + 100_000).broken() == "memory"
    del much
    assert Bounds(held_kb + 100_000).broken() is None


def test_with_a_stuck_task_the_process_asks_itself_to_end_and_then_leaves() -> None:
    left = subprocess.run([sys.executable, "-c", LEAVING], capture_output=True, text=True, timeout=30)
    assert left.returncode == 1
    assert "asked to take no new task" in left.stdout
    assert "worker_gives_up" in left.stdout + left.stderr
