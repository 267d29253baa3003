"""The metadata that every table registers on, and the forms of columns that several tables share.

Three rules shape every table: the tenant stands in each row (row-level security reads it) and in each reference (or an
insert would tell whether another tenant has an id), keys of what grows begin with ``scope_id`` (so that it can be
partitioned or distributed by scope), and every referencing column has an index (or erasing a person takes minutes).
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    MetaData,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "ix": "%(table_name)s_%(column_0_name)s_idx",
    }
)

NOW = text("now()")
NO_TEXTS = text("'{}'::text[]")
NO_FIELDS = text("'{}'::jsonb")

# Without none_as_null SQLAlchemy writes None as the JSON value null, which IS NULL does not see.
JSON_VALUE = JSONB(none_as_null=True)


def instant(name: str, *, required: bool = False, now: bool = False) -> Column[object]:
    return Column(
        name, DateTime(timezone=True), nullable=not (required or now), server_default=NOW if now else None
    )


def tenant() -> Column[int]:
    """The tenant where no scope stands beside it."""
    return Column("tenant_id", BigInteger, ForeignKey("tenants.id", ondelete="CASCADE"), nullable=False)


def tenant_of_scope() -> Column[int]:
    """The tenant where (tenant_id, scope_id) refers to a scope, which proves the tenant."""
    return Column("tenant_id", BigInteger, nullable=False)


def serial() -> Column[int]:
    return Column("id", BigInteger, Identity(always=True), nullable=False)


def time_ordered() -> Column[object]:
    # They sort by time, so that new rows stand together in an index, and name the shard in which they were made.
    return Column("id", Uuid, server_default=text("new_id()"), nullable=False)


def count(name: str, *, start: int = 0) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text(str(start)))


def xact(name: str, *, now: bool = False) -> Column[object]:
    """The number of the transaction that made a change, for `memory_app.events`; NULL: the change is still to come, or
    came before the column. ``now``: that of the insert. Triggers of ``access.sql`` set the others."""
    return Column(name, BigInteger, server_default=text("xact_number()") if now else None)


def changes(table: str, column: str, *, only: str = "") -> Index:
    """Changes of a tenant in the order of their transactions."""
    condition = f"{column} IS NOT NULL" + (f" AND {only}" if only else "")
    return Index(f"{table}_{column}_idx", "tenant_id", column, "id", postgresql_where=text(condition))


def found_by(name: str, column: str) -> Index:
    """Finds rows by the id of a request or task. These begin with the time, as the rows' places do: an index of the
    range of each few pages is enough, and costs next to nothing when a row is written."""
    return Index(
        name,
        column,
        postgresql_using="brin",
        postgresql_ops={column: "uuid_minmax_multi_ops"},
        postgresql_with={"pages_per_range": "16"},
    )


def of_scope() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant_id", "scope_id"], ["scopes.tenant_id", "scopes.id"], ondelete="CASCADE"
    )


def reference(
    name: str, columns: Sequence[str], to: str, *, ondelete: str | None = "CASCADE"
) -> ForeignKeyConstraint:
    """A reference to a row of the same tenant. ``columns`` are those of the row's key: the last is its id, and one
    before it its scope."""
    keys = ("scope_id", "id")[-len(columns) :]
    return ForeignKeyConstraint(
        ["tenant_id", *columns],
        [f"{to}.tenant_id", *(f"{to}.{key}" for key in keys)],
        name=name,
        ondelete=ondelete,
    )


def referenced(table: str) -> UniqueConstraint:
    """What `reference` needs of a table of a scope. It begins with the id, so that a row is found by that, too."""
    return UniqueConstraint("id", "scope_id", "tenant_id", name=f"{table}_reference_key")
