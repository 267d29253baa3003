"""The workers of a stage as they are run in service: processes for what computes, threads for what asks the model."""

from __future__ import annotations

import os
from pathlib import Path

from provider_stage import ProviderStage, Started
from sqlalchemy import text

from memory_app import queue
from memory_app.local.stack import commands

HERE = Path(__file__).parent
PROCESSES = (queue.INGEST, queue.MAINTENANCE)


def worker(stage: ProviderStage, *queues: str, app: str = "workers.app") -> Started:
    usual = 32 if commands.waits(queues) else 2
    command = commands.worker(queues, name=f"w{len(stage.started)}-{os.getpid()}", concurrency=usual)
    return stage.start([word.replace("workers.app", app) for word in command], PYTHONPATH=str(HERE))


def disordered(stage: ProviderStage) -> list[str]:
    """Memories that were made before one of an earlier turn of their session."""
    statement = text(
        """SELECT t.session_id, t.seq FROM memories m
        JOIN evidence e ON e.scope_id = m.scope_id AND e.memory_id = m.id
        JOIN turns t ON t.scope_id = e.scope_id AND t.id = e.turn_id WHERE m.kind = 'fact' ORDER BY m.id"""
    )
    last: dict[int, int] = {}
    wrong = []
    with stage.owner.connect() as connection:
        for row in connection.execute(statement):
            if row.seq <= last.get(row.session_id, 0):
                wrong.append(f"session {row.session_id}, turn {row.seq}")
            last[row.session_id] = row.seq
    return wrong
