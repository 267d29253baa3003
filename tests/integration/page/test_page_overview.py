"""The overview: what it shows of a tenant, and that its acts are those of the API, with right and entry in the log."""

from __future__ import annotations

from uuid import UUID

import pytest
from fastapi import FastAPI
from page_visitor import Visitor
from sqlalchemy import Engine, text

from memory_app.app import MemoryApp
from memory_app.db.db import transaction
from memory_app.main.http import create_app
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy import audit
from memory_app.tenancy.rows import keys
from memory_app.turns.record import record
from memory_app.turns.rows import failed_turns

SCRIPT = "<script>alert('gone')</script>"


@pytest.fixture
def app(runtime: Runtime) -> FastAPI:
    return create_app(runtime)


@pytest.fixture
def visitor(app: FastAPI, api_key: str) -> Visitor:
    visitor = Visitor(app)
    visitor.log_in(api_key)
    return visitor


@pytest.fixture
def broken(runtime: Runtime, tenant: int, owner: Engine) -> UUID:
    """A turn that failed, in a session whose names are not nice."""
    scope = Scope("ada/1", SCRIPT, "chat & <b>more</b>")
    (ticket,) = record(runtime, tenant, scope, new=[NewTurn(Role.USER, "I live in Porto.")])
    with transaction(runtime.engine, tenant) as connection:
        scope_id = connection.execute(text("SELECT scope_id FROM turns")).scalar_one()
        failed_turns.fail(connection, scope_id, [ticket.id], reason="the model answered <nothing>")
    return ticket.id


def state(owner: Engine, turn: UUID) -> tuple[bool, bool]:
    """Whether a turn is failed, and whether it is closed."""
    with owner.connect() as connection:
        row = connection.execute(
            text("SELECT failed_at IS NOT NULL, extracted_at IS NOT NULL FROM turns WHERE id = :id"),
            {"id": turn},
        ).one()
    return row[0], row[1]


def test_the_overview_says_what_is_away_and_what_waits(visitor: Visitor, broken: UUID) -> None:
    visitor.get("/overview")

    for said in ("Failed turns", "the model answered <nothing>", "Processes", "none heard", "Hold still"):
        assert said in visitor.text, said
    assert 'hx-get="/ui/overview/now"' in visitor.html
    assert "hx-trigger" not in visitor.get("/overview?live=false").text.split('id="now"')[1].split(">")[0]


def test_names_and_reasons_are_text_and_lead_to_the_person(visitor: Visitor, broken: UUID) -> None:
    visitor.get("/overview")

    assert SCRIPT in visitor.text and SCRIPT not in visitor.html
    assert "chat & <b>more</b>" in visitor.text and "<b>more" not in visitor.html
    assert 'href="/ui/agents/ada%2F1/users/%3Cscript%3Ealert%28%27gone%27%29%3C%2Fscript%3E"' in visitor.html


def test_which_agents_keep_what_for_how_long_is_said(
    visitor: Visitor, runtime: Runtime, tenant: int, owner: Engine
) -> None:
    record(runtime, tenant, Scope("ada", "mira", "chat"), new=[NewTurn(Role.USER, "I live in Porto.")])
    app = MemoryApp(runtime, tenant)
    app.change_agent("ada", policy={"retention": {"turns": 30, "episode": 365}})
    app.change_agent("bo", policy={"retention": {"query": 90}})
    with owner.begin() as connection:
        connection.execute(text("UPDATE turns SET accepted_at = now() - interval '60 days'"))

    shown = visitor.get("/overview/days").text

    assert "</a> keeps turns 30 days, episode 365 days" in shown and "</a> keeps query 90 days" in shown
    assert shown.count("1 turns are past their limit") == 1


def test_what_is_stored_and_what_it_cost_is_counted(visitor: Visitor, broken: UUID) -> None:
    visitor.get("/overview/days")

    assert "failed 1" in visitor.text and "sessions 1" in visitor.text
    assert "No model was asked" in visitor.text
    assert "<html" not in visitor.html, "a part of the page only"


@pytest.mark.parametrize("act", ["replay", "discard"])
def test_a_failed_turn_is_settled_and_written_down(
    runtime: Runtime, tenant: int, owner: Engine, visitor: Visitor, broken: UUID, act: str
) -> None:
    visitor.get("/overview")

    answer = visitor.send(f"/failed/{broken}/{act}")

    assert answer.url.path == "/ui/overview"
    assert ("on its way again" if act == "replay" else "was given up") in visitor.text
    assert "was given up" not in visitor.get("/overview").text, "said once"
    assert state(owner, broken) == ((False, False) if act == "replay" else (True, True))
    entries = list(audit.all_entries(runtime, tenant))
    assert [(entry.action, entry.outcome, entry.target) for entry in entries] == [
        (f"turn.{act}", "begun", str(broken)),
        (f"turn.{act}", "done", str(broken)),
    ]
    assert entries[0].key_id is not None


def test_settling_a_turn_twice_is_a_page_that_says_so(visitor: Visitor, broken: UUID) -> None:
    visitor.get("/overview")
    page = visitor.html
    visitor.send(f"/failed/{broken}/discard")
    visitor.html = page

    answer = visitor.send(f"/failed/{broken}/discard")

    assert answer.status_code == 409
    assert "has not failed" in visitor.text and "Back to the first view" in visitor.text


def test_who_may_only_read_settles_nothing_and_it_is_written_down(
    runtime: Runtime, app: FastAPI, owner: Engine, tenant: int, broken: UUID
) -> None:
    with owner.begin() as connection:
        _, reader = keys.create(connection, "acme", rights=("read",))
    visitor = Visitor(app)
    visitor.log_in(reader)

    assert visitor.send(f"/failed/{broken}/discard").status_code == 403

    assert state(owner, broken) == (True, False)
    assert [entry.outcome for entry in audit.all_entries(runtime, tenant)] == ["begun", "forbidden"]


@pytest.mark.parametrize("id", ["1", "0197aaaa-0000-7000-8000-000000000001", "..", "%2e%2e"])
def test_a_turn_that_is_none_is_an_error_with_a_page(visitor: Visitor, id: str) -> None:
    answer = visitor.send(f"/failed/{id}/replay")

    assert answer.status_code in (404, 405, 422)


def test_an_unknown_parameter_is_an_error_with_a_page(visitor: Visitor) -> None:
    answer = visitor.get("/overview?liv=false")

    assert answer.status_code == 422
    assert "unknown parameter" in visitor.text


@pytest.mark.parametrize("bound", [{"user": "mira"}, {"agent": "ada"}, {"agent": "ada", "user": "mira"}])
def test_a_key_for_one_person_does_not_see_the_tenant(
    app: FastAPI, owner: Engine, tenant: int, broken: UUID, bound: dict[str, str]
) -> None:
    with owner.begin() as connection:
        _, key = keys.create(connection, "acme", rights=keys.RIGHTS, **bound)  # type: ignore[arg-type]
    visitor = Visitor(app)
    visitor.log_in(key)

    for view in ("/overview", "/overview/now", "/overview/days"):
        assert visitor.get(view).status_code == 403, view
        assert "Porto" not in visitor.text and "alert" not in visitor.text
    assert visitor.send(f"/failed/{broken}/discard").status_code == 403
    assert state(owner, broken) == (True, False)
