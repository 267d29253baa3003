"""The finder: looks for due work that nobody holds and says "look there". It does the work itself while Redis is away.

Any number may run at once, in Beat's task and as processes of their own: a claim decides who does the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import structlog

from memory_app import correlation, queue, tracing
from memory_app.db import in_doubt
from memory_app.db.db import transaction
from memory_app.db.shards import HOME
from memory_app.dispatch import caps, periodic
from memory_app.dispatch.job_table import JOBS
from memory_app.errors import MemoryAppError, StoreUnavailable, Transient
from memory_app.events.webhooks import deliver
from memory_app.hot import hints
from memory_app.hot.faults import HotUnavailable
from memory_app.hot.life import EVERY_SECONDS
from memory_app.hot.metrics import Pusher
from memory_app.jobs import jobs
from memory_app.jobs.life import FINDER, Life
from memory_app.jobs.rows import health, runs
from memory_app.jobs.rows.runs import DueRun
from memory_app.outage import OutageLog
from memory_app.records.run import RunName
from memory_app.runtime import Runtime
from memory_app.tenancy import shards
from memory_app.turns import extract, index, routing
from memory_app.turns.rows import extract_work
from memory_app.turns.rows.extract_work import DueSession

log = structlog.get_logger(__name__)

PROBE = "finder"
"""Name of a hint that is never sent."""

CAPS, CAPS_SECONDS = "caps", 60
"""The name under which one of all finders looks for lifted caps, and how often."""

IN_DOUBT, IN_DOUBT_SECONDS = "in_doubt", 5
"""The same for transactions over several servers that nobody ended."""


@dataclass(frozen=True, slots=True)
class Due:
    """Work that waits: how many claimable unindexed turns, which sessions and runs."""

    turns: int
    sessions: tuple[DueSession, ...]
    runs: tuple[DueRun, ...] = ()

    def __add__(self, other: Due) -> Due:
        return Due(self.turns + other.turns, self.sessions + other.sessions, self.runs + other.runs)


NOTHING = Due(0, ())


def look(runtime: Runtime) -> Due:
    """Read what is due now in the runtime's shard, over all tenants and fair across them."""
    with transaction(runtime.engine, None) as connection:
        state = health.pipeline_state(connection)
        due_sessions = extract_work.due_sessions(connection, most=runtime.settings.finder.batch)
        due_runs = runs.due(connection, most=runtime.settings.finder.batch)
    return Due(state.claimable, due_sessions, due_runs)


def find_due(runtime: Runtime) -> Due:
    """Send a hint for everything that is due in any shard; what is under way already is not sent twice."""
    due = sum(shards.in_usable(runtime, _find_due), NOTHING)
    if deliver.has_due(runtime):
        runtime.at(HOME).hint(queue.DELIVER_WEBHOOKS)
    return due


def _find_due(runtime: Runtime) -> Due:
    due = look(runtime)
    # One message for all of them: whoever indexes claims the turns of any session, and goes on while there are more.
    if due.turns:
        runtime.hint(queue.INDEX_TURNS)
    for session in due.sessions:
        routing.hint_session(runtime, session)
    for run in due.runs:
        # A newer release may have enqueued a job that this one does not know; its own finder sends it.
        if run.name in JOBS:
            routing.hint_run(runtime, run, JOBS[run.name].task)
    return due


def drain(runtime: Runtime, *, on_step: Callable[[], None] = lambda: None) -> Due:
    """Do everything that is due in this process, without any message; ``on_step`` is called before each piece."""
    return sum(shards.in_usable(runtime, lambda here: _drain(here, on_step)), NOTHING)


def _drain(runtime: Runtime, on_step: Callable[[], None]) -> Due:
    due = look(runtime)
    # Who asked to be erased does not wait until everything about them was read.
    erasures = [run for run in due.runs if run.name == RunName.FORGET]
    _perform(runtime, erasures, on_step)
    if due.turns:
        on_step()
        with _traced("index_turns"):
            index.index_turns(runtime)
    for session in due.sessions:
        on_step()
        with _traced("extract_session"):
            extract.extract_session(runtime, session.id)
    _perform(runtime, [run for run in due.runs if run.name != RunName.FORGET], on_step)
    return due


