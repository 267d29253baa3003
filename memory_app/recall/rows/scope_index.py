"""Search indexes of a big scope: a partial HNSW and a partial GIN on its turns and on its memories.

A global vector index would make every write slow and, filtered by scope, find too few rows. A partial one costs
only its own scope, but for this: whatever is done to the table is planned with all of its indexes and locks each. So
there are few such scopes. The indexes are built concurrently, as the owner of the tables, outside any transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, text

from memory_app.db.db import translated
from memory_app.db.shards import schema_of, shard_of

TABLES = ("turns", "memories")

EF_CONSTRUCTION = 128
"""Neighbours looked at for each row while a vector index is built: twice pgvector's own number."""

_BIG = text("SELECT tenant_id, scope_id FROM big_scopes(:least_rows, :model, :most)")
_VALID = text(
    """SELECT i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE c.relname = :name AND c.relnamespace = CAST(CAST(:schema AS text) AS regnamespace)"""
)
_OF_SCOPE = text(
    """SELECT c.relname FROM pg_class c
    WHERE c.relkind = 'i' AND c.relnamespace = CAST(CAST(:schema AS text) AS regnamespace) AND c.relname ~ :pattern"""
)

_ALL = text(
    f"""SELECT DISTINCT CAST(substring(c.relname FROM '_(?\\:hnsw|words)_([0-9]+)') AS bigint) AS scope_id
    FROM pg_class c WHERE c.relkind = 'i' AND c.relnamespace = CAST(CAST(:schema AS text) AS regnamespace)
      AND c.relname ~ '^({"|".join(TABLES)})_(hnsw|words)_[0-9]+(_[0-9a-f]+)?$' ORDER BY 1"""
)
_ROWS = text("SELECT tenant_id, scope_id, row_count FROM scope_rows(:scopes)")
_LOCKS = text(
    """SELECT CAST(current_setting('max_locks_per_transaction') AS integer) AS each,
        CAST(current_setting('server_version_num') AS integer) >= 180000 AS keeps_own"""
)

INDEXES_EACH = 6
"""Indexes that a scope may have in both tables: for two models while its rows move from one to the other."""

OTHER_RELATIONS = 80
"""Tables and indexes besides those that a transaction of ours may lock."""

_DIMENSIONS = """SELECT vector_dims(embedding) FROM {table}
    WHERE scope_id = :scope AND embedding_model = :model LIMIT 1"""
_AGREEMENT = """
    WITH probe AS MATERIALIZED (
        SELECT id, embedding FROM {table} WHERE scope_id = {scope} AND embedding_model = {model}
        ORDER BY md5(CAST(id AS text)) LIMIT :probes
    )
    SELECT count(*) AS probes, coalesce(avg(shared.share), 1) AS share FROM probe p CROSS JOIN LATERAL (
        SELECT (SELECT count(*) FROM (
                    SELECT t.embedding <=> p.embedding AS far FROM {table} t
                    WHERE t.scope_id = {scope} AND t.embedding_model = {model}
                    ORDER BY CAST(t.embedding AS halfvec({size})) <=> CAST(p.embedding AS halfvec({size}))
                    LIMIT :nearest) i
                WHERE i.far <= e.farthest + 1e-6) / CAST(e.n AS double precision) AS share
        FROM (SELECT count(*) AS n, max(far) AS farthest FROM (
                SELECT t.embedding <=> p.embedding AS far FROM {table} t
                WHERE t.scope_id = {scope} AND t.embedding_model = {model} ORDER BY far LIMIT :nearest) x) e
    ) shared"""
"""The farthest of the exact ones is known by a scan, since no index is on the vector without its length; the others are
the index's. Distances are compared, not ids: of rows that say the same any will do."""

_DEFINED = text(
    """SELECT c.relname, pg_get_indexdef(c.oid) FROM pg_class c
    WHERE c.relkind = 'i' AND c.relnamespace = CAST(CAST(:schema AS text) AS regnamespace) AND c.relname ~ :pattern"""
)


@dataclass(frozen=True, slots=True)
class ScopeRows:
    """How many turns and memories a scope holds."""

    tenant_id: int
    scope_id: int
    row_count: int


@dataclass(frozen=True, slots=True)
class BigScope:
    """A scope that is worth indexes of its own."""

    tenant_id: int
    scope_id: int


def big_scopes(connection: Connection, *, least_rows: int, model: str, most: int) -> tuple[BigScope, ...]:
    """Scopes of any tenant with at least ``least_rows`` rows and no indexes for ``model``, biggest first."""
    rows = connection.execute(_BIG, {"least_rows": least_rows, "model": model, "most": most})
    return tuple(BigScope(*row) for row in rows)


def all_indexed(connection: Connection) -> tuple[int, ...]:
    """Every scope of any tenant that has search indexes, also one that is gone; from the catalogue."""
    return tuple(connection.execute(_ALL, {"schema": _schema(connection)}).scalars())


def scope_rows(connection: Connection, scope_ids: Sequence[int]) -> tuple[ScopeRows, ...]:
    """The sizes of those of the scopes that are still there."""
    return tuple(ScopeRows(*row) for row in connection.execute(_ROWS, {"scopes": list(scope_ids)}))


