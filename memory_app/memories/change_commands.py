"""``pin``, ``unpin``, ``invalidate``, ``revive``, ``unmerge``, ``feedback``: what becomes of a memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from memory_app import MemoryApp
from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json
from memory_app.console.scope import Agent, User
from memory_app.console.settings import Data
from memory_app.memories.commands import MemoryId, memory_line
from memory_app.records.records import Label, Memory
from memory_app.records.scope import Scope

app = typer.Typer()


@app.command()
def pin(memory_id: MemoryId, tenant: Tenant = "default", data: Data = None, as_json: AsJson = False) -> None:
    """Let a memory never fade, and consider it always."""
    _change(MemoryApp.pin, memory_id, tenant=tenant, data=data, as_json=as_json)


@app.command()
def unpin(
    memory_id: MemoryId, tenant: Tenant = "default", data: Data = None, as_json: AsJson = False
) -> None:
    """Take the pin off a memory."""
    _change(MemoryApp.unpin, memory_id, tenant=tenant, data=data, as_json=as_json)


@app.command()
def invalidate(
    memory_id: MemoryId, tenant: Tenant = "default", data: Data = None, as_json: AsJson = False
) -> None:
    """Say that a memory is no longer true; it is kept as history."""
    _change(MemoryApp.invalidate, memory_id, tenant=tenant, data=data, as_json=as_json)


@app.command()
def revive(
    memory_id: MemoryId, tenant: Tenant = "default", data: Data = None, as_json: AsJson = False
) -> None:
    """Bring back a memory that expired or was evicted."""
    _change(MemoryApp.revive, memory_id, tenant=tenant, data=data, as_json=as_json)


@app.command()
def unmerge(
    memory_id: MemoryId, tenant: Tenant = "default", data: Data = None, as_json: AsJson = False
) -> None:
    """Take a merged memory apart: its parts are current again, and it is gone."""
    with connect(data, tenant) as memory:
        parts = memory.unmerge(memory_id)
    if as_json:
        write_json(parts)
        return
    for part in parts:
        out.print(memory_line(part, with_id=True), markup=False, highlight=False)


@app.command()
def feedback(
    target: Annotated[UUID, typer.Argument(help="A turn of the assistant, or a memory.")],
    label: Annotated[Label, typer.Argument(help="What the person thought of it.")],
    note: Annotated[str | None, typer.Option(help="Why.")] = None,
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Rate an answer or a memory: up, down or retry."""
    with connect(data, tenant) as memory:
        given = memory.feedback(Scope(agent, user), target, label, note=note)
    if as_json:
        write_json(given)
    else:
        out.print(f"{label}: {target}", markup=False, highlight=False)


def _change(
    act: Callable[[MemoryApp, UUID], Memory],
    memory_id: UUID,
    *,
    tenant: str,
    data: Path | None,
    as_json: bool,
) -> None:
    """Act on a memory, and show what it is now."""
    with connect(data, tenant) as memory:
        changed = act(memory, memory_id)
    if as_json:
        write_json(changed)
    else:
        out.print(memory_line(changed, with_id=True), markup=False, highlight=False)
