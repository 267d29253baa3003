"""``stats``, ``expression``, ``queries``: what a scope holds, how its agent speaks, and what the person asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, shown, write_json, write_table
from memory_app.console.scope import Agent, User
from memory_app.console.settings import Data
from memory_app.memories.query_graph import LIMIT_MAX
from memory_app.recall.expression_state import ExpressionState
from memory_app.records.scope import Scope
from memory_app.turns.statistics import Stats

app = typer.Typer()


@app.command()
def stats(
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Count what is held of a person with an agent, beside what may be held."""
    with connect(data, tenant) as memory:
        counts = memory.stats(Scope(agent, user))
    if as_json:
        write_json(counts)
        return
    write_table(f"{user} with {agent}", ("what", "rows", "limit"), list(_rows(counts)))


def _rows(counts: Stats) -> Iterator[tuple[str, int, int | None]]:
    yield "memories", sum(counts.memories.values()), counts.max_memories
    for kind, count in sorted(counts.memories.items()):
        yield f"  {kind}", count, None
    for name, count in asdict(counts.rows).items():
        yield name.replace("_", " "), count, counts.max_links if name == "links" else None


@app.command()
def expression(
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show how an agent speaks with a person now: persona, what tunes it, and the tone of the last interaction."""
    with connect(data, tenant) as memory:
        state = memory.expression(Scope(agent, user))
    if as_json:
        write_json(state)
        return
    for line in _lines(state):
        out.print(line, markup=False, highlight=False)


def _lines(state: ExpressionState) -> Iterator[str]:
    yield f"tone: {shown(state.tone)}"
    yield f"last interaction: {shown(state.last_interaction_at)}"
    yield f"session: {shown(state.session)}"
    yield f"session began: {shown(state.session_started_at)}"
    for field, value in state.persona.items():
        # As `memory agent` writes it.
        yield f"persona.{field} = {json.dumps(value, ensure_ascii=False)}"
    yield from (f"adjustment: {memory.text}" for memory in state.adjustments)


@app.command()
def queries(
    text: Annotated[str, typer.Argument(help="The question to compare with.")],
    limit: Annotated[int, typer.Option(min=1, max=LIMIT_MAX, help="Most questions.")] = 10,
    session: Annotated[
        str | None,
        typer.Option("--session", help="The conversation, whose questions are preferred a little."),
    ] = None,
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Find questions that a person asked and that are like a text."""
    with connect(data, tenant) as memory:
        rows = memory.similar_queries(Scope(agent, user, session), text, limit=limit)
    if as_json:
        write_json(rows)
        return
    write_table(
        "similar questions",
        ("score", "asked", "session", "question"),
        [(row.score, row.repeats, row.session, row.text) for row in rows],
    )
