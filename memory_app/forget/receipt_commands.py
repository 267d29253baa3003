"""``receipt show``, ``receipt verify``: a receipt to hand out, and whether one was altered and is of a person."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json, write_table
from memory_app.console.settings import Data, find_settings
from memory_app.errors import Permanent
from memory_app.forget import forget, receipts
from memory_app.forget.receipts import Verified
from memory_app.runtime import build

app = typer.Typer(help="Receipts of erasures, one by one.", no_args_is_help=True)


@app.command()
def show(
    erasure: Annotated[UUID, typer.Argument(help="Id of the receipt.")],
    tenant: Tenant = "default",
    data: Data = None,
) -> None:
    """Print a receipt as one line, to be kept or handed out."""
    with connect(data, tenant) as memory:
        line = forget.read_receipt_line(memory.runtime, memory.tenant_id, erasure)
    out.print(line, markup=False, highlight=False)


@app.command()
def verify(
    path: Annotated[Path, typer.Argument(help="File with one receipt a line.")],
    user: Annotated[
        str | None,
        typer.Option("--user", help="Only receipts of this person count, too.", show_default=False),
    ] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Tell of each receipt whether it was altered and whether this database knows it.

    Exit status 1 when one is not valid, is unknown, or is not of the person who was named.
    """
    with closing(build(find_settings(data))) as runtime:
        rows = receipts.verify(runtime, path, user=user)
    if as_json:
        write_json(rows)
    else:
        titles = ("line", "receipt", "erased at", "of", "seal", "in the database", "of this person")
        write_table("receipts", titles, [_cells(row) for row in rows])
    bad = [row for row in rows if not row.is_good]
    if bad or not rows:
        raise Permanent(f"{len(bad)} of {len(rows)} receipts are not as they should be")


def _cells(row: Verified) -> tuple[object, ...]:
    if row.seal is None:
        return (row.line, None, None, None, row.wrong, None, None)
    return (row.line, row.id, row.erased_at, row.of, row.seal, _word(row.is_known), _word(row.is_of_user))


def _word(answer: bool | None) -> str | None:
    return None if answer is None else "yes" if answer else "no"
