"""``session end``, ``session clear``: what becomes of a conversation."""

from __future__ import annotations

from typing import Annotated

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json
from memory_app.console.scope import Agent, User
from memory_app.console.settings import Data
from memory_app.dispatch.perform import check_done, perform_here
from memory_app.records.run import RunState
from memory_app.records.scope import Scope

app = typer.Typer(help="Sessions, one by one: end or clear them.", no_args_is_help=True)

Session = Annotated[str, typer.Argument(help="The conversation, as `memory sessions` names it.")]


@app.command()
def end(
    session: Session,
    promote: Annotated[
        bool, typer.Option("--promote/--no-promote", help="Keep the strongest of its memories.")
    ] = True,
    checkpoint: Annotated[
        bool, typer.Option("--checkpoint/--no-checkpoint", help="Keep a document of it, before they go.")
    ] = True,
    carry: Annotated[
        bool, typer.Option("--carry/--no-carry", help="Memories that are kept keep their counts, too.")
    ] = True,
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """End a session: its strongest memories stay, and the rest goes. `memory undo RUN` takes it back."""
    scope = Scope(agent, user, session)
    with connect(data, tenant) as memory:
        enqueued = memory.end_session(scope, promote=promote, checkpoint=checkpoint, carry=carry)
        run = perform_here(memory, scope, enqueued)
    if as_json:
        write_json(run)
    elif run.state is RunState.DONE:
        report = run.report
        line = f"run {run.id}: {len(report['promoted'])} promoted, {report['dropped']} dropped"
        if report["checkpoint"]:
            line += f", checkpoint {report['checkpoint']}"
        out.print(line, markup=False, highlight=False)
        if report["reason"]:
            out.print(report["reason"], markup=False, highlight=False)
    check_done(run)


@app.command()
def clear(
    session: Session,
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
) -> None:
    """Drop what Redis holds of a session, so that it begins afresh; its turns and memories stay."""
    with connect(data, tenant) as memory:
        memory.clear_session(Scope(agent, user, session))
    out.print(f"session {session} was cleared", markup=False, highlight=False)
