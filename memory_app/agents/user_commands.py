"""``user``: the names by which a person goes, and the zone in which they speak."""

from __future__ import annotations

from typing import Annotated

import typer

from memory_app.agents.rows.users import UserRow
from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json
from memory_app.console.settings import Data
from memory_app.records.unchanged import UNCHANGED

app = typer.Typer()


@app.command()
def user(
    name: Annotated[str, typer.Argument(help="The person, by the name that the app uses.")],
    time_zone: Annotated[
        str | None,
        typer.Option(
            help='Zone in which they speak, such as Europe/Lisbon or +09:00; "": that of their times.'
        ),
    ] = None,
    label: Annotated[str | None, typer.Option(help='What the app calls them; "": nothing else.')] = None,
    alias: Annotated[
        list[str] | None,
        typer.Option(help='A further name of theirs; repeat it for several, which replace all. "": none.'),
    ] = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show a person's names and time zone, or change them; what is not given stays."""
    given = (time_zone, label, alias)
    with connect(data, tenant) as memory:
        if all(value is None for value in given):
            row = memory.user(name)
        else:
            row = memory.change_user(
                name,
                time_zone=UNCHANGED if time_zone is None else time_zone or None,
                label=UNCHANGED if label is None else label or None,
                aliases=UNCHANGED if alias is None else [text for text in alias if text],
            )
    if as_json:
        write_json(row)
        return
    for line in _lines(row):
        out.print(line, markup=False, highlight=False)


def _lines(row: UserRow) -> list[str]:
    zone = row.time_zone if row.zone_is_set else f"{row.time_zone} (nobody has set one)"
    names = ", ".join(row.aliases)
    return [row.name, f"label: {row.label or ''}", f"also called: {names}", f"time zone: {zone}"]
