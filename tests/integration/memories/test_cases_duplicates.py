"""What became double for others: each as a rule that holds here, whoever writes and however often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any
from uuid import UUID

import all_shards
import pytest
from embedders import failing
from queries import rows
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.bench.day import day
from memory_app.db.db import transaction
from memory_app.errors import Conflict
from memory_app.main.http import create_app
from memory_app.memories.facts import add_fact
from memory_app.memories.lookup import MemoryFilter, list_memories, why
from memory_app.memories.remember import Remembered, remember
from memory_app.records.records import NewTurn, Origin, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Settings
from memory_app.tenancy.rows import names
from memory_app.turns.extract import extract_session
from memory_app.turns.record import record
from memory_app.turns.rows import sessions

SCOPE, SESSION = Scope("ada", "mira"), Scope("ada", "mira", "chat")
PROCESSES = 4
EQUAL = ["Mira likes strong black tea."] * 50
FRAMES = ("By the way, ", "As I said, ", "Honestly, ", "Again: ", "Well, ")
NEAR_EQUAL = [
    f"{frame}Mira sings in a choir on Mondays{end}"
    for frame in FRAMES
    for end in (".", "!", ", you know.", ", really.", ", of course.", "…", "!!", ", as always.", " .", "")
]
OTHER_NUMBERS = [f"Mira keeps {n} bottles of red wine in the cellar." for n in range(2, 22)]


def write_all(settings: Settings, tenant: int, texts: Sequence[str]) -> int:
    """What one process does; how many it added."""
    runtime = all_shards.at_work(build(settings))
    try:
        return len([remember(runtime, tenant, SCOPE, statement=Statement("fact", said)) for said in texts])
    finally:
        runtime.close()


def current(owner: Engine) -> dict[str, int]:
    found = rows(
        owner, "SELECT text, repeat_count FROM memories WHERE retired_at IS NULL AND valid_until IS NULL"
    )
    assert len({row.text for row in found}) == len(found)
    return {row.text: row.repeat_count for row in found}


def digest(runtime: Runtime, tenant: int, scope: Scope = SESSION) -> None:
    with transaction(runtime.engine, tenant) as connection:
        row = names.need_scope(connection, tenant, scope)
        session = sessions.find(connection, row.id, scope.session or "")
    assert session is not None
    extract_session(runtime, session.id)


@pytest.mark.slow
def test_equal_and_similar_statements_of_four_processes_count_exactly(
    runtime: Runtime, tenant: int, owner: Engine, settings: Settings
) -> None:
    texts = [said for pair in zip(EQUAL, NEAR_EQUAL, strict=True) for said in pair] + OTHER_NUMBERS
    orders = [texts, texts[::-1], texts[60:] + texts[:60], texts[60::-1] + texts[:60:-1]]
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        done = pool.map(write_all, [settings] * PROCESSES, [tenant] * PROCESSES, orders)
        assert list(done) == [len(texts)] * PROCESSES
    left = current(owner)
    tea = [count for said, count in left.items() if "tea" in said]
    choir = [count for said, count in left.items() if "choir" in said]
    wine = [count for said, count in left.items() if "wine" in said]
    assert (tea, choir, sorted(wine)) == ([200], [200], [4] * 20)


def test_the_same_turn_sent_again_is_one_turn_with_one_set_of_memories(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    turn = NewTurn(Role.USER, "I live in Lisbon these days.", idempotency_key="m-1")
    (first,) = record(runtime, tenant, SESSION, [turn])
    digest(runtime, tenant)
    (again,) = record(runtime, tenant, SESSION, [turn])
    digest(runtime, tenant)
    assert (again.id, again.duplicate) == (first.id, True)
    assert list(current(owner).values()) == [1]
    with pytest.raises(Conflict) as refused:
        record(runtime, tenant, SESSION, [replace(turn, text="I live in Porto these days.")])
    assert refused.value.field is not None and refused.value.field.endswith("idempotency_key")


class Killed(BaseException):
    """Stands for SIGKILL: nothing of the product may catch it."""


@pytest.mark.one_shard
def test_a_retry_after_a_death_keeps_the_words_of_the_first_answer(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    record(runtime, tenant, SESSION, [NewTurn(Role.USER, "I live in Lisbon these days.")])
    with pytest.raises(Killed):
        digest(replace(runtime, embedder=failing(Killed())), tenant)
    with owner.begin() as connection:
        # From now on the extractor would word it otherwise.
        connection.execute(text("UPDATE users SET name = 'somebody'"))
        connection.execute(text("UPDATE sessions SET lease_until = now() - interval '1 second'"))
    digest(runtime, tenant, Scope("ada", "somebody", "chat"))
    (said,) = current(owner)
    assert said.startswith("mira")


def test_the_same_answer_applied_twice_changes_no_count_of_memories(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (turn,) = record(runtime, tenant, SESSION, [NewTurn(Role.USER, "I live in Lisbon these days.")])
    digest(runtime, tenant)
    before = current(owner)
    reworded = Statement(
        "fact",
        "Mira's home is in Lisbon.",
        subject="mira",
        relation="lives in",
        object="Lisbon",
        origin=Origin.EXTRACTED,
        evidence=(turn.id,),
    )
    remember(runtime, tenant, SCOPE, statement=reworded)
    assert current(owner).keys() == before.keys()


def test_a_busy_day_leaves_a_few_memories_of_which_none_is_misleading(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    meant: dict[UUID, str] = {}
    for said in day(120, seed=3):
        (turn,) = record(runtime, tenant, SESSION, [NewTurn(Role.USER, said.text)])
        meant[turn.id] = said.meaning
        statement = Statement(
            "fact",
            said.text,
            subject=said.subject,
            relation=said.relation,
            object=said.object,
            origin=Origin.EXTRACTED,
            evidence=(turn.id,),
        )
        remember(runtime, tenant, SCOPE, statement=statement)
    left = list_memories(runtime, tenant, SCOPE, filters=MemoryFilter(limit=500))
    behind = [{meant[turn.id] for turn in why(runtime, tenant, memory.id).evidence} for memory in left]
    assert len(left) <= 16
    assert all(len(meanings) == 1 for meanings in behind), "never two meanings in one memory, never none"
    assert set[str]().union(*behind) == set(meant.values()), "nothing is lost"


def test_every_way_in_passes_the_same_ladder(
    runtime: Runtime, tenant: int, owner: Engine, api_key: str
) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    base = "/v1/agents/ada/users/mira"
    record(runtime, tenant, SESSION, [NewTurn(Role.USER, "I live in Lisbon these days.")])
    digest(runtime, tenant)
    fact: dict[str, Any] = {"subject": "mira", "relation": "lives_in", "object": "Lisbon"}
    ways: list[Remembered | Any] = [
        remember(
            runtime, tenant, SCOPE, statement=Statement("fact", "mira lives in Lisbon.", **fact)
        ).outcome.value,
        add_fact(runtime, tenant, SCOPE, statement=Statement("fact", "", **fact)).outcome.value,
        client.post(f"{base}/facts", json=fact).json()["outcome"],
        client.post(f"{base}/memories", json={"text": "mira lives in Lisbon.", **fact}).json()["outcome"],
        remember(
            runtime,
            tenant,
            SCOPE,
            statement=Statement("fact", "mira lives in Lisbon!", origin=Origin.IMPORTED, **fact),
        ).outcome.value,
    ]
    assert Counter(ways) == {"reinforced": len(ways)}
    assert list(current(owner).values()) == [1 + len(ways)]


def test_a_caller_may_ask_for_no_deduplication(runtime: Runtime, tenant: int, owner: Engine) -> None:
    for said in (NEAR_EQUAL[0], NEAR_EQUAL[2], NEAR_EQUAL[10]):
        remember(runtime, tenant, SCOPE, statement=Statement("fact", said), deduplicate=False)
    assert len(current(owner)) == 3
