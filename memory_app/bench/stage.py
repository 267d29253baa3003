"""Where a measurement runs: servers of its own in a temporary folder, or in one that is named; one tenant."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from memory_app import MemoryApp
from memory_app.dispatch import finder
from memory_app.local import embedded
from memory_app.local.servers import embedded_settings
from memory_app.local.stack.folder import temporary_folder
from memory_app.local.stack.tenant import ensure_key
from memory_app.tenancy import schema

TENANT = "default"

Say = Callable[[str], None]


@contextlib.contextmanager
def prepared(data: Path | None, *, say: Say, **sections: dict[str, object]) -> Iterator[MemoryApp]:
    """The product on migrated, durable servers; ``sections`` are settings on top of the environment's."""
    # Durable, unlike the servers of `growth`: what a commit costs is part of every time that is measured.
    with temporary_folder(data) as folder, embedded.running(folder, on_progress=say) as servers:
        settings = embedded_settings(servers, **sections)
        schema.upgrade(settings)
        ensure_key(settings, folder / "api-key", tenant=TENANT)
        with MemoryApp.connect(settings, tenant=TENANT) as memory:
            yield memory


def drain(memory: MemoryApp) -> None:
    """Index, extract and do what else is due, in this process, until nothing is."""
    while True:
        due = finder.drain(memory.runtime)
        if not (due.turns or due.sessions or due.runs):
            return


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}
