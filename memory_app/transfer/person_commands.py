"""``report user``: what is held about a person."""

from __future__ import annotations

from typing import Annotated

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json
from memory_app.console.settings import Data
from memory_app.transfer import person

app = typer.Typer(help="What is held about a person.", no_args_is_help=True)


@app.callback()
def _report() -> None:
    """Without a callback typer would make the one command the group itself."""


@app.command()
def user(
    name: Annotated[str, typer.Argument(help="The person, by the name that the app uses.")],
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show what is held about a person with all agents: how much, since when, and what is believed now."""
    with connect(data, tenant) as memory:
        report = memory.report_user(name)
    if as_json:
        write_json(report)
    else:
        out.print(person.as_text(report), markup=False, highlight=False, end="")
