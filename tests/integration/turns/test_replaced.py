"""A message that was edited, or a reply made again: the new turn stands in its place, and the old one is forgotten."""

from __future__ import annotations

import threading
from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from httpx import Response
from queries import rows
from sqlalchemy import Engine
from starlette.testclient import TestClient

from memory_app.app import MemoryApp
from memory_app.dispatch import finder
from memory_app.errors import Conflict, Forbidden, InvalidInput, MemoryAppError, NotFound
from memory_app.forget import forget
from memory_app.main.http import create_app
from memory_app.records.records import NewTurn, Role, Ticket
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import keys
from memory_app.turns import extract, index, relay
from memory_app.turns.record import record

CHAT, OTHER_CHAT = Scope("ada", "mira", "chat"), Scope("ada", "mira", "other")
MIRA = Scope("ada", "mira")

RECORDS, ERASES = ("record",), ("record", "erase")

PORTO = "I live in Porto near the Douro."
LISBON = "I live in Lisbon near the Tejo."


@pytest.fixture
def app(runtime: Runtime, tenant: int) -> MemoryApp:
    return MemoryApp(runtime, tenant)


def edited(text: str, old: Ticket | UUID) -> NewTurn:
    return NewTurn(Role.USER, text, replaces=old if isinstance(old, UUID) else old.id)


def work(app: MemoryApp) -> None:
    """Do what is due now."""
    while finder.drain(app.runtime) != finder.NOTHING:
        pass


def texts(app: MemoryApp, scope: Scope = CHAT) -> list[str]:
    return [turn.text for turn in app.turns(scope)]


def memories(app: MemoryApp) -> list[str]:
    return [memory.text for memory in app.memories(MIRA, history=True)]


@pytest.mark.parametrize("is_extracted", [True, False], ids=["after", "before"])
def test_the_new_one_stands_in_the_place_of_the_old(
    app: MemoryApp, is_extracted: bool, owner: Engine
) -> None:
    first = app.record(CHAT, PORTO)
    app.record(CHAT, "Nice, the wine there is good.", role="assistant")
    app.record(CHAT, "I have a dog called Bruno.")
    if is_extracted:
        finder.drain(app.runtime)
        assert any("Porto" in text for text in memories(app))
    ticket = app.record(CHAT, LISBON, replaces=first.id)
    assert ticket.seq == 4, "a new number, so that work goes on in order"
    assert texts(app) == [LISBON, "Nice, the wine there is good.", "I have a dog called Bruno."], "at once"
    assert "Porto" not in "".join(texts(app)) and "Douro" not in app.context(CHAT, "Where do I live?").text
    work(app)
    assert texts(app) == [LISBON, "Nice, the wine there is good.", "I have a dog called Bruno."]
    held = memories(app)
    assert any("Lisbon" in text for text in held) and any("Bruno" in text for text in held)
    assert not any("Porto" in text or "Douro" in text for text in held)
    with pytest.raises(NotFound):
        app.ticket(first.id)
    assert rows(owner, "SELECT count(*) AS n FROM turns WHERE text LIKE '%Porto%'")[0].n == 0
    assert rows(owner, "SELECT count(*) AS n FROM erasures")[0].n == 1, "with a receipt"


def test_what_both_say_is_kept_by_the_new_one(app: MemoryApp) -> None:
    first = app.record(CHAT, "I live in Porto near the Douro with my cat.")
    finder.drain(app.runtime)
    app.record(CHAT, "I live in Porto.", replaces=first.id)
    work(app)
    held = memories(app)
    assert any("Porto" in text for text in held)
    assert not any("Douro" in text for text in held)


def test_an_edit_may_be_edited_again(app: MemoryApp) -> None:
    ids = [app.record(CHAT, PORTO).id]
    app.record(CHAT, "Good to know.", role="assistant")
    for text in ("I live in Faro.", "I live in Evora.", LISBON):
        ids.append(app.record(CHAT, text, replaces=ids[-1]).id)
    assert texts(app) == [LISBON, "Good to know."]
    work(app)
    assert texts(app) == [LISBON, "Good to know."]
    assert not any(place in text for text in memories(app) for place in ("Porto", "Faro", "Evora"))


