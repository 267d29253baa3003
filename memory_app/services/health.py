"""Health: whether the whole pipe works: the database, the broker, each kind of part, and the work that is due.

A kind of which no process was ever heard is no failure: whether it is missed shows the age of its work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from memory_app.errors import MemoryAppError
from memory_app.runtime import Runtime
from memory_app.services import life
from memory_app.services.life import BEAT, FINDER, Heard
from memory_app.store.db import transaction
from memory_app.store.health import PipelineState, pipeline_state

log = structlog.get_logger(__name__)

STALLED_AFTER_SECONDS = 300.0
"""Work that is due for longer means that nobody works: finders look every few seconds."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the pipe. ``reason`` says what is wrong; None when it works.

    ``is_needed``: without it the pipe stands still. Where another does the same, a reason is a warning only.
    """

    name: str
    reason: str | None = None
    is_needed: bool = True

    @property
    def is_ok(self) -> bool:
        return self.reason is None or not self.is_needed


@dataclass(frozen=True, slots=True)
class Health:
    """All parts, and the state of the pipe where the database told it."""

    parts: tuple[Part, ...]
    pipeline: PipelineState | None

    @property
    def is_ok(self) -> bool:
        return all(part.is_ok for part in self.parts)


def health(runtime: Runtime) -> Health:
    """Ask every part; never raises for one that is away."""
    pipeline, database = read_pipeline(runtime)
    return Health((database, _broker(runtime), _work(pipeline), *_processes(runtime)), pipeline)


def read_pipeline(runtime: Runtime) -> tuple[PipelineState | None, Part]:
    """How the pipe is doing, and how the database is; over all tenants and without naming any."""
    try:
        with transaction(runtime.engine, None) as connection:
            return pipeline_state(connection), Part("database")
    except MemoryAppError as error:
        log.warning("database_away", error=error.kind)
        return None, Part("database", error.kind)


def _broker(runtime: Runtime) -> Part:
    try:
        runtime.hot.ping()
    except MemoryAppError as error:
        log.warning("broker_away", error=error.kind)
        return Part("broker", error.kind)
    return Part("broker")


def _processes(runtime: Runtime) -> tuple[Part, ...]:
    """The workers of each queue, the finder and Beat. One that fell silent is a failure within half a minute."""
    try:
        heard = life.listen(runtime.hot)
    except MemoryAppError:
        return tuple(Part(kind, "unknown", is_needed=False) for kind in (*life.WORKERS, FINDER, BEAT))
    workers = [Part(kind, heard[kind].trouble, is_needed=heard[kind].is_silent) for kind in life.WORKERS]
    return (*workers, _looker(FINDER, heard, other=BEAT), _looker(BEAT, heard, other=FINDER))


def _looker(kind: str, heard: Mapping[str, Heard], *, other: str) -> Part:
    """The finder and Beat look for the same work: either is enough."""
    own, others = heard[kind], heard[other]
    if own.is_absent and others.living:
        return Part(kind)
    return Part(kind, own.trouble, is_needed=own.is_silent and not others.living)


def _work(pipeline: PipelineState | None) -> Part:
    if pipeline is None:
        return Part("work", "unknown")
    oldest = max(pipeline.oldest_unindexed_seconds, pipeline.oldest_due_seconds)
    return Part("work", "stalled" if oldest > STALLED_AFTER_SECONDS else None)
