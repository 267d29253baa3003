"""The audit log on the page: search by action, key, person and day, and whether it is whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from fastapi import FastAPI
from page_visitor import Visitor
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.main.http import create_app
from memory_app.page import audit_routes
from memory_app.records.audit import Action
from memory_app.runtime import Runtime
from memory_app.tenancy import audit
from memory_app.tenancy.audit import noting
from memory_app.tenancy.rows import keys


@pytest.fixture
def app(runtime: Runtime) -> FastAPI:
    return create_app(runtime)


@pytest.fixture
def admin(owner: Engine, tenant: int) -> tuple[int, str]:
    with owner.begin() as connection:
        return keys.create(connection, "acme", rights=keys.RIGHTS)


@pytest.fixture
def visitor(app: FastAPI, admin: tuple[int, str]) -> Visitor:
    visitor = Visitor(app)
    visitor.log_in(admin[1])
    return visitor


@pytest.fixture
def log(runtime: Runtime, tenant: int, admin: tuple[int, str]) -> None:
    with noting(runtime, tenant, Action.ERASE_USER, key_id=admin[0], user="mira", target="dry_run"):
        pass
    with noting(runtime, tenant, Action.AGENT_CHANGE, agent="<b>ada</b>"):
        pass


def numbers(visitor: Visitor, query: str) -> list[int]:
    """The numbers of the entries that a search shows."""
    visitor.get(f"/audit{query}")
    return [
        int(cell.split("<")[0]) for cell in visitor.html.split('<td class="count">')[1:] if cell[0].isdigit()
    ]


def test_the_log_is_searched_by_action_key_person_and_day(
    visitor: Visitor, log: None, admin: tuple[int, str]
) -> None:
    today = datetime.now(UTC).date()
    tomorrow = today + timedelta(days=1)

    assert numbers(visitor, "") == [4, 3, 2, 1]
    assert "<b>ada</b>" in visitor.text and "<b>ada" not in visitor.html
    assert "mira" not in visitor.text, "people stand in it by a digest"
    assert numbers(visitor, "?action=agent.change") == [4, 3]
    assert numbers(visitor, f"?key={admin[0]}") == [2, 1]
    assert numbers(visitor, "?user=mira") == [2, 1]
    assert numbers(visitor, "?user=bob") == [] and "No such entry" in visitor.text
    assert numbers(visitor, f"?since={today - timedelta(days=1)}&until={tomorrow}") == [4, 3, 2, 1]
    assert numbers(visitor, f"?since={tomorrow}") == []
    assert numbers(visitor, f"?until={today - timedelta(days=1)}") == []
    # As a form sends it, empty fields included.
    assert numbers(visitor, "?action=erase.user&key=&user=&since=&until=") == [2, 1]


def test_a_long_log_is_read_page_by_page(
    visitor: Visitor, log: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_routes, "PAGE_ENTRIES", 3)

    assert numbers(visitor, "?key=") == [4, 3, 2]
    assert 'href="/ui/audit?cursor=2"' in visitor.html
    assert numbers(visitor, "?cursor=2") == [1]
    assert "Newest" in visitor.text


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?action=nonsense", "action"),
        ("?key=x", "key"),
        ("?key=" + "9" * 30, "key"),
        ("?since=yesterday", "since"),
        ("?until=9999-12-31", "until"),
        ("?cursor=0", "cursor"),
        ("?colour=red", "colour"),
    ],
)
def test_a_search_that_does_not_fit_names_the_field(visitor: Visitor, query: str, field: str) -> None:
    assert visitor.get(f"/audit{query}").status_code == 422
    assert field in visitor.text


def test_the_page_says_whether_the_log_was_altered(visitor: Visitor, log: None, owner: Engine) -> None:
    visitor.get("/audit/chain")
    assert "The log is whole" in visitor.text and "4 entries" in visitor.text

    with owner.begin() as connection:
        connection.execute(text("UPDATE audit SET action = 'agent.changed' WHERE seq = 3"))

    visitor.get("/audit/chain")
    assert "Entry 3 does not fit" in visitor.text


def test_the_api_takes_key_and_time(
    runtime: Runtime, tenant: int, app: FastAPI, log: None, admin: tuple[int, str]
) -> None:
    client = TestClient(app, headers={"Authorization": f"Bearer {admin[1]}"})

    def seqs(**query: str | int) -> list[int]:
        entries = client.get("/v1/audit", params=query).raise_for_status().json()["entries"]
        return [entry["seq"] for entry in entries]

    third = audit.entries(runtime, tenant)[1].at.isoformat()
    assert seqs(key=admin[0]) == [2, 1]
    assert seqs(since=third) == [4, 3]
    assert seqs(until=third) == [2, 1]
    assert client.get("/v1/audit", params={"since": "2026-01-31"}).status_code == 422