def test_the_extraction_waits_for_the_erasure(app: MemoryApp, tenant: int, owner: Engine) -> None:
    """Whatever order the workers come in: what the new turn says never goes with the old one."""
    first = app.record(CHAT, PORTO)
    finder.drain(app.runtime)
    new = app.record(CHAT, PORTO, replaces=first.id)
    index.index_turns(app.runtime)
    (session,) = rows(owner, "SELECT id FROM sessions")
    extract.extract_session(app.runtime, session.id)
    assert app.ticket(new.id).stage == "indexed"
    (waiting,) = rows(owner, "SELECT failures, starts, due_at > now() AS is_later FROM sessions")
    assert tuple(waiting) == (0, 0, True)
    work(app)
    # The second for which it was put off.
    with owner.begin() as connection:
        connection.exec_driver_sql("UPDATE sessions SET due_at = now() WHERE due_at IS NOT NULL")
    work(app)
    assert app.ticket(new.id).stage == "extracted"
    assert [text for text in memories(app) if "Porto" in text]


def test_an_erasure_that_failed_holds_nothing_up(app: MemoryApp, owner: Engine) -> None:
    first = app.record(CHAT, PORTO)
    new = app.record(CHAT, LISBON, replaces=first.id)
    with owner.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE runs SET state = 'failed', reason = 'out of luck', finished_at = now() WHERE name = 'forget'"
        )
    work(app)
    assert app.ticket(new.id).stage == "extracted"
    assert texts(app) == [LISBON]
    assert not any("Porto" in text for text in memories(app))


def test_a_retry_is_recorded_once(app: MemoryApp, owner: Engine) -> None:
    first = app.record(CHAT, PORTO)
    keyed = replace(edited(LISBON, first), idempotency_key="edit-1")
    tickets = [app.record_all(CHAT, [keyed])[0] for _ in range(2)]
    work(app)
    tickets += app.record_all(CHAT, [keyed])
    assert [ticket.duplicate for ticket in tickets] == [False, True, True]
    assert len({ticket.id for ticket in tickets}) == 1
    with pytest.raises(Conflict, match="idempotency_key"):
        app.record_all(CHAT, [replace(keyed, replaces=None)])
    assert rows(owner, "SELECT count(*) AS n FROM runs WHERE name = 'forget'")[0].n == 1


def test_what_is_not_there_or_was_replaced_is_named_and_nothing_is_stored(app: MemoryApp) -> None:
    first = app.record(CHAT, PORTO)
    elsewhere = app.record(OTHER_CHAT, "I like tea.")
    for wrong in (uuid4(), elsewhere.id):
        with pytest.raises(NotFound, match=str(wrong)) as caught:
            app.record_all(CHAT, [NewTurn(Role.USER, "First."), edited(LISBON, wrong)])
        assert caught.value.field == "replaces"
    with pytest.raises(InvalidInput, match="two turns"):
        app.record_all(CHAT, [edited(LISBON, first), edited("I live in Faro.", first)])
    assert texts(app) == [PORTO] and texts(app, OTHER_CHAT) == ["I like tea."]
    app.record(CHAT, LISBON, replaces=str(first.id))
    with pytest.raises(NotFound):
        app.record(CHAT, "I live in Faro.", replaces=first.id)
    assert texts(app) == [LISBON]
    with pytest.raises(InvalidInput, match="replaces"):
        app.record(CHAT, "I live in Faro.", replaces="the one before")


