"""How many rows of a scope hold a term: the document frequencies that keyword scores need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, text

ROWS = 0
"""The term id that counts the rows themselves; real terms count from 1."""

_ADD = text(
    """
    INSERT INTO terms (tenant_id, scope_id, term, row_count)
    SELECT :tenant, v.scope_id, v.term, v.n
    FROM unnest(CAST(:scopes AS bigint[]), CAST(:terms AS integer[]), CAST(:counts AS integer[]))
        AS v(scope_id, term, n)
    ORDER BY v.scope_id, v.term
    ON CONFLICT (scope_id, term) DO UPDATE SET row_count = greatest(terms.row_count + excluded.row_count, 0)
    """
)
_READ = text(
    "SELECT term, sum(row_count) AS n FROM terms WHERE scope_id = ANY(:scopes) AND term = ANY(:terms) GROUP BY term"
)


def add(
    connection: Connection, tenant_id: int, rows: Iterable[tuple[int, Iterable[int]]], *, sign: int = 1
) -> None:
    """Count rows, each a scope and its distinct terms; ``sign`` −1 takes deleted rows out again.

    Written in the order of the key, so that two workers never wait for each other in a circle.
    """
    counted: Counter[tuple[int, int]] = Counter()
    for scope_id, present in rows:
        counted[scope_id, ROWS] += sign
        for term in present:
            counted[scope_id, term] += sign
    if counted:
        keys = list(counted)
        values = {
            "tenant": tenant_id,
            "scopes": [scope_id for scope_id, _ in keys],
            "terms": [term for _, term in keys],
            "counts": [counted[key] for key in keys],
        }
        connection.execute(_ADD, values)


def document_counts(
    connection: Connection, scope_ids: Sequence[int], wanted: Iterable[int]
) -> tuple[Mapping[int, int], int]:
    """For each wanted term the number of rows that hold it, and the number of rows, over the scopes together."""
    rows = connection.execute(_READ, {"scopes": list(scope_ids), "terms": [ROWS, *wanted]})
    counts = {row.term: int(row.n) for row in rows}
    return counts, counts.pop(ROWS, 0)
