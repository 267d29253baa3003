"""Tasks of the queue ``ingest``: fast, no language model."""

from __future__ import annotations

from typing import Any

from memory_app import queue
from memory_app.dispatch import fairness, finder
from memory_app.recall import counts
from memory_app.turns import relay
from workers.app import app
from workers.parts import in_shards, runtime
from workers.task import MemoryTask


@app.task(name=queue.RECORD_TURN, base=MemoryTask, bind=True)  # type: ignore[untyped-decorator]
def record_turn(self: MemoryTask, **fields: Any) -> None:
    """Store a turn that came over the broker, as the API would have."""
    relay.relay(runtime(), fields, message_id=str(self.request.id))


@app.task(name=queue.INDEX_TURNS, base=MemoryTask)  # type: ignore[untyped-decorator]
def index_turns(shard: int | None = None) -> None:
    """Embed what was accepted and not yet indexed, of any session; of one shard, where a message names it."""
    fairness.gather(runtime())
    in_shards(fairness.index_in_turn, shard)


@app.task(name=queue.FIND_DUE, base=MemoryTask)  # type: ignore[untyped-decorator]
def find_due() -> None:
    """Send a hint for every piece of due work that nobody holds. Here, so that no long run stands before it."""
    finder.find_due(runtime())


@app.task(name=queue.NOTE_RECALLS, base=MemoryTask)  # type: ignore[untyped-decorator]
def note_recalls() -> None:
    """Count which memories were shown since the last time."""
    counts.note_recalls(runtime())
