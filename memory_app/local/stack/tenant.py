"""The first tenant and its key, made once by whoever runs the stack."""

from __future__ import annotations

from pathlib import Path

from memory_app.local.embedded import place
from memory_app.settings import Settings
from memory_app.tenancy.access import owner_connection
from memory_app.tenancy.rows import keys

LABEL = "memory up"


def ensure_key(settings: Settings, file: Path, *, tenant: str) -> str:
    """The key in ``file`` if it still opens the door of this database, else a new one, kept there (0600)."""
    with owner_connection(settings) as connection:
        kept = place.read(file)
        caller = keys.authenticate(connection, kept) if kept else None
        if kept and caller is not None and caller.tenant == tenant:
            return kept
        _, made = keys.create(connection, tenant, rights=keys.RIGHTS, label=LABEL)
    place.write(file, made)
    return made
