"""The lists of agents and users: by name, with counts, a page at a time."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from memory_app.app import MemoryApp
from memory_app.errors import InvalidInput
from memory_app.main.http import create_app
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime

NAMES = ("ali", "bob/slash", "Clara", "mira", "éva")


@pytest.fixture
def app(runtime: Runtime, tenant: int) -> MemoryApp:
    return MemoryApp(runtime, tenant)


def test_users_are_listed_with_what_is_stored_of_them(app: MemoryApp) -> None:
    for session in ("a", "b"):
        app.record(Scope("ada", "mira", session), "I live in Lisbon.")
    app.record(Scope("bea", "mira", "a"), "Hello.")
    kept = app.remember(Scope("ada", "mira"), "Mira likes tea.")
    gone = app.remember(Scope("ada", "mira"), "Mira plays the cello.")
    app.invalidate(gone.id)
    app.change_user("quiet", time_zone="Europe/Lisbon")

    mira, quiet = app.users()
    assert (mira.name, quiet.name) == ("mira", "quiet")
    assert mira.counts is not None and quiet.counts is not None
    assert (mira.counts.agents, mira.counts.sessions, mira.counts.turns) == (2, 3, 3)
    assert mira.counts.memories == 1, kept
    assert mira.counts.last_activity_at is not None
    assert quiet.time_zone == "Europe/Lisbon"
    assert (quiet.counts.agents, quiet.counts.sessions, quiet.counts.turns) == (0, 0, 0)
    assert quiet.counts.last_activity_at is None


def test_agents_are_listed_with_their_people(app: MemoryApp) -> None:
    app.change_agent("lonely", policy={"extraction": "off"})
    for user in NAMES:
        app.remember(Scope("ada", user), "They like tea.")
    assert [(agent.name, agent.users) for agent in app.agents()] == [("ada", len(NAMES)), ("lonely", 0)]


def test_pages_hold_everybody_once(app: MemoryApp) -> None:
    for user in NAMES:
        app.remember(Scope(f"of {user}", user), "They like tea.")
    users: list[str] = []
    agents: list[str] = []
    for _ in range(len(NAMES) + 1):
        users += [user.name for user in app.users(limit=1, cursor=users[-1] if users else None)]
        agents += [agent.name for agent in app.agents(limit=1, cursor=agents[-1] if agents else None)]
    assert sorted(users) == sorted(NAMES) and len(set(users)) == len(NAMES)
    assert sorted(agents) == sorted(f"of {user}" for user in NAMES)


@pytest.mark.parametrize("limit", [0, -1, 201])
def test_a_page_has_limits(app: MemoryApp, limit: int) -> None:
    with pytest.raises(InvalidInput):
        app.users(limit=limit)
    with pytest.raises(InvalidInput):
        app.agents(limit=limit)
    with pytest.raises(InvalidInput) as refused:
        app.users(cursor="a\x00b")
    assert refused.value.field == "cursor"


def test_lists_over_http_end_at_the_tenant(
    app: MemoryApp, runtime: Runtime, other_tenant: int, api_key: str
) -> None:
    MemoryApp(runtime, other_tenant).remember(Scope("foreign", "stranger"), "They like tea.")
    for user in NAMES[:2]:
        app.remember(Scope("ada", user), "They like tea.")
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    first = client.get("/v1/users", params={"limit": 1}).json()
    second = client.get("/v1/users", params={"limit": 1, "cursor": first["cursor"]}).json()
    third = client.get("/v1/users", params={"limit": 1, "cursor": second["cursor"]}).json()
    assert [page["users"][0]["user"] for page in (first, second)] == ["ali", "bob/slash"]
    assert third == {"users": [], "cursor": None}
    agents = client.get("/v1/agents").json()
    assert [(agent["agent"], agent["users"]) for agent in agents["agents"]] == [("ada", 2)]
    assert agents["cursor"] is None
