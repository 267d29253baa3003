"""Who was erased does not come back: by a message that waited, by a request sent again, or by an import."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import pytest
from commands import Memory
from fastapi import FastAPI
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.db.db import transaction
from memory_app.errors import Erased
from memory_app.forget.erasure import erase_user
from memory_app.forget.forget import forget_memory, forget_session, forget_turn, forget_user
from memory_app.main.http import create_app
from memory_app.memories import remember
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.settings import Erasure, Settings
from memory_app.tenancy.rows import keys
from memory_app.transfer import export, snapshots
from memory_app.turns.erased import list_refused
from memory_app.turns.record import record
from memory_app.turns.relay import relay

CHAT = Scope("ada", "mira", "chat")
SECRETS = ("", "s" * 32)


def message(api_key: str, **fields: Any) -> dict[str, Any]:
    return {
        "api_key": api_key,
        "agent": "ada",
        "user": "mira",
        "session": "chat",
        "role": "user",
        "content": "I have a dog called Bruno.",
        **fields,
    }


def now() -> str:
    return datetime.now(UTC).isoformat()


def with_secret(runtime: Runtime, secret: str) -> Runtime:
    """The same parts with other settings, as after a restart."""
    settings: Settings = runtime.settings.model_copy(
        update={"erasure": Erasure.model_validate({"secret": secret})}
    )
    return replace(runtime, settings=settings)


def counts(owner: Engine) -> Mapping[str, int]:
    with owner.connect() as connection:
        return {
            table: connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()
            for table in ("turns", "users", "scopes", "sessions")
        }


NOBODY = {"turns": 0, "users": 0, "scopes": 0, "sessions": 0}


def refusals(runtime: Runtime, tenant: int) -> list[tuple[str, str]]:
    return [(row.message_id, row.reason) for row in list_refused(runtime, tenant)]


# --- messages that waited -----------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("is_known", [True, False])
def test_a_message_sent_before_its_person_was_erased_is_refused(
    runtime: Runtime, tenant: int, api_key: str, owner: Engine, secret: str, is_known: bool
) -> None:
    runtime = with_secret(runtime, secret)
    sent_at = now()
    if is_known:
        record(runtime, tenant, CHAT, [NewTurn(Role.USER, "Hello.")])
    forget_user(runtime, tenant, "mira")

    for _ in range(2):
        with pytest.raises(Erased) as refused:
            relay(runtime, message(api_key, sent_at=sent_at), message_id="m-1")

    assert "Bruno" not in str(refused.value)
    assert counts(owner) == NOBODY
    assert refusals(runtime, tenant) == [("m-1", "sent_before_erasure")]


def test_a_message_sent_after_the_erasure_is_new_consent(
    runtime: Runtime, tenant: int, api_key: str, owner: Engine
) -> None:
    forget_user(runtime, tenant, "mira")

    relay(runtime, message(api_key, sent_at=now()), message_id="m-1")

    assert counts(owner)["turns"] == 1
    assert refusals(runtime, tenant) == []


@pytest.mark.parametrize(
    ("erased_ago", "sent_in", "is_refused"),
    [
        (timedelta(hours=23), None, True),
        (timedelta(hours=25), None, False),
        (timedelta(hours=23), timedelta(hours=1), True),
    ],
)
def test_a_message_without_a_time_of_its_own_waits_a_day(
    runtime: Runtime,
    tenant: int,
    api_key: str,
    owner: Engine,
    erased_ago: timedelta,
    sent_in: timedelta | None,
    is_refused: bool,
) -> None:
    forget_user(runtime, tenant, "mira")
    with owner.begin() as connection:
        connection.execute(text("UPDATE erasures SET created_at = now() - :ago"), {"ago": erased_ago})
    fields = {} if sent_in is None else {"sent_at": (datetime.now(UTC) + sent_in).isoformat()}

    if is_refused:
        with pytest.raises(Erased):
            relay(runtime, message(api_key, **fields), message_id="m-1")
        assert refusals(runtime, tenant) == [("m-1", "no_sent_at")]
    else:
        relay(runtime, message(api_key, **fields), message_id="m-1")
    assert counts(owner)["turns"] == (0 if is_refused else 1)


def test_a_message_of_an_erased_session_is_refused_and_others_are_not(
    runtime: Runtime, tenant: int, api_key: str, owner: Engine
) -> None:
    record(runtime, tenant, CHAT, [NewTurn(Role.USER, "Hello.")])
    sent_at = now()
    forget_session(runtime, tenant, CHAT)

    with pytest.raises(Erased):
        relay(runtime, message(api_key, sent_at=sent_at), message_id="m-1")
    relay(runtime, message(api_key, sent_at=sent_at, session="other"), message_id="m-2")
    relay(runtime, message(api_key, sent_at=sent_at, user="bob"), message_id="m-3")

    assert counts(owner)["turns"] == 2
    assert refusals(runtime, tenant) == [("m-1", "sent_before_erasure")]


def test_an_erasure_of_another_tenant_refuses_nothing(
    runtime: Runtime, other_tenant: int, tenant: int, api_key: str, owner: Engine
) -> None:
    sent_at = now()
    forget_user(runtime, other_tenant, "mira")

    relay(runtime, message(api_key, sent_at=sent_at), message_id="m-1")

    assert counts(owner)["turns"] == 1
    assert refusals(runtime, tenant) == refusals(runtime, other_tenant) == []


def test_an_erasure_under_an_older_secret_still_refuses(
    runtime: Runtime, tenant: int, api_key: str, owner: Engine
) -> None:
    sent_at = now()
    forget_user(with_secret(runtime, "o" * 32), tenant, "mira")

    with pytest.raises(Erased):
        relay(
            with_secret(runtime, f"{'n' * 32},{'o' * 32}"), message(api_key, sent_at=sent_at), message_id="m"
        )

    assert counts(owner) == NOBODY


@pytest.mark.parametrize("sent_at", ["yesterday", "2026-01-31T09:00:00", True, [], {}])
def test_a_time_that_is_none_is_named(runtime: Runtime, api_key: str, owner: Engine, sent_at: object) -> None:
    with pytest.raises(Exception, match="sent_at"):
        relay(runtime, message(api_key, sent_at=sent_at), message_id="m-1")
    assert counts(owner) == NOBODY


@pytest.mark.one_shard
def test_a_message_of_a_stranger_waits_for_the_erasure_of_the_name(
    runtime: Runtime, tenant: int, api_key: str, owner: Engine
) -> None:
    """Nothing is stored of the person yet, so there is no row for the two to meet at."""
    sent_at, is_erased, may_end = now(), Event(), Event()

    def erase() -> None:
        with transaction(runtime.engine, tenant) as connection:
            erase_user(connection, tenant, "mira")
            is_erased.set()
            may_end.wait(30)
        forget_user(runtime, tenant, "mira")

    with ThreadPoolExecutor(2) as pool:
        erasing = pool.submit(erase)
        assert is_erased.wait(30)
        relaying = pool.submit(relay, runtime, message(api_key, sent_at=sent_at), message_id="m-1")
        wait_for_lock(owner)
        may_end.set()
        erasing.result(30)
        # Either it came before the erasure, which took it along, or it was refused.
        try:
            relaying.result(30)
        except Erased:
            assert refusals(runtime, tenant) == [("m-1", "sent_before_erasure")]

    assert counts(owner) == NOBODY


def wait_for_lock(owner: Engine) -> None:
    """Until somebody waits for an advisory lock."""
    waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    deadline = datetime.now(UTC) + timedelta(seconds=30)
    with owner.connect() as connection:
        while connection.execute(waiting).scalar_one() == 0:
            assert datetime.now(UTC) < deadline, "nobody waits for the name"
            connection.rollback()


def test_refused_messages_are_listed_to_their_tenant_alone(
    runtime: Runtime, tenant: int, other_tenant: int, api_key: str, owner: Engine, memory: Memory
) -> None:
    sent_at = now()
    forget_user(runtime, tenant, "mira")
    for number in range(3):
        with pytest.raises(Erased):
            relay(runtime, message(api_key, sent_at=sent_at), message_id=f"m-{number}")
    with owner.begin() as connection:
        _, key_of_other = keys.create(connection, "globex")
    app: FastAPI = create_app(runtime)

    mine, others = (
        TestClient(app, headers={"Authorization": f"Bearer {key}"}) for key in (api_key, key_of_other)
    )
    page = mine.get("/v1/refused?limit=2").json()
    rest = mine.get(f"/v1/refused?limit=2&cursor={page['cursor']}").json()

    assert [row["message_id"] for row in (*page["messages"], *rest["messages"])] == ["m-2", "m-1", "m-0"]
    assert others.get("/v1/refused").json() == {"messages": [], "cursor": None}
    shown = memory("refused", "--tenant", "acme")
    assert "m-1" in shown.out
    assert "Bruno" not in shown.out
    assert "mira" not in shown.out


def test_old_refusals_and_old_digests_go_by_themselves(
    runtime: Runtime, tenant: int, api_key: str, owner: Engine
) -> None:
    sent_at = now()
    record(runtime, tenant, CHAT, [NewTurn(Role.USER, "Hello.", idempotency_key="k")])
    forget_user(runtime, tenant, "mira")
    with pytest.raises(Erased):
        relay(runtime, message(api_key, sent_at=sent_at), message_id="old")
    with owner.begin() as connection:
        connection.execute(text("UPDATE refused_messages SET refused_at = now() - interval '31 days'"))
        connection.execute(text("UPDATE erased_turns SET erased_at = now() - interval '31 days'"))

    with pytest.raises(Erased):
        relay(runtime, message(api_key, sent_at=sent_at), message_id="new")
    record(runtime, tenant, replace(CHAT, user="bob"), [NewTurn(Role.USER, "Hi.", idempotency_key="k")])
    forget_user(runtime, tenant, "bob")

    assert refusals(runtime, tenant) == [("new", "sent_before_erasure")]
    with owner.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM erased_turns")).scalar_one() == 1


# --- the same turn sent again -------------------------------------------------------------------------------

TURN = NewTurn(Role.USER, "I hide the key under the blue pot.", idempotency_key="k-1")


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("of", ["turn", "session", "user"])
def test_a_turn_that_was_erased_is_refused_when_it_is_sent_again(
    runtime: Runtime, tenant: int, owner: Engine, of: str, secret: str
) -> None:
    runtime = with_secret(runtime, secret)
    (ticket,) = record(runtime, tenant, CHAT, [TURN])
    if of == "turn":
        forget_turn(runtime, tenant, ticket.id)
    elif of == "session":
        forget_session(runtime, tenant, CHAT)
    else:
        forget_user(runtime, tenant, "mira")

    for _ in range(2):
        with pytest.raises(Erased) as refused:
            record(runtime, tenant, CHAT, [NewTurn(Role.USER, "Another.", idempotency_key="k-2"), TURN])

    assert refused.value.field == "idempotency_key"
    assert counts(owner)["turns"] == 0, "nothing of the call is stored"


def test_a_message_delivered_again_after_its_turn_was_erased_is_listed(
    runtime: Runtime, tenant: int, api_key: str, owner: Engine
) -> None:
    ticket = relay(runtime, message(api_key, sent_at=now()), message_id="m-1")
    forget_turn(runtime, tenant, ticket.id)

    with pytest.raises(Erased):
        relay(runtime, message(api_key, sent_at=now()), message_id="m-1")

    assert counts(owner)["turns"] == 0
    assert refusals(runtime, tenant) == [("m-1", "turn_erased")]


def test_another_turn_under_the_key_of_an_erased_one_is_stored(
    runtime: Runtime, tenant: int, other_tenant: int, owner: Engine
) -> None:
    record(runtime, tenant, CHAT, [TURN])
    forget_user(runtime, tenant, "mira")

    record(runtime, tenant, CHAT, [replace(TURN, text="I water the plants.")])
    record(runtime, tenant, replace(CHAT, user="bob"), [TURN])
    record(runtime, other_tenant, CHAT, [TURN])

    assert counts(owner)["turns"] == 3


def test_a_dry_run_refuses_nothing(runtime: Runtime, tenant: int, owner: Engine) -> None:
    (first,) = record(runtime, tenant, CHAT, [TURN])
    forget_user(runtime, tenant, "mira", dry_run=True)

    (again,) = record(runtime, tenant, CHAT, [TURN])

    assert (again.id, again.duplicate) == (first.id, True)


def test_over_http_the_answer_names_the_key(runtime: Runtime, tenant: int, api_key: str) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    path = "/v1/agents/ada/users/mira/sessions/chat/turns"
    body = {"role": "user", "content": "Hello.", "idempotency_key": "k"}
    client.post(path, json=body)
    client.delete("/v1/users/mira")

    answer = client.post(path, json=body)

    assert answer.status_code == 422
    assert answer.json()["error"]["type"] == "erased"
    assert answer.json()["error"]["field"] == "idempotency_key"


# --- imports ------------------------------------------------------------------------------------------------


def told(runtime: Runtime, tenant: int) -> None:
    remember.remember(runtime, tenant, Scope("ada", "mira"), statement=Statement("fact", "Mira likes pears."))


def test_an_import_for_a_person_who_was_erased_needs_new_consent(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    told(runtime, tenant)
    snapshot = snapshots.export(runtime, tenant, Scope("ada", "mira"))
    lines = list(export.export_lines(runtime, tenant, user="mira"))
    forget_user(runtime, tenant, "mira")

    with pytest.raises(Erased, match="new_consent: true"):
        snapshots.load(runtime, tenant, Scope("ada", "mira"), snapshot)
    with pytest.raises(Erased):
        export.import_lines(runtime, tenant, lines)
    assert counts(owner) == NOBODY

    imported = snapshots.load(runtime, tenant, Scope("ada", "mira"), snapshot, new_consent=True)
    assert imported.counts["nodes"] == 1


def test_over_http_new_consent_is_a_field_of_the_import(runtime: Runtime, tenant: int, api_key: str) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    told(runtime, tenant)
    snapshot = client.get("/v1/agents/ada/users/mira/export").json()
    client.delete("/v1/users/mira")
    path = "/v1/agents/ada/users/mira/import"

    refused = client.post(path, json=snapshot)
    wrong = client.post(path, json={**snapshot, "new_consent": "yes"})
    taken = client.post(path, json={**snapshot, "new_consent": True})

    assert (refused.status_code, refused.json()["error"]["field"]) == (409, "new_consent")
    assert (wrong.status_code, wrong.json()["error"]["field"]) == (422, "new_consent")
    assert taken.json()["counts"]["nodes"] == 1


def test_an_import_under_another_name_needs_none(runtime: Runtime, tenant: int) -> None:
    told(runtime, tenant)
    lines = list(export.export_lines(runtime, tenant, user="mira"))
    forget_user(runtime, tenant, "mira")

    assert export.import_lines(runtime, tenant, lines, user="bob").counts["nodes"] == 1


def test_a_memory_that_was_erased_keeps_no_import_away(runtime: Runtime, tenant: int) -> None:
    told(runtime, tenant)
    snapshot = snapshots.export(runtime, tenant, Scope("ada", "mira"))
    forget_memory(runtime, tenant, snapshot["nodes"][0]["id"])

    imported = snapshots.load(runtime, tenant, Scope("other", "mira"), snapshot)

    assert imported.counts["nodes"] == 1
