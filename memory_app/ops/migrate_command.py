"""``migrate``: the schema of the database."""

from __future__ import annotations

import typer

from memory_app.console.output import err, out
from memory_app.console.settings import Data, find_settings
from memory_app.db.shards import HOME
from memory_app.errors import Misconfigured
from memory_app.tenancy import schema

app = typer.Typer()


@app.command()
def migrate(data: Data = None) -> None:
    """Bring the database to the newest schema, as its owner."""
    settings = find_settings(data)
    revision = schema.upgrade(settings)
    # Migrations run on what their predecessors left; an object that a person changed by hand is only noticed here.
    differences = schema.differences(settings)
    for shard, difference in differences:
        where = "" if shard == HOME else f"shard {shard}: "
        err.print(
            f"{where}{difference.name} is {difference.state}: {difference.remedy}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    if differences:
        raise Misconfigured(
            f"the schema is at revision {revision}, but the objects above are not as they must be"
        )
    out.print(f"the schema is at revision {revision}", highlight=False)
