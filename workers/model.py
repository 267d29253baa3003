"""Tasks of the queue ``model`` that may wait for a language model, as threads beside others in one process.

Extraction is sent to the other queues where it suits better; see `memory_app.turns.routing`. The jobs of this queue are
in `workers.job`.
"""

from __future__ import annotations

from memory_app import queue
from memory_app.db.shards import HOME
from memory_app.dispatch import fairness
from memory_app.events.webhooks import deliver
from memory_app.recall import narrative
from memory_app.turns import extract
from workers.app import app
from workers.parts import at, is_shared, runtime
from workers.task import MemoryTask


@app.task(name=queue.EXTRACT_SESSION, base=MemoryTask)  # type: ignore[untyped-decorator]
def extract_session(session_id: int, shard: int = HOME) -> None:
    """Extract the next turns of one session, if it is due and free. Beside others, one batch for a message."""
    here = at(shard)
    if is_shared():
        extract.extract_session(here, session_id, most_batches=1, shared=True)
    else:
        fairness.extract_in_turn(here, session_id)


@app.task(name=queue.NARRATE, base=MemoryTask)  # type: ignore[untyped-decorator]
def narrate(scope_id: int, shard: int = HOME) -> None:
    """Have the model tell what bears on the latest query of a scope."""
    narrative.make_narrative(at(shard), scope_id)


@app.task(name=queue.DELIVER_WEBHOOKS, base=MemoryTask)  # type: ignore[untyped-decorator]
def deliver_webhooks() -> None:
    """Deliver events to the webhooks that are due."""
    deliver.deliver_on_hint(runtime())