def test_two_edits_at_once_leave_one(app: MemoryApp) -> None:
    first = app.record(CHAT, PORTO)
    done: list[Ticket | MemoryAppError] = []

    def edit(text: str) -> None:
        try:
            done.append(app.record(CHAT, text, replaces=first.id))
        except MemoryAppError as error:
            done.append(error)

    threads = [threading.Thread(target=edit, args=(f"I live in place {number}.",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(type(outcome).__name__ for outcome in done) == ["NotFound"] * 3 + ["Ticket"]
    work(app)
    assert len(texts(app)) == 1


def test_a_turn_of_another_tenant_is_not_there(app: MemoryApp, runtime: Runtime, other_tenant: int) -> None:
    first = app.record(CHAT, PORTO)
    with pytest.raises(NotFound):
        record(runtime, other_tenant, CHAT, new=[edited(LISBON, first)])
    assert texts(app) == [PORTO]


def test_the_person_may_be_forgotten_before_the_turn_is(app: MemoryApp, tenant: int, owner: Engine) -> None:
    first = app.record(CHAT, PORTO)
    app.record(CHAT, LISBON, replaces=first.id)
    forget.forget_user(app.runtime, tenant, "mira")
    work(app)
    assert rows(owner, "SELECT count(*) AS n FROM turns")[0].n == 0
    assert rows(owner, "SELECT count(*) AS n FROM runs WHERE state NOT IN ('done', 'failed')")[0].n == 0


def test_a_message_of_the_broker_needs_the_right_to_erase(
    app: MemoryApp, runtime: Runtime, owner: Engine, tenant: int
) -> None:
    first = app.record(CHAT, PORTO)
    with owner.begin() as connection:
        _, weak = keys.create(connection, "acme", rights=("record",))
        _, strong = keys.create(connection, "acme", rights=("record", "erase"))
    message = {"agent": "ada", "user": "mira", "session": "chat", "role": "user", "content": LISBON}
    message |= {"replaces": str(first.id)}
    with pytest.raises(Forbidden, match="erase"):
        relay.relay(runtime, {**message, "api_key": weak}, message_id="m-1")
    assert texts(app) == [PORTO]
    relay.relay(runtime, {**message, "api_key": strong}, message_id="m-2")
    assert texts(app) == [LISBON]


def test_windows_and_prompts_read_the_session_as_it_is_shown(app: MemoryApp) -> None:
    first = app.record(CHAT, "Please recommend a restaurant in Porto.")
    app.record(CHAT, "Try the fish at the river.", role="assistant")
    app.record(CHAT, "Please recommend a restaurant in Lisbon.", replaces=first.id)
    window = app.context(CHAT, "restaurant").text
    assert 0 < window.find("restaurant in Lisbon") < window.find("fish at the river")
    assert "Porto" not in window
    hits = app.recall(MIRA, "restaurant in Porto", limit=50).memories
    assert not any("Porto" in hit.text for hit in hits)


def test_over_http(app: MemoryApp, runtime: Runtime, owner: Engine) -> None:
    first = app.record(CHAT, PORTO)
    address = "/v1/agents/ada/users/mira/sessions/chat/turns"
    with owner.begin() as connection:
        made = {rights: keys.create(connection, "acme", rights=rights)[1] for rights in (RECORDS, ERASES)}
    client = TestClient(create_app(runtime))

    def post(rights: tuple[str, ...], replaces: str) -> Response:
        headers = {"Authorization": f"Bearer {made[rights]}"}
        body = {"role": "user", "content": LISBON, "replaces": replaces}
        return client.post(address, json=body, headers=headers)

    assert post(RECORDS, str(first.id)).status_code == 403
    missing = post(ERASES, str(uuid4()))
    assert (missing.status_code, missing.json()["error"]["field"]) == (404, "replaces")
    assert post(ERASES, "the first").status_code == 422
    assert post(ERASES, str(first.id)).status_code == 202
    assert texts(app) == [LISBON]


def test_the_audit_log_says_whose_key_replaced_what(
    app: MemoryApp, runtime: Runtime, owner: Engine, api_key: str
) -> None:
    first = app.record(CHAT, PORTO)
    second = app.record(CHAT, LISBON, replaces=first.id)
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    body = {"role": "user", "content": "I live in Faro.", "replaces": str(second.id)}
    for _ in range(2):
        client.post("/v1/agents/ada/users/mira/sessions/chat/turns", json=body)
    (key,) = rows(owner, "SELECT id FROM api_keys")
    noted = [
        (entry.key_id, entry.target, entry.outcome)
        for entry in app.audit(action="erase.turn", user="mira")
        if entry.outcome != "begun"
    ]
    assert noted == [
        (key.id, str(second.id), "not_found"),
        (key.id, str(second.id), "done"),
        (None, str(first.id), "done"),
    ]


def test_a_call_replaces_so_many_at_most(app: MemoryApp) -> None:
    old = app.record_all(CHAT, [NewTurn(Role.USER, f"Line {number}.") for number in range(21)])
    with pytest.raises(InvalidInput, match="at most 20"):
        app.record_all(CHAT, [edited("Another line.", ticket) for ticket in old])
    app.record_all(CHAT, [edited("Another line.", ticket) for ticket in old[:20]])
    assert texts(app).count("Another line.") == 20
