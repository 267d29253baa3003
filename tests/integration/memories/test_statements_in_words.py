"""A statement of a text alone takes its place among the facts, from every door that takes words."""

from __future__ import annotations

from collections.abc import Callable

import all_shards
import pytest
from queries import rows
from sqlalchemy import Engine
from starlette.testclient import TestClient

from memory_app.agents.rows import agents
from memory_app.app import MemoryApp
from memory_app.main.http import create_app
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime

SCOPE = Scope("ada", "mira")
Tell = Callable[[str], str]


@pytest.fixture(params=["http", "python", "tool"])
def tell(request: pytest.FixtureRequest, runtime: Runtime, tenant: int, api_key: str) -> Tell:
    """State a text through one of the doors; the outcome."""
    memory = MemoryApp(runtime, tenant_id=tenant)
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})

    def over_http(text: str) -> str:
        answer = client.post("/v1/agents/ada/users/mira/memories", json={"text": text})
        assert answer.status_code == 201
        return str(answer.json()["outcome"])

    def in_python(text: str) -> str:
        return memory.remember(SCOPE, text).outcome.value

    def by_tool(text: str) -> str:
        return str(memory.call_tool(SCOPE, "store_memory", {"text": text}).data["outcome"])

    doors: dict[str, Tell] = {"http": over_http, "python": in_python, "tool": by_tool}
    return doors[request.param]


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("Mira lives in Porto.", "Mira lives in Lisbon."),
        ("Mira works at Acme.", "Mira works at Apex."),
        ("Mira has 5 years of experience.", "Mira has 6 years of experience."),
        ("Tom lives in Porto.", "Tom moved to Lisbon."),
        ("Mira wohnt in Porto.", "Mira wohnt in Lissabon."),
        ("Mira habite à Porto.", "Mira habite à Lisbonne."),
    ],
)
def test_the_later_statement_supersedes_the_earlier_one(
    tell: Tell, owner: Engine, first: str, later: str
) -> None:
    assert tell(first) == "inserted"
    assert tell(later) == "superseded"

    current = rows(owner, "SELECT text FROM memories WHERE retired_at IS NULL")
    assert [row.text for row in current] == [later]


def test_statements_about_others_and_other_things_stay(tell: Tell, owner: Engine) -> None:
    texts = ["Mira lives in Porto.", "Tom lives in Porto.", "Mira works at Acme.", "Mira likes tea."]
    for text in texts:
        tell(text)
    tell("Mira lives in Lisbon.")

    current = rows(owner, "SELECT text FROM memories WHERE retired_at IS NULL ORDER BY id")
    assert [row.text for row in current] == [*texts[1:], "Mira lives in Lisbon."]


def test_nothing_is_read_where_extraction_is_off(runtime: Runtime, tenant: int, owner: Engine) -> None:
    with owner.begin() as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"policy": {"extraction": "off"}},
            copies=all_shards.copies(connection),
        )
    MemoryApp(runtime, tenant_id=tenant).remember(SCOPE, "Mira lives in Porto.")

    (row,) = rows(owner, "SELECT subject, relation FROM memories")
    assert (row.subject, row.relation) == (None, None)
