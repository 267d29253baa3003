"""``checkpoints list``, ``create``, ``export``: documents of what an agent and a person had at a moment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json, write_table
from memory_app.console.page import Cursor
from memory_app.console.scope import Agent, User
from memory_app.console.settings import Data
from memory_app.records.scope import Scope
from memory_app.transfer.commands import tell_counts, write_document
from memory_app.transfer.snapshots import PAGE_LIMIT

app = typer.Typer(help="Checkpoints: documents of the strongest memories at a moment.", no_args_is_help=True)


@app.command("list")
def list_checkpoints(
    limit: Annotated[int, typer.Option(min=1, max=PAGE_LIMIT, help="Most checkpoints.")] = 50,
    cursor: Cursor = None,
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List checkpoints, newest first."""
    with connect(data, tenant) as memory:
        rows = memory.checkpoints(Scope(agent, user), limit=limit, cursor=cursor)
    if as_json:
        write_json(rows)
        return
    write_table(
        "checkpoints",
        ("id", "session", "made", "memories", "links"),
        [(row.id, row.session, row.created_at, row.nodes, row.links) for row in rows],
    )


@app.command()
def create(
    session: Annotated[
        str | None, typer.Option("--session", help="Only memories of this conversation.", show_default=False)
    ] = None,
    most: Annotated[
        int | None, typer.Option(min=1, help="Most memories; else as the settings say.", show_default=False)
    ] = None,
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Keep the strongest memories as a document in the database."""
    with connect(data, tenant) as memory:
        row = memory.checkpoint(Scope(agent, user, session), most=most)
    if as_json:
        write_json(row)
        return
    out.print(f"checkpoint {row.id}: {row.nodes} memories, {row.links} links", markup=False, highlight=False)


@app.command()
def export(
    checkpoint_id: Annotated[UUID, typer.Argument(help="The checkpoint, as listed.")],
    path: Annotated[Path, typer.Argument(help="File to write.")],
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Write the document of a checkpoint to a file, which `memory import` reads."""
    with connect(data, tenant) as memory:
        document = memory.read_checkpoint(Scope(agent, user), checkpoint_id)
    write_document(path, document)
    tell_counts(document["counts"], f"written to {path}", as_json=as_json)
