"""The table of jobs by the name of their run: what a worker, and a finder that works by itself, can do."""

from __future__ import annotations

from collections.abc import Mapping

from memory_app import queue
from memory_app.domain.slumber import SLEEP
from memory_app.services import consolidate, decay, ending, sleep, synthesis
from memory_app.services.jobs import Job

JOBS: Mapping[str, Job] = {
    synthesis.SESSION: Job(queue.SYNTHESIZE_SESSION, synthesis.synthesize_one_session),
    synthesis.DEEP: Job(queue.SYNTHESIZE_DEEP, synthesis.synthesize_memories),
    consolidate.CONSOLIDATE: Job(queue.DEDUPLICATE, consolidate.consolidate),
    decay.DECAY: Job(queue.DECAY, decay.decay),
    SLEEP: Job(queue.SLEEP, sleep.sleep),
    ending.END: Job(queue.SLEEP, ending.end),
}
