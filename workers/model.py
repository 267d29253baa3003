"""Tasks of the queue ``model``: they may wait for a language model."""

from __future__ import annotations

from memory_app import queue
from memory_app.services import extract
from workers.app import app
from workers.parts import runtime
from workers.task import MemoryTask


@app.task(name=queue.EXTRACT_SESSION, base=MemoryTask)  # type: ignore[untyped-decorator]
def extract_session(session_id: int) -> None:
    """Extract the next turns of one session, if it is due and free."""
    extract.extract_session(runtime(), session_id)
