"""A memory's view: where it comes from and how it stands; each act changes the row as the API's call does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from fastapi import FastAPI
from page_visitor import Visitor
from sqlalchemy import Engine, text

from memory_app.dispatch import finder
from memory_app.main.http import create_app
from memory_app.memories import lookup
from memory_app.memories.remember import remember
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy import audit
from memory_app.tenancy.rows import keys
from memory_app.turns.record import record

MIRA = Scope("ada", "mira")
HERE = "/agents/ada/users/mira/memories"


@pytest.fixture
def app(runtime: Runtime) -> FastAPI:
    return create_app(runtime)


@pytest.fixture
def visitor(app: FastAPI, api_key: str) -> Visitor:
    visitor = Visitor(app)
    visitor.log_in(api_key)
    return visitor


@pytest.fixture
def pears(runtime: Runtime, tenant: int) -> UUID:
    statement = Statement("fact", "Mira likes pears.", tags=("fruit",), importance=7)
    return remember(runtime, tenant, MIRA, statement=statement).id


def row(owner: Engine, id: UUID) -> Any:
    with owner.connect() as connection:
        return connection.execute(text("SELECT * FROM memories WHERE id = :id"), {"id": id}).one_or_none()


def test_a_memory_shows_its_evidence_history_and_fate(
    runtime: Runtime, tenant: int, owner: Engine, visitor: Visitor
) -> None:
    chat = Scope("ada", "mira", "chat/1")
    for at, said in ((2024, "I live in Porto."), (2025, "I moved to Lisbon.")):
        record(runtime, tenant, chat, new=[NewTurn(Role.USER, said, at=datetime(at, 1, 1, tzinfo=UTC))])
        finder.drain(runtime)
    with owner.connect() as connection:
        old = connection.execute(text("SELECT id FROM memories WHERE object = 'Porto'")).scalar_one()

    visitor.get(f"{HERE}/{old}")

    assert "I live in Porto." in visitor.text and "superseded" in visitor.text
    assert "successor" in visitor.text and "Lisbon" in visitor.text
    assert "extract, done" in visitor.text
    assert "/sessions/chat%2F1?cursor=2#turn-" in visitor.html
    assert "/pin" not in visitor.html and "/correct" not in visitor.html, "what is retired stays as it is"


def test_an_act_is_done_and_said(
    runtime: Runtime, tenant: int, owner: Engine, visitor: Visitor, pears: UUID
) -> None:
    visitor.get(f"{HERE}/{pears}")
    assert "Mira likes pears." in visitor.text and "#fruit" in visitor.text and "7 of 10" in visitor.text

    visitor.send(f"{HERE}/{pears}/pin")
    assert "Pinned: it never fades" in visitor.text and row(owner, pears).pinned
    visitor.send(f"{HERE}/{pears}/unpin")
    assert "No longer pinned" in visitor.text and not row(owner, pears).pinned
    visitor.send(f"{HERE}/{pears}/rate", label="up", note="Just right.")
    assert "moved half as far" in visitor.text and row(owner, pears).feedback_score > 0
    with owner.connect() as connection:
        assert connection.execute(text("SELECT note FROM feedback")).scalar_one() == "Just right."
    visitor.send(f"{HERE}/{pears}/invalidate")
    assert "stays as history" in visitor.text and row(owner, pears).retired_reason == "invalidated"


def test_a_correction_leads_to_the_row_that_says_it_now(
    runtime: Runtime, tenant: int, owner: Engine, visitor: Visitor, pears: UUID
) -> None:
    visitor.get(f"{HERE}/{pears}")

    answer = visitor.send(f"{HERE}/{pears}/correct", text="Mira likes plums.\r\nVery much.")

    new = UUID(answer.url.path.rsplit("/", 1)[1])
    assert new != pears and row(owner, pears).successor == new
    assert row(owner, new).text == "Mira likes plums.\nVery much."
    assert "Mira likes pears." in visitor.text, "in its history"


@pytest.mark.parametrize(
    ("typed", "says"),
    [("", "text: is required"), ("x" * 100_000, "text: "), ("<script>alert(1)</script> " * 5_000, "text: ")],
    ids=["nothing", "long", "long markup"],
)
def test_a_correction_that_is_refused_is_shown_with_what_was_typed(
    owner: Engine, visitor: Visitor, pears: UUID, typed: str, says: str
) -> None:
    visitor.get(f"{HERE}/{pears}")

    answer = visitor.send(f"{HERE}/{pears}/correct", text=typed)

    assert answer.status_code == 422
    assert says in visitor.text and "What is right" in visitor.text
    assert typed[:1_000] in visitor.text or typed[:20] in visitor.text
    assert "<script>alert" not in visitor.html
    assert row(owner, pears).successor is None


def test_an_expired_memory_is_revived(owner: Engine, visitor: Visitor, pears: UUID) -> None:
    with owner.begin() as connection:
        connection.execute(text("UPDATE memories SET retired_at = now(), retired_reason = 'expired'"))
    visitor.get(f"{HERE}/{pears}")
    assert "can be revived" in visitor.text

    visitor.send(f"{HERE}/{pears}/revive")

    assert "It is current again" in visitor.text and row(owner, pears).retired_at is None


def test_a_memory_is_forgotten_for_good_and_it_is_written_down(
    runtime: Runtime, tenant: int, owner: Engine, visitor: Visitor, pears: UUID
) -> None:
    visitor.get(f"{HERE}/{pears}")

    answer = visitor.send(f"{HERE}/{pears}/forget")

    assert answer.url.path == f"/ui{HERE}" and "deleted for good" in visitor.text
    assert row(owner, pears) is None
    entries = list(audit.all_entries(runtime, tenant))
    assert [(entry.action, entry.outcome, entry.target) for entry in entries] == [
        ("erase.memory", "begun", str(pears)),
        ("erase.memory", "done", str(pears)),
    ]
    assert visitor.get(f"{HERE}/{pears}").status_code == 404


WRITES = ("pin", "unpin", "invalidate", "revive", "correct", "rate")


@pytest.mark.parametrize(
    ("act", "rights"),
    [*((act, ("read", "record", "erase")) for act in WRITES), ("forget", ("read", "record", "write"))],
)
def test_an_act_needs_its_right(
    app: FastAPI, owner: Engine, pears: UUID, act: str, rights: tuple[str, ...]
) -> None:
    with owner.begin() as connection:
        _, key = keys.create(connection, "acme", rights=rights)
    visitor = Visitor(app)
    visitor.log_in(key)
    before = row(owner, pears)
    visitor.get(f"{HERE}/{pears}")

    answer = visitor.send(f"{HERE}/{pears}/{act}", text="Mira likes plums.", label="up")

    assert answer.status_code == 403 and "lacks the right" in visitor.text
    assert row(owner, pears) == before


@pytest.mark.parametrize("act", ["", "/pin", "/invalidate", "/revive", "/correct", "/rate", "/forget"])
def test_a_memory_of_somebody_else_is_not_found_below_a_person(
    runtime: Runtime, tenant: int, owner: Engine, visitor: Visitor, pears: UUID, act: str
) -> None:
    remember(runtime, tenant, Scope("ada", "bob"), statement=Statement("fact", "Bob likes plums."))
    before = row(owner, pears)
    visitor.get("/people")
    path = f"/agents/ada/users/bob/memories/{pears}{act}"

    answer = visitor.send(path, text="x", label="up") if act else visitor.get(path)

    assert answer.status_code == 404
    assert "pears" not in visitor.text and row(owner, pears) == before


def test_a_key_for_one_person_changes_nothing_that_all_share(
    app: FastAPI, runtime: Runtime, tenant: int, owner: Engine, pears: UUID
) -> None:
    shared = remember(runtime, tenant, Scope("ada"), statement=Statement("core", "Be kind.")).id
    with owner.begin() as connection:
        _, key = keys.create(connection, "acme", rights=keys.RIGHTS, agent="ada", user="mira")
    visitor = Visitor(app)
    visitor.log_in(key)

    assert visitor.get(f"{HERE}/{shared}").status_code == 200
    assert visitor.send(f"{HERE}/{shared}/pin").status_code == 404
    visitor.get(f"{HERE}/{pears}")
    assert visitor.send(f"{HERE}/{pears}/pin").status_code == 200
    assert lookup.read_memory(runtime, tenant, pears).pinned
    assert not lookup.read_memory(runtime, tenant, shared).pinned
