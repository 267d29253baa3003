"""Entities: cards, merging by hand, and taking a merge back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.errors import Conflict, InvalidInput, MemoryAppError, NotFound
from memory_app.main.http import create_app
from memory_app.memories.entities import card, merge
from memory_app.memories.facts import FactQuery, find_facts
from memory_app.memories.remember import remember
from memory_app.records.records import Mention, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep.undo import undo_run

SCOPE = Scope("ada", "bob")
ENTITIES = "/v1/agents/ada/users/bob/entities"


def tell(runtime: Runtime, tenant: int, said: str, *labels: str, **fields: Any) -> UUID:
    mentions = tuple(Mention("person", label) for label in labels)
    return remember(runtime, tenant, SCOPE, statement=Statement("fact", said, mentions=mentions, **fields)).id


def stored(owner: Engine) -> list[Any]:
    with owner.connect() as connection:
        entities = connection.execute(
            text(
                """SELECT key, label, aliases, mention_count, first_seen, last_seen,
                (SELECT h.key FROM entities h WHERE h.id = e.merged_into) FROM entities e ORDER BY e.key"""
            )
        ).all()
        mentions = connection.execute(
            text(
                "SELECT m.memory_id, e.key FROM mentions m JOIN entities e ON e.id = m.entity_id ORDER BY 1, 2"
            )
        ).all()
    return [*map(tuple, entities), *map(tuple, mentions)]


def test_a_card_shows_the_strongest_facts_and_what_stands_beside_it(runtime: Runtime, tenant: int) -> None:
    tell(runtime, tenant, "José García plays chess with Ana.", "José García", "Ana", importance=4)
    tell(runtime, tenant, "José García is allergic to nuts.", "José García", importance=9)
    tell(runtime, tenant, "José García and Ana went to Rome.", "José García", "Ana", importance=5)
    found = card(runtime, tenant, SCOPE, key="person:josé_garcía")
    assert (found.entity.label, found.entity.type, found.entity.mention_count) == ("José García", "person", 3)
    assert found.facts[0].text == "José García is allergic to nuts."
    assert [(one.key, one.memories) for one in found.linked] == [("person:ana", 2)]
    assert found.entity.first_seen <= found.entity.last_seen


def test_merging_moves_the_mentions_and_the_old_key_leads_to_the_heir(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    tell(runtime, tenant, "Bobby likes tea.", "Bobby")
    tell(runtime, tenant, "Robert sings.", "Robert")
    merged = merge(runtime, tenant, SCOPE, key="person:bobby", into="person:robert")
    assert merged.card.entity.aliases == ("Bobby",)
    assert merged.card.alias_keys == ("person:bobby",)
    assert {fact.text for fact in merged.card.facts} == {"Bobby likes tea.", "Robert sings."}
    assert card(runtime, tenant, SCOPE, key="person:bobby").entity.key == "person:robert"
    later = tell(runtime, tenant, "Bobby runs marathons.", "Bobby")
    found = card(runtime, tenant, SCOPE, key="person:robert")
    assert later in {fact.id for fact in found.facts}
    assert found.entity.mention_count == 3


def test_undoing_a_merge_restores_every_row(runtime: Runtime, tenant: int, owner: Engine) -> None:
    tell(runtime, tenant, "Bobby likes tea.", "Bobby")
    tell(runtime, tenant, "Robert and Bobby sing.", "Robert", "Bobby")
    tell(runtime, tenant, "Robert swims.", "Robert")
    before = stored(owner)
    merged = merge(runtime, tenant, SCOPE, key="person:bobby", into="person:robert")
    assert stored(owner) != before
    undo_run(runtime, tenant, merged.run_id)
    assert stored(owner) == before
    with pytest.raises(Conflict, match="already"):
        undo_run(runtime, tenant, merged.run_id)


def test_a_chain_of_merges_leads_to_the_last_heir_and_undoes_from_its_end(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    for label in ("Bobby", "Robert", "Rob"):
        tell(runtime, tenant, f"{label} likes {label} tea.", label)
    before = stored(owner)
    first = merge(runtime, tenant, SCOPE, key="person:bobby", into="person:rob")
    between = stored(owner)
    second = merge(runtime, tenant, SCOPE, key="person:rob", into="person:robert")
    assert card(runtime, tenant, SCOPE, key="person:bobby").entity.key == "person:robert"
    assert set(second.card.alias_keys) == {"person:bobby", "person:rob"}
    after = stored(owner)
    with pytest.raises(Conflict, match="undo that merge first"):
        undo_run(runtime, tenant, first.run_id)
    assert stored(owner) == after, "nothing half done"
    undo_run(runtime, tenant, second.run_id)
    assert stored(owner) == between
    undo_run(runtime, tenant, first.run_id)
    assert stored(owner) == before


@pytest.mark.parametrize(
    ("key", "into", "error", "named"),
    [
        ("person:bobby", "person:bobby", InvalidInput, "into"),
        ("bobby", "person:robert", InvalidInput, "key"),
        ("person:bobby", "robert", InvalidInput, "into"),
        ("person:nobody", "person:robert", NotFound, "key"),
        ("person:bobby", "person:nobody", NotFound, "into"),
        ("person:old", "person:robert", Conflict, "key"),
        ("person:old", "person:bobby", Conflict, "key"),
        ("person:bobby", "person:old", Conflict, "into"),
    ],
)
def test_a_merge_that_makes_no_sense_is_explained_and_changes_nothing(
    runtime: Runtime, tenant: int, owner: Engine, key: str, into: str, error: type[MemoryAppError], named: str
) -> None:
    tell(runtime, tenant, "Bobby likes tea.", "Bobby")
    tell(runtime, tenant, "Robert likes Old tea.", "Robert", "Old")
    merge(runtime, tenant, SCOPE, key="person:old", into="person:robert")
    before = stored(owner)
    with pytest.raises(error) as refused:
        merge(runtime, tenant, SCOPE, key=key, into=into)
    assert refused.value.field == named
    assert stored(owner) == before


def test_of_many_merges_of_one_entity_at_once_exactly_one_is_done(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    heirs = [f"Heir {n}" for n in range(6)]
    tell(runtime, tenant, "Bobby knows all heirs.", "Bobby", *heirs)
    together = Barrier(len(heirs))

    def run(label: str) -> bool:
        together.wait()
        try:
            merge(
                runtime, tenant, SCOPE, key="person:bobby", into=f"person:{label.lower().replace(' ', '_')}"
            )
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(len(heirs)) as pool:
        assert sum(pool.map(run, heirs)) == 1


def test_facts_told_of_an_alias_follow_those_of_the_heir_in_time(runtime: Runtime, tenant: int) -> None:
    said = Mention("person", "Robert"), Mention("person", "Bobby")
    for subject, city in (("Robert", "Paris"),):
        statement = Statement(
            "fact",
            f"{subject} lives in {city}.",
            subject=subject,
            relation="lives_in",
            object=city,
            mentions=said,
        )
        remember(runtime, tenant, SCOPE, statement=statement)
    merge(runtime, tenant, SCOPE, key="person:bobby", into="person:robert")
    moved = Statement("fact", "Bobby lives in Rome.", subject="Bobby", relation="lives_in", object="Rome")
    assert remember(runtime, tenant, SCOPE, statement=moved).outcome.value == "superseded"
    for subject in ("Robert", "Bobby"):
        found = find_facts(runtime, tenant, SCOPE, query=FactQuery(subject=subject))
        assert [hit.memory.object for hit in found] == ["Rome"]


def test_an_entity_of_somebody_else_is_not_there(runtime: Runtime, tenant: int, other_tenant: int) -> None:
    tell(runtime, tenant, "Bobby likes tea.", "Bobby")
    remember(runtime, tenant, Scope("ada", "eve"), statement=Statement("fact", "Tea is nice."))
    remember(runtime, other_tenant, SCOPE, statement=Statement("fact", "Tea is nice."))
    for tenant_id, scope in ((tenant, Scope("ada", "eve")), (other_tenant, SCOPE)):
        with pytest.raises(NotFound):
            card(runtime, tenant_id, scope, key="person:bobby")


def test_over_http_entities_are_shown_merged_and_taken_apart(
    runtime: Runtime, tenant: int, api_key: str
) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    tell(runtime, tenant, "Bobby likes tea.", "Bobby")
    tell(runtime, tenant, "Robert sings.", "Robert")
    merged = client.post(f"{ENTITIES}/person:bobby/merge", json={"into": "person:robert"})
    assert merged.status_code == 200, merged.text
    assert merged.json()["card"]["aliases"] == ["Bobby"]
    assert client.get(f"{ENTITIES}/person:bobby").json()["key"] == "person:robert"
    again = client.post(f"{ENTITIES}/person:bobby/merge", json={"into": "person:robert"})
    assert (again.status_code, again.json()["error"]["field"]) == (409, "key")
    undone = client.post(f"/v1/runs/{merged.json()['run']}/undo")
    assert undone.status_code == 200
    assert undone.json()["report"]["undone_at"]
    assert client.get(f"{ENTITIES}/person:bobby").json()["key"] == "person:bobby"
    assert client.get(f"{ENTITIES}/bobby").json()["error"]["field"] == "key"
