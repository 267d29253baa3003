"""Snapshots and checkpoints: an empty scope filled from one is the same scope, and nothing of a wrong one is stored."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.agents.agents import AgentChange, change_agent
from memory_app.db.db import transaction
from memory_app.dispatch import finder
from memory_app.dispatch.job_table import JOBS
from memory_app.errors import Conflict, InvalidInput, TooLarge
from memory_app.jobs import schedule
from memory_app.jobs.jobs import perform
from memory_app.main.http import create_app
from memory_app.memories.remember import remember
from memory_app.recall.recall import RecallQuery, recall
from memory_app.records.records import Mention, NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import cycle
from memory_app.transfer import snapshots as transfer
from memory_app.transfer.rows import snapshots
from memory_app.transfer.snapshot_rows import FIELDS
from memory_app.turns import index
from memory_app.turns.record import record
from memory_app.turns.rows import index_work
from memory_app.turns.statistics import stats
from memory_app.turns.stream import latest_turns

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
        remember(runtime, tenant, SCOPE, statement=said, deduplicate=False)
    remember(runtime, tenant, CHAT, statement=Statement("fact", "Bob is tired today."))
    perform(runtime, cycle.ask(runtime, tenant, SCOPE).id, JOBS)
    made = transfer.export(runtime, tenant, SCOPE)
    return json.loads(json.dumps(made))  # type: ignore[no-any-return]


def ids_of(recalled: Any) -> list[tuple[Any, str]]:
    return [(hit.id, f"{hit.score:.6f}") for hit in recalled.memories]


def set_agent(runtime: Runtime, tenant: int, **parts: Any) -> None:
    change_agent(runtime, tenant, Scope("ada"), change=AgentChange(**parts, named=frozenset(parts)))


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
                "agents",
                "users",
                "schedules",
                "speakers",
                "scope_models",
            )
        }


def test_import_into_an_empty_system_keeps_ids_counts_links_and_results(
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
        assert ids_of(recall(runtime, other_tenant, SCOPE, query=asked)) == ids_of(
            recall(runtime, tenant, SCOPE, query=asked)
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


def counted(snapshot: dict[str, Any], name: str, rows: list[Any]) -> dict[str, Any]:
    """The snapshot with other rows and the count that belongs to them."""
    snapshot[name], snapshot["counts"][name] = rows, len(rows)
    return snapshot


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(depth):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (broken(lambda s: s.update(format="zip")), "format"),
        (broken(lambda s: s.update(version=2)), "version"),
        (broken(lambda s: s["embedder"].update(model="minilm-384")), "embedder.model"),
        (broken(lambda s: s["embedder"].update(dimensions=128)), "embedder.dimensions"),
        (broken(lambda s: s["canonical"].update(version=99)), "canonical.version"),
        (broken(lambda s: s["nodes"].pop()), "counts.nodes"),
        (broken(lambda s: s["links"].pop()), "counts.links"),
        (broken(lambda s: s["turns"].clear()), "counts.turns"),
        (broken(lambda s: s["evidence"].append(s["evidence"][0])), "counts.evidence"),
        (broken(lambda s: s["counts"].pop("mentions")), "counts.mentions"),
        (broken(lambda s: s.pop("counts")), "counts"),
        (broken(lambda s: counted(s, "nodes", s["nodes"][:-1])), "canonical.hash"),
        (
            broken(lambda s: counted(s, "mentions", [*s["mentions"], s["mentions"][0]])),
            "mentions[PLACE].memory_id",
        ),
        (broken(lambda s: s["nodes"].insert(0, "a node")), "nodes[0]"),
        (broken(lambda s: s.pop("scope")), "scope"),
        (broken(lambda s: s["scope"].update(is_seeded=1)), "scope.is_seeded"),
        (broken(lambda s: s["scope"].update(agent=["ada"])), "scope.agent"),
        (broken(lambda s: s["nodes"][0].pop("embedding_model")), "nodes[0].embedding_model"),
        (broken(lambda s: s["turns"][0].pop("embedding_model")), "turns[0].embedding_model"),
        (broken(lambda s: s["nodes"][0].update(kind=["fact"])), "nodes[0].kind"),
        (broken(lambda s: s["entities"][0].update(key={"a": 1})), "entities[0].key"),
        (broken(lambda s: s["sessions"][0].update(name=[])), "sessions[0].name"),
        (broken(lambda s: s["mentions"][0].update(entity=[])), "mentions[0].entity"),
        (broken(lambda s: s["nodes"][0].update(successor=s["nodes"][0]["id"])), "nodes[0].successor"),
        (
            broken(lambda s: s["entities"][0].update(merged_into=s["entities"][0]["key"])),
            "entities[0].merged_into",
        ),
        (broken(lambda s: s["sessions"][0].update(next_seq=2, extracted_seq=0)), "turns[1].seq"),
        (broken(lambda s: s["nodes"][0].update(emotional_state={"mood": 1})), "nodes[0].emotional_state"),
        (broken(lambda s: s["turns"][0].update(text="cut off \0 here")), "turns[0].text"),
        (broken(lambda s: s["turns"][0].update(metadata=nested(5_000))), "turns[0].metadata"),
        (broken(lambda s: s["nodes"][0].update(valid_until="0999-01-01T00:00:00Z")), "nodes"),
        (broken(lambda s: s["nodes"][0].update(text="Somebody else.")), "nodes[0].canonical_key"),
        (broken(lambda s: s["nodes"][0].update(id="one")), "nodes[0].id"),
        (broken(lambda s: s["nodes"][0].update(kind="gossip")), "nodes[0].kind"),
        (broken(lambda s: s["links"][0].update(target_id=str(UUID(int=7)))), "links[0].target_id"),
        (broken(lambda s: s["evidence"][0].update(turn_id=str(UUID(int=7)))), "evidence[0].turn_id"),
        (broken(lambda s: s["mentions"][0].update(entity="person:nobody")), "mentions[0].entity"),
        (broken(lambda s: s["turns"][0].update(session="elsewhere")), "turns[0].session"),
        (broken(lambda s: s.pop("links")), "links"),
        (broken(lambda s: s["nodes"][0].update(importance=99)), "nodes[0].importance"),
        (broken(lambda s: s["nodes"][0].update(embedding="[1,2,3]")), "nodes[0].embedding"),
        (broken(lambda s: s["turns"][0].update(at="no time at all")), "turns[0].at"),
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
    assert refused.value.field == field.replace("PLACE", str(len(lived["mentions"])))
    assert "nothing was imported" in refused.value.message
    assert set(count(owner, other_tenant).values()) == {0}


WRONG: tuple[Any, ...] = (
    [],
    ["a"],
    {},
    {"a": 1},
    -1,
    10**30,
    0.5,
    True,
    None,
    "",
    "a",
    "word " * 40_000,
    "\0",
)
DROPPED = object()


def mutations(lived: dict[str, Any], replacements: Sequence[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each field of each list, and each part beside the lists, dropped and replaced; and the path of the change."""
    paths: list[tuple[str | int, ...]] = [(part,) for part in lived]
    paths += [(part, inner) for part in ("scope", "embedder", "canonical", "counts") for inner in lived[part]]
    paths += [
        (name, len(field) % len(lived[name]), field) for name, fields in FIELDS.items() for field in fields
    ]
    for path in paths:
        # A field of a later release may be missing.
        is_later = path[0] in FIELDS and path[-1] in FIELDS[path[0]] and FIELDS[path[0]][path[-1]].later
        for replacement in replacements if is_later else (DROPPED, *replacements):
            changed = copy.deepcopy(lived)
            at: Any = changed
            for part in path[:-1]:
                at = at[part]
            if replacement is DROPPED:
                del at[path[-1]]
            else:
                at[path[-1]] = replacement
            said = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)[1:]
            yield f"{said} {'dropped' if replacement is DROPPED else repr(replacement)[:30]}", changed


