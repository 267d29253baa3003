"""The task of the queue ``model`` that may wait for a language model, as a thread beside others in one process.

It is sent to the other queues where it suits better; see `memory_app.turns.routing`. The jobs of this queue are in
`workers.job`.
"""

from __future__ import annotations

from memory_app import queue
from memory_app.dispatch import fairness
from memory_app.turns import extract
from workers.app import app
from workers.parts import is_shared, runtime
from workers.task import MemoryTask


@app.task(name=queue.EXTRACT_SESSION, base=MemoryTask)  # type: ignore[untyped-decorator]
def extract_session(session_id: int) -> None:
    """Extract the next turns of one session, if it is due and free. Beside others, one batch for a message."""
    if is_shared():
        extract.extract_session(runtime(), session_id, most_batches=1, shared=True)
    else:
        fairness.extract_in_turn(runtime(), session_id)
