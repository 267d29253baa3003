"""How turns are read: here, below what records them, because memories show the turns they rest on."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from sqlalchemy import Row, and_, select

from memory_app.db.tables.turns import sessions, turns
from memory_app.records.records import Role, Turn

_NAMES = tuple(field.name for field in fields(Turn))

_ROLE = _NAMES.index("role")

TURNS = select(*(sessions.c.name if name == "session" else turns.c[name] for name in _NAMES)).join_from(
    turns, sessions, and_(sessions.c.scope_id == turns.c.scope_id, sessions.c.id == turns.c.session_id)
)
"""What `read_turn` makes a record of, in the order of its fields; to be narrowed down."""


def read_turn(row: Row[*tuple[Any, ...]]) -> Turn:
    """The record of a row of `TURNS`."""
    # By place: a look at a context window reads a hundred turns, and by name each would take twice as long.
    values = list(row)
    values[_ROLE] = Role(values[_ROLE])
    return Turn(*values)
