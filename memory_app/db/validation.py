"""Constraints that a revision added without looking at the rows: which there are, and the look at the rows.

To compare millions of rows takes longer than anybody should wait for a table, and a table is locked while a revision
changes it. So a revision adds such a constraint ``NOT VALID``, which holds for what is written from then on, and
`memory_app.db.migrate` validates it afterwards, in a transaction that holds up no read and no write.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from memory_app.db.catalog import TABLES
from memory_app.db.shards import schema_of
from memory_app.errors import Conflict

_PENDING = text(
    """SELECT c.relname AS table, r.conname AS name
    FROM pg_constraint r JOIN pg_class c ON c.oid = r.conrelid
    WHERE c.relnamespace = to_regnamespace(:schema) AND c.relname = ANY(:tables) AND NOT r.convalidated ORDER BY 1, 2"""
)


@dataclass(frozen=True, slots=True)
class Pending:
    """A constraint of a shard whose rows from before it were not looked at yet."""

    shard: int
    table: str
    name: str


def pending(connection: Connection, shard: int) -> tuple[Pending, ...]:
    """Those of a shard."""
    rows = connection.execute(_PENDING, {"schema": schema_of(shard), "tables": list(TABLES)})
    return tuple(Pending(shard, row.table, row.name) for row in rows)


def validate(connection: Connection, constraint: Pending) -> None:
    """Compare all rows of the table with the constraint. Raises `Conflict` where one breaks it.

    For the owner, and only while row-level security does not hold for it (see ``access.sql``): PostgreSQL would compare
    the rows that the owner sees, which are none, and call the constraint valid.
    """
    table = f"{schema_of(constraint.shard)}.{constraint.table}"
    try:
        connection.execute(text(f"ALTER TABLE {table} VALIDATE CONSTRAINT {constraint.name}"))
    except IntegrityError as error:
        raise Conflict(
            f"table {table} has rows that break {constraint.name}, which holds for new rows already: {error.orig}; "
            "mend or delete them as a superuser, then run `memory migrate` again"
        ) from error
