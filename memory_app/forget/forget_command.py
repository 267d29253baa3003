"""``forget``: remove a person, or a session, a turn or a memory of theirs, for good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

import typer

from memory_app import MemoryApp
from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson
from memory_app.console.scope import USUAL_AGENT, USUAL_USER
from memory_app.console.settings import Data
from memory_app.forget.commands import DryRun, Yes, follow, show_erased
from memory_app.jobs.rows.runs import Run
from memory_app.records.scope import Scope

app = typer.Typer()


@dataclass(frozen=True, slots=True)
class _Target:
    """What is to go: one of these."""

    person: str | None
    session: Scope | None
    turn: UUID | None
    memory: UUID | None


@app.command()
def forget(
    person: Annotated[
        str | None,
        typer.Argument(metavar="PERSON", help="The person, by the name that the app uses, with all agents."),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(help="Instead: this conversation of --agent and --user.", show_default=False),
    ] = None,
    turn: Annotated[
        UUID | None,
        typer.Option(help="Instead: this turn, as `memory turns` names it.", show_default=False),
    ] = None,
    memory_id: Annotated[
        UUID | None,
        typer.Option(
            "--memory", help="Instead: this memory, as `memory list --ids` names it.", show_default=False
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Of a session: the AI.", show_default=USUAL_AGENT)
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="Of a session: the person.", show_default=USUAL_USER)
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Delete a person with all agents, or a session, a turn or a memory, with what was derived from it alone.

    Where others work on the rows, a worker does it in turn, and the command shows how far it is. It may be
    interrupted: the erasure goes on.
    """
    # Whoever writes `--user mira` and no session may mean all of Mira: that is a PERSON, and must be said so.
    if session is None and not (agent is None and user is None):
        raise typer.BadParameter("--agent and --user say whose --session; a PERSON stands alone")
    named = [part for part in (person, session, turn, memory_id) if part is not None]
    if len(named) != 1:
        raise typer.BadParameter("name one of PERSON, --session, --turn and --memory")
    if dry_run and (turn or memory_id):
        raise typer.BadParameter("only for a PERSON or a --session", param_hint="--dry-run")
    of_session = None if session is None else Scope(agent or USUAL_AGENT, user or USUAL_USER, session)
    target = _Target(person, of_session, turn, memory_id)
    with connect(data, tenant) as memory:
        if not dry_run and not yes:
            typer.confirm(
                f"Delete {_described(memory, target)} of tenant {tenant!r} for good?", abort=True, err=True
            )
        run = follow(memory, _erase(memory, target, dry_run=dry_run))
    show_erased(run, dry_run=dry_run, as_json=as_json)


def _described(memory: MemoryApp, target: _Target) -> str:
    if target.person is not None:
        return f"everything about {target.person!r}"
    if target.session is not None:
        scope = target.session
        return f"session {scope.session!r} of {scope.user!r} with {scope.agent!r}"
    if target.turn is not None:
        return f"turn {target.turn}"
    assert target.memory is not None
    # With its words, since nobody sees in an id that it is the wrong one.
    return f"the memory {memory.memory(target.memory).text!r}"


def _erase(memory: MemoryApp, target: _Target, *, dry_run: bool) -> Run:
    if target.person is not None:
        return memory.forget(target.person, dry_run=dry_run)
    if target.session is not None:
        return memory.forget_session(target.session, dry_run=dry_run)
    if target.turn is not None:
        return memory.forget_turn(target.turn)
    assert target.memory is not None
    return memory.forget_memory(target.memory)
