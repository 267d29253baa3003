"""Links between memories that a caller draws, lists and removes, in process and over HTTP."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from starlette.testclient import TestClient

from memory_app.app import MemoryApp
from memory_app.errors import Conflict, InvalidInput, NotFound
from memory_app.main.http import create_app
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime

MIRA = Scope("ada", "mira")
BASE = "/v1/agents/ada/users/mira"
TEXTS = (
    "Mira lives in Lisbon.",
    "Mira sings in a choir on Mondays.",
    "The spare key is under the blue flower pot.",
)


@pytest.fixture
def app(runtime: Runtime, tenant: int) -> MemoryApp:
    return MemoryApp(runtime, tenant)


@pytest.fixture
def ids(app: MemoryApp) -> list[UUID]:
    return [app.remember(MIRA, text).id for text in TEXTS]


def test_a_link_is_drawn_listed_from_both_ends_and_removed(app: MemoryApp, ids: list[UUID]) -> None:
    drawn = app.add_link(MIRA, ids[0], str(ids[1]), type="causes", weight=0.7)
    assert (drawn.source, drawn.target, drawn.type) == (ids[0], ids[1], "causes")
    assert drawn.weight == pytest.approx(0.7)
    for end in ids[:2]:
        assert [link.id for link in app.links(MIRA, end)] == [drawn.id]
    assert app.links(MIRA, ids[2]) == ()

    again = app.add_link(MIRA, ids[0], ids[1], type="causes", weight=0.2)
    assert again.id == drawn.id and again.weight == pytest.approx(0.2)
    assert len(app.links(MIRA, ids[0])) == 1

    app.remove_link(MIRA, drawn.id)
    assert app.links(MIRA, ids[0]) == ()
    with pytest.raises(NotFound):
        app.remove_link(MIRA, drawn.id)


def test_recall_follows_a_link_by_hand(app: MemoryApp, ids: list[UUID]) -> None:
    query = "Where does Mira live?"
    before = {hit.id for hit in app.recall(MIRA, query, limit=1, tiers=["facts"], expand_graph=True).memories}
    assert ids[2] not in before
    app.add_link(MIRA, ids[0], ids[2])
    after = app.recall(MIRA, query, limit=1, tiers=["facts"], expand_graph=True).memories
    assert ids[2] in {hit.id for hit in after}


def test_bad_ends_types_and_weights_are_named(app: MemoryApp, ids: list[UUID]) -> None:
    cases = [
        ({"target": ids[0]}, InvalidInput, "target"),
        ({"source": "nonsense"}, InvalidInput, "source"),
        ({"target": uuid4()}, NotFound, "target"),
        ({"type": "friends"}, InvalidInput, "type"),
        ({"type": "derived_from"}, InvalidInput, "type"),
        ({"weight": 0.0}, InvalidInput, "weight"),
        ({"weight": float("nan")}, InvalidInput, "weight"),
        ({"weight": 1.1}, InvalidInput, "weight"),
    ]
    for change, error, field in cases:
        given = {"source": ids[0], "target": ids[1]} | change
        with pytest.raises(error) as refused:
            app.add_link(MIRA, **given)  # type: ignore[arg-type]
        assert refused.value.field == field, change
    assert app.links(MIRA, ids[0]) == ()
    for malformed in ("", "x", f"{ids[0]}~related_to", f"{ids[0]}~~{ids[1]}", f"{ids[0].hex}~a~{ids[1]}"):
        with pytest.raises(NotFound):
            app.remove_link(MIRA, malformed)


def test_only_current_memories_of_one_scope_are_linked(app: MemoryApp, ids: list[UUID]) -> None:
    other = app.remember(Scope("ada", "bob"), "Bob likes tea.").id
    agents_own = app.remember(Scope("ada"), "Ada never gives dosage advice.", kind="core").id
    for foreign in (other, agents_own):
        with pytest.raises(NotFound) as refused:
            app.add_link(MIRA, ids[0], foreign)
        assert refused.value.field == "target"
    app.invalidate(ids[1])
    with pytest.raises(Conflict):
        app.add_link(MIRA, ids[0], ids[1])
    with pytest.raises(NotFound):
        app.links(MIRA, other)


def test_a_weaker_link_than_the_strongest_kept_is_refused(app: MemoryApp, runtime: Runtime) -> None:
    limit = runtime.settings.remember.links_each
    hub = app.remember(MIRA, "Mira keeps bees.", deduplicate=False).id
    others = [
        app.remember(MIRA, f"Note {number}: {word}", deduplicate=False).id
        for number, word in enumerate(["hive", "honey", "smoker", "queen", "frame"] * limit)
    ][: limit + 1]
    for other in others[:limit]:
        app.add_link(MIRA, hub, other, weight=0.9)
    with pytest.raises(Conflict) as refused:
        app.add_link(MIRA, hub, others[limit], weight=0.5)
    assert refused.value.field == "weight"
    assert len(app.links(MIRA, hub, limit=500)) == limit


def test_where_a_memory_comes_from_cannot_be_removed(app: MemoryApp, ids: list[UUID]) -> None:
    with pytest.raises(Conflict, match="comes from"):
        app.remove_link(MIRA, f"{ids[0]}~derived_from~{ids[1]}")


def test_links_over_http(app: MemoryApp, runtime: Runtime, ids: list[UUID], api_key: str) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    drawn = client.post(f"{BASE}/links", json={"source": str(ids[0]), "target": str(ids[1])})
    assert drawn.status_code == 201 and drawn.json()["type"] == "related_to"
    listed = client.get(f"{BASE}/links", params={"memory": str(ids[1])})
    assert [link["id"] for link in listed.json()["links"]] == [drawn.json()["id"]]
    assert client.get(f"{BASE}/links").status_code == 422
    assert client.delete(f"{BASE}/links/{drawn.json()['id']}").status_code == 204
    assert client.delete(f"{BASE}/links/{drawn.json()['id']}").status_code == 404
    assert client.delete(f"{BASE}/links/nonsense").status_code == 404
