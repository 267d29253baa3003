"""How many rows of a scope hold a term: the document frequencies that keyword scores need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, func, select, text

from memory_app.db.db import before_commit
from memory_app.db.expressions import among
from memory_app.db.tables.search import terms

ROWS = 0
"""The term id that counts the rows themselves; real terms count from 1."""

NOTED_EVERY = 64
"""Rows after which the size of a scope is noted where it can be looked up by size; `big_scopes` allows for as many."""

# Taking out never makes a row: after an erasure no term may come back that nobody counts any more.
_ADD = text(
    f"""
    WITH given AS (
        SELECT * FROM unnest(CAST(:scopes AS bigint[]), CAST(:terms AS integer[]), CAST(:counts AS integer[]))
            AS v(scope_id, term, n)
    ), written AS (
        INSERT INTO terms (tenant_id, scope_id, term, row_count)
        SELECT :tenant, v.scope_id, v.term, v.n
        FROM given v JOIN scopes c ON c.id = v.scope_id
        WHERE v.n > 0 OR EXISTS (SELECT FROM terms t WHERE t.scope_id = v.scope_id AND t.term = v.term)
        ORDER BY v.scope_id, v.term
        ON CONFLICT (scope_id, term) DO UPDATE SET row_count = greatest(terms.row_count + excluded.row_count, 0)
        RETURNING scope_id, term, row_count
    )
    INSERT INTO scope_sizes (tenant_id, scope_id, row_count)
    SELECT :tenant, w.scope_id, w.row_count FROM written w JOIN given v USING (scope_id, term)
    WHERE w.term = {ROWS} AND w.row_count / {NOTED_EVERY} <> greatest(w.row_count - v.n, 0) / {NOTED_EVERY}
    ORDER BY w.scope_id
    ON CONFLICT (scope_id) DO UPDATE SET row_count = excluded.row_count
    """
)
_READ = (
    select(terms.c.term, func.sum(terms.c.row_count).label("n"))
    .where(among(terms.c.scope_id, "scopes"), among(terms.c.term, "terms"))
    .group_by(terms.c.term)
)


def add(
    connection: Connection, tenant_id: int, rows: Iterable[tuple[int, Iterable[int]]], *, sign: int = 1
) -> None:
    """Count rows, each a scope and its distinct terms; ``sign`` −1 takes deleted rows out again.

    Written as the last act of the transaction and in the order of the key: workers of one scope touch the same words,
    and would else wait for each other in a circle.
    """
    counted: Counter[tuple[int, int]] = Counter()
    for scope_id, present in rows:
        counted[scope_id, ROWS] += sign
        for term in present:
            counted[scope_id, term] += sign
    if counted:
        before_commit(connection, _write, (tenant_id, counted))


def _write(connection: Connection, waiting: Sequence[tuple[int, Counter[tuple[int, int]]]]) -> None:
    counted: Counter[tuple[int, int]] = Counter()
    # `update` adds negative counts too; "+" between counters would drop them.
    for _, counts in waiting:
        counted.update(counts)
    # A row that was stored and deleted in one transaction changes nothing.
    keys = [key for key, n in counted.items() if n]
    values = {
        "tenant": waiting[0][0],
        "scopes": [scope_id for scope_id, _ in keys],
        "terms": [term for _, term in keys],
        "counts": [counted[key] for key in keys],
    }
    connection.execute(_ADD, values)


def document_counts(
    connection: Connection, scope_ids: Sequence[int], term_ids: Iterable[int]
) -> tuple[Mapping[int, int], int]:
    """For each term the number of rows that hold it, and the number of rows, over the scopes together."""
    rows = connection.execute(_READ, {"scopes": list(scope_ids), "terms": [ROWS, *term_ids]})
    counts = {row.term: int(row.n) for row in rows}
    return counts, counts.pop(ROWS, 0)