def _perform(runtime: Runtime, due_runs: Iterable[DueRun], on_step: Callable[[], None]) -> None:
    for run in due_runs:
        on_step()
        with _traced(run.name):
            jobs.perform(runtime, run.run_id, JOBS)


@contextmanager
def _traced(name: str) -> Iterator[None]:
    """A trace of one piece of work, with the id that stands in the log lines of all that was done in this round."""
    with tracing.working(name):
        number = correlation.task_id()
        tracing.describe(task_id=None if number is None else str(number))
        yield


def run(runtime: Runtime, *, should_stop: Callable[[float], bool]) -> None:
    """Look every few seconds until ``should_stop(seconds)``, which waits, says True.

    While Redis has been away for longer than the setting, the work is done here.
    """
    settings = runtime.settings.finder
    life = Life(runtime.hot, [FINDER], runtime.settings.life_folder)
    pusher = Pusher(runtime.hot).start()
    outage = OutageLog()
    away_since: float | None = None
    while True:
        life.note()
        # A task of its own: what the finder does by itself can be followed as if a worker had done it.
        with correlation.task(None, FINDER) as work:
            # Apart from each other: where one shard is away, the steps fail after they did their work in the others.
            with _told(outage):
                periodic.enqueue_due(runtime)
            with _told(outage):
                if hints.claim(runtime.hot, CAPS, life_ms=CAPS_SECONDS * 1_000):
                    caps.free_below_cap(runtime)
            with _told(outage):
                _settle(runtime)
            with _told(outage):
                away_since = None if _answers(runtime) else away_since or time.monotonic()
            with _told(outage):
                # Not at once: a restart of Redis takes seconds, and workers do the work faster.
                if away_since is not None and time.monotonic() - away_since >= settings.drain_after_seconds:
                    drain(runtime, on_step=life.touch)
                else:
                    find_due(runtime)
            if work.has_effect:
                log.info("task_done", **work.summary())
        if _stops(life, should_stop, settings.every_seconds):
            life.end()
            pusher.stop()
            return


def _settle(runtime: Runtime) -> None:
    """End what a process that died left between the two phases of a commit. It holds rows, so not even Redis is
    waited for."""
    servers = {shard.server for shard in runtime.directory.shards() if shard.server is not None}
    if not servers:
        return
    with suppress(HotUnavailable):
        if not hints.claim(runtime.hot, IN_DOUBT, life_ms=IN_DOUBT_SECONDS * 1_000):
            return
    engines = [runtime.directory.servers.engine(server) for server in sorted(servers)]
    in_doubt.settle(runtime.at(HOME).engine, engines, after=in_doubt.AFTER)


@contextmanager
def _told(outage: OutageLog) -> Iterator[None]:
    """Log what fails in the block; the finder goes on."""
    try:
        yield
    except StoreUnavailable as error:
        outage.note(error)
    except Transient as error:
        log.warning("finder_waits", error=error.kind)
    except MemoryAppError as error:
        log.error("finder_failed", error=error.kind)


def _stops(life: Life, should_stop: Callable[[float], bool], seconds: float) -> bool:
    """Wait for ``seconds``, in pieces where that is longer than a sign of life may be late."""
    # A finder with a long interval must still show that it lives.
    while seconds > EVERY_SECONDS:
        if should_stop(EVERY_SECONDS):
            return True
        life.note()
        seconds -= EVERY_SECONDS
    return should_stop(seconds)


def _answers(runtime: Runtime) -> bool:
    """Return whether Redis accepts writes: one that is full, or a replica, answers but refuses them."""
    # A write, because a PING is answered even where writes are refused.
    try:
        hints.claim(runtime.hot, PROBE, life_ms=1_000)
    except HotUnavailable:
        return False
    return True
