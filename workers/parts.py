"""The runtime of a worker process: made in the child after the fork, closed when the child ends.

Where tasks are threads there is no child: they share the process, and the runtime, with each other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from memory_app import tracing
from memory_app.db.shards import HOME, LARGEST
from memory_app.errors import InvalidInput
from memory_app.hot.metrics import Pusher
from memory_app.runtime import Runtime, build
from memory_app.settings import Settings
from memory_app.tenancy.shards import in_usable

POOL_WAIT_SECONDS = 30.0
"""Nobody waits for the answer of a worker, but many threads share few connections: none is held during a call."""

_lock = threading.Lock()
_parts: Runtime | None = None
_pusher: Pusher | None = None
_is_alone = False


def runtime() -> Runtime:
    """The live parts of this process, made at the first use, so that nothing is shared across a fork."""
    global _parts, _pusher
    # Threads may ask for it at the same moment, and two embedders would take twice the memory.
    with _lock:
        if _parts is None:
            settings = Settings()
            # First, as it watches what is made afterwards.
            tracing.start("worker", endpoint=settings.tracing.endpoint, ratio=settings.tracing.ratio)
            tracing.start_tasks()
            _parts = build(_for_worker(settings))
            _pusher = Pusher(_parts.hot).start()
        return _parts


def in_shards(act: Callable[[Runtime], object], shard: int | None) -> None:
    """Act in the shard that a message names, or in each where it names none."""
    if shard is None:
        in_usable(runtime(), act)
    else:
        act(at(shard))


def at(shard: int) -> Runtime:
    """The runtime at work in the shard that a message names. Raises `InvalidInput` for what is no number."""
    # Whatever stood in a queue comes here, and an error must not repeat it.
    if type(shard) is not int or not HOME <= shard <= LARGEST:
        raise InvalidInput(f"shard: a whole number from {HOME} to {LARGEST} is wanted", field="shard")
    return runtime().at(shard)


def start_alone() -> None:
    """This process is a child that does one task at a time."""
    global _is_alone
    _is_alone = True
    # What the parent may have opened before the fork is not ours to use.
    close()
    runtime()


def is_shared() -> bool:
    """Whether other tasks run in this process meanwhile, and would end with it."""
    return not _is_alone


def close() -> None:
    """Give back every connection; harmless when nothing was made."""
    global _parts, _pusher
    with _lock:
        if _pusher is not None:
            _pusher.stop()
            _pusher = None
        if _parts is not None:
            _parts.close()
            _parts = None
            tracing.stop()


def _for_worker(settings: Settings) -> Settings:
    database = settings.database
    patient = max(database.pool_timeout_seconds, POOL_WAIT_SECONDS)
    wide = max(settings.chat.connections, settings.worker.model_threads)
    return settings.model_copy(
        update={
            "database": database.model_copy(update={"pool_timeout_seconds": patient}),
            "chat": settings.chat.model_copy(update={"connections": wide}),
        }
    )
