"""Recording: each turn is stored once, in order, whatever happens around it."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from threading import Barrier
from typing import Any

import all_shards
import pytest
from free_ports import free_port
from pydantic import SecretStr
from redis import Redis as RedisClient
from sqlalchemy import Engine, text

from memory_app.agents.rows import agents
from memory_app.dispatch import finder
from memory_app.errors import Conflict, InvalidInput, RateLimited, StoreUnavailable, TooLarge
from memory_app.hot.client import PAUSE_SECONDS
from memory_app.records.records import NewTurn, Role, Stage, Ticket
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Database, Record, Redis, Settings
from memory_app.turns.record import record

SCOPE = Scope("ada", "bob", "s1")
THREADS = 20


def said(words: str = "I live in Paris with my dog Rex.", **fields: Any) -> NewTurn:
    return NewTurn(**{"role": Role.USER, "text": words} | fields)


def turn_rows(owner: Engine, what: str = "*") -> list[Any]:
    with owner.connect() as connection:
        return list(connection.execute(text(f"SELECT {what} FROM turns ORDER BY session_id, seq")).all())


def sessions_of(owner: Engine, what: str = "*") -> list[Any]:
    with owner.connect() as connection:
        return list(connection.execute(text(f"SELECT {what} FROM sessions ORDER BY id")).all())


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """What `THREADS` threads that start together return, in their order; errors are returned too."""
    together = Barrier(THREADS)

    def run(n: int) -> Any:
        together.wait()
        try:
            return work(n)
        except Conflict as error:
            return error

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


@pytest.fixture
def closed_port() -> int:
    """A port of loopback at which nobody listens."""
    return free_port()


@pytest.fixture
def variant(settings: Settings) -> Iterator[Callable[..., Runtime]]:
    """Runtimes like this test's own, with other settings in some sections."""
    made: list[Runtime] = []

    def make(**sections: object) -> Runtime:
        made.append(all_shards.at_work(build(settings.model_copy(update=sections))))
        return made[-1]

    yield make
    for runtime in made:
        runtime.close()


# --- order ----------------------------------------------------------------------------------------------------


def test_turns_of_a_call_get_the_next_numbers_in_their_order(runtime: Runtime, tenant: int) -> None:
    first = record(runtime, tenant, SCOPE, [said("one"), said("two", role=Role.ASSISTANT)])
    second = record(runtime, tenant, SCOPE, [said("three")])
    assert [ticket.seq for ticket in (*first, *second)] == [1, 2, 3]
    assert {ticket.stage for ticket in first} == {Stage.ACCEPTED}


def test_numbers_have_no_gaps_when_many_record_at_once(runtime: Runtime, tenant: int, owner: Engine) -> None:
    at_once(lambda n: record(runtime, tenant, SCOPE, [said(f"turn {n} first"), said(f"turn {n} second")]))
    stored = turn_rows(owner, "seq, text")
    assert [row.seq for row in stored] == list(range(1, 2 * THREADS + 1))
    for first, second in zip(stored[::2], stored[1::2], strict=True):
        assert first.text.replace("first", "second") == second.text, "a batch stays together"


