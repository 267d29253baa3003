"""Tasks of the queue ``maintenance``: scheduled, may take minutes."""

from __future__ import annotations

from memory_app import queue
from memory_app.dispatch import big_scopes, caps, periodic, upkeep
from memory_app.recall import reembed
from memory_app.sleep import synthesis
from workers.app import app
from workers.parts import runtime
from workers.task import MemoryTask


@app.task(name=queue.FIND_IDLE, base=MemoryTask, soft_time_limit=600, time_limit=660)  # type: ignore[untyped-decorator]
def find_idle() -> None:
    """Have sessions that fell silent synthesised, where the agent has a language model."""
    synthesis.enqueue_idle(runtime())


@app.task(name=queue.FIND_PERIODIC, base=MemoryTask, soft_time_limit=600, time_limit=660)  # type: ignore[untyped-decorator]
def find_periodic() -> None:
    """Enqueue a run for each scope of which a periodic job is due, end silent sessions, and free what waits for a cap
    that was lifted."""
    periodic.enqueue_due(runtime())
    caps.free_below_cap(runtime())


@app.task(name=queue.INDEX_SCOPES, base=MemoryTask, soft_time_limit=600, time_limit=660)  # type: ignore[untyped-decorator]
def index_scopes() -> None:
    """Build the search indexes of scopes that grew too big to scan, and move users for whom there is no room."""
    big_scopes.index(runtime())


@app.task(name=queue.REEMBED, base=MemoryTask, soft_time_limit=600, time_limit=660)  # type: ignore[untyped-decorator]
def reembed_rows() -> None:
    """Move vectors of other models to the current one, as far as it goes in eight minutes."""
    # Below the soft limit, so that the last batch comes to its end.
    reembed.reembed_on_hint(runtime(), most_seconds=480)


@app.task(name=queue.TIDY, base=MemoryTask, soft_time_limit=600, time_limit=660)  # type: ignore[untyped-decorator]
def tidy() -> None:
    """Delete old runs that nothing rests on any more."""
    upkeep.tidy(runtime())
