"""The table of jobs by the name of their run: what a worker, and a finder that works by itself, can do."""

from __future__ import annotations

from collections.abc import Mapping

from memory_app import queue
from memory_app.forget import erasure_runs
from memory_app.jobs.jobs import Job
from memory_app.records.run import RunName
from memory_app.sleep import (
    consolidate,
    cycle,
    decay,
    deep,
    retention,
    session_end,
    synthesis,
    turn_synthesis,
)
from memory_app.transfer import imports
from memory_app.transfer.rows import imports as import_rows

JOBS: Mapping[str, Job] = {
    # The same message: it has the id of a run, whose name says what is done.
    RunName.SYNTHESIZE_TURNS: Job(queue.SYNTHESIZE_SESSION, turn_synthesis.synthesize_latest_turns),
    RunName.SYNTHESIZE_SESSION: Job(queue.SYNTHESIZE_SESSION, synthesis.synthesize_one_session),
    RunName.SYNTHESIZE_DEEP: Job(queue.SYNTHESIZE_DEEP, deep.synthesize_memories),
    RunName.CONSOLIDATE: Job(queue.DEDUPLICATE, consolidate.consolidate),
    RunName.DECAY: Job(queue.DECAY, decay.decay),
    RunName.APPLY_RETENTION: Job(queue.DECAY, retention.wake_scopes, of_scope=False),
    RunName.SLEEP: Job(queue.SLEEP, cycle.sleep),
    RunName.END_SESSION: Job(queue.SLEEP, session_end.end),
    RunName.IMPORT_FILE: Job(queue.IMPORT_FILE, imports.import_waiting, end=import_rows.drop_parts),
    RunName.FORGET: Job(queue.FORGET, erasure_runs.erase_in_turn, of_scope=False),
}
