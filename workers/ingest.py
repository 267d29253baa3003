"""Tasks of the queue ``ingest``: fast, no language model."""

from __future__ import annotations

from memory_app import queue
from memory_app.services import index, noting
from workers.app import app
from workers.parts import runtime
from workers.task import MemoryTask


@app.task(name=queue.INDEX_TURNS, base=MemoryTask)  # type: ignore[untyped-decorator]
def index_turns() -> None:
    """Embed what was accepted and not yet indexed, of any session."""
    index.index_turns(runtime())


@app.task(name=queue.NOTE_RECALLS, base=MemoryTask)  # type: ignore[untyped-decorator]
def note_recalls() -> None:
    """Count which memories were shown since the last time."""
    noting.note_recalls(runtime())
