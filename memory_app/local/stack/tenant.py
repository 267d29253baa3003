"""The first tenant and its key, made once by whoever runs the stack."""

from __future__ import annotations

from pathlib import Path

from memory_app.local.embedded import place
from memory_app.settings import Settings
from memory_app.tenancy.access import owner_connection
from memory_app.tenancy.rows import keys

LABEL = "memory up"


def ensure_key(settings: Settings, file: Path, *, tenant: str) -> str:
    """The key in ``file`` if this database knows it, else a new one, which is kept there (0600)."""
    with owner_connection(settings) as connection:
        key = place.read(file)
        if key:
            # Another database may stand behind the same folder, or somebody has revoked the key.
            caller = keys.authenticate(connection, key)
            if caller is not None and caller.tenant == tenant:
                return key
        _, new_key = keys.create(connection, tenant, rights=keys.RIGHTS, label=LABEL)
    # After the commit: a key in the file that is in no database would look like a revoked one.
    place.write(file, new_key)
    return new_key
