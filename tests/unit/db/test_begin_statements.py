"""What a transaction begins with."""

from __future__ import annotations

import pytest

from memory_app.db.shards import first_statements


def test_a_transaction_begins_with_its_tenant() -> None:
    assert first_statements(7) == b"BEGIN; SELECT set_config('memory.tenant', '7', true)"
    assert first_statements(None) == b"BEGIN"


def test_the_mode_comes_before_the_first_query() -> None:
    assert first_statements(7, mode="READ ONLY").startswith(b"BEGIN READ ONLY; ")


@pytest.mark.parametrize("tenant", ["1'; DROP TABLE turns; --", "x"])
def test_a_tenant_is_a_number(tenant: str) -> None:
    with pytest.raises(ValueError):
        first_statements(tenant)  # type: ignore[arg-type]
