"""``events``: what changed, once or as it comes."""

from __future__ import annotations

from typing import Annotated

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, line_of, out, say
from memory_app.console.settings import Data
from memory_app.events.event import Event
from memory_app.events.read import OLDEST, PAGE_LIMIT

app = typer.Typer()


@app.command()
def events(
    after: Annotated[
        str | None,
        typer.Option(
            help="Id of the last event that was seen, or `oldest`. Default: `oldest`; with --follow from now on.",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until Ctrl-C.")] = False,
    types: Annotated[
        str | None,
        typer.Option(help="Only these, such as turn.extracted,memory; a group stands for all of it."),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only of this agent.", show_default=False)] = None,
    user: Annotated[str | None, typer.Option(help="Only of this person.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, max=PAGE_LIMIT, help="Most events, without --follow.")] = 100,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Tell what changed, in the order in which it became visible: ids only, no text. --json is one object a line."""
    write = _write_json_line if as_json else _write
    with connect(data, tenant) as memory:
        if follow:
            for event in memory.events(after=after, types=types, agent=agent, user=user):
                write(event)
            return
        page = memory.event_page(after=after or OLDEST, types=types, agent=agent, user=user, limit=limit)
    for event in page.events:
        write(event)
    say(f"go on with --after {page.cursor}")


def _write(event: Event) -> None:
    when = "" if event.at is None else f"{event.at:%Y-%m-%d %H:%M:%S}"
    whose = "/".join(name for name in (event.agent, event.user, event.session) if name is not None)
    parts = (when, event.type, whose, event.kind, event.target, event.successor and f"-> {event.successor}")
    out.print("  ".join(str(part) for part in parts if part), markup=False, highlight=False)


def _write_json_line(event: Event) -> None:
    # Not through Rich, which would wrap the line where somebody else reads it.
    out.file.write(line_of(event) + "\n")
    out.file.flush()
