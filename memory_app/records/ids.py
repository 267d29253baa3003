"""Ids as callers give them."""

from __future__ import annotations

from uuid import UUID

from memory_app.errors import InvalidInput


def checked_id(id: UUID | str, *, field: str = "id") -> UUID:
    """The id; `InvalidInput` naming ``field`` for what is none."""
    # Callers in Python may hand on what they read from JSON.
    if isinstance(id, UUID):
        return id
    try:
        return UUID(id)
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"{field}: not a UUID", field=field) from error
