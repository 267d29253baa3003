"""Which servers a command talks to: those that the settings name, else the embedded ones of the data folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memory_app import MemoryApp, embedded
from memory_app.errors import Misconfigured
from memory_app.runtime import embedded_settings
from memory_app.settings import Settings

DATA_HELP = "Folder of the embedded servers; used when MEMORY_DATABASE__URL is not set."

Data = Annotated[
    Path | None, typer.Option("--data", help=f"{DATA_HELP} Default: .memory", show_default=False)
]
Tenant = Annotated[str, typer.Option("--tenant", help="Whose memory.")]


def find_settings(data: Path | None) -> Settings:
    """Settings that reach running servers. An explicit ``--data`` wins; raises `Misconfigured` when nothing runs."""
    settings = Settings()
    if data is None and "url" in settings.database.model_fields_set:
        return settings
    folder = data or settings.data_folder
    found = embedded.find(folder)
    if found is None:
        raise Misconfigured(
            f"no servers run in {folder}: start them with `memory up`, or set MEMORY_DATABASE__URL"
        )
    return embedded_settings(found)


def connect(data: Path | None, tenant: str) -> MemoryApp:
    """The product as ``tenant`` sees it."""
    return MemoryApp.connect(find_settings(data), tenant=tenant)
