"""What stands in the tables of every shard, read as their owner, to compare it before and after a move; and locks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Column, Engine, Table, text

from memory_app.db.expressions import column_list
from memory_app.db.shards import schema_of
from memory_app.db.tables import metadata
from memory_app.transfer.rows.user_copy import TABLES

_SET_ANEW = ("fence", "lease_until", "starts", "is_indexed")
"""Columns that a move does not copy but sets."""

_SCOPES = """SELECT c.id FROM {schema}.scopes c JOIN public.users u ON u.id = c.user_id
    WHERE c.tenant_id = :tenant AND u.name = ANY(:users)"""
_DIGESTS = (
    "SELECT hashtextextended(CAST(ROW({columns}) AS text), 0) FROM {table} WHERE {scope} = ANY(:scopes)"
)
_TURNS = """SELECT t.id, u.name AS user, s.name AS session, t.seq, t.text, t.extracted_at IS NOT NULL AS is_extracted
    FROM {schema}.turns t JOIN {schema}.sessions s ON s.scope_id = t.scope_id AND s.id = t.session_id
    JOIN {schema}.scopes c ON c.id = t.scope_id JOIN public.users u ON u.id = c.user_id
    WHERE t.tenant_id = :tenant"""
_LOCKS = text(
    "SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND pid <> pg_backend_pid() GROUP BY pid"
)


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn, whichever shard it stands in."""

    id: UUID
    user: str
    session: str
    seq: int
    text: str
    is_extracted: bool


@dataclass(frozen=True, slots=True)
class Locks:
    """Locks on tables and indexes: of all connections together, and of the one that holds most."""

    total: int
    most_of_one: int


def key_digests(
    owner: Engine, tenant_id: int, shards: Sequence[int], *, users: Collection[str]
) -> Mapping[str, list[int]]:
    """A digest of the key of each row of the users, by table; a row that stands in two shards is there twice."""
    return {
        table.name: _digests(
            owner, tenant_id, shards, table=table, columns=list(table.primary_key), users=users
        )
        for table in _tables()
    }


def row_digests(
    owner: Engine, tenant_id: int, shards: Sequence[int], *, users: Collection[str]
) -> Mapping[str, list[int]]:
    """A digest of each row of the users, by table, without the columns that a move sets anew."""
    return {
        table.name: _digests(owner, tenant_id, shards, table=table, columns=_moved(table), users=users)
        for table in _tables()
    }


def stored_turns(owner: Engine, tenant_id: int, shards: Sequence[int]) -> tuple[StoredTurn, ...]:
    """Every turn of the tenant, by user, session and number."""
    turns: list[StoredTurn] = []
    with owner.connect() as connection:
        for shard in shards:
            statement = text(_TURNS.format(schema=schema_of(shard)))
            turns += [StoredTurn(*row) for row in connection.execute(statement, {"tenant": tenant_id})]
    return tuple(sorted(turns, key=lambda turn: (turn.user, turn.session, turn.seq)))


def locks(owner: Engine) -> Locks:
    """What all other connections of the server hold at this moment."""
    with owner.connect() as connection:
        counts = connection.execute(_LOCKS).scalars().all()
    return Locks(sum(counts), max(counts, default=0))


def _tables() -> list[Table]:
    return [metadata.tables[name] for name in TABLES]


def _moved(table: Table) -> list[Column[object]]:
    return [column for column in table.c if column.name not in _SET_ANEW]


def _digests(
    owner: Engine,
    tenant_id: int,
    shards: Sequence[int],
    *,
    table: Table,
    columns: Sequence[Column[object]],
    users: Collection[str],
) -> list[int]:
    digests: list[int] = []
    with owner.connect() as connection:
        for shard in shards:
            schema = schema_of(shard)
            of_users = {"tenant": tenant_id, "users": list(users)}
            scopes = connection.execute(text(_SCOPES.format(schema=schema)), of_users).scalars().all()
            statement = _DIGESTS.format(
                columns=column_list(columns),
                table=f"{schema}.{table.name}",
                scope="id" if table.name == "scopes" else "scope_id",
            )
            digests += connection.execute(text(statement), {"scopes": scopes}).scalars()
    return digests