def affordable(connection: Connection) -> int:
    """Return how many scopes may have search indexes, so that the table of locks does not overflow even with a
    transaction in every connection that locks all of them.

    The table has room for twice `max_locks_per_transaction` for each connection; some locks a connection keeps for
    itself: 16, since version 18 as many as `max_locks_per_transaction`.
    """
    row = connection.execute(_LOCKS).one()
    room = 2 * int(row.each) + (int(row.each) if row.keeps_own else 16)
    return max((room - OTHER_RELATIONS) // INDEXES_EACH, 0)


def build(
    owner: Engine, scope_id: int, *, model: str, dimensions: int, keep_others: bool = False
) -> tuple[str, ...]:
    """Build what is missing, and drop what a broken build or another model left; the names of all four indexes.

    ``keep_others`` keeps the whole indexes of other models, whose rows still wait to be embedded again. Takes seconds
    to minutes and blocks no writer. Raises `StoreUnavailable`.
    """
    schema = _schema(owner)
    definitions = _definitions(schema, scope_id, model=model, dimensions=dimensions)
    # No transaction: PostgreSQL refuses to build an index concurrently inside of one.
    with translated(owner), owner.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        # The limit of statements is for requests; this takes minutes.
        connection.execute(text("SET statement_timeout = 0"))
        # pgvector builds an index much more slowly once its graph exceeds this.
        connection.execute(text("SET maintenance_work_mem = '512MB'"))
        for name in _existing(connection, schema, scope_id):
            # An interrupted build leaves an invalid index, which IF NOT EXISTS would accept.
            values = {"schema": schema, "name": name}
            is_whole = connection.execute(_VALID, values).scalar_one_or_none()
            is_needless = name not in definitions and not keep_others
            if not is_whole or is_needless:
                connection.execute(text(f"DROP INDEX CONCURRENTLY IF EXISTS {schema}.{name}"))
        for definition in definitions.values():
            connection.execute(text(definition))
    return tuple(definitions)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far the vector index of a scope finds what a scan finds: ``share`` of the ``nearest`` rows over ``probes``
    rows of its own, 0–1."""

    scope_id: int
    table: str
    model: str
    probes: int
    share: float


def indexed(connection: Connection, *, most: int) -> tuple[tuple[int, str], ...]:
    """Scopes of this tenant that have vector indexes, and for which model."""
    statement = text(
        "SELECT scope_id, model FROM scope_models WHERE is_indexed ORDER BY scope_id DESC, model LIMIT :most"
    )
    return tuple((row.scope_id, row.model) for row in connection.execute(statement, {"most": most}))


def agreement(
    connection: Connection, scope_id: int, model: str, *, table: str, probes: int = 20, nearest: int = 10
) -> Agreement | None:
    """Compare index and scan for some rows of the scope; None when it has no such rows. Takes a scan per probe."""
    values = {"model": model, "scope": scope_id, "probes": probes, "nearest": nearest}
    dimensions = connection.execute(text(_DIMENSIONS.format(table=table)), values).scalar_one_or_none()
    if dimensions is None:
        return None
    statement = _AGREEMENT.format(
        table=table, scope=int(scope_id), model=_literal(model).replace(":", "\\:"), size=int(dimensions)
    )
    row = connection.execute(text(statement), values).one()
    return Agreement(
        scope_id=scope_id, table=table, model=model, probes=int(row.probes), share=float(row.share)
    )


def drop_unused(owner: Engine, scope_id: int, *, keep: Sequence[str]) -> None:
    """Drop the scope's vector indexes of models that are not among ``keep``; the keyword indexes fit any model."""
    schema = _schema(owner)
    with translated(owner), owner.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        values = {"schema": schema, "pattern": _pattern(scope_id)}
        for name, definition in connection.execute(_DEFINED, values).all():
            # The index's name has only a digest of the model; its WHERE clause has the model's name.
            is_kept = any(f"embedding_model = {_literal(model)}" in definition for model in keep)
            if "_hnsw_" in name and not is_kept:
                connection.execute(text(f"DROP INDEX CONCURRENTLY IF EXISTS {schema}.{name}"))


def drop(owner: Engine, scope_id: int) -> None:
    """Drop the indexes of a scope that is gone or small again."""
    schema = _schema(owner)
    with translated(owner), owner.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for name in _existing(connection, schema, scope_id):
            connection.execute(text(f"DROP INDEX CONCURRENTLY IF EXISTS {schema}.{name}"))


def _schema(place: Engine | Connection) -> str:
    return schema_of(shard_of(place))


def _existing(connection: Connection, schema: str, scope_id: int) -> list[str]:
    values = {"schema": schema, "pattern": _pattern(scope_id)}
    return list(connection.execute(_OF_SCOPE, values).scalars())


def _pattern(scope_id: int) -> str:
    return f"^({'|'.join(TABLES)})_(hnsw|words)_{int(scope_id)}(_[0-9a-f]+)?$"


def _literal(model: str) -> str:
    return "'" + model.replace("'", "''") + "'"


def _definitions(schema: str, scope_id: int, *, model: str, dimensions: int) -> dict[str, str]:
    """Statement by index name. The names carry a digest of the model, since another model needs other indexes."""
    scope, size = int(scope_id), int(dimensions)
    tag = hashlib.sha256(f"{model}:{size}".encode()).hexdigest()[:8]
    # A colon would begin a parameter of the statement.
    literal = _literal(model).replace(":", "\\:")
    statements = {}
    for table in TABLES:
        vectors, words = f"{table}_hnsw_{scope}_{tag}", f"{table}_words_{scope}"
        statements[vectors] = (
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {vectors} ON {schema}.{table} "
            f"USING hnsw ((CAST(embedding AS halfvec({size}))) halfvec_cosine_ops) "
            f"WITH (ef_construction = {EF_CONSTRUCTION}) "
            f"WHERE scope_id = {scope} AND embedding_model = {literal}"
        )
        statements[words] = (
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {words} ON {schema}.{table} "
            f"USING gin (terms) WHERE scope_id = {scope}"
        )
    return statements
