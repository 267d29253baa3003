"""``trace``: print the way of a turn from the request to its memories, by any id on it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated
from uuid import UUID

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json
from memory_app.console.settings import Data
from memory_app.ops import trace as trace_service
from memory_app.ops.trace import Step, Trace

app = typer.Typer()


@app.command()
def trace(
    id: Annotated[UUID, typer.Argument(help="Id of a turn, memory, run, request or task.")],
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Follow a turn from the request to its memories, or back, by any id on the way: ids and times, no text."""
    with connect(data, tenant) as memory:
        answer = trace_service.trace(memory.runtime, memory.tenant_id, id)
    if as_json:
        write_json(asdict(answer) | {"steps": answer.steps})
        return
    for line in _lines(answer):
        out.print(line, markup=False, highlight=False)


def _lines(answer: Trace) -> list[str]:
    first = answer.steps[0].at
    lines = [
        f"{answer.origin} {answer.id}",
        *(
            f"turn {turn.id}: agent {turn.agent}, user {turn.user}, session {turn.session}, number {turn.seq}"
            for turn in answer.turns
        ),
        *(_line(step, first) for step in answer.steps),
    ]
    if answer.waiting_for is not None:
        lines.append(f"waits for {answer.waiting_for}")
    return lines


def _line(step: Step, first: datetime) -> str:
    seconds = (step.at - first).total_seconds()
    ids = {
        "turn": step.turn_id,
        "run": step.run_id,
        "memory": step.memory_id,
        "request": step.request_id,
        "task": step.task_id,
    }
    named = ", ".join(f"{name} {id}" for name, id in ids.items() if id is not None)
    reason = "" if step.reason is None else f": {step.reason}"
    at = f"{step.at:%Y-%m-%d %H:%M:%S}.{step.at.microsecond // 1000:03}"
    return f"{at} +{seconds:.3f} s  {step.event}{reason}  {named}"
