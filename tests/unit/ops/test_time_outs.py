"""A wait for the database ends before any lease does; doctor names the two settings that say otherwise."""

from __future__ import annotations

import pytest

from memory_app.ops import time_outs
from memory_app.ops.check import State
from memory_app.settings import Database, Extract, Index, Settings

DEFAULTS = Settings(_env_file=None)


def test_the_defaults_fit_together() -> None:
    assert time_outs.check(DEFAULTS).state is State.OK


@pytest.mark.parametrize(
    ("sections", "found"),
    [
        (
            {"index": Index(lease_seconds=5)},
            "MEMORY_DATABASE__STATEMENT_TIMEOUT_MS (20 s) is not below MEMORY_INDEX__LEASE_SECONDS (5 s); "
            "MEMORY_DATABASE__LOCK_TIMEOUT_MS (5 s) is not below MEMORY_INDEX__LEASE_SECONDS (5 s); "
            "MEMORY_DATABASE__IDLE_TRANSACTION_TIMEOUT_MS (30 s) is not below MEMORY_INDEX__LEASE_SECONDS (5 s)",
        ),
        (
            {"extract": Extract(model_lease_seconds=25)},
            "MEMORY_DATABASE__IDLE_TRANSACTION_TIMEOUT_MS (30 s) is not below "
            "MEMORY_EXTRACT__MODEL_LEASE_SECONDS (25 s)",
        ),
        (
            {"database": Database(lock_timeout_ms=45_000)},
            "MEMORY_DATABASE__LOCK_TIMEOUT_MS (45 s) is not below MEMORY_INDEX__LEASE_SECONDS (45 s), "
            "MEMORY_EXTRACT__LEASE_SECONDS (45 s)",
        ),
        (
            {"database": Database(idle_transaction_timeout_ms=0)},
            "MEMORY_DATABASE__IDLE_TRANSACTION_TIMEOUT_MS (0, which is no limit) is not below "
            "MEMORY_INDEX__LEASE_SECONDS (45 s), MEMORY_EXTRACT__LEASE_SECONDS (45 s), "
            "MEMORY_EXTRACT__MODEL_LEASE_SECONDS (150 s), the lease of runs (660 s)",
        ),
    ],
)
def test_a_time_out_that_is_not_below_a_lease_is_named_with_it(
    sections: dict[str, object], found: str
) -> None:
    check = time_outs.check(DEFAULTS.model_copy(update=sections))
    assert (check.state, check.found) == (State.WARN, found)
    assert "memory migrate" in check.to_do
