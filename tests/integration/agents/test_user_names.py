"""The names by which an app calls a person: one subject whatever they are called, at every door."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from memory_app.app import MemoryApp
from memory_app.dispatch import finder
from memory_app.errors import InvalidInput
from memory_app.main.http import create_app
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime

USER = "user_8f3a"
CHAT, PERSON = Scope("ada", USER, "chat"), Scope("ada", USER)
KEY = "person:user_8f3a"


@pytest.fixture
def app(runtime: Runtime, tenant: int) -> MemoryApp:
    return MemoryApp(runtime, tenant)


def test_what_is_told_of_the_label_is_told_of_the_user(app: MemoryApp) -> None:
    app.change_user(USER, label="Mira Novak", aliases=["Mira", "Mimi"])
    app.remember(PERSON, "Mira lives in Porto.")
    moved = app.remember(PERSON, "Mira Novak lives in Lisbon.")
    app.add_fact(PERSON, "Mimi", "works_at", "Nordea")

    facts = {fact.memory.relation: fact.memory.object for fact in app.facts(PERSON, subject=USER)}
    assert facts == {"lives_in": "Lisbon", "works_at": "Nordea"}
    assert moved.outcome == "superseded"
    card = app.entity(PERSON, KEY)
    assert card.entity.label == "Mira Novak"
    assert {"Mira", "Mimi"} <= set(card.entity.aliases)
    assert "Mira Novak (person, the user)" in app.context(CHAT, "Where does she live?").text


def test_turns_are_signed_with_the_label(app: MemoryApp, runtime: Runtime) -> None:
    app.change_user(USER, label="Mira")
    app.record_all(
        CHAT,
        [
            NewTurn(Role.USER, "I live in Lisbon."),
            NewTurn(Role.ASSISTANT, "How nice."),
            NewTurn(Role.USER, "I have a sister.", speaker="Mirabel"),
        ],
    )
    finder.drain(runtime)
    assert [turn.speaker for turn in app.turns(CHAT)] == ["Mira", "ada", "Mirabel"]
    (home,) = [fact.memory for fact in app.facts(PERSON) if fact.memory.relation == "lives_in"]
    assert home.subject == USER
    assert home.text == "Mira lives in Lisbon."


def test_a_retry_is_recognised_after_a_new_label(app: MemoryApp) -> None:
    turn = NewTurn(Role.USER, "I live in Lisbon.", idempotency_key="m-1")
    (first,) = app.record_all(CHAT, [turn])
    app.change_user(USER, label="Mira")
    (again,) = app.record_all(CHAT, [turn])
    assert again.id == first.id and again.duplicate


def test_names_reach_agents_who_knew_the_user_and_who_meet_them_later(app: MemoryApp) -> None:
    app.remember(PERSON, "user_8f3a likes tea.")
    app.change_user(USER, label="Mira")
    app.remember(Scope("bea", USER), "Mira lives in Lisbon.")
    for agent in ("ada", "bea"):
        assert app.entity(Scope(agent, USER), "person:mira").entity.key == KEY
    (fact,) = app.facts(Scope("bea", USER))
    assert fact.memory.subject is not None and fact.memory.subject.casefold() in (USER, "mira")
    assert [card.label for card in app.entities(Scope("bea", USER)) if card.key == KEY] == ["Mira"]


def test_another_person_of_that_name_stays_another(app: MemoryApp) -> None:
    app.remember(PERSON, "Anna Berg lives in Rome.")
    app.change_user(USER, label="Anna")
    app.remember(PERSON, "Anna lives in Oslo.")
    homes = {fact.memory.subject: fact.memory.object for fact in app.facts(PERSON)}
    assert homes["Anna Berg"] == "Rome"
    assert "Oslo" in homes.values()


def test_a_label_is_changed_and_taken_back(app: MemoryApp) -> None:
    app.remember(PERSON, "user_8f3a likes tea.")
    app.change_user(USER, label="Mira", time_zone="Europe/Lisbon")
    changed = app.change_user(USER, label="Mirabel")
    assert (changed.label, changed.aliases, changed.time_zone) == ("Mirabel", (), "Europe/Lisbon")
    card = app.entity(PERSON, KEY).entity
    assert card.label == "Mirabel" and "Mira" in card.aliases
    assert app.change_user(USER, label=None).label is None
    assert app.user(USER).time_zone == "Europe/Lisbon"


def test_in_a_room_names_are_those_of_its_people(app: MemoryApp) -> None:
    app.change_agent("ada", policy={"group": True})
    app.change_user(USER, label="Kitchen")
    app.remember(PERSON, "Kitchen lives in Lisbon.")
    assert {entity.key for entity in app.entities(PERSON)}.isdisjoint({KEY})


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "user"),
        ({"label": " "}, "label"),
        ({"label": "x" * 201}, "label"),
        ({"label": "a\x00b"}, "label"),
        ({"aliases": ["Mira", ""]}, "aliases[1]"),
        ({"aliases": "Mira"}, "aliases"),
        ({"aliases": [f"n{number}" for number in range(21)]}, "aliases"),
        ({"time_zone": "Europe/Nowhere"}, "time_zone"),
    ],
)
def test_bad_names_are_named(app: MemoryApp, given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        app.change_user(USER, **given)
    assert refused.value.field == field


def test_names_over_http_and_in_the_list(runtime: Runtime, tenant: int, api_key: str) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    path = f"/v1/users/{USER}"
    named = client.patch(path, json={"label": "Mira", "aliases": ["Mimi"]})
    assert named.status_code == 200
    assert (named.json()["label"], named.json()["aliases"]) == ("Mira", ["Mimi"])
    assert client.patch(path, json={"time_zone": "+09:00"}).json()["label"] == "Mira"
    assert client.patch(path, json={}).json()["error"]["field"] == "user"
    assert client.patch(path, json={"label": None}).json()["label"] is None
    assert client.get("/v1/users").json()["users"][0]["label"] is None


def test_names_go_with_an_export_and_with_an_erasure(app: MemoryApp, runtime: Runtime, tenant: int) -> None:
    app.change_user(USER, label="Mira", aliases=["Mimi"])
    app.remember(PERSON, "Mira lives in Lisbon.")
    lines = list(app.export_lines(user=USER))
    app.forget(USER)
    assert app.change_user(USER, time_zone=None).label is None
    app.forget(USER)
    app.import_lines(lines, new_consent=True)
    assert (app.user(USER).label, app.user(USER).aliases) == ("Mira", ("Mimi",))
