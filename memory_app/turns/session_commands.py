"""``turns``, ``sessions``: what was said, and in which conversations."""

from __future__ import annotations

from typing import Annotated

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json, write_table
from memory_app.console.scope import Agent, User
from memory_app.console.settings import Data
from memory_app.records.scope import Scope

app = typer.Typer()


@app.command()
def turns(
    session: Annotated[str, typer.Argument(help="The conversation, as `memory sessions` names it.")],
    limit: Annotated[int, typer.Option(min=1, max=500, help="Most turns.")] = 20,
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show the latest turns of a session, oldest first."""
    with connect(data, tenant) as memory:
        rows = memory.turns(Scope(agent, user, session), limit=limit)
    if as_json:
        write_json(rows)
        return
    for row in rows:
        line = f"{row.id}  {row.at:%Y-%m-%d %H:%M}  {row.speaker}: {row.text}"
        out.print(line, markup=False, highlight=False)


@app.command()
def sessions(
    active: Annotated[
        bool | None, typer.Option("--active/--ended", help="Only those not yet ended, or only the others.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Most sessions.")] = 100,
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List the sessions of an agent and a user, latest activity first."""
    with connect(data, tenant) as memory:
        rows = memory.sessions(Scope(agent, user), active=active, limit=limit)
    if as_json:
        write_json(rows)
        return
    write_table(
        "sessions",
        ("session", "turns", "extracted to", "last activity", "ended", "stopped by"),
        [
            (
                row.name,
                row.next_seq - 1,
                row.extracted_seq,
                row.last_activity_at,
                row.ended_at,
                row.parked_reason,
            )
            for row in rows
        ],
    )