def test_a_table_says_what_every_row_of_an_export_holds(lived: dict[str, Any]) -> None:
    for name, fields in FIELDS.items():
        assert lived[name], f"the example has rows of {name}"
        assert {key for row in lived[name] for key in row} == set(fields)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_missing_or_wrong_field_is_named_or_the_scope_stays_readable(
    runtime: Runtime, tenant: int, other_tenant: int, owner: Engine, lived: dict[str, Any]
) -> None:
    nothing, mine = count(owner, other_tenant), count(owner, tenant)
    for said, changed in mutations(lived, WRONG):
        try:
            transfer.load(runtime, other_tenant, SCOPE, changed)
        except InvalidInput as error:
            assert error.field, said
            assert count(owner, other_tenant) == nothing, said
            assert error.field.partition("[")[0].partition(".")[0] in (*lived, "snapshot"), said
            continue
        assert not said.endswith("dropped"), said
        transfer.export(runtime, other_tenant, SCOPE)
        recall(runtime, other_tenant, SCOPE, query=RecallQuery(QUESTIONS[0]))
        record(runtime, other_tenant, CHAT, [NewTurn(Role.USER, "I am back again, hello there.")])
        with owner.begin() as connection:
            for table in ("scopes", "agents", "users"):
                connection.execute(
                    text(f"DELETE FROM {table} WHERE tenant_id = :tenant"), {"tenant": other_tenant}
                )
    assert count(owner, tenant) == mine


