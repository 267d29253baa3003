"""Tasks that do a run of the table of jobs: one per public name, all the same call."""

from __future__ import annotations

from uuid import UUID

from memory_app.db.shards import HOME
from memory_app.dispatch import fairness
from memory_app.dispatch.job_table import JOBS
from workers.app import app
from workers.parts import at, is_shared
from workers.task import MemoryTask

LIMITS = {"soft_time_limit": 600, "time_limit": 660}
"""Seconds; a run may read and write a whole scope."""


def perform(run_id: str, shard: int = HOME) -> None:
    """Do one run, if it is due and free."""
    fairness.perform_in_turn(at(shard), UUID(run_id), shared=is_shared())


for task in sorted({job.task for job in JOBS.values()}):
    app.task(perform, name=task, base=MemoryTask, **LIMITS)
