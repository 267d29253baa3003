"""Check whether the whole pipe works: the database, the broker, each kind of part, and the work that is due.

A kind of part that never gave a sign of life is no failure: an installation may do without it. If it is missed, its
work becomes late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import structlog
from sqlalchemy import Connection

from memory_app.db import revision
from memory_app.db.db import transaction
from memory_app.db.shards import HOME
from memory_app.errors import MemoryAppError
from memory_app.jobs import life
from memory_app.jobs.life import BEAT, FINDER, Heard
from memory_app.jobs.rows.health import DueWork, PipelineState, due_work, pipeline_state, united
from memory_app.ops import due
from memory_app.runtime import Runtime

log = structlog.get_logger(__name__)

Answer = TypeVar("Answer")

WORK = ("turns", "sessions", "runs", "periodic jobs")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the pipe. ``reason`` says what is wrong; None when it works.

    ``is_needed``: without it the pipe stands still; else a reason is a warning only.
    """

    name: str
    reason: str | None = None
    is_needed: bool = True

    @property
    def is_ok(self) -> bool:
        return self.reason is None or not self.is_needed


@dataclass(frozen=True, slots=True)
class Health:
    """All parts, and the state of the pipe; None while the database is away."""

    parts: tuple[Part, ...]
    pipeline: PipelineState | None

    @property
    def is_ok(self) -> bool:
        return all(part.is_ok for part in self.parts)


def health(runtime: Runtime) -> Health:
    """Ask every part; never raises for one that is away."""
    pipeline, database = read_pipeline(runtime)
    heard = _listen(runtime)
    work = _work(runtime, heard or {})
    return Health((database, *_shards(runtime), _broker(runtime), *work, *_processes(heard)), pipeline)


def read_pipeline(runtime: Runtime) -> tuple[PipelineState | None, Part]:
    """The state of the pipe over all tenants, and of the database."""
    try:
        with transaction(runtime.engine, None) as connection:
            stored = revision.stored(connection)
            # A newer schema is no failure: during a rolling upgrade the old release goes on with it.
            if stored != revision.newest() and not revision.is_ahead(stored):
                return None, Part("database", revision.difference(stored))
        return _pipeline(runtime), Part("database")
    except MemoryAppError as error:
        log.warning("database_away", error=error.kind, reason=error.message)
        return None, Part("database", error.message)


def _pipeline(runtime: Runtime) -> PipelineState:
    """The state of all shards together, as far as they are there."""
    states, _ = _look_at_shards(runtime, pipeline_state)
    first, *others = states
    return sum(others, first)


def _look_at_shards(runtime: Runtime, look: Callable[[Connection], Answer]) -> tuple[list[Answer], list[str]]:
    """What each shard answers, the home shard first, and why others do not. Raises only for the home shard."""
    with transaction(runtime.at(HOME).engine, None) as connection:
        answers = [look(connection)]
    reasons = []
    for shard in runtime.directory.shards()[1:]:
        try:
            with transaction(runtime.at(shard.id).engine, None) as connection:
                answers.append(look(connection))
        except MemoryAppError as error:
            reasons.append(error.message)
    return answers, reasons


def unusable_shards(runtime: Runtime) -> list[str]:
    """Why shards cannot be used, a sentence for each. Raises what the home shard raises."""
    _, reasons = _look_at_shards(runtime, pipeline_state)
    return reasons


def _shards(runtime: Runtime) -> tuple[Part, ...]:
    """Shards that cannot be used, whose users get 503; the others go on. None where all can."""
    try:
        reasons = unusable_shards(runtime)
    except MemoryAppError:
        return ()
    return (Part("shards", "; ".join(reasons), is_needed=False),) if reasons else ()


def _broker(runtime: Runtime) -> Part:
    try:
        runtime.hot.ping()
    except MemoryAppError as error:
        log.warning("broker_away", error=error.kind)
        return Part("broker", error.kind)
    return Part("broker")


def _listen(runtime: Runtime) -> Mapping[str, Heard] | None:
    """None while Redis is away."""
    try:
        return life.listen(runtime.hot)
    except MemoryAppError:
        return None


def _processes(heard: Mapping[str, Heard] | None) -> tuple[Part, ...]:
    """The workers of each queue, the finder and Beat. One that fell silent is a failure within half a minute."""
    # Signs of life go through Redis, which is a part of its own here.
    if heard is None:
        return tuple(Part(kind, "unknown", is_needed=False) for kind in (*life.WORKERS, FINDER, BEAT))
    workers = [Part(kind, heard[kind].trouble, is_needed=heard[kind].is_silent) for kind in life.WORKERS]
    return (*workers, _looker(FINDER, heard, other=BEAT), _looker(BEAT, heard, other=FINDER))


def _looker(kind: str, heard: Mapping[str, Heard], *, other: str) -> Part:
    # The finder and Beat look for the same work: either is enough.
    own, others = heard[kind], heard[other]
    if own.is_absent and others.living:
        return Part(kind)
    return Part(kind, own.trouble, is_needed=own.is_silent and not others.living)


def _work(runtime: Runtime, heard: Mapping[str, Heard]) -> tuple[Part, ...]:
    """Each kind of work. Late work that no worker has in hand is a failure, a backlog a warning."""
    try:
        late = {work.kind: work for work in due.lateness(lambda: due_now(runtime), heard)}
    except MemoryAppError:
        return tuple(Part(kind, "unknown", is_needed=False) for kind in WORK)
    parts = []
    for kind in WORK:
        work = late.get(kind)
        parts.append(Part(kind) if work is None else Part(kind, work.reason, is_needed=work.is_stalled))
    return tuple(parts)


def due_now(runtime: Runtime) -> tuple[DueWork, ...]:
    """Each kind of work over all shards."""
    works, _ = _look_at_shards(runtime, due_work)
    return united(chain.from_iterable(works))
