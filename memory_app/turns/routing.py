"""Where work is done: what waits for a language model shares a process, what computes or may kill has one of its own.

The queue ``model`` is worked on by threads of one process, so that many calls wait at the same time. Rules would only
get into each other's way there. And whatever began and never said how it ended may have killed its process: in the
company of others it would take their work along, again and again, until they were all set aside with it.
"""

from __future__ import annotations

from memory_app import queue
from memory_app.jobs.rows.runs import DueRun
from memory_app.runtime import Runtime
from memory_app.turns.rows.waiting import DueSession


def hint_session(runtime: Runtime, session: DueSession) -> None:
    """Say that a session is due, to whom it suits."""
    runtime.hint(
        queue.EXTRACT_SESSION,
        to=queue_of(asks_model=session.asks_model, is_suspect=session.is_suspect),
        session_id=session.id,
    )


def hint_run(runtime: Runtime, run: DueRun, task: str) -> None:
    """Say that a run is due, to the workers of its task, or to one that does nothing else meanwhile."""
    runtime.hint(task, to=queue.MAINTENANCE if run.is_suspect else None, run_id=str(run.run_id))


def queue_of(*, asks_model: bool, is_suspect: bool = False) -> str:
    """The queue for extracting a session."""
    if not asks_model:
        return queue.INGEST
    return queue.MAINTENANCE if is_suspect else queue.MODEL
