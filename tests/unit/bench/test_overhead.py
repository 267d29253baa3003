"""The figures of what metrics and traces cost."""

from __future__ import annotations

import subprocess
from typing import cast

from memory_app.bench.overhead import VARIANTS, Api, figures_of


def api(*cpu: float) -> Api:
    process = cast("subprocess.Popen[bytes]", None)
    return Api(process, 0, cpu={"accept": list(cpu)}, wall={"accept": [2 * seconds for seconds in cpu]})


def test_ratios_are_taken_within_a_round() -> None:
    base, dearer = api(0.010, 0.020, 0.040), api(0.011, 0.022, 0.044)

    figures = figures_of(dearer, base, "accept")

    # Each round is a tenth dearer, although the machine was four times slower in the last.
    assert figures["cpu_ratio"] == [1.1, 1.1, 1.1]
    assert figures["wall_ratio"] == 1.1
    assert figures["cpu_ms"] == 25.67


def test_only_the_first_counts_nothing_and_the_last_traces_all() -> None:
    programs = [program for program, _ in VARIANTS.values()]

    assert programs.count(programs[0]) == 1
    assert [ratio for _, ratio in VARIANTS.values()] == [None, None, 0.1, 1.0]
