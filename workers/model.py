"""Tasks of the queue ``model``: they may wait for a language model, as threads of one process.

The same tasks are sent to the other queues where they suit better; see `memory_app.services.placing`.
"""

from __future__ import annotations

from uuid import UUID

from memory_app import queue
from memory_app.services import extract, jobs
from memory_app.services.job_table import JOBS
from workers.app import app
from workers.parts import is_shared, runtime
from workers.task import MemoryTask


@app.task(name=queue.EXTRACT_SESSION, base=MemoryTask)  # type: ignore[untyped-decorator]
def extract_session(session_id: int) -> None:
    """Extract the next turns of one session, if it is due and free. Beside others, one batch for a message."""
    if is_shared():
        extract.extract_session(runtime(), session_id, most_batches=1, shared=True)
    else:
        extract.extract_session(runtime(), session_id)


@app.task(name=queue.DEDUPLICATE, base=MemoryTask, soft_time_limit=600, time_limit=660)  # type: ignore[untyped-decorator]
def deduplicate(run_id: str) -> None:
    """Unite what says the same in one scope, as its run asks."""
    jobs.perform(runtime(), UUID(run_id), JOBS, shared=is_shared())
