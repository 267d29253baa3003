"""Choose the queue of a piece of work.

The queue ``model`` is served by threads of one process, so that many calls of a language model wait at the same time.
Extraction by rules computes, and work that may kill its process must not share one; both go to other queues.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory_app import queue
from memory_app.jobs.rows.runs import DueRun
from memory_app.runtime import Runtime
from memory_app.turns.rows.extract_work import DueSession


def hint_session(runtime: Runtime, session: DueSession) -> None:
    """Send the hint that a session is due to its queue."""
    runtime.hint(
        queue.EXTRACT_SESSION,
        to=queue_of(asks_model=session.asks_model, is_suspect=session.is_suspect),
        session_id=session.id,
    )


def hint_sessions(runtime: Runtime, sessions: Sequence[DueSession]) -> None:
    """Send a hint for each of the sessions."""
    for session in sessions:
        hint_session(runtime, session)


def hint_run(runtime: Runtime, run: DueRun, task: str) -> None:
    """Send the hint that a run is due to the queue of its task, or to a worker that does nothing else meanwhile."""
    runtime.hint(task, to=queue.MAINTENANCE if run.is_suspect else None, run_id=str(run.run_id))


def queue_of(*, asks_model: bool, is_suspect: bool = False) -> str:
    """The queue for extracting a session."""
    # Threads that compute would wait for each other (the GIL). The queue ingest has a process for each task.
    if not asks_model:
        return queue.INGEST
    # A worker began with it and never said how it ended, so it may have killed its process. Among the threads of the
    # model worker it would take the others along, again and again, until all were set aside with it.
    return queue.MAINTENANCE if is_suspect else queue.MODEL
