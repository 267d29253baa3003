"""The latest turns: from the hot stream where it is whole, else from the table, and always the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid4

import all_shards
import pytest
from free_ports import free_port
from hot_reads import newest_turns
from pydantic import SecretStr
from sqlalchemy import Engine, text

from memory_app.db.db import transaction
from memory_app.hot import stream as hot_stream
from memory_app.hot.keys import STREAM
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Redis, Settings
from memory_app.tenancy.rows import names
from memory_app.turns import stream
from memory_app.turns.record import record
from memory_app.turns.rows import sessions


def say(runtime: Runtime, tenant: int, *words: str, session: str = "s1") -> list[UUID]:
    turns = [NewTurn(Role.USER, said) for said in words]
    return [ticket.id for ticket in record(runtime, tenant, Scope("ada", "bob", session), turns)]


def latest(runtime: Runtime, tenant: int, *, session: str | None = "s1", limit: int = 20) -> list[str]:
    with transaction(runtime.engine, tenant) as connection:
        row = names.need_scope(connection, tenant, Scope("ada", "bob"))
        found = None if session is None else sessions.find(connection, row.id, session)
        turns = stream.latest(runtime, connection, row.id, session=found, limit=limit)
    return [turn.text for turn in turns]


def entries(runtime: Runtime, scope_id: int) -> tuple[hot_stream.Entry, ...]:
    return newest_turns(runtime.hot, scope_id, n=100).entries


@pytest.fixture
def scope_id(runtime: Runtime, tenant: int, owner: Engine) -> int:
    """A scope whose first two turns were said and read once, so that its stream is there."""
    say(runtime, tenant, "one", "two")
    latest(runtime, tenant)
    with owner.connect() as connection:
        return int(connection.execute(text("SELECT id FROM scopes")).scalar_one())


@pytest.fixture
def without_redis(settings: Settings) -> Iterator[Runtime]:
    port = free_port()
    runtime = all_shards.at_work(
        build(settings.model_copy(update={"redis": Redis(url=SecretStr(f"redis://127.0.0.1:{port}/0"))}))
    )
    yield runtime
    runtime.close()


def test_the_newest_turns_come_oldest_first_indexed_or_not(
    runtime: Runtime, tenant: int, scope_id: int
) -> None:
    assert latest(runtime, tenant) == ["one", "two"]
    say(runtime, tenant, "three")
    assert latest(runtime, tenant) == ["one", "two", "three"]
    assert latest(runtime, tenant, limit=2) == ["two", "three"]
    assert latest(runtime, tenant, limit=0) == []


def test_the_first_read_fills_the_stream_and_recording_keeps_it_up(
    runtime: Runtime, tenant: int, scope_id: int
) -> None:
    more = say(runtime, tenant, "three", session="s2")
    assert [entry.seq for entry in entries(runtime, scope_id)] == [1, 2, 1]
    assert entries(runtime, scope_id)[-1].id == more[0]


def test_a_session_shows_its_own_turns_and_a_scope_all_of_them(
    runtime: Runtime, tenant: int, scope_id: int
) -> None:
    say(runtime, tenant, "elsewhere", session="s2")
    assert latest(runtime, tenant) == ["one", "two"]
    assert latest(runtime, tenant, session="s2") == ["elsewhere"]
    assert latest(runtime, tenant, session=None) == ["one", "two", "elsewhere"]


def test_after_a_redis_flush_no_turn_is_missing_and_the_stream_returns(
    runtime: Runtime, tenant: int, scope_id: int
) -> None:
    runtime.hot.redis.delete(*runtime.hot.redis.keys(f"{runtime.hot.prefix}*"))
    say(runtime, tenant, "three")
    assert latest(runtime, tenant) == ["one", "two", "three"]
    assert len(entries(runtime, scope_id)) == 3


def test_a_turn_recorded_while_redis_was_away_is_not_missed(
    runtime: Runtime, without_redis: Runtime, tenant: int, scope_id: int
) -> None:
    say(without_redis, tenant, "said meanwhile")
    assert latest(runtime, tenant) == ["one", "two", "said meanwhile"]
    say(runtime, tenant, "said afterwards")
    assert latest(runtime, tenant) == ["one", "two", "said meanwhile", "said afterwards"]
    assert latest(without_redis, tenant) == ["one", "two", "said meanwhile", "said afterwards"]


def test_turns_of_somebody_else_that_stand_in_a_stream_are_not_shown(
    runtime: Runtime, tenant: int, other_tenant: int, scope_id: int
) -> None:
    (theirs,) = record(runtime, other_tenant, Scope("ada", "bob", "s1"), [NewTurn(Role.USER, "not yours")])
    forged = hot_stream.Entry(theirs.id, entries(runtime, scope_id)[0].session_id, 3)
    hot_stream.append(runtime.hot, scope_id, [forged, hot_stream.Entry(uuid4(), forged.session_id, 4)])
    assert latest(runtime, tenant, session=None) == ["one", "two"]


def test_a_stream_of_garbage_is_not_believed(runtime: Runtime, tenant: int, scope_id: int) -> None:
    runtime.hot.redis.lpush(runtime.hot.scope_key(STREAM, scope_id), b"\xff nonsense", "1 2")
    assert latest(runtime, tenant) == ["one", "two"]


def test_a_scope_with_more_turns_than_the_stream_is_read_from_the_table(
    runtime: Runtime, tenant: int, scope_id: int
) -> None:
    say(runtime, tenant, *(f"turn {n}" for n in range(60)))
    assert latest(runtime, tenant, limit=62) == ["one", "two", *(f"turn {n}" for n in range(60))]
    assert latest(runtime, tenant, limit=5) == [f"turn {n}" for n in range(55, 60)]
