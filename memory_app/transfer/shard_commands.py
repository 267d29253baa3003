"""``shards``: list, add, move, drop-moved, move-user: shards, their servers, and who is in which."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, err, out, write_json, write_table
from memory_app.console.settings import Data, find_settings
from memory_app.errors import InvalidInput, NotFound
from memory_app.runtime import build
from memory_app.tenancy import schema
from memory_app.transfer import shards
from memory_app.transfer.shards import ListedShard

MOST_AT_ONCE = 64
"""Each is more than a hundred objects, and PostgreSQL keeps its catalogue in memory."""

app = typer.Typer(help="Shards of the database.", no_args_is_help=True)


@app.command("list")
def list_shards(data: Data = None, as_json: AsJson = False) -> None:
    """List the shards: whether new users come to each, how many it holds, and what is wrong with it."""
    with closing(build(find_settings(data))) as runtime:
        rows = shards.list_shards(runtime)
    if as_json:
        write_json([_as_json(row) for row in rows])
        return
    write_table(
        "shards",
        ("shard", "server", "users", "new users", "state"),
        [
            (
                row.shard.id,
                row.shard.server or "",
                row.users,
                "yes" if row.shard.is_open else "no",
                row.shard.difference or "in use",
            )
            for row in rows
        ],
    )


@app.command()
def add(
    count: Annotated[int, typer.Argument(min=1, max=MOST_AT_ONCE, help="How many.")] = 1,
    server: Annotated[
        str | None,
        typer.Option(help="The server, by its name in the settings; without: beside the home shard."),
    ] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Make shards for new users, as the owner of the tables. Every part must run this release or a newer one."""
    numbers = schema.add_shards(find_settings(data), count, server=server)
    if as_json:
        write_json({"shards": numbers})
    else:
        for number in numbers:
            out.print(f"shard {number} is made; new users come to it from now on", highlight=False)


@app.command()
def move(
    shard: Annotated[int, typer.Argument(min=1, help="The number of the shard.")],
    to: Annotated[
        str | None, typer.Option(help="The server, by its name in the settings, or home.", show_default=False)
    ] = None,
    abort: Annotated[
        bool, typer.Option("--abort", help="Take back a move that is not switched yet.")
    ] = False,
    source_url: Annotated[
        str | None,
        typer.Option(
            help="Where the other server reaches the one that has the shard, where that is another address than ours.",
            show_default=False,
        ),
    ] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Move a shard to another server while its users chat, or go on with a move that was begun."""
    settings = find_settings(data)
    if abort:
        schema.abort_move(settings, shard)
        out.print(f"shard {shard} stays where it is", highlight=False)
        return
    if to is None:
        raise InvalidInput(
            "to: name the server that the shard goes to, or take a move back with --abort", field="to"
        )
    moved = schema.move_shard(
        settings, shard, to=to, source_url=source_url, say=lambda text: err.print(text, highlight=False)
    )
    if as_json:
        write_json(moved)
        return
    pause = "" if moved.pause_seconds is None else f"; nobody could write for {moved.pause_seconds:.2f} s"
    out.print(
        f"shard {shard} is on server {to} now{pause}. What is left on server {moved.source}: "
        f"`memory shards drop-moved {shard}`",
        highlight=False,
        soft_wrap=True,
    )


@app.command("drop-moved")
def drop_moved(
    shard: Annotated[int, typer.Argument(min=1, help="The number of the shard.")], data: Data = None
) -> None:
    """Drop the rows of a shard that stayed on the server where it was before it moved."""
    names = schema.drop_moved(find_settings(data), shard)
    if not names:
        raise NotFound(f"no server has anything left of shard {shard}", field="shard")
    out.print(f"dropped on server {', '.join(names)}", highlight=False)


@app.command("move-user")
def move_user(
    user: Annotated[str, typer.Argument(help="The person, by the name that the app uses.")],
    to: Annotated[int, typer.Option("--to", min=0, help="The number of the shard.")],
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Move all rows of a user to another shard. Chats of the user wait meanwhile, and nothing else does."""
    with connect(data, tenant) as memory:
        moved = shards.move_user(memory.runtime, memory.tenant_id, user, to=to)
    if as_json:
        write_json(moved)
    elif moved.source == moved.target:
        out.print(f"the user is in shard {to} already", highlight=False)
    else:
        rows = sum(moved.rows.values())
        out.print(f"moved {rows} rows from shard {moved.source} to shard {moved.target}", highlight=False)


def _as_json(row: ListedShard) -> dict[str, object]:
    return {
        "shard": row.shard.id,
        "server": row.shard.server,
        "revision": row.shard.revision,
        "is_open": row.shard.is_open,
        "users": row.users,
        "difference": row.shard.difference,
    }