def test_order_is_that_of_acceptance_and_times_in_the_past_are_kept(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    last_year = datetime(2024, 3, 1, 23, 30, tzinfo=timezone(timedelta(hours=9)))
    record(runtime, tenant, SCOPE, [said("today"), said("last year", at=last_year)])
    today, past = turn_rows(owner, "at, accepted_at")
    assert today.at == today.accepted_at
    assert past.at == last_year
    assert past.accepted_at >= today.accepted_at


def test_sessions_of_one_name_are_apart_for_each_user_agent_and_tenant(
    runtime: Runtime, tenant: int, other_tenant: int, owner: Engine
) -> None:
    for tenant_id, scope in (
        (tenant, SCOPE),
        (tenant, Scope("ada", "eve", "s1")),
        (tenant, Scope("max", "bob", "s1")),
        (other_tenant, SCOPE),
    ):
        (ticket,) = record(runtime, tenant_id, scope, [said()])
        assert ticket.seq == 1
    assert len({(row.tenant_id, row.scope_id) for row in turn_rows(owner)}) == 4


def test_a_speaker_is_the_name_given_or_else_whoever_has_the_role(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    turns = [said(), said(role=Role.ASSISTANT), said(role=Role.TOOL), said(speaker="Roberta")]
    record(runtime, tenant, SCOPE, turns)
    assert [row.speaker for row in turn_rows(owner)] == ["bob", "ada", "tool", "Roberta"]


def test_everything_that_was_said_about_a_turn_is_kept(runtime: Runtime, tenant: int, owner: Engine) -> None:
    turn = said(emotional_tone="warm", tools_used=("search", "maps"), metadata={"page": {"n": 3}})
    record(runtime, tenant, SCOPE, [turn])
    (row,) = turn_rows(owner)
    assert (row.emotional_tone, row.tools_used, row.metadata) == (
        "warm",
        ["search", "maps"],
        {"page": {"n": 3}},
    )


# --- the same again -------------------------------------------------------------------------------------------


def test_a_repeated_key_gives_the_first_ticket_again(runtime: Runtime, tenant: int, owner: Engine) -> None:
    turn = said(idempotency_key="k1")
    (first,) = record(runtime, tenant, SCOPE, [turn])
    (again,) = record(runtime, tenant, SCOPE, [turn])
    assert (again.id, again.seq) == (first.id, first.seq)
    assert (first.duplicate, again.duplicate) == (False, True)
    assert len(turn_rows(owner)) == 1


def test_a_repeated_key_tells_the_stage_reached_meanwhile(runtime: Runtime, tenant: int) -> None:
    record(runtime, tenant, SCOPE, [said(idempotency_key="k1")])
    finder.drain(runtime)
    (again,) = record(runtime, tenant, SCOPE, [said(idempotency_key="k1")])
    assert again.stage is Stage.EXTRACTED


def test_one_key_from_many_callers_at_once_is_one_turn(runtime: Runtime, tenant: int, owner: Engine) -> None:
    answers: list[tuple[Ticket, ...]] = at_once(
        lambda _: record(runtime, tenant, SCOPE, [said(idempotency_key="k1")])
    )
    assert len({ticket.id for (ticket,) in answers}) == 1
    assert sum(not ticket.duplicate for (ticket,) in answers) == 1
    assert [row.seq for row in turn_rows(owner)] == [1]
    assert [row.next_seq for row in sessions_of(owner)] == [2], "no number was lost"


def test_a_key_with_other_content_is_a_conflict_and_stores_nothing(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    record(runtime, tenant, SCOPE, [said(idempotency_key="k1")])
    with pytest.raises(Conflict) as refused:
        record(runtime, tenant, SCOPE, [said("new"), said("I live in Rome.", idempotency_key="k1")])
    assert refused.value.field == "idempotency_key"
    assert "Rome" not in refused.value.message
    assert len(turn_rows(owner)) == 1
    (ticket,) = record(runtime, tenant, SCOPE, [said("next")])
    assert ticket.seq == 2


def test_a_key_stands_for_all_that_was_said(runtime: Runtime, tenant: int, owner: Engine) -> None:
    record(runtime, tenant, SCOPE, [said(idempotency_key="k1")])
    changes: tuple[dict[str, Any], ...] = (
        {"role": Role.ASSISTANT},
        {"speaker": "Roberta"},
        {"at": datetime(2024, 1, 1, tzinfo=UTC)},
        {"emotional_tone": "sad"},
        {"tools_used": ("search",)},
        {"metadata": {"a": 1}},
    )
    for change in changes:
        with pytest.raises(Conflict):
            record(runtime, tenant, SCOPE, [said(idempotency_key="k1", **change)])
    assert len(turn_rows(owner)) == 1


def test_a_key_belongs_to_the_tenant_not_to_the_session(
    runtime: Runtime, tenant: int, other_tenant: int, owner: Engine
) -> None:
    record(runtime, tenant, SCOPE, [said(idempotency_key="k1")])
    with pytest.raises(Conflict):
        record(runtime, tenant, Scope("ada", "bob", "s2"), [said(idempotency_key="k1")])
    (ticket,) = record(runtime, other_tenant, SCOPE, [said(idempotency_key="k1")])
    assert not ticket.duplicate
    assert len(turn_rows(owner)) == 2


def test_one_key_in_many_sessions_at_once_is_stored_in_one_of_them(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    answers = at_once(
        lambda n: record(runtime, tenant, Scope("ada", "bob", f"s{n}"), [said(idempotency_key="k1")])
    )
    assert sum(not isinstance(answer, Conflict) for answer in answers) == 1
    assert len(turn_rows(owner)) == 1


def test_a_key_twice_in_one_call_is_one_turn(runtime: Runtime, tenant: int, owner: Engine) -> None:
    one = said(idempotency_key="k1")
    tickets = record(runtime, tenant, SCOPE, [one, said("between"), one])
    assert [ticket.seq for ticket in tickets] == [1, 2, 1]
    assert [ticket.duplicate for ticket in tickets] == [False, False, True]
    assert tickets[0].id == tickets[2].id
    assert len(turn_rows(owner)) == 2


def test_a_key_twice_in_one_call_with_other_content_stores_nothing(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    with pytest.raises(Conflict):
        record(runtime, tenant, SCOPE, [said("a", idempotency_key="k1"), said("b", idempotency_key="k1")])
    assert turn_rows(owner) == []


def test_a_call_may_mix_known_and_new_turns(runtime: Runtime, tenant: int, owner: Engine) -> None:
    turns = [said(f"turn {n}", idempotency_key=f"k{n}") for n in range(4)]
    record(runtime, tenant, SCOPE, [turns[0], turns[2]])
    tickets = record(runtime, tenant, SCOPE, turns)
    assert [ticket.duplicate for ticket in tickets] == [True, False, True, False]
    assert [ticket.seq for ticket in tickets] == [1, 3, 2, 4]
    assert [row.text for row in turn_rows(owner)] == ["turn 0", "turn 2", "turn 1", "turn 3"]


def test_the_same_words_without_a_key_are_two_turns(runtime: Runtime, tenant: int, owner: Engine) -> None:
    record(runtime, tenant, SCOPE, [said(), said()])
    assert len(turn_rows(owner)) == 2


# --- what is refused ------------------------------------------------------------------------------------------


def test_what_cannot_be_stored_is_taken_out_and_said(runtime: Runtime, tenant: int, owner: Engine) -> None:
    dirty, family = "caf\x00é \ud800 noir", "\U0001f468‍\U0001f469‍\U0001f467 ok ‏עברית"
    tickets = record(runtime, tenant, SCOPE, [said(dirty), said(family)])
    assert [ticket.cleaned for ticket in tickets] == [True, False]
    assert [row.text for row in turn_rows(owner)] == ["café  noir", family]


def test_a_turn_above_the_limits_of_the_settings_stores_nothing(
    variant: Callable[..., Runtime], tenant: int, owner: Engine
) -> None:
    runtime = variant(record=Record(text_limit_chars=200, metadata_limit_bytes=100, batch_limit=2))
    for turns, field in (
        ([said("x" * 201)], "turn.content"),
        ([said(metadata={"a": "x" * 100})], "turn.metadata"),
        ([said()] * 3, "turns"),
    ):
        with pytest.raises(TooLarge) as refused:
            record(runtime, tenant, SCOPE, turns)
        assert refused.value.field == field
    assert turn_rows(owner) == []
    assert sessions_of(owner) == []
    assert len(record(runtime, tenant, SCOPE, [said("x" * 200), said()])) == 2


def test_one_wrong_turn_of_a_call_is_named_by_its_place(runtime: Runtime, tenant: int, owner: Engine) -> None:
    with pytest.raises(InvalidInput) as refused:
        record(runtime, tenant, SCOPE, [said(), said(), said(" ")])
    assert refused.value.field == "turns[2].content"
    assert turn_rows(owner) == []


def test_a_turn_belongs_to_a_user_and_a_session(runtime: Runtime, tenant: int) -> None:
    for scope in (Scope("ada"), Scope("ada", "bob")):
        with pytest.raises(InvalidInput, match="session"):
            record(runtime, tenant, scope, [said()])


def test_a_tenant_far_behind_is_slowed_down_before_anything_is_stored(
    variant: Callable[..., Runtime], tenant: int, other_tenant: int, owner: Engine
) -> None:
    limit = Record(backlog_limit=2)
    record(variant(record=limit), tenant, SCOPE, [said(), said()])
    full = variant(record=limit)
    with pytest.raises(RateLimited) as refused:
        record(full, tenant, SCOPE, [said()])
    assert refused.value.retry_after is not None
    assert len(turn_rows(owner)) == 2
    assert record(full, other_tenant, SCOPE, [said()]), "another tenant is not held back"


# --- what it sets going ---------------------------------------------------------------------------------------


def test_with_rules_a_session_is_due_at_once(runtime: Runtime, tenant: int) -> None:
    record(runtime, tenant, SCOPE, [said()])
    due = finder.look(runtime)
    assert (due.turns, len(due.sessions)) == (1, 1)


def test_a_session_is_due_after_turns_or_silence_and_at_its_maximum_age(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    policy = {"extraction": "llm", "after_turns": 3, "idle_seconds": 20, "max_age_seconds": 30}
    with owner.begin() as connection:
        agents.change(
            connection, tenant, "ada", parts={"policy": policy}, copies=all_shards.copies(connection)
        )
    waits = "extract(epoch FROM due_at - last_activity_at) AS idle, extract(epoch FROM due_at - pending_since) AS age"
    record(runtime, tenant, SCOPE, [said()])
    (first,) = sessions_of(owner, waits)
    assert first.idle == pytest.approx(20)
    with owner.begin() as connection:
        connection.execute(text("UPDATE sessions SET pending_since = pending_since - interval '25 seconds'"))
    record(runtime, tenant, SCOPE, [said()])
    (second,) = sessions_of(owner, waits)
    assert second.age == pytest.approx(30), "the last short turns never wait for ever"
    assert finder.look(runtime).sessions == ()
    record(runtime, tenant, SCOPE, [said()])
    assert len(finder.look(runtime).sessions) == 1


def test_with_extraction_off_nothing_becomes_due(runtime: Runtime, tenant: int, owner: Engine) -> None:
    with owner.begin() as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"policy": {"extraction": "off"}},
            copies=all_shards.copies(connection),
        )
    record(runtime, tenant, SCOPE, [said()])
    assert finder.look(runtime).sessions == ()


def test_a_new_turn_opens_an_ended_session_again(runtime: Runtime, tenant: int, owner: Engine) -> None:
    record(runtime, tenant, SCOPE, [said()])
    with owner.begin() as connection:
        connection.execute(text("UPDATE sessions SET ended_at = now()"))
    record(runtime, tenant, SCOPE, [said()])
    assert [row.ended_at for row in sessions_of(owner)] == [None]


# --- servers away ---------------------------------------------------------------------------------------------


def test_turns_are_accepted_without_a_redis_call_each_during_its_outage(
    variant: Callable[..., Runtime], tenant: int, owner: Engine, closed_port: int
) -> None:
    away = Redis(url=SecretStr(f"redis://127.0.0.1:{closed_port}/0"))
    runtime = variant(redis=away)
    pool = runtime.hot.redis.connection_pool
    connect, attempts = pool.get_connection, []

    def count_and_connect(*arguments: Any, **options: Any) -> Any:
        attempts.append(time.monotonic())
        return connect(*arguments, **options)

    pool.get_connection = count_and_connect
    for n in range(20):
        record(runtime, tenant, SCOPE, [said(f"turn {n}")])
    pauses = [later - earlier for earlier, later in pairwise(attempts)]
    assert all(pause >= PAUSE_SECONDS for pause in pauses), "Redis is asked once per pause, not for each turn"
    assert len(turn_rows(owner)) == 20
    assert finder.look(runtime).turns == 20, "the finder sees what no hint announced"


def test_with_postgres_away_the_caller_is_told_to_try_again(
    variant: Callable[..., Runtime], tenant: int, closed_port: int
) -> None:
    gone = Database(url=SecretStr(f"postgresql+psycopg://memory_app@127.0.0.1:{closed_port}/memory"))
    runtime = variant(database=gone)
    with pytest.raises(StoreUnavailable) as refused:
        record(runtime, tenant, SCOPE, [said()])
    assert refused.value.retry_after


# --- what people said stays in Postgres -----------------------------------------------------------------------


def everything_in(client: Any, prefix: str) -> bytes:
    """Every key under the prefix with all it holds; messages with their bodies decoded."""
    dumps: dict[str, Callable[[bytes], Any]] = {
        "string": client.get,
        "hash": client.hgetall,
        "set": client.smembers,
        "list": lambda key: [opened(entry) for entry in client.lrange(key, 0, -1)],
        "zset": lambda key: client.zrange(key, 0, -1),
    }
    keys = list(client.scan_iter(f"{prefix}*"))
    return b"\n".join(key + repr(dumps[client.type(key).decode()](key)).encode() for key in keys)


def opened(entry: bytes) -> bytes:
    """A queued message and the arguments inside, or whatever else stands in a list."""
    if not entry.startswith(b"{"):
        return entry
    return entry + base64.b64decode(json.loads(entry)["body"])


def test_no_word_of_a_turn_ever_reaches_redis(runtime: Runtime, tenant: int, settings: Settings) -> None:
    canary = "zanzibarquux"
    turn = said(
        f"My name is {canary} and I live in {canary}.",
        speaker=canary,
        idempotency_key=canary,
        emotional_tone=canary,
        tools_used=(canary,),
        metadata={canary: canary},
    )
    scope = Scope(f"agent-{canary}", f"user-{canary}", f"session-{canary}")
    record(runtime, tenant, scope, [turn])
    with RedisClient.from_url(settings.redis.url.get_secret_value(), protocol=2) as client:
        waiting = everything_in(client, settings.redis.prefix)
        finder.drain(runtime)
        record(runtime, tenant, scope, [said(canary)])
        finder.find_due(runtime)
        afterwards = everything_in(client, settings.redis.prefix)
    assert b"memory.index_turns" in waiting, "the hints are among what was looked at"
    assert b'"session_id": ' in afterwards
    assert canary.encode() not in waiting
    assert canary.encode() not in afterwards
