"""Which servers a command talks to: those that the settings name, else the embedded ones of the data folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memory_app.errors import Misconfigured
from memory_app.local import embedded
from memory_app.local.servers import embedded_settings
from memory_app.settings import Settings

DATA_HELP = "Folder of the embedded servers; used when MEMORY_DATABASE__URL is not set."

Data = Annotated[
    Path | None, typer.Option("--data", help=f"{DATA_HELP} Default: .memory", show_default=False)
]


def serverless_settings() -> Settings:
    """Settings for a command that needs neither a database nor Redis."""
    return Settings()


def find_settings(data: Path | None) -> Settings:
    """Settings that reach running servers. An explicit ``--data`` wins; raises `Misconfigured` when nothing runs."""
    settings = Settings()
    # The default address does not count: where none was set, the embedded servers are meant.
    has_address = "url" in settings.database.model_fields_set
    if data is None and has_address:
        return settings
    folder = data or settings.data_folder
    servers = embedded.find(folder)
    if servers is None:
        raise Misconfigured(
            f"no servers run in {folder}: start them with `memory up`, or set MEMORY_DATABASE__URL"
        )
    return embedded_settings(servers)
