"""What commands say: results on standard output, progress and complaints on standard error."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

out = Console(soft_wrap=True)
wrapped = Console()
"""For tables and boxes, which must know how wide the terminal is."""
err = Console(stderr=True, soft_wrap=True)

AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]


def complain(message: str) -> None:
    """Print a complaint as one line, whatever the message looks like."""
    # A name in the message may be in brackets, which is markup to Rich.
    err.print("memory: " + " ".join(message.split()), markup=False, highlight=False)


def say(step: str) -> None:
    """Print one step of something that takes a while."""
    err.print(f"[dim]{escape(step)}[/dim]", highlight=False)


def write_json(value: Any) -> None:
    out.print_json(as_json(value))


def as_json(value: Any) -> str:
    """Return records, ids, times and enumerations as plain JSON."""
    return json.dumps(value, default=_plain, ensure_ascii=False, indent=2)


def line_of(value: Any) -> str:
    """Return the same in one line."""
    return json.dumps(value, default=_plain, ensure_ascii=False)


def write_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; None is shown as nothing. What people said is never taken for markup."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for column in columns:
        # Folded, not cut: an id or a text that ends in "…" is of no use.
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(escape(shown(cell)) for cell in row))
    wrapped.print(table)


def shown(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return cell.strftime("%Y-%m-%d %H:%M")
    if isinstance(cell, float):
        return f"{cell:.3f}"
    return str(cell)


def _plain(value: Any) -> Any:
    # `is_dataclass` is true for a class, too, which has no values.
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, UUID | Path | Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
