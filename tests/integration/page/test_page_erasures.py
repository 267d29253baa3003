"""Erasures on the page: the plan first, the name typed, the receipt; and whether a receipt is genuine."""

from __future__ import annotations

import html
import re
from uuid import UUID

import pytest
from fastapi import FastAPI
from page_visitor import Visitor
from sqlalchemy import Engine, text

from memory_app.forget import forget
from memory_app.main.http import create_app
from memory_app.page import erasures_routes
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy import audit
from memory_app.tenancy.rows import keys
from memory_app.turns.record import record

PERSON = "mira/<i>1</i>"
ADDRESS = "/users/mira%2F%3Ci%3E1%3C%2Fi%3E/forget"


@pytest.fixture
def app(runtime: Runtime) -> FastAPI:
    return create_app(runtime)


@pytest.fixture
def visitor(app: FastAPI, api_key: str) -> Visitor:
    visitor = Visitor(app)
    visitor.log_in(api_key)
    return visitor


@pytest.fixture
def talk(runtime: Runtime, tenant: int) -> None:
    record(runtime, tenant, Scope("ada", PERSON, "chat"), new=[NewTurn(Role.USER, "I live in Porto.")])


def turns(owner: Engine) -> int:
    with owner.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM turns")).scalar_one())


def test_a_person_is_forgotten_after_the_plan_and_their_name(
    runtime: Runtime, tenant: int, owner: Engine, visitor: Visitor, talk: None
) -> None:
    visitor.get(f"/erasures/person?user={PERSON.replace('/', '%2F')}")
    assert visitor.client.get("/ui" + ADDRESS).status_code == 200
    assert PERSON in visitor.text and "<i>" not in visitor.html

    visitor.send(ADDRESS + "?dry_run=true")
    assert "turns 1" in visitor.text and "sessions 1" in visitor.text
    assert turns(owner) == 1, "the plan changes nothing"

    for name in ("", "mira", "mira/1", PERSON + "."):
        shown = visitor.html
        assert visitor.send(ADDRESS, name=name).status_code == 422
        assert "nothing was forgotten" in visitor.text
        visitor.html = shown
    assert turns(owner) == 1

    answer = visitor.send(ADDRESS, name=f" {PERSON} ")
    assert re.fullmatch(r"/ui/erasures/[0-9a-f-]{36}", answer.url.path)
    assert "turns 1" in visitor.text and "mira" not in visitor.text
    assert turns(owner) == 0
    entries = list(audit.all_entries(runtime, tenant))
    assert {entry.action for entry in entries} == {"erase.user"}
    assert {entry.key_id for entry in entries} != {None}
    outcomes = [(entry.target, entry.outcome) for entry in entries if entry.outcome != "begun"]
    assert outcomes == [("dry_run", "done"), *[(None, "invalid_input")] * 4, (None, "done")]


def test_a_receipt_is_listed_and_verified(
    runtime: Runtime, tenant: int, visitor: Visitor, talk: None
) -> None:
    run = forget.forget_user(runtime, tenant, PERSON)
    receipt = run.report["erasure"]

    visitor.get("/erasures")
    assert f'href="/ui/erasures/{receipt}"' in visitor.html
    visitor.get(f"/erasures/{receipt}")
    (line,) = re.findall(r"<pre[^>]*>([^<]+)</pre>", visitor.html)
    visitor.get("/erasures")

    visitor.send("/erasures/verify", receipts=html.unescape(line), user=PERSON)
    assert "known" in visitor.text and "yes" in visitor.text
    visitor.send("/erasures/verify", receipts=html.unescape(line), user="bob")
    assert "Not all receipts are genuine" in visitor.text and "no" in visitor.text
    altered = html.unescape(line).replace('"turns": 1', '"turns": 7')
    visitor.send("/erasures/verify", receipts=f"{altered}\n\nnonsense")
    assert "unknown, or other figures" in visitor.text and "is not JSON" in visitor.text


def test_receipts_of_another_tenant_are_none_here(
    runtime: Runtime, owner: Engine, tenant: int, visitor: Visitor
) -> None:
    with owner.begin() as connection:
        other = keys.ensure_tenant(connection, "globex")
    run = forget.forget_user(runtime, other, "quokka")
    line = forget.read_receipt_line(runtime, other, UUID(run.report["erasure"]))

    visitor.get("/erasures")
    assert run.report["erasure"] not in visitor.html
    visitor.send("/erasures/verify", receipts=line, user="quokka")
    assert "of another tenant" in visitor.text and "known" not in visitor.text
    assert visitor.get(f"/erasures/{run.report['erasure']}").status_code == 404


def test_receipts_come_in_pages(
    runtime: Runtime, tenant: int, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasures_routes, "PAGE_RECEIPTS", 2)
    ids = [forget.forget_user(runtime, tenant, name).report["erasure"] for name in ("a", "b", "c")]

    visitor.get("/erasures")
    assert [id in visitor.html for id in ids] == [False, True, True]
    visitor.get(f"/erasures?cursor={ids[1]}")
    assert [id in visitor.html for id in ids] == [True, False, False]


def test_an_erasure_that_waits_is_followed(
    runtime: Runtime, tenant: int, owner: Engine, visitor: Visitor, talk: None
) -> None:
    with owner.begin() as held:
        held.execute(text("SELECT FROM users FOR UPDATE"))
        held.execute(text("SELECT FROM scopes FOR UPDATE"))
        visitor.get(ADDRESS)
        answer = visitor.send(ADDRESS, name=PERSON)

    assert answer.url.path.startswith("/ui/erasures/runs/")
    assert "waits for a worker" in visitor.text and "hx-trigger" in visitor.html
    assert turns(owner) == 1


@pytest.mark.parametrize("rights", [("read",), ("read", "write")])
def test_who_may_not_erase_forgets_nobody(
    app: FastAPI, owner: Engine, tenant: int, talk: None, rights: tuple[str, ...]
) -> None:
    with owner.begin() as connection:
        _, key = keys.create(connection, "acme", rights=rights)
    visitor = Visitor(app)
    visitor.log_in(key)

    assert "Forget a person" not in visitor.get("/erasures").text
    assert visitor.get(ADDRESS).status_code == 403
    assert visitor.send(ADDRESS + "?dry_run=true").status_code == 403
    assert visitor.send(ADDRESS, name=PERSON).status_code == 403
    assert turns(owner) == 1


def test_a_key_for_one_person_forgets_that_person_alone(
    app: FastAPI, owner: Engine, tenant: int, talk: None
) -> None:
    with owner.begin() as connection:
        own = keys.create(connection, "acme", rights=keys.RIGHTS, user=PERSON)[1]
        others = keys.create(connection, "acme", rights=keys.RIGHTS, user="bob")[1]
    stranger = Visitor(app)
    stranger.log_in(others)
    assert stranger.get(ADDRESS).status_code == 403
    assert stranger.send(ADDRESS, name=PERSON).status_code == 403
    assert stranger.get("/erasures").status_code == 403
    assert turns(owner) == 1
    person = Visitor(app)
    person.log_in(own)
    person.get(ADDRESS)
    person.send(ADDRESS, name=PERSON)
    assert "Forgotten" in person.text and "turns 1" in person.text
    assert turns(owner) == 0
