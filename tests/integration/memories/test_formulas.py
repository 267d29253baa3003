"""What is computed in Python and again in SQL comes out the same."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import text

from memory_app.db.db import transaction
from memory_app.recall.rows.search_sql import RECENCY
from memory_app.records.scoring import recency
from memory_app.runtime import Runtime

AGES = [timedelta(days=days) for days in (-30, -1, 0, 0.001, 1, 7, 14, 28, 365, 4_000)]


def test_recency_is_the_same_in_sql(runtime: Runtime, tenant: int) -> None:
    statement = text(
        f"SELECT now() - age AS at, now() AS now, {RECENCY.format(at='(now() - age)')} AS recency"
        " FROM unnest(CAST(:ages AS interval[])) AS age"
    )
    with transaction(runtime.engine, tenant) as connection:
        rows = connection.execute(statement, {"ages": AGES}).all()
    assert len(rows) == len(AGES)
    for row in rows:
        assert row.recency == pytest.approx(recency(row.at, row.now), rel=1e-9), row.at
