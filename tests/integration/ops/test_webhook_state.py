"""What doctor, status and metrics say of webhooks."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from memory_app.ops import webhook_checks
from memory_app.ops.check import State
from memory_app.ops.metrics import PipelineCollector
from memory_app.ops.status import status
from memory_app.ops.status_view import view
from memory_app.runtime import Runtime

INSERT = """INSERT INTO webhooks (tenant_id, url, salt, made_with, position, due_at, paused_reason, failing_since,
        waiting_since)
    VALUES (:tenant, 'https://example.com', 'x', 'x', 'x',
        CASE WHEN CAST(:paused AS text) IS NULL THEN now() END, :paused,
        CASE WHEN :is_failing THEN now() END, CASE WHEN :is_failing THEN now() - interval '2 hours' END)"""


def add(owner: Engine, tenant: int, *, paused: str | None = None, is_failing: bool = False) -> None:
    with owner.begin() as connection:
        connection.execute(text(INSERT), {"tenant": tenant, "paused": paused, "is_failing": is_failing})


def shown(runtime: Runtime) -> dict[str, float]:
    samples = [sample for metric in PipelineCollector(runtime).collect() for sample in metric.samples]
    return {
        sample.labels.get("state", "waiting"): sample.value
        for sample in samples
        if sample.name in ("memory_webhooks", "memory_webhook_waiting_seconds")
    }


def test_without_webhooks_nothing_is_said(runtime: Runtime, tenant: int) -> None:
    assert list(webhook_checks.look(runtime.engine)) == []
    assert shown(runtime) == {"active": 0, "failing": 0, "given_up": 0, "waiting": 0}


@pytest.mark.one_shard
def test_one_that_is_well_is_counted(runtime: Runtime, owner: Engine, tenant: int) -> None:
    add(owner, tenant)
    add(owner, tenant, paused="asked")
    (check,) = webhook_checks.look(runtime.engine)
    assert (check.state, check.found) == (State.OK, "1 active")


@pytest.mark.one_shard
def test_those_that_fail_are_told_over_all_tenants(
    runtime: Runtime, owner: Engine, tenant: int, other_tenant: int
) -> None:
    add(owner, tenant)
    add(owner, tenant, is_failing=True)
    add(owner, other_tenant, paused="failing", is_failing=True)
    (check,) = webhook_checks.look(runtime.engine)
    assert check.state is State.WARN
    assert "2 active, 1 paused" in check.found and "1 fail" in check.found
    values = shown(runtime)
    assert 7_200 <= values.pop("waiting") < 7_900
    assert values == {"active": 2, "failing": 1, "given_up": 1}
    report = status(runtime.settings, tenant="acme")
    assert (report.webhooks.failing, report.webhooks.given_up) == (1, 1)
    lines = [str(part) for part in view(report).renderables]  # type: ignore[attr-defined]
    assert any("2 active, 1 of them fail, 1 were given up" in line for line in lines)
