"""Options of listings that come a page at a time."""

from __future__ import annotations

from typing import Annotated

import typer

Cursor = Annotated[
    str | None,
    typer.Option("--cursor", help="The last id of the page before, as --json has it.", show_default=False),
]
