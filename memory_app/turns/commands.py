"""``failed``, ``replay``, ``discard``: list the turns that were set aside, and decide what becomes of them."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json, write_table
from memory_app.console.page import Cursor
from memory_app.console.settings import Data

app = typer.Typer()

TurnId = Annotated[UUID, typer.Argument(help="The turn, as `memory failed` lists it.")]


@app.command()
def failed(
    limit: Annotated[int, typer.Option(min=1, max=500, help="Most turns.")] = 100,
    cursor: Cursor = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List turns that were set aside, with the reason and without what was said."""
    with connect(data, tenant) as memory:
        rows = memory.failed(limit=limit, cursor=cursor)
    if as_json:
        write_json(rows)
        return
    titles = ("turn", "agent", "user", "session", "seq", "failed at", "reason")
    write_table(
        "failed turns",
        titles,
        [
            (
                str(row.id),
                row.agent,
                row.user,
                row.session,
                str(row.seq),
                f"{row.failed_at:%Y-%m-%d %H:%M}",
                row.reason,
            )
            for row in rows
        ],
    )


@app.command()
def refused(
    limit: Annotated[int, typer.Option(min=1, max=500, help="Most messages.")] = 100,
    cursor: Cursor = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List messages of the broker that were refused for an erasure or a limit; never what they say."""
    with connect(data, tenant) as memory:
        rows = memory.refused(limit=limit, cursor=cursor)
    if as_json:
        write_json(rows)
        return
    write_table(
        "refused messages",
        ("message", "sent at", "refused at", "reason"),
        [(row.message_id, row.sent_at, row.refused_at, row.reason) for row in rows],
    )


@app.command()
def replay(
    turns: Annotated[
        list[UUID] | None, typer.Argument(help="The turns, as `memory failed` lists them.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All failed turns.")] = False,
    tenant: Tenant = "default",
    data: Data = None,
) -> None:
    """Index and extract failed turns once more, once the cause is mended."""
    if bool(turns) == everything:
        raise typer.BadParameter("name the turns, or give --all")
    with connect(data, tenant) as memory:
        turn_ids = turns or [row.id for row in memory.failed(limit=500)]
        for turn_id in turn_ids:
            memory.replay(turn_id)
    out.print(f"{len(turn_ids)} turns are due again", highlight=False)


@app.command()
def discard(turn: TurnId, tenant: Tenant = "default", data: Data = None) -> None:
    """Give a failed turn up: it stays readable and has no effects."""
    with connect(data, tenant) as memory:
        memory.discard(turn)
    out.print(f"turn {turn} is given up", highlight=False)
