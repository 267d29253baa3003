"""``links``, ``link``, ``unlink``, ``entities``, ``facts``: what memories are about, and what connects them."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.instants import instant_option
from memory_app.console.output import AsJson, out, write_json, write_table
from memory_app.console.page import Cursor
from memory_app.console.scope import Agent, User
from memory_app.console.settings import Data
from memory_app.memories.commands import MemoryId, memory_line
from memory_app.memories.facts import Match
from memory_app.records.scope import Scope

app = typer.Typer()

Limit = Annotated[int, typer.Option(min=1, max=500, help="Most rows.")]


@app.command()
def links(
    memory_id: MemoryId,
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
        ("id", "from", "to", "type", "weight", "since"),
        [(row.id, row.source, row.target, row.type, row.weight, row.created_at) for row in rows],
    )


@app.command()
def link(
    source: Annotated[UUID, typer.Argument(help="A memory, as `memory list --ids` names it.")],
    target: Annotated[UUID, typer.Argument(help="Another of the same agent and user.")],
    type: Annotated[
        str, typer.Option("--type", help="related_to, similar_to, causes, part_of, follows or contradicts.")
    ] = "related_to",
    weight: Annotated[float, typer.Option(help="How strong, up to 1.")] = 1.0,
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Link two memories; drawn again the link takes the new weight."""
    with connect(data, tenant) as memory:
        row = memory.add_link(Scope(agent, user), source, target, type=type, weight=weight)
    if as_json:
        write_json(row)
        return
    out.print(f"linked: {row.id}", markup=False, highlight=False)


@app.command()
def unlink(
    link_id: Annotated[str, typer.Argument(help="The link, as `memory links` names it.")],
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
) -> None:
    """Remove a link; both memories stay."""
    with connect(data, tenant) as memory:
        memory.remove_link(Scope(agent, user), link_id)
    out.print(f"link {link_id} was removed", markup=False, highlight=False)


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
    object: Annotated[str | None, typer.Option(help="Only with this other end.", show_default=False)] = None,
    query: Annotated[
        str | None, typer.Option(help="Only those like this text, best first.", show_default=False)
    ] = None,
    match: Annotated[Match, typer.Option(help="How --query finds them.")] = Match.MEANING,
    floor: Annotated[
        bool, typer.Option("--floor", help="Of --query: leave out what is not clearly similar.")
    ] = False,
    as_of: Annotated[
        str | None, typer.Option(help="What held at this time, with its zone.", show_default=False)
    ] = None,
    known_at: Annotated[
        str | None, typer.Option(help="What was known at this time, with its zone.", show_default=False)
    ] = None,
    history: Annotated[bool, typer.Option("--history", help="What no longer holds, too.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List facts that hold now, or held at a time."""
    held_at, known = instant_option(as_of, "--as-of"), instant_option(known_at, "--known-at")
    with connect(data, tenant) as memory:
        hits = memory.facts(
            Scope(agent, user),
            subject=subject,
            relation=relation,
            object=object,
            as_of=held_at,
            known_at=known,
            history=history,
            query=query,
            match=match,
            floor=floor,
            limit=limit,
            cursor=cursor,
        )
    if as_json:
        write_json(hits)
        return
    for hit in hits:
        out.print(memory_line(hit.memory), markup=False, highlight=False)
