"""The finder: what is due is found by its row, without any message, fairly, and done in this process if need be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from free_ports import free_port
from pydantic import SecretStr
from redis import Redis as RedisClient
from sqlalchemy import Engine, text

from memory_app.dispatch import finder
from memory_app.dispatch.finder import Due
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Database, Finder, Redis, Settings
from memory_app.turns.record import record


def say(runtime: Runtime, tenant: int, *, session: str = "s1", user: str = "bob", n: int = 1) -> None:
    record(
        runtime, tenant, Scope("ada", user, session), [NewTurn(Role.USER, "I live in Paris these days.")] * n
    )


def scalar(owner: Engine, statement: str) -> Any:
    with owner.connect() as connection:
        return connection.execute(text(statement)).scalar_one()


def waiting(settings: Settings, queue: str) -> int:
    """Messages in a queue, which are taken out."""
    with RedisClient.from_url(settings.redis.url.get_secret_value(), protocol=2) as client:
        key = f"{settings.redis.prefix}{queue}"
        n = client.llen(key)
        client.delete(key)
        assert isinstance(n, int)
        return n


def forget_hints(settings: Settings) -> None:
    """As if the hints that are under way had expired, and the messages were lost."""
    with RedisClient.from_url(settings.redis.url.get_secret_value(), protocol=2) as client:
        for key in client.scan_iter(f"{settings.redis.prefix}*"):
            client.delete(key)


def times(n: int) -> Callable[[float], bool]:
    """A stop that lets the loop go round ``n`` times without waiting."""
    left = iter(range(n - 1, -1, -1))
    return lambda _: next(left) == 0


@pytest.fixture
def without_redis(settings: Settings) -> Iterator[Runtime]:
    port = free_port()
    runtime = build(
        settings.model_copy(update={"redis": Redis(url=SecretStr(f"redis://127.0.0.1:{port}/0"))})
    )
    yield runtime
    runtime.close()


@pytest.fixture
def _hints_live_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hint stays under way however slow the machine is."""
    monkeypatch.setattr("memory_app.runtime.HINT_LIFE_MS", 3_600_000)


def test_with_nothing_to_do_nothing_is_due(runtime: Runtime, tenant: int) -> None:
    assert finder.look(runtime) == Due(0, ())


def test_lost_messages_are_made_up_for(runtime: Runtime, settings: Settings, tenant: int) -> None:
    say(runtime, tenant)
    say(runtime, tenant, session="s2")
    forget_hints(settings)
    due = finder.find_due(runtime)
    assert (due.turns, len(due.sessions)) == (2, 2)
    assert (waiting(settings, "ingest"), waiting(settings, "model")) == (3, 0), "rules ask no model"


@pytest.mark.usefixtures("_hints_live_long")
def test_a_hint_under_way_is_not_sent_twice(runtime: Runtime, settings: Settings, tenant: int) -> None:
    say(runtime, tenant)
    for _ in range(5):
        finder.find_due(runtime)
    assert waiting(settings, "ingest") == 2, "one for the turn, one for its session"


def test_lent_work_is_not_due(runtime: Runtime, tenant: int, owner: Engine) -> None:
    say(runtime, tenant)
    with owner.begin() as connection:
        for table in ("turns", "sessions"):
            connection.execute(text(f"UPDATE {table} SET lease_until = now() + interval '1 minute'"))
    assert finder.look(runtime) == Due(0, ())


def test_a_tenant_with_much_to_do_does_not_keep_the_others_waiting(
    runtime: Runtime, settings: Settings, tenant: int, other_tenant: int, owner: Engine
) -> None:
    for n in range(12):
        say(runtime, tenant, session=f"s{n}")
    say(runtime, other_tenant)
    few = replace(runtime, settings=settings.model_copy(update={"finder": Finder(batch=4)}))
    found = finder.look(few).sessions
    assert len(found) == 4
    with owner.connect() as connection:
        owners = connection.execute(
            text("SELECT tenant_id FROM sessions WHERE id = ANY(:ids)"),
            {"ids": [session.id for session in found]},
        )
        assert Counter(owners.scalars()) == {tenant: 3, other_tenant: 1}


def test_draining_does_all_that_is_due_without_any_message(
    runtime: Runtime, settings: Settings, tenant: int, other_tenant: int, owner: Engine
) -> None:
    for tenant_id in (tenant, other_tenant):
        say(runtime, tenant_id, n=3)
    forget_hints(settings)
    finder.drain(runtime)
    assert scalar(owner, "SELECT count(*) FROM turns WHERE indexed_at IS NULL OR extracted_at IS NULL") == 0
    assert scalar(owner, "SELECT count(DISTINCT tenant_id) FROM memories") == 2
    assert finder.look(runtime) == Due(0, ())


def test_while_redis_stays_away_the_finder_does_the_work_itself(
    without_redis: Runtime, settings: Settings, tenant: int, owner: Engine
) -> None:
    say(without_redis, tenant)
    finder.run(without_redis, should_stop=times(2))
    assert scalar(owner, "SELECT count(*) FROM turns WHERE extracted_at IS NULL") == 1, (
        "it may be back in a moment"
    )
    section = {"finder": Finder(drain_after_seconds=1e-9)}
    finder.run(replace(without_redis, settings=settings.model_copy(update=section)), should_stop=times(1))
    assert scalar(owner, "SELECT count(*) FROM turns WHERE extracted_at IS NULL") == 0


@pytest.mark.usefixtures("_hints_live_long")
def test_with_redis_there_the_finder_only_sends_hints(
    runtime: Runtime, settings: Settings, tenant: int, owner: Engine
) -> None:
    say(runtime, tenant)
    forget_hints(settings)
    finder.run(runtime, should_stop=times(3))
    assert scalar(owner, "SELECT count(*) FROM turns WHERE indexed_at IS NULL") == 1
    assert waiting(settings, "ingest") == 2, "one for the turn, one for its session"


def test_the_finder_outlives_a_database_that_is_away(settings: Settings) -> None:
    gone = Database(url=SecretStr("postgresql+psycopg://memory_app@127.0.0.1:1/memory"))
    runtime = build(settings.model_copy(update={"database": gone}))
    finder.run(runtime, should_stop=times(2))
    runtime.close()
