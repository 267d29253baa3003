"""Read a scope as rows of JSON, exactly as they are stored, and store such rows.

Sessions and entities are referred to by name, not by their numbers in this database, so that a snapshot fits another
system.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, select, text
from sqlalchemy.exc import DBAPIError

from memory_app.db.expressions import among, column_list
from memory_app.db.tables.memories import entities, memories
from memory_app.db.tables.turns import sessions, turns
from memory_app.errors import InvalidInput
from memory_app.memories.rows import merges, scope_models
from memory_app.memories.rows import terms as term_store
from memory_app.transfer.snapshot_rows import FIELDS, INTERNAL


def _without_internal(row: str, list_name: str) -> str:
    """SQL for the row as JSON without its internal columns."""
    internal = ("tenant_id", "scope_id", *INTERNAL.get(list_name, ()))
    return " - ".join([f"to_jsonb({row})", *(f"'{name}'" for name in internal)])


_CHOSEN = "(CAST(:ids AS uuid[]) IS NULL OR {id} = ANY(:ids))"
LIST_QUERIES = {
    "nodes": f"""
        SELECT {_without_internal("m", "nodes")} || jsonb_build_object('session', s.name)
        FROM memories m LEFT JOIN sessions s ON s.scope_id = m.scope_id AND s.id = m.session_id
        WHERE m.scope_id = :scope AND {_CHOSEN.format(id="m.id")} ORDER BY m.id""",
    "links": f"""
        SELECT {_without_internal("l", "links")} FROM links l WHERE l.scope_id = :scope
          AND {_CHOSEN.format(id="l.source_id")} AND {_CHOSEN.format(id="l.target_id")}
        ORDER BY l.source_id, l.target_id, l.type""",
    "entities": f"""
        SELECT {_without_internal("e", "entities")} || jsonb_build_object('merged_into', h.key)
        FROM entities e LEFT JOIN entities h ON h.scope_id = e.scope_id AND h.id = e.merged_into
        WHERE e.scope_id = :scope AND (CAST(:ids AS uuid[]) IS NULL OR e.merged_into IS NULL AND EXISTS (
            SELECT FROM mentions n WHERE n.scope_id = e.scope_id AND n.entity_id = e.id AND n.memory_id = ANY(:ids)))
        ORDER BY e.key""",
    "mentions": f"""
        SELECT jsonb_build_object('memory_id', n.memory_id, 'entity', e.key)
        FROM mentions n JOIN entities e ON e.scope_id = n.scope_id AND e.id = n.entity_id
        WHERE n.scope_id = :scope AND {_CHOSEN.format(id="n.memory_id")} ORDER BY n.memory_id, e.key""",
    "sessions": f"""
        SELECT {_without_internal("s", "sessions")}
        FROM sessions s
        WHERE s.scope_id = :scope AND CAST(:ids AS uuid[]) IS NULL ORDER BY s.id""",
    "turns": f"""
        SELECT {_without_internal("t", "turns")}
               || jsonb_build_object('session', s.name)
        FROM turns t JOIN sessions s ON s.scope_id = t.scope_id AND s.id = t.session_id
        WHERE t.scope_id = :scope AND CAST(:ids AS uuid[]) IS NULL ORDER BY t.id""",
    "evidence": """
        SELECT jsonb_build_object('memory_id', e.memory_id, 'turn_id', e.turn_id) FROM evidence e
        WHERE e.scope_id = :scope AND e.turn_scope_id = :scope AND CAST(:ids AS uuid[]) IS NULL
        ORDER BY e.memory_id, e.turn_id""",
}
"""One row of JSON for each row of the list; with ``ids`` only those memories and what lies between them."""

_ROWS = "jsonb_array_elements(CAST(:rows AS jsonb)) AS v(given)"
_WHOSE = "jsonb_build_object('tenant_id', CAST(:tenant AS bigint), 'scope_id', CAST(:scope AS bigint))"
# A sub-select for each row, not a join: the planner has no statistics about the new rows yet, takes the scope for
# empty, and would read all sessions for each row.
_SESSION = "(SELECT s.id FROM sessions s WHERE s.scope_id = :scope AND s.name = v.given ->> 'session')"

_NEW_AGAIN = ("pending_since", "failures", "refusals", "failing_since")
"""Fields of a session that are about its next extraction, which begins anew."""
_SESSION_COLUMNS = tuple(c for c in sessions.c if c.name in FIELDS["sessions"] and c.name not in _NEW_AGAIN)
_SESSION_VALUES = column_list(
    _SESSION_COLUMNS,
    "p",
    replay_seqs="coalesce(p.replay_seqs, '{}')",
    # Due at once: the date of the snapshot says nothing about this system.
    due_at="CASE WHEN p.due_at IS NOT NULL THEN now() END",
)
# An entity may be merged into one of a later row, so `merged_into` is set when all of them are there.
_ENTITY_COLUMNS = tuple(c for c in entities.c if c.name in FIELDS["entities"] and c.name != "merged_into")

# A turn that was being indexed when it was exported has no lease here; with its start counted, nobody would claim it.
_IMPORTS = {
    "sessions": f"""
        INSERT INTO sessions (tenant_id, scope_id, {column_list(_SESSION_COLUMNS)})
        SELECT :tenant, :scope, {_SESSION_VALUES}
        FROM {_ROWS}, jsonb_populate_record(CAST(NULL AS sessions), v.given) p""",
    "turns": f"""
        INSERT INTO turns SELECT p.* FROM {_ROWS}
        CROSS JOIN LATERAL jsonb_populate_record(
            CAST(NULL AS turns), v.given || {_WHOSE} || jsonb_build_object('session_id', {_SESSION}, 'starts',
                CASE WHEN v.given ->> 'indexed_at' IS NULL THEN to_jsonb(0) ELSE v.given -> 'starts' END)) p""",
    "nodes": f"""
        INSERT INTO memories SELECT p.* FROM {_ROWS}
        CROSS JOIN LATERAL jsonb_populate_record(
            CAST(NULL AS memories), v.given || {_WHOSE} || jsonb_build_object('session_id', {_SESSION})) p""",
    "links": f"""
        INSERT INTO links SELECT p.* FROM {_ROWS}
        CROSS JOIN LATERAL jsonb_populate_record(CAST(NULL AS links), v.given || {_WHOSE}) p""",
    "entities": f"""
        INSERT INTO entities (tenant_id, scope_id, {column_list(_ENTITY_COLUMNS)})
        SELECT :tenant, :scope, {column_list(_ENTITY_COLUMNS, "p", aliases="coalesce(p.aliases, '{}')")}
        FROM {_ROWS}, jsonb_populate_record(CAST(NULL AS entities), v.given - 'merged_into') p""",
    "heirs": """
        UPDATE entities e SET merged_into = (
            SELECT h.id FROM entities h WHERE h.scope_id = :scope AND h.key = CAST(:rows AS jsonb) ->> e.key)
        WHERE e.scope_id = :scope AND jsonb_exists(CAST(:rows AS jsonb), e.key)""",
    "mentions": f"""
        INSERT INTO mentions (tenant_id, scope_id, memory_id, entity_id)
        SELECT :tenant, :scope, CAST(v.given ->> 'memory_id' AS uuid),
            (SELECT e.id FROM entities e WHERE e.scope_id = :scope AND e.key = v.given ->> 'entity')
        FROM {_ROWS}""",
    "evidence": f"""
        INSERT INTO evidence (tenant_id, scope_id, memory_id, turn_scope_id, turn_id)
        SELECT :tenant, :scope, CAST(v.given ->> 'memory_id' AS uuid), :scope, CAST(v.given ->> 'turn_id' AS uuid)
        FROM {_ROWS}""",
    "speakers": f"""
        INSERT INTO speakers (tenant_id, scope_id, name)
        SELECT DISTINCT CAST(:tenant AS bigint), CAST(:scope AS bigint), v.given ->> 'speaker' FROM {_ROWS}
        WHERE v.given ->> 'indexed_at' IS NOT NULL AND v.given ->> 'words_deleted_at' IS NULL
        ON CONFLICT DO NOTHING""",
}
_STORED = (
    select(memories.c.id)
    .where(among(memories.c.id, "ids"))
    .union_all(select(turns.c.id).where(among(turns.c.id, "turns")))
    .limit(1)
)
_IS_EMPTY = text(
    """
    SELECT NOT EXISTS (SELECT FROM memories WHERE scope_id = :scope) AND
           NOT EXISTS (SELECT FROM sessions WHERE scope_id = :scope) AND
           NOT EXISTS (SELECT FROM entities WHERE scope_id = :scope)
    """
)
_STEPS = (
    ("sessions", "sessions"),
    ("turns", "turns"),
    ("nodes", "nodes"),
    ("links", "links"),
    ("entities", "entities"),
    ("mentions", "mentions"),
    ("evidence", "evidence"),
    ("speakers", "turns"),
)
"""What is stored in this order, and from which list."""

_REFUSALS = ("22", "23", "54")
"""Classes of SQLSTATE that a row is to blame for: a value, a constraint, a limit."""

BATCH_CHARS = 4_000_000
"""About a thousand memories with their vectors."""

_TURN_TERMS = select(turns.c.terms).where(turns.c.scope_id == bindparam("scope"), turns.c.terms.is_not(None))


def export(
    connection: Connection, scope_id: int, *, ids: Sequence[UUID] | None = None
) -> dict[str, list[Any]]:
    """Every list of the scope by name; with ``ids`` only those memories and what lies between them, without turns."""
    values = {"scope": scope_id, "ids": None if ids is None else list(ids)}
    return {
        name: list(connection.execute(text(statement), values).scalars())
        for name, statement in LIST_QUERIES.items()
    }


def stored_id(connection: Connection, ids: Sequence[UUID], turn_ids: Sequence[UUID]) -> UUID | None:
    """An id among these of memories and turns that the tenant has already, or None."""
    values = {"ids": list(ids), "turns": list(turn_ids)}
    return connection.execute(_STORED, values).scalar_one_or_none()


def is_empty(connection: Connection, scope_id: int) -> bool:
    """Does the scope hold nothing yet?"""
    return bool(connection.execute(_IS_EMPTY, {"scope": scope_id}).scalar_one())


def load(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    *,
    lists: Mapping[str, Sequence[Mapping[str, Any]]],
) -> None:
    """Store every list as it is, in an empty scope. The successor of a node must come before it.

    Raises `InvalidInput` naming the list whose rows do not fit.
    """
    ids = {"tenant": tenant_id, "scope": scope_id}
    for name, source in _STEPS:
        for rows in _batches(source, lists[source]):
            _store(connection, name, {**ids, "rows": rows})
        if name == "entities":
            heirs = {row["key"]: row["merged_into"] for row in lists[source] if row["merged_into"]}
            _store(connection, "heirs", {**ids, "rows": json.dumps(heirs)})
    _count(connection, tenant_id, scope_id, lists=lists)


def _store(connection: Connection, name: str, values: Mapping[str, Any]) -> None:
    try:
        # A savepoint: after an error PostgreSQL takes no further statement of the transaction.
        with connection.begin_nested():
            connection.execute(text(_IMPORTS[name]), values)
    except DBAPIError as error:
        state = getattr(error.orig, "sqlstate", None) or ""
        if state[:2] not in _REFUSALS:
            raise
        # The name of the constraint, never the server's message: that quotes the row.
        rule = getattr(getattr(error.orig, "diag", None), "constraint_name", None) or state
        raise InvalidInput(
            f"{name}: a row does not fit ({rule}); nothing was imported", field=name
        ) from error


def _batches(name: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The known fields of the rows as JSON, a few megabytes at a time: a statement has a time limit."""
    batch: list[str] = []
    size = 0
    for row in rows:
        # Only these: jsonb_populate_record() would take internal columns, such as a lease, from the document, too.
        item = json.dumps({field: row[field] for field in FIELDS[name] if field in row})
        if batch and size + len(item) > BATCH_CHARS:
            yield f"[{','.join(batch)}]"
            batch, size = [], 0
        batch.append(item)
        size += len(item)
    if batch:
        yield f"[{','.join(batch)}]"


def _count(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    *,
    lists: Mapping[str, Sequence[Mapping[str, Any]]],
) -> None:
    """What searching needs besides the rows: document frequencies, and which models their vectors come from."""
    merges.count_terms(connection, tenant_id, scope_id, ids=[UUID(node["id"]) for node in lists["nodes"]])
    term_lists = connection.execute(_TURN_TERMS, {"scope": scope_id}).scalars()
    term_store.add(connection, tenant_id, [(scope_id, set(terms)) for terms in term_lists])
    rows = [*lists["nodes"], *lists["turns"]]
    models = {row["embedding_model"] for row in rows} - {None}
    for model in sorted(models):
        scope_models.add(connection, [scope_id], model)
