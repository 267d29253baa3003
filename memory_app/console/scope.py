"""Whose memory a command is about, as options that commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from memory_app.records.scope import Scope

Agent = Annotated[str, typer.Option("--agent", help="The AI that remembers.")]
User = Annotated[str, typer.Option("--user", help="The person remembered.")]

USUAL_AGENT, USUAL_USER = "assistant", "me"

# Of commands for which it matters whether somebody was named.
MaybeUser = Annotated[
    str | None, typer.Option("--user", help="The person remembered.", show_default=USUAL_USER)
]
ForAll = Annotated[
    bool, typer.Option("--for-all", help="What the agent shows every person, instead of --user.")
]


def scope_for(agent: str, user: str | None, session: str | None = None, *, for_all: bool) -> Scope:
    """The scope of a person, or with ``--for-all`` the agent's own. Raises `typer.BadParameter` for both at once."""
    if not for_all:
        return Scope(agent, user or USUAL_USER, session)
    if user is not None or session is not None:
        raise typer.BadParameter("is for every person, without --user and --session", param_hint="--for-all")
    return Scope(agent)
