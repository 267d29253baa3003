"""Deep synthesis: whatever a language model proposes, only what is alike is united, and all of it can be taken back."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any
from uuid import UUID

import all_shards
import pytest
from queries import rows
from sqlalchemy import Engine
from starlette.testclient import TestClient

from memory_app.agents.agents import AgentChange, change_agent
from memory_app.dispatch.job_table import JOBS
from memory_app.errors import Conflict
from memory_app.jobs import jobs
from memory_app.jobs.rows.runs import Run
from memory_app.main.http import create_app
from memory_app.memories import lookup
from memory_app.memories.remember import remember
from memory_app.providers.embedders import HashEmbedder, WordLlamaEmbedder
from memory_app.providers.embedders.embedder import Embedder
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Chat, Settings
from memory_app.sleep import synthesis, undo
from memory_app.tenancy.rows import keys
from memory_app.tenancy.rows.keys import Caller
from memory_app.testing import Rule, StubProvider
from memory_app.turns.record import record

SCOPE = Scope("ada", "Kai")
PEOPLE = ("Kai", "Kai's sister Lea", "Kai's colleague Nora", "Kai's neighbour Tom", "Kai's uncle Bert")
THINGS = (
    "is allergic to peanuts, severely",
    "rides a motorbike to the shipyard",
    "plays the cello in an old quartet",
    "plays football in a small club on Fridays",
    "drinks 2 cups of green tea before work",
    "drinks 3 cups of black coffee at work",
    "never eats mushrooms",
    "often eats mushroom soup in the canteen",
    "used to live in Ghent near the canal",
    "lives in Bruges near the canal now",
    "repairs old clocks in the cellar",
    "collects old maps of the coast",
    "is afraid of geese and of swans",
    "keeps bees behind the house",
    "learns Portuguese with an app",
    "wants to learn how to weld",
    "has a dog called Rex",
    "has a cat called Minka",
    "pays 40 euros a month for the gym",
    "pays 60 euros a month for the train",
)
AGAIN = (
    ("Kai goes sailing on the lake in the summer.", "Kai goes sailing on the lake in summer."),
    ("Kai's sister Lea plays chess.", "Kai's sister Lea plays chess in the park."),
    ("Nora bakes bread with rye flour.", "Nora often bakes bread with rye flour."),
)
TABLES = ("memories", "links", "mentions", "evidence", "entities")
COUNTERS = {"recall_count", "last_recalled", "stored_xact", "altered_xact"}


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as stub:
        yield stub


@pytest.fixture
def asking(settings: Settings, stub: StubProvider, tenant: int) -> Iterator[Runtime]:
    """The live parts with a model, for an agent that asks it."""
    chat = Chat(base_url=stub.base_url, model="large")
    runtime = all_shards.at_work(build(settings.model_copy(update={"chat": chat})))
    change = AgentChange(frozenset({"policy"}), policy={"extraction": "llm"})
    change_agent(runtime, tenant, Scope(SCOPE.agent), change=change)
    yield runtime
    runtime.close()


def keep(runtime: Runtime, tenant: int, text: str, **fields: Any) -> UUID:
    statement = Statement(fields.pop("kind", "fact"), text, **fields)
    return remember(runtime, tenant, SCOPE, statement=statement, deduplicate=False).id


def look_back(runtime: Runtime, tenant: int, **options: Any) -> Run:
    run = synthesis.ask_for(runtime, tenant, SCOPE, type="deep", **options)
    jobs.perform(runtime, run.id, JOBS)
    done = jobs.read(runtime, tenant, run.id)
    assert done.state == "done", done.reason
    return done


def answers(stub: StubProvider, **parts: Sequence[object]) -> None:
    lists: dict[str, object] = {"consolidated": [], "patterns": [], "links": []}
    stub.follow(Rule(answer={**lists, **parts}))


def references(body: Mapping[str, Any]) -> dict[str, str]:
    """The memories of a request by their texts."""
    lines = str(body["messages"][-1]["content"]).splitlines()
    memories = [line for line in lines if line.startswith("[m")]
    return {line.rpartition("| ")[2]: line[1 : line.index("]")] for line in memories}


def everything(owner: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, without how often they were recalled and in which transactions they changed."""
    state: dict[str, list[tuple[Any, ...]]] = {}
    for table in TABLES:
        listed = [row._mapping for row in rows(owner, f"SELECT * FROM {table}")]
        columns = [[value for name, value in row.items() if name not in COUNTERS] for row in listed]
        state[table] = sorted(map(tuple, columns), key=repr)
    return state


def current(owner: Engine) -> list[str]:
    return [
        row.text for row in rows(owner, "SELECT text FROM memories WHERE retired_at IS NULL ORDER BY text")
    ]


# --- a hostile model ------------------------------------------------------------------------------------------


