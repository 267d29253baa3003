"""Where a memory comes from and what became of it: evidence, parents, jobs, versions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.errors import NotFound
from memory_app.main.http import create_app
from memory_app.memories.lookup import MemoryFilter, list_memories, versions, why
from memory_app.memories.remember import remember
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.extract import extract_session
from memory_app.turns.extractor import RULES
from memory_app.turns.record import record

SCOPE, SESSION = Scope("ada", "mira"), Scope("ada", "mira", "chat")
SHORT = "Mira enjoys quiet evening walks along the river with her old dog."
LONG = "Mira really enjoys quiet evening walks along the river with her old dog."


def home(runtime: Runtime, tenant: int, city: str, since: int, **fields: Any) -> UUID:
    start = datetime(since, 1, 1, tzinfo=UTC)
    parts: dict[str, Any] = {
        "subject": "Mira",
        "relation": "lives_in",
        "object": city,
        "valid_from": start,
    } | fields
    return remember(runtime, tenant, SCOPE, statement=Statement("fact", f"Mira lives in {city}.", **parts)).id


def test_versions_are_the_chain_of_successors_whichever_row_is_asked_for(
    runtime: Runtime, tenant: int
) -> None:
    chain = [
        home(runtime, tenant, city, year)
        for city, year in (("Porto", 2018), ("Rome", 2020), ("Lisbon", 2022))
    ]
    remember(runtime, tenant, SCOPE, statement=Statement("fact", "Mira keeps bees."))
    for memory_id in chain:
        found = versions(runtime, tenant, memory_id)
        assert [memory.id for memory in found] == chain
        assert [memory.successor for memory in found] == [*chain[1:], None]
    with pytest.raises(NotFound):
        versions(runtime, tenant, uuid4())


def test_versions_of_a_merged_memory_are_its_parts_and_the_whole(runtime: Runtime, tenant: int) -> None:
    remember(runtime, tenant, SCOPE, statement=Statement("fact", SHORT))
    merged = remember(runtime, tenant, SCOPE, statement=Statement("fact", LONG))
    assert merged.outcome.value == "merged"
    found = versions(runtime, tenant, merged.id)
    assert [(memory.text, memory.retired_reason) for memory in found] == [
        (SHORT, "merged"),
        (LONG, "merged"),
        (LONG, None),
    ]


def test_a_listing_shows_history_on_request_and_names_each_successor(
    runtime: Runtime, tenant: int, api_key: str
) -> None:
    old, new = home(runtime, tenant, "Porto", 2018), home(runtime, tenant, "Lisbon", 2022)
    assert [m.id for m in list_memories(runtime, tenant, SCOPE, filters=MemoryFilter())] == [new]
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    path = "/v1/agents/ada/users/mira/memories"
    rows = client.get(path, params={"history": "true"}).json()["memories"]
    assert [(row["id"], row["successor"], row["retired_reason"]) for row in rows] == [
        (str(new), None, None),
        (str(old), str(new), "superseded"),
    ]
    chain = client.get(f"/v1/memories/{new}/versions").json()["memories"]
    assert [row["id"] for row in chain] == [str(old), str(new)]
    assert client.get(f"/v1/memories/{uuid4()}/versions").status_code == 404


def test_why_names_turns_parents_and_the_job_with_its_extractor(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (turn,) = record(runtime, tenant, SESSION, [NewTurn(Role.USER, "I live in Lisbon these days.")])
    with owner.connect() as connection:
        session_id = connection.execute(text("SELECT id FROM sessions")).scalar_one()
    extract_session(runtime, session_id)
    (memory,) = list_memories(runtime, tenant, SCOPE, filters=MemoryFilter())
    told = why(runtime, tenant, memory.id)
    assert [turn.id for turn in told.evidence] == [turn.id]
    (job,) = told.runs
    assert (job.name, job.state, job.model) == ("extract", "done", RULES)
    # Announced for later: the old home still holds, and says what will follow it.
    moved = home(runtime, tenant, "Porto", 2150, subject=memory.subject)
    (parent,) = why(runtime, tenant, moved).parents
    assert (parent.memory.id, parent.how) == (memory.id, "superseded")
    after = why(runtime, tenant, memory.id).successor
    assert after is not None and after.id == moved


def test_every_memory_that_was_not_declared_has_evidence_or_parents(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    said = ("I live in Lisbon these days.", "I love bouldering outdoors.", "My sister is called Ana.")
    record(runtime, tenant, SESSION, [NewTurn(Role.USER, words) for words in said])
    with owner.connect() as connection:
        session_id = connection.execute(text("SELECT id FROM sessions")).scalar_one()
    extract_session(runtime, session_id)
    groundless = """SELECT id FROM memories m WHERE origin IN ('extracted', 'synthesized')
        AND NOT EXISTS (SELECT FROM evidence e WHERE e.memory_id = m.id)
        AND NOT EXISTS (SELECT FROM links l WHERE l.source_id = m.id AND l.type = 'derived_from')"""
    with owner.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM memories")).scalar_one() >= 3
        assert connection.execute(text(groundless)).all() == []
