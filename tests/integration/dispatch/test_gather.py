"""Turns that come one after the other are indexed together, and extracted where they were indexed."""

from __future__ import annotations

from redis import Redis as RedisClient

from memory_app import queue
from memory_app.dispatch import fairness
from memory_app.records.records import NewTurn, Role, Stage
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.settings import Settings
from memory_app.turns.record import record
from memory_app.turns.tickets import ticket


def say(runtime: Runtime, tenant: int, *, session: str) -> Stage:
    (accepted,) = record(
        runtime, tenant, Scope("ada", "bob", session), [NewTurn(Role.USER, "I live in Paris.")]
    )
    return ticket(runtime, tenant, accepted.id).stage


def test_a_turn_that_comes_alone_does_not_wait(runtime: Runtime, tenant: int) -> None:
    pauses: list[float] = []
    say(runtime, tenant, session="one")

    fairness.gather(runtime, pause=pauses.append)

    assert pauses == []


def test_a_turn_waits_for_others_where_some_came_just_before(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, session="one")
    fairness.index_in_turn(runtime)
    first = record(runtime, tenant, Scope("ada", "bob", "two"), [NewTurn(Role.USER, "I live in Rome.")])
    meanwhile = []

    def pause(_: float) -> None:
        meanwhile.extend(
            record(runtime, tenant, Scope("ada", "bob", "three"), [NewTurn(Role.USER, "I live in Bonn.")])
        )

    fairness.gather(runtime, pause=pause)
    fairness.index_in_turn(runtime)

    stages = [ticket(runtime, tenant, accepted.id).stage for accepted in (*first, *meanwhile)]
    assert stages == [Stage.EXTRACTED, Stage.EXTRACTED]


def test_looks_that_find_nothing_make_no_turn_wait(runtime: Runtime) -> None:
    fairness.index_in_turn(runtime)

    assert not runtime.stream.is_under_way()


def test_many_sessions_are_left_to_messages_so_that_indexing_goes_on(
    runtime: Runtime, tenant: int, settings: Settings
) -> None:
    for number in range(fairness.AT_ONCE + 1):
        say(runtime, tenant, session=f"chat-{number}")
    with RedisClient.from_url(settings.redis.url.get_secret_value(), protocol=2) as client:
        name = f"{settings.redis.prefix}{queue.INGEST}"
        before = client.llen(name)

        fairness.index_in_turn(runtime)

        assert client.llen(name) == before + fairness.AT_ONCE + 1
