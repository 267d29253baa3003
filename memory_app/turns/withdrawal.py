"""Take turns out of what search finds, with their share in the counts of terms."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Connection

from memory_app.memories.rows import terms
from memory_app.turns.rows import search_columns


def withdraw(connection: Connection, tenant_id: int, scope_id: int, ids: Sequence[UUID]) -> None:
    """Delete what search reads of these turns. Windows leave them out by their reason."""
    term_counts = search_columns.withdraw(connection, scope_id, ids)
    terms.add(connection, tenant_id, [(scope_id, counts) for counts in term_counts], sign=-1)
