"""The end of a session: what stays, what goes, and that nothing is lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import all_shards
import pytest
from queries import rows, whole_rows
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.agents.rows import agents
from memory_app.db.db import transaction
from memory_app.dispatch import finder
from memory_app.dispatch.job_table import JOBS
from memory_app.errors import NotFound
from memory_app.jobs import jobs
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run
from memory_app.main.http import create_app
from memory_app.memories.query_graph import Source, search
from memory_app.memories.remember import remember
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import quality, session_end, undo
from memory_app.sleep.plan import ClusterPlan, CyclePlan, read_neighbours
from memory_app.transfer import snapshots
from memory_app.turns.extract import extract_session
from memory_app.turns.record import record

SCOPE = Scope("ada", "bob")
CHAT = Scope("ada", "bob", "chat")
PARKED = "Where did I park the blue car yesterday evening?"
CELLAR = "Where is the key of the cellar?"
TRAIN = "Bob's train to work leaves at 7:15 from platform four."
SOUP = "Bob never eats the mushroom soup of the canteen."


def said(runtime: Runtime, tenant: int, *words: str) -> None:
    record(runtime, tenant, CHAT, [NewTurn(Role.USER, one) for one in words])
    finder.drain(runtime)


def ended(runtime: Runtime, tenant: int, **options: Any) -> Run:
    run = session_end.ask(runtime, tenant, CHAT, **options)
    jobs.perform(runtime, run.id, JOBS)
    done = jobs.read(runtime, tenant, run.id)
    assert done.state == "done", done.reason
    return done


def revised(runtime: Runtime, tenant: int, revise: Callable[[CyclePlan], CyclePlan]) -> Run:
    """The end of the session, the plan of whose sleep pass is changed on its way."""
    run = session_end.ask(runtime, tenant, CHAT)
    with transaction(runtime.engine, None) as connection:
        claimed = runs.claim(connection, run.id, timedelta(minutes=1))
    assert claimed is not None
    session_end.end(runtime, claimed, revise=revise)
    return jobs.read(runtime, tenant, run.id)


def whole(owner: Engine) -> list[str]:
    return [
        row for table in ("memories", "links", "mentions", "evidence") for row in whole_rows(owner, table)
    ]


def test_what_proved_itself_is_promoted_and_the_rest_of_the_session_goes(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    said(runtime, tenant, PARKED, PARKED)
    weak = remember(
        runtime, tenant, CHAT, statement=Statement("fact", "Bob yawned.", importance=4, confidence=0.0)
    ).id
    pinned = remember(
        runtime, tenant, CHAT, statement=Statement("fact", "Bob is allergic to nuts.", pinned=True)
    ).id

    report = ended(runtime, tenant).report

    (asked,) = search(runtime, tenant, CHAT, text=PARKED)
    assert (asked.source, asked.repeats) == (Source.AGENT, 2), (
        "it belongs to the agent now, and keeps its weight"
    )
    found = {row.id: row for row in rows(owner, "SELECT * FROM memories")}
    assert found[weak].retired_reason == "evicted"
    assert found[pinned].retired_reason == "merged"
    assert found[found[pinned].successor].pinned
    assert (len(report["promoted"]), report["dropped"]) == (2, 1)
    assert all(row.session_id is None for row in found.values() if row.retired_at is None)


def test_promotion_passes_the_same_ladder(runtime: Runtime, tenant: int, owner: Engine) -> None:
    said(runtime, tenant, "Hello there, I am back again.")
    remember(runtime, tenant, SCOPE, statement=Statement("fact", "Bob likes green tea."))
    remember(runtime, tenant, CHAT, statement=Statement("fact", "Bob likes green tea."))
    ended(runtime, tenant)
    (kept,) = rows(
        owner, "SELECT repeat_count FROM memories WHERE retired_at IS NULL AND text LIKE '%green tea%'"
    )
    assert kept.repeat_count == 2


def test_weights_are_left_behind_where_asked(runtime: Runtime, tenant: int) -> None:
    said(runtime, tenant, PARKED, PARKED)
    ended(runtime, tenant, carry=False)
    (asked,) = search(runtime, tenant, CHAT, text=PARKED)
    assert asked.repeats == 1


def test_without_promotion_everything_of_the_session_goes(runtime: Runtime, tenant: int) -> None:
    said(runtime, tenant, PARKED)
    report = ended(runtime, tenant, promote=False).report
    assert (report["promoted"], report["dropped"]) == ([], 1)
    assert search(runtime, tenant, CHAT, text=PARKED) == ()


def test_a_checkpoint_shows_the_session_before_its_end(runtime: Runtime, tenant: int) -> None:
    said(runtime, tenant, PARKED)
    report = ended(runtime, tenant, promote=False).report
    (made,) = snapshots.list_checkpoints(runtime, tenant, SCOPE)
    assert (str(made.id), made.session, made.nodes) == (report["checkpoint"], "chat", 1)
    assert ended_without_checkpoint(runtime, tenant) is None


def ended_without_checkpoint(runtime: Runtime, tenant: int) -> str | None:
    said(runtime, tenant, "And where did I leave my umbrella last week?")
    return ended(runtime, tenant, checkpoint=False).report["checkpoint"]  # type: ignore[no-any-return]


def test_ending_twice_is_one_run_and_another_turn_opens_the_session_again(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    said(runtime, tenant, PARKED)
    first = session_end.ask(runtime, tenant, CHAT)
    assert session_end.ask(runtime, tenant, CHAT).id == first.id
    assert rows(owner, "SELECT ended_at FROM sessions")[0].ended_at is not None
    said(runtime, tenant, CELLAR)
    assert rows(owner, "SELECT ended_at FROM sessions")[0].ended_at is None
    assert session_end.ask(runtime, tenant, CHAT).id != first.id


def test_a_session_that_goes_on_is_left_open_until_it_is_ended_anew(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    said(runtime, tenant, PARKED)
    first = session_end.ask(runtime, tenant, CHAT, promote=False)
    said(runtime, tenant, CELLAR)
    before = whole(owner)

    jobs.perform(runtime, first.id, JOBS)

    left = jobs.read(runtime, tenant, first.id)
    assert (left.state, left.report["applied"], left.report["dropped"]) == ("done", False, 0)
    assert "another turn" in left.report["reason"]
    assert whole(owner) == before
    assert rows(owner, "SELECT ended_at FROM sessions")[0].ended_at is None
    anew = ended(runtime, tenant, promote=False).report
    assert anew["dropped"] == 2
    assert set(anew) == set(left.report)


def test_a_session_that_was_ended_anew_is_ended_as_was_asked_last(runtime: Runtime, tenant: int) -> None:
    said(runtime, tenant, PARKED)
    first = session_end.ask(runtime, tenant, CHAT, promote=False)
    said(runtime, tenant, CELLAR)
    last = session_end.ask(runtime, tenant, CHAT)
    for run in (first, last):
        jobs.perform(runtime, run.id, JOBS)
    assert jobs.read(runtime, tenant, first.id).report["applied"] is False
    assert len(jobs.read(runtime, tenant, last.id).report["promoted"]) == 2


def test_a_turn_during_the_sleep_pass_leaves_the_session_open(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    said(runtime, tenant, PARKED)

    def go_on(plan: CyclePlan) -> CyclePlan:
        said(runtime, tenant, CELLAR)
        return plan

    report = revised(runtime, tenant, go_on).report
    assert (report["applied"], report["promoted"], report["checkpoint"]) == (False, [], None)
    assert len(rows(owner, "SELECT FROM memories WHERE retired_at IS NULL")) == 2
    assert len(ended(runtime, tenant).report["promoted"]) == 2


def test_a_session_ends_though_its_sleep_pass_is_undone_for_lower_recall(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    said(runtime, tenant, PARKED)
    for words in (TRAIN, SOUP):
        remember(runtime, tenant, CHAT, statement=Statement("fact", words))
    before = whole(owner)

    def blend(plan: CyclePlan) -> CyclePlan:
        with transaction(runtime.engine, tenant) as connection:
            inspected = read_neighbours(connection, plan.row.id, list(plan.inspected))
        some = tuple(n for n in inspected if n.memory.text in (TRAIN, SOUP))
        asked = ["When does Bob's train leave?", "What does Bob eat in the canteen?"]
        probes = quality.probes(runtime, asked, [], limit=5)
        with transaction(runtime.engine, tenant) as connection:
            found = quality.search(connection, runtime, plan.row, probes=probes)
        bad = ClusterPlan(some, some[0].memory.id, some[0].memory.text, 0.5)
        return replace(plan, clusters=(bad,), probes=probes, expected=found)

    run = revised(runtime, tenant, blend)

    assert (run.report["slept"], run.report["applied"], run.report["clusters"]) == (False, True, [])
    assert run.report["gate"]["recall"] < 0.99
    assert "would find only" in run.report["reason"]
    assert len(run.report["promoted"]) == 3
    kept = rows(owner, "SELECT text, session_id FROM memories WHERE retired_at IS NULL")
    assert {TRAIN, SOUP} < {row.text for row in kept}
    assert {row.session_id for row in kept} == {None}
    undo.undo_run(runtime, tenant, run.id)
    assert whole(owner) == before


def test_promotion_keeps_the_ceiling_of_the_scope(runtime: Runtime, tenant: int, owner: Engine) -> None:
    for n in range(6):
        remember(
            runtime,
            tenant,
            SCOPE,
            statement=Statement("fact", f"On day {n} Bob wrote down the number {n * 13}."),
        )
    said(runtime, tenant, "Hello there, I am back again.")
    nuts = remember(
        runtime, tenant, CHAT, statement=Statement("fact", "Bob is allergic to nuts.", pinned=True)
    ).id
    with owner.begin() as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"policy": {"max_memories": 3}},
            copies=all_shards.copies(connection),
        )
    before = whole(owner)

    run = ended(runtime, tenant)

    assert str(nuts) in run.report["promoted"]
    assert len(rows(owner, "SELECT FROM memories WHERE retired_at IS NULL")) == 3
    assert len(run.report["evicted"]) == 4
    undo.undo_run(runtime, tenant, run.id)
    assert whole(owner) == before


def test_the_last_turns_are_extracted_before_a_session_ends(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    record(runtime, tenant, CHAT, [NewTurn(Role.USER, PARKED)])
    run = session_end.ask(runtime, tenant, CHAT)
    jobs.perform(runtime, run.id, JOBS)
    assert jobs.read(runtime, tenant, run.id).state == "running", "it waits for them"
    extract_session(runtime, rows(owner, "SELECT id FROM sessions")[0].id)
    with owner.begin() as connection:
        connection.execute(text("UPDATE runs SET due_at = now() WHERE name = 'end_session'"))
    jobs.perform(runtime, run.id, JOBS)
    assert len(jobs.read(runtime, tenant, run.id).report["promoted"]) == 1


def test_the_end_of_a_session_can_be_undone(runtime: Runtime, tenant: int, owner: Engine) -> None:
    said(runtime, tenant, PARKED, "Where did I leave my green umbrella last week?")
    remember(runtime, tenant, CHAT, statement=Statement("fact", "Bob likes green tea."))
    before = whole(owner)
    run = ended(runtime, tenant)
    assert whole(owner) != before
    undo.undo_run(runtime, tenant, run.id)
    assert whole(owner) == before


def test_only_a_known_session_ends(runtime: Runtime, tenant: int) -> None:
    said(runtime, tenant, PARKED)
    with pytest.raises(NotFound):
        session_end.ask(runtime, tenant, Scope("ada", "bob", "elsewhere"))


def test_ending_over_http(runtime: Runtime, tenant: int, api_key: str) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    said(runtime, tenant, PARKED)
    base = "/v1/agents/ada/users/bob/sessions"
    asked = client.post(f"{base}/chat/end")
    assert asked.status_code == 202
    jobs.perform(runtime, UUID(asked.json()["id"]), JOBS)
    report = client.get(f"/v1/runs/{asked.json()['id']}").json()["report"]
    assert len(report["promoted"]) == 1
    assert (
        client.get("/v1/agents/ada/users/bob/sessions?active=false").json()["sessions"][0]["session"]
        == "chat"
    )
    assert client.post(f"{base}/elsewhere/end", json={}).status_code == 404
    assert client.post(f"{base}/chat/end", json={"promot": True}).status_code == 422