def hostile_answer(body: Mapping[str, Any]) -> object:
    """Unites, joins and links at random, in sentences of many sorts."""
    chance = random.Random(42)
    by_text = references(body)
    texts = list(by_text)
    unions: list[object] = []
    for first, second in AGAIN:
        unions.append({"text": max(first, second, key=len), "memories": [by_text[first], by_text[second]]})
    for _ in range(300):
        chosen = chance.sample(texts, chance.choice((2, 2, 2, 3, 5)))
        joined = " and ".join(text.rstrip(".") for text in chosen) + "."
        sentence = chance.choice((joined, joined, max(chosen, key=len), chosen[0], "Kai has things."))
        unions.append({"text": sentence, "memories": [by_text[text] for text in chosen]})
    pairs = [chance.sample(list(by_text.values()), 2) for _ in range(30)]
    patterns = [{"text": "Kai's days are full.", "memories": pair, "feeling": None} for pair in pairs]
    found = [{"source": one, "target": two, "type": "causes", "weight": 1} for one, two in pairs]
    return {"consolidated": unions, "patterns": patterns, "links": found}


@pytest.mark.parametrize("embedder", [HashEmbedder(256), WordLlamaEmbedder(256)], ids=["hash", "wordllama"])
def test_a_model_that_unites_at_random_destroys_nothing(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine, embedder: Embedder
) -> None:
    # given 200 memories, of which three pairs say the same and every tenth is pinned
    runtime = replace(asking, embedder=embedder)
    texts = [f"{person} {thing}." for person in PEOPLE for thing in THINGS]
    texts += [f"{person} once {thing}." for person in PEOPLE for thing in THINGS]
    texts = [*texts[: 200 - 2 * len(AGAIN)], *(text for pair in AGAIN for text in pair)]
    for place, text in enumerate(texts):
        keep(runtime, tenant, text, pinned=place % 10 == 0 and place < 190)
    before = everything(owner)
    # when a model proposes 300 unions of them at random, besides those of the pairs
    stub.follow(Rule(answer=hostile_answer))
    done = look_back(runtime, tenant, max_memories=200)
    # then memories were united that say the same, and no others
    united = rows(
        owner,
        "SELECT p.text, p.pinned, h.text AS heir FROM memories p"
        " JOIN memories h ON h.scope_id = p.scope_id AND h.id = p.successor",
    )
    assert done.report["consolidated"] >= len(AGAIN), done.report["made"]["dropped"]
    assert not any(row.pinned for row in united)
    for heir in {row.heir for row in united}:
        parts = [row.text for row in united if row.heir == heir]
        assert all(say_the_same(*pair) for pair in combinations(parts, 2)), parts
    # and what was refused is counted
    assert sum(done.report["made"]["dropped"].values()) > 250
    # and it can be taken back to the last column
    undo.undo_run(runtime, tenant, done.id)
    assert everything(owner) == before


def say_the_same(first: str, second: str) -> bool:
    """As the texts of these tests are made: a known pair, or one thing of one person with "once" and without."""
    return {first, second} in map(set, AGAIN) or first.replace(" once", "") == second.replace(" once", "")


PEANUTS, MOTORBIKE = "Kai is allergic to peanuts, severely.", "Kai rides a motorbike."


@pytest.mark.parametrize("pinned", [True, False])
@pytest.mark.parametrize("text", ["Kai has things.", f"{PEANUTS[:-1]} and {MOTORBIKE[4:]}", PEANUTS])
def test_memories_that_are_not_alike_are_not_united(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine, text: str, pinned: bool
) -> None:
    for said in (PEANUTS, MOTORBIKE):
        keep(asking, tenant, said, pinned=pinned)
    answers(stub, consolidated=[{"text": text, "memories": ["m1", "m2"]}])
    assert look_back(asking, tenant).report["consolidated"] == 0
    assert current(owner) == [PEANUTS, MOTORBIKE]


@pytest.mark.parametrize("kind", ["core", "capability"])
def test_who_an_agent_is_is_not_reworded(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine, kind: str
) -> None:
    texts = ("Ada never gives medical advice.", "Ada never gives medical advice to anybody.")
    for said in texts:
        keep(asking, tenant, said, kind=kind)
    answers(stub, consolidated=[{"text": texts[1], "memories": ["m1", "m2"]}])
    assert look_back(asking, tenant).report["consolidated"] == 0
    assert set(current(owner)) == set(texts)


# --- what takes effect ----------------------------------------------------------------------------------------

CHESS = AGAIN[1]
UNION = {"text": "Kai's sister Lea plays chess in the park.", "memories": ["m1", "m2"]}
PATTERN = {"text": "Lea's chess keeps coming up.", "memories": ["m1", "m3"], "feeling": "joy"}
LINK = {"source": "m1", "target": "m3", "type": "causes", "weight": 0.7}


@pytest.fixture
def chess(asking: Runtime, stub: StubProvider, tenant: int) -> list[UUID]:
    """Three memories, of which two say the same, and a model that sees it; the last kept is shown as m1."""
    texts = ("Lea won a chess tournament.", *CHESS)
    answers(stub, consolidated=[UNION], patterns=[PATTERN], links=[LINK])
    return [keep(asking, tenant, text, tags=("chess",), importance=7) for text in texts]


