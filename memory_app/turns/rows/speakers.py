"""Names of the speakers of a scope, in a small table, so that recall need not read all turns for them."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, text

SPEAKERS_LIMIT = 200
"""Names looked at per question; the rest of a crowd is not singled out."""

_ADD = text(
    """
    INSERT INTO speakers (tenant_id, scope_id, name)
    SELECT DISTINCT CAST(:tenant AS bigint), v.scope_id, v.name
    FROM unnest(CAST(:scopes AS bigint[]), CAST(:names AS text[])) AS v(scope_id, name)
    ORDER BY v.scope_id, v.name
    ON CONFLICT DO NOTHING
    """
)


def add(connection: Connection, tenant_id: int, speakers: Iterable[tuple[int, str]]) -> None:
    """Note speakers: pairs of scope id and name."""
    # In one order everywhere: two workers that add the same names must not wait for each other in a circle.
    pairs = sorted(set(speakers))
    if pairs:
        values = {
            "tenant": tenant_id,
            "scopes": [scope_id for scope_id, _ in pairs],
            "names": [name for _, name in pairs],
        }
        connection.execute(_ADD, values)
