"""``agents``, ``users``: who remembers, and whom."""

from __future__ import annotations

from typing import Annotated

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, write_json, write_table
from memory_app.console.settings import Data

app = typer.Typer()

Limit = Annotated[int, typer.Option(min=1, max=500, help="Most rows.")]
Cursor = Annotated[str | None, typer.Option(help="The last name of the page before.", show_default=False)]


@app.command()
def agents(
    limit: Limit = 50,
    cursor: Cursor = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List the agents by name, with how many people each knows."""
    with connect(data, tenant) as memory:
        rows = memory.agents(limit=limit, cursor=cursor)
    if as_json:
        write_json(rows)
        return
    write_table(
        "agents", ("agent", "users", "since"), [(row.name, row.users, row.created_at) for row in rows]
    )


@app.command()
def users(
    limit: Limit = 50,
    cursor: Cursor = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List the users by name, with the zone in which each speaks."""
    with connect(data, tenant) as memory:
        rows = memory.users(limit=limit, cursor=cursor)
    if as_json:
        write_json(rows)
        return
    write_table(
        "users",
        ("user", "label", "time zone", "since"),
        [(row.name, row.label, row.time_zone, row.created_at) for row in rows],
    )
