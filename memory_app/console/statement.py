"""Options of the commands that store a statement."""

from __future__ import annotations

from typing import Annotated

import typer

from memory_app.records.importance import SCALES

Importance = Annotated[float | None, typer.Option(help="1 to 10.", show_default=False)]
ImportanceScale = Annotated[
    str | None, typer.Option(help=f"Scale of --importance: {' or '.join(SCALES)}.", show_default=False)
]
ValidFrom = Annotated[
    str | None, typer.Option(help="Since when it is true, with its zone; else from now.", show_default=False)
]
ValidUntil = Annotated[
    str | None, typer.Option(help="Until when it is true, with its zone.", show_default=False)
]
SaidAt = Annotated[str | None, typer.Option(help="When it was said, with its zone.", show_default=False)]
