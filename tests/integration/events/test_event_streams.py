"""The doors of events: streams, pages, both clients and the command; and what nobody may take too much of."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from threading import Thread
from typing import Any

import httpx2
import pytest
from api_server import serving
from commands import Memory
from free_ports import free_port
from own_servers import wait_until
from sqlalchemy import Engine, text

from memory_app import MemoryApp
from memory_app.client import AsyncMemoryClient, MemoryClient
from memory_app.events import stream
from memory_app.events.event import EVENT_VERSION
from memory_app.main.http import create_app
from memory_app.main.server import Server
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.settings import Events, Settings
from memory_app.tenancy.rows import keys
from memory_app.transfer.snapshot import VERSION
from memory_app.turns.record import record

ADA = Scope("ada", "mira", "chat")
STREAM = {"Accept": "text/event-stream"}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(
        update={"events": Events(look_seconds=0.05, heartbeat_seconds=0.2, key_streams=2, streams=3)}
    )


@pytest.fixture
def url(runtime: Runtime) -> Iterator[str]:
    with serving(runtime) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def http(url: str, api_key: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {api_key}"}, timeout=60) as client:
        yield client


def say(runtime: Runtime, tenant: int, words: str, *, scope: Scope = ADA) -> str:
    return str(record(runtime, tenant, scope, [NewTurn(Role.USER, words)])[0].id)


def key_for(owner: Engine, **bound: Any) -> str:
    with owner.begin() as connection:
        return keys.create(connection, "acme", rights=("read",), **bound)[1]


def events_of(answer: httpx2.Response) -> Iterator[dict[str, str]]:
    """The blocks of a stream: their fields, a comment as the field ``""``."""
    fields: dict[str, str] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif fields:
            yield fields
            fields = {}


def test_a_stream_tells_what_comes_and_resumes_from_the_last_id(
    http: httpx2.Client, runtime: Runtime, tenant: int
) -> None:
    with http.stream("GET", "/v1/events", headers=STREAM) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        blocks = events_of(answer)
        assert next(blocks) == {"retry": "2000"}
        first = say(runtime, tenant, "hello Lisbon")
        told = next(block for block in blocks if "data" in block)
    assert told["event"] == "turn.accepted"
    data = json.loads(told["data"])
    assert (data["target"], data["id"], data["user"]) == (first, told["id"], "mira")
    assert "Lisbon" not in str(told)
    missed = [say(runtime, tenant, f"word {n}") for n in range(3)]
    with http.stream("GET", "/v1/events", headers=STREAM | {"Last-Event-ID": told["id"]}) as answer:
        later = [block for block in islice(events_of(answer), 4) if "data" in block]
    assert [json.loads(block["data"])["target"] for block in later] == missed


def test_an_idle_stream_sends_signs_of_life_with_its_place(
    http: httpx2.Client, runtime: Runtime, tenant: int
) -> None:
    with http.stream("GET", "/v1/events?types=erasure", headers=STREAM) as answer:
        blocks = events_of(answer)
        next(blocks)
        place = next(blocks)["id"]
        say(runtime, tenant, "not heard of here")
        wait_until(lambda: next(blocks)["id"] > place, "the place moves past what was left out")


def test_a_key_for_one_person_hears_of_that_person(
    http: httpx2.Client, runtime: Runtime, tenant: int, owner: Engine
) -> None:
    say(runtime, tenant, "hello")
    say(runtime, tenant, "hello", scope=Scope("ada", "otto", "chat"))
    wait_until(lambda: len(http.get("/v1/events?after=oldest").json()["events"]) == 2, "both are seen")
    bound = {"Authorization": f"Bearer {key_for(owner, user='otto')}"}
    answer = http.get("/v1/events?after=oldest", headers=bound)
    assert {event["user"] for event in answer.json()["events"]} == {"otto"}
    refused = http.get("/v1/events?after=oldest&user=mira", headers=bound)
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "forbidden")
    with http.stream("GET", "/v1/events?after=oldest", headers=bound | STREAM) as stream_answer:
        told = [block for block in islice(events_of(stream_answer), 3) if "data" in block]
    assert {json.loads(block["data"])["user"] for block in told} == {"otto"}


def test_a_page_waits_for_the_first_event(http: httpx2.Client, runtime: Runtime, tenant: int) -> None:
    cursor = http.get("/v1/events").json()["cursor"]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(http.get, f"/v1/events?after={cursor}&wait_seconds=30")
        time.sleep(0.2)
        turn = say(runtime, tenant, "hello")
        (event,) = waiting.result().json()["events"]
    assert event["target"] == turn


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("after=yesterday", "after"),
        ("types=turns", "types"),
        ("agent=", "agent"),
        ("limit=0", "limit"),
        ("wait_seconds=99", "wait_seconds"),
        ("kind=fact", "kind"),
    ],
)
@pytest.mark.parametrize("headers", [{}, STREAM], ids=["page", "stream"])
def test_bad_input_is_named(http: httpx2.Client, query: str, field: str, headers: dict[str, str]) -> None:
    answer = http.get(f"/v1/events?{query}", headers=headers)
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, field)


def test_streams_are_counted_and_a_client_that_goes_makes_room(http: httpx2.Client, owner: Engine) -> None:
    other = {"Authorization": f"Bearer {key_for(owner)}"} | STREAM

    def status(headers: dict[str, str] = STREAM) -> int:
        with http.stream("GET", "/v1/events", headers=headers) as answer:
            return answer.status_code

    with http.stream("GET", "/v1/events", headers=STREAM), http.stream("GET", "/v1/events", headers=STREAM):
        assert status() == 429, "two of a key"
        with http.stream("GET", "/v1/events", headers=other):
            assert status(other) == 429, "three in all"
            assert http.get("/v1/events").status_code == 200, "pages are no streams"
    wait_until(lambda: status() == 200, "those that went are forgotten")


def test_a_revoked_key_hears_no_more(
    http: httpx2.Client, owner: Engine, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "KEY_SECONDS", 0.1)
    key = key_for(owner)
    with http.stream("GET", "/v1/events", headers=STREAM | {"Authorization": f"Bearer {key}"}) as answer:
        with owner.begin() as connection:
            connection.execute(text("UPDATE api_keys SET revoked_at = now() WHERE rights = '{read}'"))
        # To its end, which comes.
        assert answer.read().startswith(b"retry: 2000")


def test_a_stream_ends_in_time(runtime: Runtime, api_key: str) -> None:
    events = runtime.settings.events.model_copy(update={"stream_seconds": 0.2})
    short = replace(runtime, settings=runtime.settings.model_copy(update={"events": events}))
    headers = STREAM | {"Authorization": f"Bearer {api_key}"}
    with (
        serving(short) as port,
        httpx2.Client(timeout=60) as client,
        client.stream("GET", f"http://127.0.0.1:{port}/v1/events", headers=headers) as answer,
    ):
        assert answer.read().startswith(b"retry: 2000")


def test_streams_end_when_the_server_stops(runtime: Runtime, api_key: str) -> None:
    port = free_port()
    server = Server(create_app(runtime), runtime.settings.http.model_copy(update={"port": port}))
    thread = Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started, "the server has started")
    headers = STREAM | {"Authorization": f"Bearer {api_key}"}
    with (
        httpx2.Client(timeout=60) as client,
        client.stream("GET", f"http://127.0.0.1:{port}/v1/events", headers=headers) as answer,
    ):
        server.should_exit = True
        assert answer.read().startswith(b"retry: 2000")
    thread.join()


def test_a_stream_outlives_a_database_that_is_away_for_a_moment(
    http: httpx2.Client, runtime: Runtime, tenant: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "AWAY_SECONDS", 0.05)
    with http.stream("GET", "/v1/events", headers=STREAM) as answer:
        blocks = events_of(answer)
        next(blocks)
        with runtime.engine.connect() as connection:
            connection.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid() AND usename = current_user"
                )
            )
        runtime.engine.dispose()
        turn = say(runtime, tenant, "hello")
        told = next(block for block in blocks if "data" in block)
    assert json.loads(told["data"])["target"] == turn


def test_clients_and_facade_follow_across_a_restart_of_the_server(
    runtime: Runtime, tenant: int, api_key: str
) -> None:
    with serving(runtime) as port:
        client = MemoryClient(f"http://127.0.0.1:{port}", api_key)
        follower = client.events(after="oldest", types="turn.accepted")
        first = say(runtime, tenant, "before")
        assert str(next(follower).target) == first
    second = say(runtime, tenant, "while it is away")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, follower)
        time.sleep(0.3)
        with serving(runtime, port=port):
            assert str(waiting.result().target) == second
            third = say(runtime, tenant, "after")
            assert str(next(follower).target) == third
            assert asyncio.run(heard_by_async(port, api_key)) == [first, second, third]
            client.close()
    in_process = MemoryApp(runtime, tenant).events(after="oldest", user="mira")
    assert [str(event.target) for event in islice(in_process, 3)] == [first, second, third]


async def heard_by_async(port: int, key: str) -> list[str]:
    async with AsyncMemoryClient(f"http://127.0.0.1:{port}", key) as client:
        targets: list[str] = []
        async for event in client.events(after="oldest"):
            targets.append(str(event.target))
            if len(targets) == 3:
                break
        return targets


def test_the_command_tells_events_as_lines(memory: Memory, runtime: Runtime, tenant: int) -> None:
    turn = say(runtime, tenant, "hello Lisbon")
    arguments = ("events", "--tenant", "acme")
    wait_until(lambda: turn in memory(*arguments).out, "the turn is told")
    shown = memory(*arguments)
    assert "turn.accepted" in shown.out and "ada/mira/chat" in shown.out and "Lisbon" not in shown.out
    lines = memory(*arguments, "--json").out.splitlines()
    assert [json.loads(line)["target"] for line in lines] == [turn]
    wrong = memory(*arguments, "--types", "turns")
    assert wrong.status == 1 and "types: each is one of" in wrong.err


def test_api_events_and_snapshots_carry_a_version(http: httpx2.Client, runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "I have a dog called Bruno.")
    (event,) = http.get("/v1/events", params={"after": "oldest", "types": "turn.accepted"}).json()["events"]
    snapshot = http.get("/v1/agents/ada/users/mira/export").json()
    description = http.get("/openapi.json").json()
    print(f"API {description['info']['version']}, event {event['version']}, snapshot {snapshot['version']}")
    assert (description["info"]["version"], event["version"], snapshot["version"]) == (
        "1",
        EVENT_VERSION,
        VERSION,
    )
