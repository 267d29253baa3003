"""Nights on the page: a cycle as before, after and why; tried, done and undone."""

from __future__ import annotations

import re
from uuid import UUID

import pytest
from fastapi import FastAPI
from page_visitor import Visitor
from sqlalchemy import Engine, text

from memory_app.dispatch.job_table import JOBS
from memory_app.jobs import jobs
from memory_app.main.http import create_app
from memory_app.memories.remember import remember
from memory_app.records.records import Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy import audit
from memory_app.tenancy.rows import keys

SCOPE = Scope("ada", "bob/1")
NIGHTS = "/agents/ada/users/bob%2F1/nights"
SAILING = (
    "Bob goes sailing on the <b>lake</b> with his cousin in the summer.",
    "Bob goes sailing on the <b>lake</b> with his cousin in summer.",
    "Bob goes out sailing on the <b>lake</b> with his cousin in the summer.",
)


@pytest.fixture
def app(runtime: Runtime) -> FastAPI:
    return create_app(runtime)


@pytest.fixture
def visitor(app: FastAPI, api_key: str) -> Visitor:
    visitor = Visitor(app)
    visitor.log_in(api_key)
    return visitor


@pytest.fixture
def memories(runtime: Runtime, tenant: int) -> None:
    for words in SAILING:
        remember(runtime, tenant, SCOPE, statement=Statement("fact", words), deduplicate=False)


def current(owner: Engine) -> int:
    with owner.connect() as connection:
        return int(
            connection.execute(text("SELECT count(*) FROM memories WHERE retired_at IS NULL")).scalar_one()
        )


def asked(runtime: Runtime, visitor: Visitor, **fields: str) -> str:
    """Ask for a cycle, have a worker do it, and show it; its address."""
    visitor.get(NIGHTS)
    answer = visitor.send(NIGHTS, job="sleep", **fields)
    assert "waits for a worker" in visitor.text and "hx-trigger" in visitor.html
    run = UUID(re.findall(r"[0-9a-f-]{36}", answer.url.path)[-1])
    jobs.perform(runtime, run, JOBS)
    visitor.get(f"{NIGHTS}/{run}")
    return f"{NIGHTS}/{run}"


def test_a_dry_run_shows_the_diff_and_changes_nothing(
    runtime: Runtime, owner: Engine, visitor: Visitor, memories: None
) -> None:
    asked(runtime, visitor, dry_run="true")

    assert "Nothing was changed. This is what it would do." in visitor.text
    assert visitor.html.count("<del") == 3 and visitor.html.count("<ins") == 1
    assert all(words in visitor.text for words in SAILING) and "<b>lake" not in visitor.html
    assert "strength before" in visitor.text and "Undo" not in visitor.text
    assert current(owner) == 3


def test_a_night_is_shown_and_undone(
    runtime: Runtime, tenant: int, owner: Engine, visitor: Visitor, memories: None
) -> None:
    night = asked(runtime, visitor)
    assert visitor.html.count("<del") == 3 and visitor.html.count("<ins") == 1
    assert current(owner) == 1

    visitor.send(night + "/undo")

    assert "All of it is taken back" in visitor.text and "It was undone" in visitor.text
    assert current(owner) == 3
    assert [(entry.action, entry.outcome) for entry in audit.all_entries(runtime, tenant)] == [
        ("run.undo", "begun"),
        ("run.undo", "done"),
    ]
    visitor.get(NIGHTS)
    assert "undone" in visitor.text
    # and so does the list of everybody's, which leads there
    visitor.get("/nights")
    assert "bob/1 with ada" in visitor.text and "undone" in visitor.text
    assert f'href="/ui{night}"' in visitor.html
    assert visitor.send(night + "/undo").status_code == 409


def test_nights_belong_to_their_person_and_need_the_right(
    runtime: Runtime, app: FastAPI, owner: Engine, tenant: int, visitor: Visitor, memories: None
) -> None:
    remember(runtime, tenant, Scope("ada", "eve"), statement=Statement("fact", "Eve paints."))
    night = asked(runtime, visitor)
    other = night.replace("bob%2F1", "eve")
    assert visitor.get(other).status_code == 404
    assert visitor.send(other + "/undo").status_code == 404
    visitor.get(NIGHTS)
    assert visitor.send(NIGHTS, job="dream").status_code == 422

    with owner.begin() as connection:
        reader = keys.create(connection, "acme", rights=("read",))[1]
        stranger = keys.create(connection, "acme", rights=keys.RIGHTS, user="eve")[1]
    for key, status in ((reader, 200), (stranger, 403)):
        someone = Visitor(app)
        someone.log_in(key)
        assert someone.get(night).status_code == status
        assert "Undo" not in someone.text
        assert someone.send(night + "/undo").status_code == 403
        assert someone.send(NIGHTS, job="sleep").status_code == 403
    assert current(owner) == 2
