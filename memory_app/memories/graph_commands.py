"""``links``, ``entities``, ``facts``: what memories are about, and what connects them."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.instants import instant_option
from memory_app.console.output import AsJson, out, write_json, write_table
from memory_app.console.scope import Agent, User
from memory_app.console.settings import Data
from memory_app.memories.commands import memory_line
from memory_app.records.scope import Scope

app = typer.Typer()

Limit = Annotated[int, typer.Option(min=1, max=500, help="Most rows.")]


@app.command()
def links(
    memory_id: Annotated[UUID, typer.Argument(help="The memory, as `memory list --ids` names it.")],
    limit: Limit = 50,
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List what a memory is linked with."""
    with connect(data, tenant) as memory:
        rows = memory.links(Scope(agent, user), memory_id, limit=limit)
    if as_json:
        write_json(rows)
        return
    write_table(
        "links",
        ("from", "to", "type", "weight", "since"),
        [(row.source, row.target, row.type, row.weight, row.created_at) for row in rows],
    )


@app.command()
def entities(
    limit: Limit = 100,
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List people, places and things, most mentioned first."""
    with connect(data, tenant) as memory:
        rows = memory.entities(Scope(agent, user), limit=limit)
    if as_json:
        write_json(rows)
        return
    write_table(
        "entities",
        ("key", "type", "label", "also called"),
        [(row.key, row.type, row.label, ", ".join(row.aliases)) for row in rows],
    )


@app.command()
def facts(
    subject: Annotated[str | None, typer.Option(help="Only about this one.")] = None,
    relation: Annotated[str | None, typer.Option(help="Only of this relation, such as lives_in.")] = None,
    as_of: Annotated[
        str | None, typer.Option(help="What held at this time, with its zone.", show_default=False)
    ] = None,
    history: Annotated[bool, typer.Option("--history", help="What no longer holds, too.")] = False,
    limit: Limit = 50,
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List facts that hold now, or held at a time."""
    moment = instant_option(as_of, "--as-of")
    with connect(data, tenant) as memory:
        hits = memory.facts(
            Scope(agent, user), subject=subject, relation=relation, as_of=moment, history=history, limit=limit
        )
    if as_json:
        write_json(hits)
        return
    for hit in hits:
        out.print(memory_line(hit.memory), markup=False, highlight=False)
