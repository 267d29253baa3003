"""Fairness between tenants in a worker: a queue is worked off in the order of its messages, and one tenant may have
caused thousands of them.

So once a second a worker first does a little of what waits in the database, taken from each tenant in turn, and no
message holds it for long: a session that is not through after a while goes to the end of the queue.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from uuid import UUID

from memory_app import queue
from memory_app.db.db import transaction
from memory_app.dispatch.job_table import JOBS
from memory_app.jobs import jobs
from memory_app.jobs.rows import runs
from memory_app.runtime import Runtime
from memory_app.turns import extract, index, routing
from memory_app.turns.rows import extract_work
from memory_app.turns.rows.extract_work import DueSession

TENANTS = 4
"""Tenants of which one session, or one run, each is done first."""

SLICE_SECONDS = 1.0
"""How long one session may take before others get a turn; more than most need."""


AT_ONCE = 16
"""Sessions at most that the worker which indexed their turns also extracts. A message for each costs more than its
turn; but where more are due, more turns wait to be indexed, and other processes shall share in the work."""

GATHER_SECONDS = 0.05
"""How long turns that come one after the other wait for each other. Each batch costs as much as several turns; a chat
does not see the wait, since its latest turns are in the context window before they are indexed."""


def gather(runtime: Runtime, *, pause: Callable[[float], object] = time.sleep) -> None:
    """Let turns that come one after the other come together, before the first of them is claimed."""
    # Before the hint is cleared: until then no other message is sent, and no other worker begins with a part.
    if runtime.stream.is_under_way():
        pause(GATHER_SECONDS)


def index_in_turn(runtime: Runtime) -> None:
    """Index what waits, and extract at once from sessions of it that need no model."""
    if index.index_turns(runtime, go_on=_extract_or_hint).indexed:
        runtime.stream.note()


def _extract_or_hint(runtime: Runtime, due: Sequence[DueSession]) -> None:
    quick = [session for session in due if _is_quick(session)]
    at_once = quick if len(quick) <= AT_ONCE else []
    # First, so that others can begin meanwhile.
    routing.hint_sessions(runtime, [session for session in due if session not in at_once])
    for session in at_once:
        extract.extract_session(runtime, session.id, most_seconds=SLICE_SECONDS)


def _is_quick(session: DueSession) -> bool:
    """Whether it may be done on the side: no calls of a model, which take seconds, and nothing that may have killed its
    worker."""
    return not session.asks_model and not session.is_suspect


def extract_in_turn(runtime: Runtime, session_id: int) -> None:
    """Extract the session that a message names, after a little of what waits for other tenants."""
    if runtime.pace.is_due():
        index.index_turns(runtime, most_batches=1)
        with transaction(runtime.engine, None) as connection:
            due = extract_work.due_sessions(connection, most=TENANTS)
        for session in due:
            if _is_quick(session):
                extract.extract_session(runtime, session.id, most_seconds=SLICE_SECONDS)
    extract.extract_session(runtime, session_id, most_seconds=SLICE_SECONDS)


def perform_in_turn(runtime: Runtime, run_id: UUID, *, shared: bool) -> None:
    """Do the run that a message names, after one of each of some other tenants.

    ``shared``: this process does other work meanwhile, so that nobody waits for it.
    """
    if not shared and runtime.pace.is_due():
        with transaction(runtime.engine, None) as connection:
            due = runs.due(connection, most=TENANTS)
        for run in due:
            job = JOBS.get(run.name)
            # Runs that ask a model have workers of their own.
            is_maintenance = job is not None and queue.ROUTES[job.task] == queue.MAINTENANCE
            if is_maintenance and not run.is_suspect:
                jobs.perform(runtime, run.run_id, JOBS)
    jobs.perform(runtime, run_id, JOBS, shared=shared)
