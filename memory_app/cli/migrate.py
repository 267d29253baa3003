"""``migrate``: the schema of the database."""

from __future__ import annotations

import typer

from memory_app.cli.find import Data, find_settings
from memory_app.cli.output import out
from memory_app.services import schema

app = typer.Typer()


@app.command()
def migrate(data: Data = None) -> None:
    """Bring the database to the newest schema, as its owner."""
    revision = schema.upgrade(find_settings(data))
    out.print(f"the schema is at revision {revision}", highlight=False)
