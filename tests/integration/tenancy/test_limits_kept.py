"""Limits of tenants and keys: what is above is refused with its name and a time, and nothing of it is stored."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from commands import Memory
from prometheus_client import generate_latest
from sqlalchemy import Engine, event, text
from starlette.testclient import TestClient

from memory_app import metrics, redis_url
from memory_app.app import MemoryApp
from memory_app.db.db import transaction
from memory_app.dispatch import finder
from memory_app.errors import CapReached, NotFound, QuotaExceeded, RateLimited
from memory_app.extraction import model_calls
from memory_app.hot.client import connect
from memory_app.hot.keys import LIMIT
from memory_app.main.http import create_app
from memory_app.ops import limit_checks
from memory_app.ops.check import State
from memory_app.records.limits import Limits
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy import rates
from memory_app.tenancy.policy import Policy
from memory_app.tenancy.rows import keys, limits, usage
from memory_app.tools.bounds import Bounds
from memory_app.tools.mcp_server import http_app
from memory_app.turns.erased import list_refused
from memory_app.turns.relay import relay

CHAT = Scope("ada", "mira", "chat")
OWN = "/v1/agents/ada/users/mira"
TURNS = f"{OWN}/sessions/chat/turns"
SAID = {"role": "user", "content": "I keep bees in Porto."}
MESSAGE = {"agent": "ada", "user": "mira", "session": "chat", "role": "user", "content": "I keep bees."}

Limit = Callable[..., None]
ClientOf = Callable[[str], TestClient]


@pytest.fixture
def limit(owner: Engine, tenant: int) -> Limit:
    def set_limits(**values: int | None) -> None:
        with owner.begin() as connection:
            limits.change_of_tenant(connection, "acme", values)

    return set_limits


@pytest.fixture
def client_of(runtime: Runtime) -> ClientOf:
    # Made anew for each key: an application remembers keys and their limits for some seconds.
    return lambda key: TestClient(create_app(runtime), headers={"Authorization": f"Bearer {key}"})


def later(runtime: Runtime, *, minutes: int = 1) -> None:
    """As if minutes had passed since this process read a limit or counted what is stored."""
    runtime.recent.clock = lambda: time.monotonic() + 60 * minutes


def refusal(answer: Any) -> tuple[int, str, str | None]:
    body = answer.json()["error"]
    assert int(answer.headers["retry-after"]) >= 1
    return answer.status_code, body["type"], body.get("field")


def count_turns(owner: Engine) -> int:
    with owner.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM turns")).scalar_one())


def turn(said: str, key: str | None = None) -> dict[str, object]:
    return {"role": "user", "content": said, **({"idempotency_key": key} if key else {})}


# --- a minute -------------------------------------------------------------------------------------------------


def test_requests_above_the_limit_of_a_key_are_refused(
    client_of: ClientOf, api_key: str, owner: Engine
) -> None:
    admin = client_of(api_key)
    made = admin.post("/v1/keys", json={"rights": ["record"]}).json()
    answer = admin.put(f"/v1/keys/{made['id']}/limits", json={"requests_per_minute": 2})
    assert answer.json() == {"limits": {"requests_per_minute": 2}}

    client = client_of(made["key"])
    answers = [client.post(TURNS, json=SAID) for _ in range(4)]
    # A bucket fills while the test runs, so a slow machine may let one more pass.
    assert [answer.status_code for answer in answers[:2]] == [202, 202]
    refused = [answer for answer in answers[2:] if answer.status_code != 202]
    assert {refusal(answer) for answer in refused} == {(429, "rate_limited", "requests_per_minute")}
    assert count_turns(owner) == 4 - len(refused)
    # Another key of the tenant has its own.
    assert client_of(api_key).post(TURNS, json=SAID).status_code == 202
    rotated = admin.post(f"/v1/keys/{made['id']}/rotate", json={}).json()
    listed = {row["id"]: row["limits"] for row in admin.get("/v1/keys").json()["keys"]}
    assert listed[rotated["id"]] == {"requests_per_minute": 2}


def test_a_key_above_its_limit_spends_nothing_of_its_tenants(
    client_of: ClientOf, api_key: str, limit: Limit, owner: Engine
) -> None:
    with owner.begin() as connection:
        id, greedy = keys.create(connection, "acme")
    with owner.begin() as connection:
        keys.enter_tenant(connection, "acme")
        limits.set_of_key(connection, id, Limits(requests_per_minute=1))
    limit(requests_per_minute=6)

    answers = [client_of(greedy).get(TURNS).status_code for _ in range(20)]
    assert answers[0] == 404
    assert answers.count(429) >= 10
    # Of the six only what passed is spent: the other key still has the most of them.
    other = client_of(api_key)
    passed = [other.get(TURNS).status_code for _ in range(6 - answers.count(404))]
    assert 429 not in passed


def test_bytes_above_the_limit_of_a_tenant_are_refused(
    runtime: Runtime, client_of: ClientOf, api_key: str, limit: Limit
) -> None:
    limit(bytes_per_minute=2_000)
    client = client_of(api_key)
    long = {"role": "user", "content": "bees " * 380}
    assert client.post(TURNS, json=long).status_code == 202
    assert refusal(client.post(TURNS, json=long)) == (429, "rate_limited", "bytes_per_minute")
    # What has no body costs none.
    assert client.get(TURNS).status_code == 200
    chunked = client.post(TURNS, content=iter([b'{"role": "user", ', b'"content": "x"}']))
    assert (chunked.status_code, chunked.json()["error"]["field"]) == (422, "body")
    # Also by its other door.
    mcp = TestClient(http_app(runtime, Bounds()), headers=client.headers)
    assert refusal(mcp.post("/mcp", json=long)) == (429, "rate_limited", "bytes_per_minute")


@pytest.mark.one_shard
def test_without_redis_no_limit_of_a_minute_refuses(runtime: Runtime, api_key: str, limit: Limit) -> None:
    limit(requests_per_minute=1)
    with transaction(runtime.engine, None) as connection:
        caller = keys.authenticate(connection, api_key)
    assert caller is not None
    rates.admit(runtime, caller, size_bytes=10)
    with pytest.raises(RateLimited):
        rates.admit(runtime, caller, size_bytes=10)
    away = replace(runtime, hot=connect(redis_url.read("redis://127.0.0.1:1/0"), prefix="away:"))
    rates.admit(away, caller, size_bytes=10)


def test_messages_above_a_limit_are_refused_and_listed(
    runtime: Runtime, tenant: int, api_key: str, limit: Limit, owner: Engine
) -> None:
    limit(requests_per_minute=1, user_turns=1)
    relay(runtime, {**MESSAGE, "api_key": api_key}, message_id="m-1")
    with pytest.raises(RateLimited) as refused:
        relay(runtime, {**MESSAGE, "api_key": api_key}, message_id="m-2")
    assert refused.value.field == "requests_per_minute"
    limit(requests_per_minute=None)
    with pytest.raises(QuotaExceeded):
        relay(runtime, {**MESSAGE, "api_key": api_key}, message_id="m-3")
    # One that was stored is not refused when it is delivered once more.
    assert relay(runtime, {**MESSAGE, "api_key": api_key}, message_id="m-1").duplicate
    reasons = {row.message_id: row.reason for row in list_refused(runtime, tenant)}
    assert reasons == {"m-2": "rate_limited", "m-3": "quota_exceeded"}
    assert count_turns(owner) == 1


# --- what is stored -------------------------------------------------------------------------------------------


def test_a_person_has_as_many_turns_as_the_quota_says(
    runtime: Runtime, tenant: int, limit: Limit, api_key: str, owner: Engine, client_of: ClientOf
) -> None:
    limit(user_turns=2)
    app = MemoryApp(runtime, tenant)
    app.record(CHAT, "One.")
    with pytest.raises(QuotaExceeded) as refused:
        app.record_all(CHAT, [turn("Two."), turn("Three.")])
    assert refused.value.field == "user_turns"
    assert "1 turns" in refused.value.message
    app.record(CHAT, "Two.")
    before = metrics.limited.labels("user_turns")._value.get()
    assert refusal(client_of(api_key).post(TURNS, json=SAID)) == (429, "quota_exceeded", "user_turns")
    assert metrics.limited.labels("user_turns")._value.get() == before + 1
    assert "acme" not in generate_latest(metrics.REGISTRY).decode()
    tool = client_of(api_key).post(f"{OWN}/tools/record_turns?session=chat", json={"messages": [SAID]})
    assert (tool.json()["is_error"], "user_turns" in tool.json()["text"]) == (True, True)
    # Another person of the tenant has room, and what was accepted is worked on.
    app.record(Scope("ada", "bob", "chat"), "I have a dog called Rex.")
    finder.drain(runtime)
    with owner.connect() as connection:
        rows = connection.execute(
            text("SELECT text, extracted_at IS NOT NULL AS done FROM turns ORDER BY accepted_at, seq")
        )
        assert {tuple(row) for row in rows} == {
            ("One.", True),
            ("Two.", True),
            ("I have a dog called Rex.", True),
        }


def test_what_was_stored_before_gets_its_ticket_above_the_quota(
    runtime: Runtime, tenant: int, limit: Limit, owner: Engine
) -> None:
    limit(user_turns=2)
    app = MemoryApp(runtime, tenant)
    first = app.record_all(CHAT, [turn("One.", "k-1"), turn("Two.", "k-2")])
    again = app.record_all(CHAT, [turn("One.", "k-1"), turn("Two.", "k-2")])
    assert [ticket.id for ticket in again] == [ticket.id for ticket in first]
    assert all(ticket.duplicate for ticket in again)
    # Of a batch only what is new counts, and all of it or nothing is stored.
    limit(user_turns=3)
    time_out = time.monotonic() + 60
    while True:
        try:
            app.record_all(CHAT, [turn("One.", "k-1"), turn("Three.", "k-3")])
            break
        except QuotaExceeded:
            # Within some seconds a process follows the change.
            assert time.monotonic() < time_out
    with pytest.raises(QuotaExceeded):
        app.record_all(CHAT, [turn("One.", "k-1"), turn("Four.", "k-4")])
    assert count_turns(owner) == 3


def test_nothing_is_left_of_a_person_who_was_refused(
    runtime: Runtime, tenant: int, limit: Limit, owner: Engine
) -> None:
    limit(turns=1)
    app = MemoryApp(runtime, tenant)
    app.record(CHAT, "One.")
    with pytest.raises(QuotaExceeded):
        app.record(Scope("ada", "eve", "chat"), "Two.")
    with owner.connect() as connection:
        assert connection.execute(text("SELECT name FROM users")).scalars().all() == ["mira"]


def test_a_tenant_has_as_many_turns_as_its_quota_and_erasing_makes_room(
    runtime: Runtime, tenant: int, other_tenant: int, limit: Limit
) -> None:
    limit(turns=2)
    app, other = MemoryApp(runtime, tenant), MemoryApp(runtime, other_tenant)
    app.record(CHAT, "One.")
    app.record(Scope("ada", "bob", "chat"), "Two.")
    with pytest.raises(QuotaExceeded) as refused:
        app.record(Scope("zoe", "eve", "chat"), "Three.")
    assert refused.value.field == "turns"
    for _ in range(3):
        other.record(CHAT, "Another tenant's.")
    app.forget("bob")
    later(runtime)
    app.record(CHAT, "Three.")


def test_statements_above_the_quota_are_refused(
    runtime: Runtime, tenant: int, limit: Limit, api_key: str, client_of: ClientOf
) -> None:
    limit(user_memories=1)
    app = MemoryApp(runtime, tenant)
    app.remember(Scope("ada", "mira"), "Mira keeps bees.")
    with pytest.raises(QuotaExceeded) as refused:
        app.remember(Scope("zoe", "mira"), "Mira lives in Porto.")
    assert refused.value.field == "user_memories"
    fact = {"subject": "mira", "relation": "likes", "object": "pears"}
    client = client_of(api_key)
    assert refusal(client.post(f"{OWN}/facts", json=fact)) == (429, "quota_exceeded", "user_memories")
    app.remember(Scope("ada", "bob"), "Bob has a dog.")
    app.remember(Scope("ada"), "Ada is patient.", kind="core")


def test_an_import_above_the_quota_is_refused(
    runtime: Runtime, tenant: int, other_tenant: int, limit: Limit, api_key: str, client_of: ClientOf
) -> None:
    source = MemoryApp(runtime, other_tenant)
    source.record_all(CHAT, [turn("I keep bees."), turn("I live in Porto.")])
    for statement in ("Mira keeps bees.", "Mira has a sister in Oslo."):
        source.remember(Scope("ada", "mira"), statement)
    document = source.export(Scope("ada", "mira"))
    for place, quota in enumerate(("turns", "user_turns", "user_memories"), start=1):
        limit(turns=None, user_turns=None, user_memories=None)
        limit(**{quota: 1})
        later(runtime, minutes=place)
        answer = client_of(api_key).post("/v1/agents/ada/users/new/import", json=document)
        assert refusal(answer) == (429, "quota_exceeded", quota)
    app = MemoryApp(runtime, tenant)
    with pytest.raises(NotFound):
        app.export(Scope("ada", "new"))


@pytest.mark.one_shard
def test_a_tenant_that_spent_its_tokens_waits(
    runtime: Runtime, tenant: int, other_tenant: int, limit: Limit
) -> None:
    limit(tokens_per_day=100)
    asking = replace(runtime, chat=SimpleNamespace(small=None, large=None))  # type: ignore[arg-type]
    model_calls.small(asking, tenant, Policy())
    for spender in (tenant, other_tenant):
        with transaction(runtime.engine, spender) as connection:
            usage.add(connection, spender, model="m", tokens_in=90, tokens_out=20, cost_usd=Decimal("0.01"))
    with pytest.raises(CapReached):
        model_calls.small(asking, tenant, Policy())
    # Who has no limit goes on.
    model_calls.small(asking, other_tenant, Policy())


def test_without_limits_a_turn_costs_no_statement_and_no_bucket(
    runtime: Runtime, tenant: int, limit: Limit, client_of: ClientOf, api_key: str
) -> None:
    statements: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        statements.append(statement)

    client = client_of(api_key)
    client.post(TURNS, json=SAID)
    event.listen(runtime.engine, "before_cursor_execute", note)
    try:
        client.post(TURNS, json=SAID)
    finally:
        event.remove(runtime.engine, "before_cursor_execute", note)
    # The count of the backlog brings the limits along, every two seconds.
    assert all("AS waiting" in statement for statement in statements if "limits" in statement)
    assert not any("next_seq - 1" in statement for statement in statements)
    assert runtime.hot.redis.keys(runtime.hot.named_key(LIMIT, "*")) == []


# --- setting them ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "true", '"5"', "NaN", "1e999", "99999999999999999999"])
def test_what_is_no_limit_is_named_and_changes_nothing(
    client_of: ClientOf, api_key: str, owner: Engine, number: str
) -> None:
    admin = client_of(api_key)
    (key,) = admin.get("/v1/keys").json()["keys"]
    answer = admin.put(
        f"/v1/keys/{key['id']}/limits",
        content=f'{{"requests_per_minute": {number}}}',
        headers={"content-type": "application/json"},
    )
    assert answer.status_code in (400, 422)
    with owner.connect() as connection:
        assert [row.limits for row in keys.listed(connection, "acme")] == [{}]


def test_a_key_for_one_person_sets_and_reads_no_limits(
    client_of: ClientOf, api_key: str, owner: Engine
) -> None:
    with owner.begin() as connection:
        id, bound = keys.create(connection, "acme", rights=keys.RIGHTS, user="mira")
    client = client_of(bound)
    assert client.put(f"/v1/keys/{id}/limits", json={}).status_code == 403
    assert client.get("/v1/limits").status_code == 403


@pytest.mark.one_shard
def test_a_limit_that_only_a_newer_release_knows_stops_nobody(
    owner: Engine, runtime: Runtime, api_key: str, tenant: int
) -> None:
    with owner.begin() as connection:
        connection.execute(text("""UPDATE tenants SET limits = '{"sessions": 1, "turns": 5}'"""))
    with transaction(runtime.engine, None) as connection:
        caller = keys.authenticate(connection, api_key)
    assert caller is not None
    assert caller.tenant_limits.as_dict() == {"turns": 5}
    MemoryApp(runtime, tenant).record(CHAT, "One.")


def test_the_tenant_reads_its_limits(client_of: ClientOf, api_key: str, limit: Limit) -> None:
    limit(turns=5)
    client = client_of(api_key)
    client.post(TURNS, json=SAID)
    assert client.get("/v1/limits").json() == {"limits": {"turns": 5}, "turns": 1}


def test_limits_on_the_command_line(memory: Memory, owner: Engine, api_key: str, other_tenant: int) -> None:
    assert memory("limits", "set", "--tenant", "acme", "turns=10", "requests_per_minute=60").status == 0
    done = memory("limits", "set", "--tenant", "acme", "turns=none")
    assert "limits of tenant acme: requests_per_minute 60" in done.out
    with owner.connect() as connection:
        key_id = str(next(row.id for row in keys.listed(connection, "acme")))
    done = memory("limits", "set", "--tenant", "acme", "--key", key_id, "bytes_per_minute=5000")
    assert done.status == 0
    shown = memory("limits", "show", "--tenant", "acme", "--json").json
    assert shown["limits"] == {"requests_per_minute": 60}
    assert shown["keys"] == {key_id: {"bytes_per_minute": 5000}}
    for wrong in ("turns", "turns=0", "turns=-1", "turns=²", "noise=1", "noise=none", "turns=" + "9" * 5_000):
        failed = memory("limits", "set", "--tenant", "acme", wrong)
        assert failed.status == 1
        assert wrong.partition("=")[0] in failed.err
    assert memory("limits", "set", "--tenant", "nobody", "turns=1").status == 1
    assert memory("limits", "set", "--tenant", "acme", "--key", key_id, "turns=1").status == 1
    # A key is found in its own tenant alone.
    assert memory("limits", "set", "--tenant", "globex", "--key", key_id, "bytes_per_minute=1").status == 1
    audit = memory("audit", "list", "--tenant", "acme", "--json").json
    assert [entry["action"] for entry in audit if entry["action"].startswith("limit.")] == [
        "limit.key",
        "limit.tenant",
        "limit.tenant",
    ]


def test_a_key_of_another_tenant_cannot_be_limited(
    client_of: ClientOf, api_key: str, owner: Engine, other_tenant: int
) -> None:
    with owner.begin() as connection:
        foreign, _ = keys.create(connection, "globex")
    answer = client_of(api_key).put(f"/v1/keys/{foreign}/limits", json={"requests_per_minute": 1})
    assert answer.status_code == 404
    with owner.connect() as connection:
        assert all(not row.limits for row in keys.listed(connection, "globex"))


def test_the_doctor_names_a_tenant_that_stands_at_its_quota(
    runtime: Runtime, tenant: int, other_tenant: int, limit: Limit
) -> None:
    tenants = ((tenant, "acme"), (other_tenant, "globex"))
    assert list(limit_checks.look(runtime.directory, tenants)) == []
    limit(turns=2, user_turns=1, tokens_per_day=100)
    (check,) = limit_checks.look(runtime.directory, tenants)
    assert (check.state, check.found) == (State.OK, "1 tenant has limits; none is at a quota")
    app = MemoryApp(runtime, tenant)
    app.record(CHAT, "One.")
    app.record(Scope("ada", "bob", "chat"), "Two.")
    (check,) = limit_checks.look(runtime.directory, tenants)
    assert check.state is State.WARN
    assert check.found == "acme: 2 turns are stored, turns is 2; acme: 2 people have all of user_turns"
