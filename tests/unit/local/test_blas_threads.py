"""How many threads a product of matrices takes in a process of ours."""

from __future__ import annotations

import subprocess
import sys

THREADS = """
import numpy
from threadpoolctl import threadpool_info
{before}
print({{pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}})
"""


def threads_after(before: str) -> str:
    """Threads of BLAS in a process of its own, which may take two."""
    program = THREADS.format(before=before)
    environment = {"OPENBLAS_NUM_THREADS": "2"}
    told = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return told.stdout.strip()


def test_a_product_takes_one_thread_once_the_process_took_one_core() -> None:
    assert threads_after("from memory_app import blas_threads; blas_threads.take_one()") == "{1}"