def test_a_turn_exported_during_its_indexing_is_indexed_after_the_import(
    runtime: Runtime, tenant: int, other_tenant: int
) -> None:
    record(runtime, tenant, CHAT, [NewTurn(Role.USER, "I keep bees.")])
    with transaction(runtime.engine, None) as connection:
        assert index_work.claim(connection, batch=1, lease=timedelta(seconds=45))
    transfer.load(runtime, other_tenant, SCOPE, transfer.export(runtime, tenant, SCOPE))
    assert index.index_turns(runtime).indexed == 1


def test_a_row_after_the_one_it_leads_to_is_imported_whatever_their_order(
    runtime: Runtime, other_tenant: int, owner: Engine, lived: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "BATCH_CHARS", 1)
    lived["nodes"].sort(key=lambda node: node["successor"] is None)
    assert lived["nodes"][0]["successor"] is not None
    transfer.load(runtime, other_tenant, SCOPE, lived)
    assert count(owner, other_tenant)["memories"] == len(lived["nodes"])


def test_what_an_export_does_not_give_is_not_imported(
    runtime: Runtime, tenant: int, other_tenant: int, owner: Engine, lived: dict[str, Any]
) -> None:
    with owner.connect() as connection:
        run = (
            connection.execute(text("SELECT id FROM runs WHERE tenant_id = :t"), {"t": tenant})
            .scalars()
            .first()
        )
    for node in lived["nodes"]:
        node["run_id"] = str(run)
    transfer.load(runtime, other_tenant, SCOPE, lived)
    with owner.connect() as connection:
        made_by = text("SELECT count(*) FROM memories WHERE tenant_id = :t AND run_id IS NOT NULL")
        assert connection.execute(made_by, {"t": other_tenant}).scalar_one() == 0


def test_what_was_summed_up_of_a_session_is_not_summed_up_again(
    runtime: Runtime, other_tenant: int, lived: dict[str, Any]
) -> None:
    lived["sessions"][0] |= {"synthesized_seq": 2, "summary_id": lived["nodes"][0]["id"]}
    transfer.load(runtime, other_tenant, SCOPE, lived)
    assert transfer.export(runtime, other_tenant, SCOPE)["sessions"] == lived["sessions"]


def test_the_periodic_jobs_of_an_imported_scope_come_round(
    runtime: Runtime, tenant: int, other_tenant: int, owner: Engine, lived: dict[str, Any]
) -> None:
    transfer.load(runtime, other_tenant, SCOPE, lived)
    with owner.connect() as connection:
        due = text("SELECT job FROM schedules WHERE tenant_id = :tenant AND due_at IS NOT NULL ORDER BY job")
        jobs = connection.execute(due, {"tenant": other_tenant}).scalars().all()
    assert set(jobs) == {periodic.job for periodic in schedule.periodic_jobs(runtime)}


@pytest.mark.parametrize(("limit", "said"), [("max_memories", "current memories"), ("max_links", "links")])
def test_a_snapshot_above_the_ceiling_is_refused_and_the_limit_named(
    runtime: Runtime, other_tenant: int, owner: Engine, lived: dict[str, Any], limit: str, said: str
) -> None:
    current = sum(node["retired_at"] is None for node in lived["nodes"])
    found = {"max_memories": current, "max_links": len(lived["links"])}[limit]
    set_agent(runtime, other_tenant, policy={limit: found - 1})
    before = count(owner, other_tenant)
    with pytest.raises(TooLarge, match=f"{found} {said}.* {found - 1};.*{limit}"):
        transfer.load(runtime, other_tenant, SCOPE, lived)
    assert count(owner, other_tenant) == before
    set_agent(runtime, other_tenant, policy={limit: found})
    transfer.load(runtime, other_tenant, SCOPE, lived)


@pytest.mark.parametrize("is_whole", [True, False])
def test_default_memories_follow_a_partial_import_and_not_a_full_one(
    runtime: Runtime, tenant: int, other_tenant: int, lived: dict[str, Any], is_whole: bool
) -> None:
    given = lived
    if not is_whole:
        made = transfer.make_checkpoint(runtime, tenant, SCOPE, most=2)
        given = transfer.read_checkpoint(runtime, tenant, SCOPE, made.id)
    set_agent(runtime, other_tenant, default_memories=[{"text": "Ada never lies.", "kind": "core"}])
    transfer.load(runtime, other_tenant, SCOPE, given)
    remember(runtime, other_tenant, SCOPE, statement=Statement("fact", "Bob likes tea."))
    texts = [node["text"] for node in transfer.export(runtime, other_tenant, SCOPE)["nodes"]]
    assert ("Ada never lies." in texts) is not is_whole


def test_a_scope_that_holds_something_is_not_imported_into(
    runtime: Runtime, tenant: int, other_tenant: int, lived: dict[str, Any]
) -> None:
    remember(runtime, other_tenant, SCOPE, statement=Statement("fact", "Bob likes tea."))
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
