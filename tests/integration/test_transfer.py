"""Snapshots and checkpoints: an empty scope filled from one is the same scope, and nothing of a wrong one is stored."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.domain.records import Mention, NewTurn, Role, Statement
from memory_app.domain.scope import Scope
from memory_app.domain.snapshot import canonical_meta
from memory_app.errors import Conflict, InvalidInput
from memory_app.http.app import create_app
from memory_app.runtime import Runtime
from memory_app.services import finder, sleep, transfer
from memory_app.services.job_table import JOBS
from memory_app.services.jobs import perform
from memory_app.services.listing import latest_turns, stats
from memory_app.services.recall import RecallQuery, recall
from memory_app.services.record import record
from memory_app.services.remember import remember

SCOPE = Scope("ada", "bob")
CHAT = Scope("ada", "bob", "chat")
QUESTIONS = ("Where does Bob live?", "With whom does Bob go sailing?", "What is Rex?")


@pytest.fixture
def lived(runtime: Runtime, tenant: int) -> dict[str, Any]:
    """The snapshot of a scope in which much has happened."""
    record(
        runtime,
        tenant,
        CHAT,
        [
            NewTurn(Role.USER, "I live in Paris these days."),
            NewTurn(Role.USER, "I have a dog named Rex. Where did I leave his lead?"),
            NewTurn(Role.ASSISTANT, "You left it on the hook beside the door."),
        ],
    )
    finder.drain(runtime)
    for words in ("in the summer", "in summer", "out of town in the summer"):
        said = Statement(
            "fact",
            f"Bob goes sailing on the lake with his cousin {words}.",
            mentions=(Mention("concept", "Sailing"),),
        )
        remember(runtime, tenant, SCOPE, said, deduplicate=False)
    remember(runtime, tenant, CHAT, Statement("fact", "Bob is tired today."))
    perform(runtime, sleep.ask(runtime, tenant, SCOPE).id, JOBS)
    made = transfer.export(runtime, tenant, SCOPE)
    return json.loads(json.dumps(made))  # type: ignore[no-any-return]


def ids_of(recalled: Any) -> list[tuple[Any, str]]:
    return [(hit.id, f"{hit.score:.6f}") for hit in recalled.memories]


def count(owner: Engine, tenant: int) -> dict[str, int]:
    with owner.connect() as connection:
        return {
            table: connection.execute(
                text(f"SELECT count(*) FROM {table} WHERE tenant_id = :tenant"), {"tenant": tenant}
            ).scalar_one()
            for table in (
                "memories",
                "links",
                "entities",
                "mentions",
                "evidence",
                "sessions",
                "turns",
                "scopes",
                "terms",
            )
        }


def test_import_into_an_empty_system_gives_equal_ids_counts_links_and_results(
    runtime: Runtime, tenant: int, other_tenant: int, owner: Engine, lived: dict[str, Any]
) -> None:
    transfer.load(runtime, other_tenant, SCOPE, lived)

    again = json.loads(json.dumps(transfer.export(runtime, other_tenant, SCOPE)))
    assert {k: v for k, v in again.items() if k != "created_at"} == {
        k: v for k, v in lived.items() if k != "created_at"
    }
    mine, others = count(owner, tenant), count(owner, other_tenant)
    assert others == mine
    assert stats(runtime, other_tenant, SCOPE) == stats(runtime, tenant, SCOPE)
    for question in QUESTIONS:
        asked = RecallQuery(question)
        assert ids_of(recall(runtime, other_tenant, SCOPE, asked)) == ids_of(
            recall(runtime, tenant, SCOPE, asked)
        )


def test_what_is_hot_is_rebuilt_after_an_import(
    runtime: Runtime, tenant: int, other_tenant: int, lived: dict[str, Any]
) -> None:
    transfer.load(runtime, other_tenant, SCOPE, lived)
    for whose in (tenant, other_tenant):
        turns = latest_turns(runtime, whose, CHAT, limit=5)
        assert [turn.seq for turn in turns] == [1, 2, 3]
    record(runtime, other_tenant, CHAT, [NewTurn(Role.USER, "I am back again, hello there.")])
    assert latest_turns(runtime, other_tenant, CHAT, limit=1)[0].seq == 4


def broken(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def apply(snapshot: dict[str, Any]) -> dict[str, Any]:
        changed = copy.deepcopy(snapshot)
        change(changed)
        return changed

    return apply


def _with_hash(snapshot: dict[str, Any]) -> None:
    snapshot["canonical"] = canonical_meta(snapshot["nodes"])


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (broken(lambda s: s.update(format="zip")), "format"),
        (broken(lambda s: s.update(version=2)), "version"),
        (broken(lambda s: s["embedder"].update(model="minilm-384")), "embedder.model"),
        (broken(lambda s: s["embedder"].update(dimensions=128)), "embedder.dimensions"),
        (broken(lambda s: s["canonical"].update(version=99)), "canonical.version"),
        (broken(lambda s: s["nodes"].pop()), "canonical.hash"),
        (broken(lambda s: s["nodes"][0].update(text="Somebody else.")), "nodes[0].canonical_key"),
        (broken(lambda s: s["nodes"][0].update(id="one")), "nodes[0].id"),
        (broken(lambda s: s["nodes"][0].update(kind="gossip")), "nodes[0].kind"),
        (broken(lambda s: s["links"][0].update(target_id=str(UUID(int=7)))), "links[0].target_id"),
        (broken(lambda s: s["evidence"][0].update(turn_id=str(UUID(int=7)))), "evidence[0].turn_id"),
        (broken(lambda s: s["mentions"][0].update(entity="person:nobody")), "mentions[0].entity"),
        (broken(lambda s: s["turns"][0].update(session="elsewhere")), "turns[0].session"),
        (broken(lambda s: s.pop("links")), "links"),
        (broken(lambda s: s["nodes"][0].update(importance=99)), "nodes"),
        (broken(lambda s: s["nodes"][0].update(embedding="[1,2,3]")), "nodes"),
        (broken(lambda s: s["turns"][0].update(at="no time at all")), "turns"),
    ],
)
def test_what_is_wrong_with_a_snapshot_is_named_and_nothing_is_imported(
    runtime: Runtime,
    other_tenant: int,
    owner: Engine,
    lived: dict[str, Any],
    change: Callable[[dict[str, Any]], dict[str, Any]],
    field: str,
) -> None:
    with pytest.raises(InvalidInput) as refused:
        transfer.load(runtime, other_tenant, SCOPE, change(lived))
    assert refused.value.field == field
    assert "nothing was imported" in refused.value.message
    assert set(count(owner, other_tenant).values()) == {0}


def test_a_scope_that_holds_something_is_not_imported_into(
    runtime: Runtime, tenant: int, other_tenant: int, lived: dict[str, Any]
) -> None:
    remember(runtime, other_tenant, SCOPE, Statement("fact", "Bob likes tea."))
    with pytest.raises(Conflict, match="not empty"):
        transfer.load(runtime, other_tenant, SCOPE, lived)
    with pytest.raises(Conflict, match="in this tenant already"):
        transfer.load(runtime, tenant, Scope("ada", "copy"), lived)


def test_a_snapshot_cannot_name_another_tenant_or_scope(
    runtime: Runtime, tenant: int, other_tenant: int, owner: Engine, lived: dict[str, Any]
) -> None:
    before = count(owner, tenant)
    for node in lived["nodes"]:
        node |= {"tenant_id": tenant, "scope_id": 1}
    transfer.load(runtime, other_tenant, SCOPE, lived)
    assert count(owner, tenant) == before


def test_a_checkpoint_keeps_the_strongest_and_can_be_imported(
    runtime: Runtime, tenant: int, other_tenant: int, lived: dict[str, Any]
) -> None:
    made = transfer.make_checkpoint(runtime, tenant, SCOPE, most=2)
    assert made.nodes == 2
    assert [row.id for row in transfer.list_checkpoints(runtime, tenant, SCOPE)] == [made.id]
    content = transfer.read_checkpoint(runtime, tenant, SCOPE, made.id)
    assert content["embedder"]["model"] == runtime.embedder.model
    transfer.load(runtime, other_tenant, SCOPE, content)
    assert sum(stats(runtime, other_tenant, SCOPE).memories.values()) == 2


def test_transfer_over_http(
    runtime: Runtime, tenant: int, owner: Engine, api_key: str, lived: dict[str, Any]
) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    base = "/v1/agents/ada/users/bob"
    exported = client.get(f"{base}/export")
    assert exported.status_code == 200
    assert len(exported.json()["nodes"]) == len(lived["nodes"])
    assert client.post(f"{base}/import", json=exported.json()).status_code == 409
    refused = client.post("/v1/agents/ada/users/new/import", json=exported.json() | {"version": 7})
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, "version")
    made = client.post(f"{base}/checkpoints", json={"most": 3})
    assert (made.status_code, made.json()["nodes"]) == (201, 3)
    (listed,) = client.get(f"{base}/checkpoints").json()["checkpoints"]
    assert listed["id"] == made.json()["id"]
    assert len(client.get(f"{base}/checkpoints/{listed['id']}").json()["nodes"]) == 3
    with owner.begin() as connection:
        connection.execute(text("DELETE FROM scopes"))
    assert client.post("/v1/agents/eva/users/bob/import", json=exported.json()).status_code == 200
    assert len(client.get("/v1/agents/eva/users/bob/memories").json()["memories"]) >= 3
