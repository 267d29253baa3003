"""``grants list``, ``grants set``, ``grants revoke``: what a person lets an agent recall of another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from memory_app.agents.rows.grants import Grant
from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json, write_table
from memory_app.console.settings import Data
from memory_app.records.kinds import shareable_kinds

app = typer.Typer(help="What people let agents recall of other agents.", no_args_is_help=True)

User = Annotated[str, typer.Argument(help="The person, by the name that the app uses.")]
Agent = Annotated[str, typer.Argument(help="The agent whose memories they are.")]


@app.command("list")
def list_grants(
    user: User,
    agent: Annotated[str | None, typer.Option(help="Only those from and to this agent.")] = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """The grants of a person; those that have run out, too."""
    with connect(data, tenant) as memory:
        grants = memory.grants(user, agent=agent)
    if as_json:
        write_json(grants)
        return
    rows = [(row.agent, row.to, ", ".join(row.kinds), _until(row)) for row in grants]
    write_table(f"grants of {user}", ("what it knows", "may be recalled by", "kinds", "until"), rows)


@app.command("set")
def set_grant(
    user: User,
    agent: Agent,
    to: Annotated[str, typer.Argument(help="The agent that may recall them.")],
    kind: Annotated[
        list[str], typer.Option("--kind", help=f"Repeat it for several: {', '.join(shareable_kinds())}.")
    ],
    days: Annotated[float | None, typer.Option(min=0, help="Days until it ends; else when revoked.")] = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Let an agent recall what another knows of a person; a grant between the two is replaced."""
    until = None if days is None else datetime.now(UTC) + timedelta(days=days)
    with connect(data, tenant) as memory:
        row = memory.set_grant(user, agent, to=to, kinds=kind, until=until)
    if as_json:
        write_json(row)
        return
    out.print(
        f"{row.to} may recall {', '.join(row.kinds)} of what {row.agent} knows of {user}, until {_until(row)}",
        markup=False,
        highlight=False,
    )


@app.command()
def revoke(
    user: User,
    agent: Agent,
    to: Annotated[
        str | None, typer.Argument(help="The agent that may recall them no longer; absent: all.")
    ] = None,
    tenant: Tenant = "default",
    data: Data = None,
) -> None:
    """Take grants back, at once."""
    with connect(data, tenant) as memory:
        count = memory.revoke_grant(user, agent, to=to)
    out.print(f"revoked: {count}", highlight=False)


def _until(row: Grant) -> str:
    if row.until is None:
        return "revoked"
    return f"{row.until:%Y-%m-%d %H:%M} UTC" + ("" if row.is_active else " (ended)")