def test_unions_patterns_and_links_take_effect_and_are_explained(
    asking: Runtime, tenant: int, owner: Engine, chess: list[UUID]
) -> None:
    done = look_back(asking, tenant)
    report = done.report
    assert (report["success"], report["applied"], report["agent"], report["user"]) == (
        True,
        True,
        "ada",
        "Kai",
    )
    assert (report["consolidated"], report["patterns"], report["links"], report["changes"]) == (1, 1, 1, 3)
    assert sorted(report["unions"][0]["members"]) == sorted(map(str, chess[1:]))
    assert set(current(owner)) == {UNION["text"], PATTERN["text"], "Lea won a chess tournament."}
    (union,) = rows(
        owner,
        "SELECT id, tags, importance, synthesis_type FROM memories WHERE run_id IS NOT NULL AND kind = 'fact'",
    )
    assert (union.tags, union.importance, union.synthesis_type) == (["chess"], 8, "consolidation")
    why = lookup.why(asking, tenant, union.id)
    assert {parent.memory.text for parent in why.parents} == set(CHESS)
    assert [run.id for run in why.runs] == [done.id]
    retired = rows(owner, "SELECT retired_reason, successor FROM memories WHERE retired_at IS NOT NULL")
    assert [(row.retired_reason, row.successor) for row in retired] == [("merged", union.id)] * 2
    # what was united is linked as the row it became
    (link,) = rows(owner, "SELECT source_id, target_id FROM links WHERE type = 'causes'")
    assert (link.source_id, link.target_id) == (union.id, chess[0])


def test_a_dry_run_reports_the_same_and_changes_nothing(
    asking: Runtime, tenant: int, owner: Engine, chess: list[UUID]
) -> None:
    before = everything(owner)
    tried = look_back(asking, tenant, dry_run=True)
    assert everything(owner) == before
    with pytest.raises(Conflict, match="dry run"):
        undo.undo_run(asking, tenant, tried.id)
    done = look_back(asking, tenant)
    differing = {name for name in done.report if done.report[name] != tried.report[name]}
    assert differing <= {"made"}


def test_an_undo_brings_back_every_column_of_every_row(
    asking: Runtime, tenant: int, owner: Engine, chess: list[UUID]
) -> None:
    record(asking, tenant, replace(SCOPE, session="s"), [NewTurn(Role.USER, "Lea beat me at chess again.")])
    before = everything(owner)
    done = look_back(asking, tenant)
    assert everything(owner) != before
    undo.undo_run(asking, tenant, done.id)
    assert everything(owner) == before
    with pytest.raises(Conflict, match="undone already"):
        undo.undo_run(asking, tenant, done.id)


def test_an_undo_names_what_stands_in_its_way(
    asking: Runtime, tenant: int, owner: Engine, chess: list[UUID]
) -> None:
    done = look_back(asking, tenant)
    (union,) = rows(owner, "SELECT id FROM memories WHERE run_id IS NOT NULL AND kind = 'fact'")
    lookup.pin(asking, tenant, union.id, pinned=True)
    with pytest.raises(Conflict, match="was pinned or unpinned since"):
        undo.undo_run(asking, tenant, done.id)
    lookup.pin(asking, tenant, union.id, pinned=False)
    undo.undo_run(asking, tenant, done.id)
    assert len(current(owner)) == 3


def test_runs_of_earlier_releases_say_that_they_cannot_be_undone(
    asking: Runtime, tenant: int, owner: Engine, chess: list[UUID]
) -> None:
    done = look_back(asking, tenant)
    old = '{"success": true, "consolidated": 1, "patterns": 0, "links": 0}'
    with owner.begin() as connection:
        connection.exec_driver_sql("DELETE FROM images")
        connection.exec_driver_sql("UPDATE runs SET report = %s WHERE id = %s", (old, done.id))
    with pytest.raises(Conflict, match="too long ago"):
        undo.undo_run(asking, tenant, done.id)


def test_what_changed_while_the_model_worked_is_left_alone(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine, chess: list[UUID]
) -> None:
    def pin_then_answer(_: object) -> object:
        lookup.pin(asking, tenant, chess[1], pinned=True)
        return {"consolidated": [UNION], "patterns": [], "links": []}

    stub.follow(Rule(answer=pin_then_answer))
    assert look_back(asking, tenant).report["consolidated"] == 0
    assert len(current(owner)) == 3


def test_over_http_a_deep_synthesis_can_be_tried_and_undone(
    asking: Runtime, tenant: int, owner: Engine, chess: list[UUID]
) -> None:
    path = "/v1/agents/ada/users/Kai/synthesis"
    anyone = Caller(0, tenant, "acme", frozenset(keys.RIGHTS))
    with TestClient(create_app(asking, anonymous=anyone), base_url="http://127.0.0.1") as client:
        asked = client.post(path, json={"type": "deep", "dry_run": True})
        assert asked.status_code == 202, asked.text
        refused = client.post(path, json={"type": "session", "session": "s", "dry_run": True})
        assert (refused.status_code, refused.json()["error"]["field"]) == (422, "dry_run")
        done = look_back(asking, tenant)
        assert client.post(f"/v1/runs/{done.id}/undo").status_code == 200
    assert len(current(owner)) == 3
