"""``fact``: add a fact of which subject, relation and object are known, instead of words that are read by rules."""

from __future__ import annotations

from typing import Annotated

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.instants import instant_option
from memory_app.console.output import AsJson, out, write_json
from memory_app.console.scope import Agent, User
from memory_app.console.settings import Data
from memory_app.console.statement import Importance, ImportanceScale, SaidAt, ValidFrom, ValidUntil
from memory_app.memories.commands import stored_line
from memory_app.records.records import ENTITY_TYPES
from memory_app.records.scope import Scope

app = typer.Typer()

TYPES = ", ".join(ENTITY_TYPES)


@app.command()
def fact(
    subject: Annotated[str, typer.Argument(help="Whom or what it is about, such as Mira.")],
    relation: Annotated[str, typer.Argument(help="Such as lives_in.")],
    object: Annotated[str, typer.Argument(help="The other end of the relation, such as Porto.")],
    text: Annotated[
        str | None, typer.Option(help="The same in words; else a sentence is made.", show_default=False)
    ] = None,
    subtype: Annotated[
        str | None, typer.Option(help="What sort of fact, such as preference.", show_default=False)
    ] = None,
    subject_type: Annotated[
        str | None,
        typer.Option(help=f"What a new subject is: {TYPES}. A known one keeps its own.", show_default=False),
    ] = None,
    object_type: Annotated[
        str | None, typer.Option(help="What a new object is, in the same way.", show_default=False)
    ] = None,
    valid_from: ValidFrom = None,
    valid_until: ValidUntil = None,
    said_at: SaidAt = None,
    importance: Importance = None,
    importance_scale: ImportanceScale = None,
    confidence: Annotated[float, typer.Option(help="How sure it is, up to 1.")] = 0.8,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="May be given several times.")] = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="Never fades.")] = False,
    deduplicate: Annotated[bool, typer.Option(help="Look for the same fact first.")] = True,
    agent: Agent = "assistant",
    user: User = "me",
    session: Annotated[
        str | None,
        typer.Option("--session", help="The conversation in which it was said.", show_default=False),
    ] = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Add a fact with subject, relation and object; what it ends is closed: `memory fact Mira lives_in Porto`."""
    since, until = instant_option(valid_from, "--valid-from"), instant_option(valid_until, "--valid-until")
    said = instant_option(said_at, "--said-at")
    with connect(data, tenant) as memory:
        remembered = memory.add_fact(
            Scope(agent, user, session),
            subject,
            relation,
            object,
            text=text,
            subtype=subtype,
            subject_type=subject_type,
            object_type=object_type,
            valid_from=since,
            said_at=said,
            valid_until=until,
            importance=importance,
            importance_scale=importance_scale,
            confidence=confidence,
            tags=tuple(tags or ()),
            pinned=pinned,
            deduplicate=deduplicate,
        )
    if as_json:
        write_json(remembered)
    else:
        out.print(stored_line(remembered), markup=False, highlight=False)
