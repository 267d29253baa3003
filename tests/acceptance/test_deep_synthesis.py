"""Deep synthesis comes round by itself: two Beats, real workers, a model that counts how often it is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_workers import PROCESSES, worker
from provider_stage import TEMPLATE, ProviderStage, staged, wait_until
from queries import rows

from memory_app import queue
from memory_app.local.embedded import Servers
from memory_app.local.stack import commands
from memory_app.memories.remember import remember
from memory_app.records.records import Statement
from memory_app.records.scope import Scope

PERIOD_SECONDS = 2.0
OFTEN = f"""
[find-periodic]
task = "{queue.FIND_PERIODIC}"
every_seconds = 0.5
"""


@pytest.fixture
def stage(servers: Servers, template: Servers, tmp_path: Path) -> Iterator[ProviderStage]:
    schedule = tmp_path / "schedule.toml"
    schedule.write_text(OFTEN)
    settings = {
        "MEMORY_SCHEDULE_FILE": str(schedule),
        "MEMORY_SCHEDULE__DEEP_HOURS": str(PERIOD_SECONDS / 3600),
    }
    with staged(servers, TEMPLATE, tmp_path, **settings) as stage:
        yield stage


def runs(stage: ProviderStage) -> list[Any]:
    return rows(stage.owner, "SELECT state, scope_id, period FROM runs WHERE name = 'synthesize_deep'")


def are_done(stage: ProviderStage, count: int) -> bool:
    return [run.state for run in runs(stage)] == ["done"] * count


def asked(stage: ProviderStage) -> int:
    """Questions of deep synthesis that reached the model."""
    return sum("synthesize_deep" in str(request["body"]) for request in stage.stub.requests())


def periods(stage: ProviderStage) -> int:
    """Periods of deep synthesis that have begun, by the database's clock."""
    (row,) = rows(
        stage.owner, f"SELECT floor(extract(epoch FROM clock_timestamp()) / {PERIOD_SECONDS})::bigint AS n"
    )
    return int(row.n)


@pytest.mark.slow
def test_two_beats_have_each_scope_with_news_synthesised_once(stage: ProviderStage, tmp_path: Path) -> None:
    # given two people whose agent asks a model, one whose agent does not, two Beats, and workers
    asking, quiet = stage.agent("llm"), stage.agent("rules")
    people = [Scope(asking.agent, user) for user in ("Mira", "Tom")]
    for scope in [*people, quiet]:
        for thing in ("tea", "chess"):
            remember(
                stage.runtime,
                stage.tenant,
                scope,
                statement=Statement("fact", f"{scope.user} likes {thing}."),
            )
    worker(stage, *PROCESSES)
    worker(stage, queue.MODEL)
    for number in (1, 2):
        stage.start(commands.beat(tmp_path / f"beat-{number}"))
    # when some periods pass
    wait_until(lambda: are_done(stage, 2), "both people were thought about")
    since = periods(stage)
    wait_until(lambda: periods(stage) >= since + 3, "more periods pass")
    # then each was asked about once, since nothing new came
    assert (len(runs(stage)), asked(stage)) == (2, 2)
    # and when one of them says something new
    remember(stage.runtime, stage.tenant, people[0], statement=Statement("fact", "Mira moved to Porto."))
    wait_until(lambda: are_done(stage, 3), "the news was thought about")
    # then once more for that person alone
    per_scope = Counter(run.scope_id for run in runs(stage))
    assert sorted(per_scope.values()) == [1, 2]
    assert len({(run.scope_id, run.period) for run in runs(stage)}) == 3
    assert asked(stage) == 3
