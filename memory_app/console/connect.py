"""The product as a tenant sees it, for commands that use it as a program would."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memory_app import MemoryApp
from memory_app.console.settings import find_settings

Tenant = Annotated[str, typer.Option("--tenant", help="Whose memory.")]


def connect(data: Path | None, tenant: str) -> MemoryApp:
    """The product as ``tenant`` sees it."""
    return MemoryApp.connect(find_settings(data), tenant=tenant)
