"""Read the facts that callers state in words, as rules read those of turns."""

from __future__ import annotations

from memory_app.extraction.rules import read_declared
from memory_app.language.zones import zone_of
from memory_app.records.records import Statement
from memory_app.tenancy.rows.names import ScopeRow


def read_text(statement: Statement, row: ScopeRow) -> Statement:
    """The statement with subject, relation and object where its text says which fact it is; for `remember`."""
    return read_declared(statement, user=row.user, at=row.now, zone=zone_of(row.time_zone))
