"""The processor time and memory of a whole stack, and what is made of them."""

from __future__ import annotations

import subprocess
import sys
from typing import cast

import psutil

from memory_app.bench.footprint import Start, Version, figures_of
from memory_app.bench.processes import Family

BURN = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"


def test_a_process_that_has_ended_still_counts() -> None:
    family = Family(psutil.Process(), ())
    before = family.cpu_seconds()

    subprocess.run([sys.executable, "-c", BURN], check=True)

    assert family.cpu_seconds() - before >= 0.25


def test_memory_is_that_of_all_processes() -> None:
    alone = Family(psutil.Process(), ()).memory_mb()

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        both = Family(psutil.Process(), (psutil.Process(child.pid),)).memory_mb()
        child.communicate(b"\n")

    assert both > alone > 0


def test_a_round_that_something_disturbed_changes_no_median() -> None:
    family = cast("Family", None)
    version = Version("here", "", "", family, Start(3.0, 8.0, 700.0, 1.5))
    version.cpu_ms = {"turn": [5.0, 90.0, 5.2]}
    version.callers_cpu_ms = [0.3, 0.3, 7.0]
    version.turns_per_second = [400.0, 410.0, 12.0]

    rates = figures_of(version)["rates"]

    assert rates == {
        "cpu ms for each turn": 5.2,
        "cpu ms of the callers for each turn": 0.3,
        "turns indexed and extracted/s": 400.0,
    }
