"""A ledger of rows, kept by triggers that know nothing of the product: how many came to a table, and how many went.

For measurements alone: an erasure's receipt is compared with it. Made by the owner of the tables, in the home shard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, text

from memory_app.db.tables import metadata

SCOPE_KEYS: Mapping[str, str] = {
    **{table.name: "scope_id" for table in metadata.sorted_tables if "scope_id" in table.c},
    "scopes": "id",
}
"""The tables with rows of a scope, and the column that says of which."""

_LEDGER = """
    CREATE TABLE row_ledger (relation text, scope_id bigint, change bigint, transaction xid8);
    CREATE FUNCTION note_rows() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
    BEGIN
        EXECUTE format(
            'INSERT INTO row_ledger SELECT %L, %I, %s * count(*), pg_current_xact_id() FROM changed GROUP BY 2',
            TG_TABLE_NAME, TG_ARGV[0], CASE TG_OP WHEN 'DELETE' THEN -1 ELSE 1 END);
        RETURN NULL;
    END
    $$;
"""
_TRIGGERS = """
    CREATE TRIGGER ledger_insert AFTER INSERT ON {table} REFERENCING NEW TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION note_rows('{column}');
    CREATE TRIGGER ledger_delete AFTER DELETE ON {table} REFERENCING OLD TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION note_rows('{column}');
"""
# The scope goes last, and takes along with it what is still there: the transaction that deleted it is the erasure.
_SUMS = text(
    """
    WITH erasure AS (SELECT DISTINCT transaction FROM row_ledger
                     WHERE relation = 'scopes' AND scope_id = ANY(:scopes) AND change < 0)
    SELECT relation,
           coalesce(-sum(change) FILTER (WHERE transaction IN (SELECT transaction FROM erasure) AND change < 0), 0)
               ::bigint AS erased,
           coalesce(sum(change) FILTER (WHERE NOT (transaction IN (SELECT transaction FROM erasure) AND change < 0)), 0)
               ::bigint AS stored
    FROM row_ledger WHERE scope_id = ANY(:scopes) GROUP BY relation
    """
)
_GONE_SCOPES = text("SELECT DISTINCT scope_id FROM row_ledger WHERE relation = 'scopes' AND change < 0")
_TABLES = text(
    """SELECT table_name FROM information_schema.tables
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name <> 'row_ledger' ORDER BY 1"""
)


@dataclass(frozen=True, slots=True)
class Sum:
    """Rows of a table: as many as stood there when the erasure came, and as many as it deleted."""

    stored: int
    erased: int


def begin(owner: Connection) -> None:
    """Keep the ledger from now on."""
    owner.execute(text(_LEDGER))
    for table, column in SCOPE_KEYS.items():
        owner.execute(text(_TRIGGERS.format(table=table, column=column)))


def sums(owner: Connection) -> Mapping[str, Sum]:
    """What was stored and erased of the scopes that are gone, by table."""
    scopes = gone_scopes(owner)
    return {row.relation: Sum(row.stored, row.erased) for row in owner.execute(_SUMS, {"scopes": scopes})}


def tables_with(owner: Connection, word: str) -> Mapping[str, int]:
    """Rows that hold the word in any column, by table."""
    found = {}
    for table in owner.execute(_TABLES).scalars():
        statement = text(f"SELECT count(*) FROM {table} t WHERE t::text ILIKE :like")
        rows = owner.execute(statement, {"like": f"%{word}%"}).scalar_one()
        if rows:
            found[table] = rows
    return found


def rows_of_scopes_gone(owner: Connection) -> Mapping[str, int]:
    """Rows that still name a scope which was deleted, by table."""
    scopes = gone_scopes(owner)
    found = {}
    for table, column in SCOPE_KEYS.items():
        statement = text(f"SELECT count(*) FROM {table} WHERE {column} = ANY(:scopes)")
        rows = owner.execute(statement, {"scopes": scopes}).scalar_one()
        if rows:
            found[table] = rows
    return found


def users_named(owner: Connection, user: str) -> int:
    """How many people of that name are known."""
    statement = text("SELECT count(*) FROM users WHERE name = :user")
    return int(owner.execute(statement, {"user": user}).scalar_one())


def gone_scopes(owner: Connection) -> list[int]:
    """Ids of scopes that were deleted."""
    return list(owner.execute(_GONE_SCOPES).scalars())
