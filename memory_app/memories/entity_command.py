"""``entity``: the card of a person, place or thing, and merging it into another that is the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json
from memory_app.console.scope import Agent, User
from memory_app.console.settings import Data
from memory_app.memories.commands import memory_line
from memory_app.memories.entities import Card
from memory_app.records.scope import Scope

app = typer.Typer()


@app.command()
def entity(
    key: Annotated[str, typer.Argument(help="Such as person:john_doe, as `memory entities` names it.")],
    merge_into: Annotated[
        str | None,
        typer.Option(
            "--merge-into",
            help="Another key of the same thing: mentions and names move there, and this key leads to it.",
            show_default=False,
        ),
    ] = None,
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show what is known of a person, place or thing, or merge it into another that is the same."""
    scope = Scope(agent, user)
    with connect(data, tenant) as memory:
        if merge_into is None:
            card, run_id = memory.entity(scope, key), None
        else:
            merged = memory.merge_entities(scope, key, into=merge_into)
            card, run_id = merged.card, merged.run_id
    if as_json:
        write_json(card if run_id is None else {"card": card, "run_id": run_id})
        return
    for line in _lines(card):
        out.print(line, markup=False, highlight=False)
    if run_id is not None:
        out.print(f"{key} was merged into it; `memory undo {run_id}` takes it back", markup=False)


def _lines(card: Card) -> Iterator[str]:
    entity = card.entity
    yield f"{entity.key}: {entity.label} ({entity.type})"
    if entity.aliases:
        yield f"also called: {', '.join(entity.aliases)}"
    if card.alias_keys:
        yield f"merged into it: {', '.join(card.alias_keys)}"
    if entity.summary:
        yield entity.summary
    yield (
        f"mentioned {entity.mention_count} times, {entity.first_seen:%Y-%m-%d} to {entity.last_seen:%Y-%m-%d}"
    )
    yield from (memory_line(fact, with_id=True) for fact in card.facts)
    for other in card.linked:
        yield f"together with {other.key} in {other.memories} memories"
