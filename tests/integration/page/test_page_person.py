"""A person's views: what is shown of facts in time, memories, sessions, questions and entities, a page at a time."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import unquote

import pytest
from fastapi import FastAPI
from page_visitor import Visitor, read
from sqlalchemy import Engine

from memory_app.dispatch import finder
from memory_app.main.http import create_app
from memory_app.memories.facts import add_fact
from memory_app.memories.remember import remember
from memory_app.page import person_routes
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import keys
from memory_app.turns.record import record

MIRA = Scope("ada", "mira")
HERE = "/agents/ada/users/mira"
TABS = ("", "/card", "/figures", "/timeline", "/memories", "/sessions", "/questions", "/entities")
SCRIPT = "<script>alert('gone')</script><img src=x onerror=alert(1)>"
HEBREW = "שלום, אני גרה בליסבון"


@pytest.fixture
def app(runtime: Runtime) -> FastAPI:
    return create_app(runtime)


@pytest.fixture
def visitor(app: FastAPI, api_key: str) -> Visitor:
    visitor = Visitor(app)
    visitor.log_in(api_key)
    return visitor


def say(runtime: Runtime, tenant: int, *texts: str, scope: Scope | None = None) -> None:
    chat = scope or Scope("ada", "mira", "chat 1/2")
    record(runtime, tenant, chat, new=[NewTurn(Role.USER, text) for text in texts])
    finder.drain(runtime)


def fact(runtime: Runtime, tenant: int, city: str, year: int) -> None:
    since = datetime(year, 1, 1, tzinfo=UTC)
    statement = Statement("fact", "", subject="mira", relation="lives_in", object=city, valid_from=since)
    add_fact(runtime, tenant, MIRA, statement=statement)


def test_people_are_listed_and_found_by_name(runtime: Runtime, tenant: int, visitor: Visitor) -> None:
    for user in ("mira", "bo/b", SCRIPT[:60]):
        remember(runtime, tenant, Scope("ada", user), statement=Statement("fact", "Likes pears."))

    visitor.get("/people")
    assert "mira" in visitor.text and "bo/b" in visitor.text and SCRIPT[:60] in visitor.text
    assert "<script>" not in visitor.html
    assert 'href="/ui/agents/ada/users/bo%2Fb"' in visitor.html
    assert visitor.get("/people?user=mira").url.path == "/ui/agents/ada/users/mira"
    assert visitor.get("/people?user=bo/b").status_code == 200
    assert "bo/b" in visitor.text
    visitor.get("/people?user=nobody")
    assert "Nobody of this name" in visitor.text


@pytest.mark.parametrize(("agent", "user"), [("..", "."), (".", ".."), ("...", "…")])
def test_names_of_dots_are_no_way_up(
    runtime: Runtime, tenant: int, visitor: Visitor, agent: str, user: str
) -> None:
    id = remember(runtime, tenant, Scope(agent, user), statement=Statement("fact", "Likes pears.")).id
    visitor.get("/people")
    links = {str(attrs.get("href")) for tag, attrs in read(visitor.html).elements if tag == "a"}
    (person,) = (link.removeprefix("/ui") for link in links if link.startswith("/ui/agents/"))
    # Browsers fold these, quoted or not; a test's client folds the first two.
    assert not {".", "..", "%2e", "%2e%2e"} & set(person.lower().split("/"))

    assert visitor.get(person).status_code == 200 and "Likes pears." in visitor.text
    visitor.get(f"{person}/memories/{id}")
    visitor.send(f"{person}/memories/{id}/pin")
    assert "it never fades" in visitor.text
    agent_path = person.rpartition("/users/")[0]
    assert visitor.get(f"/agents?agent={agent}").url.path == f"/ui{unquote(agent_path)}"
    assert visitor.get(f"/erasures/person?user={user}").status_code == 200
    assert f"Forget {user}" in visitor.text


def test_people_come_a_page_at_a_time(
    runtime: Runtime, tenant: int, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_app.page.people_routes.PAGE", 2)
    for number in range(5):
        remember(runtime, tenant, Scope("ada", f"user{number}"), statement=Statement("fact", "Likes pears."))

    seen: list[str] = []
    path: str | None = "/people"
    while path is not None:
        visitor.get(path)
        seen += [word for word in visitor.text.split() if word.startswith("user")]
        older = [attrs["href"] for tag, attrs in read(visitor.html).elements if attrs.get("rel") == "next"]
        path = str(older[0]).removeprefix("/ui") if older else None

    assert seen == ["user4", "user3", "user2", "user1", "user0"]


def test_the_summary_shows_the_card_and_what_holds_now(
    runtime: Runtime, tenant: int, visitor: Visitor
) -> None:
    say(runtime, tenant, "My name is Mira.", "I live in Porto.", "I moved to Lisbon.")

    visitor.get(HERE)
    assert "Lisbon" in visitor.text and "Porto" not in visitor.text
    # what takes longer the more is stored comes by itself
    assert all(f'hx-get="/ui{HERE}/{part}"' in visitor.html for part in ("card", "figures"))
    visitor.get(HERE + "/card")
    assert "person:mira, mentioned" in visitor.text and "Lisbon" in visitor.text
    visitor.get(HERE + "/figures")
    assert "fact" in visitor.text and "turns by day" in visitor.text
    assert visitor.html.count("<rect") == 2 * 90


def test_the_timeline_shows_what_held_before_behind_what_holds(
    runtime: Runtime, tenant: int, visitor: Visitor
) -> None:
    fact(runtime, tenant, "Porto", 2019)
    fact(runtime, tenant, "Lisbon", 2024)
    say(runtime, tenant, "I work at Acme.")

    visitor.get(HERE + "/timeline")

    looks = [attrs["class"] for tag, attrs in read(visitor.html).elements if tag == "rect"]
    assert looks[:2].count("holds") + looks.count("past") >= 2 and "past" in looks
    for said in ("mira · lives in", "2019-01-01 – 2024-01-01", "superseded", "2024-01-01 – now"):
        assert said in visitor.text, said
    assert "“I work at Acme.”" in visitor.html, "the turn that said it"


def test_facts_come_a_page_at_a_time(
    runtime: Runtime, tenant: int, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(person_routes, "FACTS_PAGE", 3)
    for number in range(7):
        remember(
            runtime, tenant, MIRA, statement=Statement("fact", f"Thing {number} is blue."), deduplicate=False
        )

    seen: list[str] = []
    path: str | None = HERE + "/timeline"
    while path is not None:
        visitor.get(path)
        seen += [f"Thing {n}" for n in range(7) if f"Thing {n} is blue." in visitor.text]
        older = [attrs["href"] for _, attrs in read(visitor.html).elements if attrs.get("rel") == "next"]
        path = str(older[0]).removeprefix("/ui") if older else None

    assert sorted(seen) == [f"Thing {n}" for n in range(7)]


def test_memories_show_strength_and_when_they_fade(runtime: Runtime, tenant: int, visitor: Visitor) -> None:
    remember(runtime, tenant, MIRA, statement=Statement("fact", "Mira likes pears.", pinned=True))
    remember(runtime, tenant, MIRA, statement=Statement("episode", "They talked about pears."))

    visitor.get(HERE + "/memories")
    assert "Mira likes pears. pinned" in visitor.text and "never" in visitor.text
    assert visitor.html.count("<meter") == 2
    visitor.get(HERE + "/memories?kind=episode")
    assert "They talked" in visitor.text and "likes pears" not in visitor.text
    # as the form sends it for all kinds
    visitor.get(HERE + "/memories?kind=&history=false")
    assert "They talked" in visitor.text and "likes pears" in visitor.text
    assert visitor.get(HERE + "/memories?kind=nonsense").status_code == 422


def test_a_session_shows_what_came_of_each_turn(runtime: Runtime, tenant: int, visitor: Visitor) -> None:
    say(runtime, tenant, "I live in Porto.", "ok", SCRIPT, HEBREW, "x" * 100_000)

    visitor.get(HERE + "/sessions")
    assert "chat 1/2" in visitor.text and "/sessions/chat%201%2F2" in visitor.html
    visitor.get(HERE + "/sessions/chat%201%2F2")

    assert "Porto" in visitor.text and "Nothing came of it: acknowledgement" in visitor.text
    assert HEBREW in visitor.text and SCRIPT in visitor.text
    assert "<script>alert" not in visitor.html and "<img src=x" not in visitor.html
    assert "more characters" in visitor.text and "x" * 5_000 not in visitor.html
    assert visitor.get(HERE + "/sessions/other").status_code == 404


def test_turns_come_a_page_at_a_time(
    runtime: Runtime, tenant: int, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(person_routes, "TURNS_PAGE", 2)
    say(runtime, tenant, *(f"Turn {n} of mine." for n in range(5)), scope=Scope("ada", "mira", "s"))

    visitor.get(HERE + "/sessions/s")
    assert "Turn 4" in visitor.text and "Turn 3" in visitor.text and "Turn 2" not in visitor.text
    assert "cursor=4" in visitor.html
    visitor.get(HERE + "/sessions/s?cursor=4")
    assert "Turn 2" in visitor.text and "Turn 1" in visitor.text and "The latest turns" in visitor.text


def test_questions_and_entities_are_shown(runtime: Runtime, tenant: int, visitor: Visitor) -> None:
    say(runtime, tenant, "Where did I park my car?", "Anna Berg lives in Porto.", "My sister is Anna Berg.")

    visitor.get(HERE + "/questions")
    assert "Where did I park my car?" in visitor.text
    visitor.get(HERE + "/entities")
    assert "Anna Berg" in visitor.text and "<circle" in visitor.html and "<line" in visitor.html
    visitor.get(HERE + "/entities/person:anna_berg")
    assert "Anna Berg" in visitor.text and "Strongest memories" in visitor.text
    assert visitor.get(HERE + "/entities/person:nobody").status_code == 404
    assert visitor.get(HERE + "/entities/nonsense").status_code == 422


@pytest.mark.parametrize("tab", [tab for tab in TABS if tab != "/card"])
def test_a_person_of_whom_nothing_is_stored_is_a_page_that_says_so(
    tenant: int, visitor: Visitor, tab: str
) -> None:
    answer = visitor.get(f"/agents/ada/users/nobody{tab}")

    assert answer.status_code == 404
    assert "nothing is stored" in visitor.text


@pytest.mark.parametrize("tab", TABS)
def test_an_empty_person_has_every_view(runtime: Runtime, tenant: int, visitor: Visitor, tab: str) -> None:
    remember(runtime, tenant, MIRA, statement=Statement("value", "Honesty."))

    assert visitor.get(HERE + tab).status_code == 200


@pytest.mark.parametrize(
    "bound",
    [
        {"user": "mira"},
        {"agent": "ada"},
        {"agent": "ada", "user": "mira"},
    ],
)
def test_a_key_for_one_sees_theirs_alone(
    app: FastAPI, runtime: Runtime, owner: Engine, tenant: int, bound: dict[str, str]
) -> None:
    pairs = [("ada", "mira"), ("max", "mira"), ("ada", "bob"), ("max", "zoe")]
    for agent, user in pairs:
        remember(
            runtime, tenant, Scope(agent, user), statement=Statement("fact", f"Quokka of {user} and {agent}.")
        )
    with owner.begin() as connection:
        _, key = keys.create(connection, "acme", rights=keys.RIGHTS, **bound)  # type: ignore[arg-type]
    visitor = Visitor(app)
    visitor.log_in(key)

    visitor.get("/people")
    listed = {name for pair in pairs for name in pair if f"/users/{name}" in visitor.html}
    own = {
        user
        for agent, user in pairs
        if bound.get("agent", agent) == agent and bound.get("user", user) == user
    }
    assert listed == own
    for agent, user in pairs:
        allowed = bound.get("agent", agent) == agent and bound.get("user", user) == user
        for tab in TABS:
            answer = visitor.get(f"/agents/{agent}/users/{user}{tab}")
            assert answer.status_code == (200 if allowed else 403), (agent, user, tab)
            assert allowed or "Quokka" not in answer.text
