"""Decay and capacity: what fades is retired before it goes, what is too much gives way, and what brings it back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from queries import rows
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.agents.rows import agents
from memory_app.dispatch import finder
from memory_app.dispatch.job_table import JOBS
from memory_app.errors import Conflict, NotFound
from memory_app.jobs import jobs
from memory_app.main.http import create_app
from memory_app.memories import fate, lookup
from memory_app.memories.remember import remember
from memory_app.recall import counts
from memory_app.recall.recall import RecallQuery, recall
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import decay
from memory_app.turns.record import record

SCOPE = Scope("ada", "bob")


def keep(runtime: Runtime, tenant: int, words: str, **fields: Any) -> UUID:
    kind = fields.pop("kind", "fact")
    return remember(runtime, tenant, SCOPE, statement=Statement(kind, words, **fields)).id


def reasons(owner: Engine) -> dict[UUID, str | None]:
    return {row.id: row.retired_reason for row in rows(owner, "SELECT id, retired_reason FROM memories")}


def pass_time(owner: Engine, days: float) -> None:
    """As if so many days had gone by since everything that happened."""
    with owner.begin() as connection:
        connection.execute(
            text(
                """UPDATE memories SET created_at = created_at - CAST(:past AS interval),
                last_seen = last_seen - CAST(:past AS interval),
                last_recalled = last_recalled - CAST(:past AS interval),
                retired_at = retired_at - CAST(:past AS interval)"""
            ),
            {"past": f"{days} days"},
        )
        connection.execute(
            text("UPDATE turns SET accepted_at = accepted_at - CAST(:past AS interval)"),
            {"past": f"{days} days"},
        )


def decayed(runtime: Runtime, tenant: int) -> dict[str, Any]:
    run = decay.ask(runtime, tenant, SCOPE)
    jobs.perform(runtime, run.id, JOBS)
    done = jobs.read(runtime, tenant, run.id)
    assert done.state == "done", done.reason
    return done.report  # type: ignore[no-any-return]


def limit(owner: Engine, tenant: int, most: int) -> None:
    with owner.begin() as connection:
        agents.change(connection, tenant, "ada", parts={"policy": {"max_memories": most}})


# --- fading ---------------------------------------------------------------------------------------------------


def test_what_has_faded_expires_and_the_rest_stays(runtime: Runtime, tenant: int, owner: Engine) -> None:
    old = keep(runtime, tenant, "Bob likes tea.")
    core = keep(runtime, tenant, "Ada never gives medical advice.", kind="core")
    pinned = keep(runtime, tenant, "Bob is allergic to nuts.", pinned=True)
    pass_time(owner, 800)
    new = keep(runtime, tenant, "Bob bought a boat.")

    report = decayed(runtime, tenant)

    assert report["expired"] == [str(old)]
    assert reasons(owner) == {old: "expired", core: None, pinned: None, new: None}


def test_what_was_retired_goes_for_good_after_its_days(runtime: Runtime, tenant: int, owner: Engine) -> None:
    keep(runtime, tenant, "Bob likes tea.")
    pass_time(owner, 800)
    decayed(runtime, tenant)
    pass_time(owner, 29)
    assert decayed(runtime, tenant)["purged"] == 0
    pass_time(owner, 2)
    assert decayed(runtime, tenant)["purged"] == 1
    assert reasons(owner) == {}
    assert rows(owner, "SELECT term FROM terms WHERE row_count > 0") == []


def test_the_purge_is_known_beforehand(runtime: Runtime, tenant: int, owner: Engine) -> None:
    keep(runtime, tenant, "Bob likes tea.")
    assert decayed(runtime, tenant)["next_purge_at"] is None
    pass_time(owner, 800)
    assert decayed(runtime, tenant)["next_purge_at"] is not None


def test_a_recall_keeps_a_memory_from_fading(runtime: Runtime, tenant: int, owner: Engine) -> None:
    meant = keep(runtime, tenant, "Bob likes tea.")
    pass_time(owner, 800)
    recall(runtime, tenant, SCOPE, query=RecallQuery("What does Bob like?"))
    counts.note_recalls(runtime)
    assert decayed(runtime, tenant)["expired"] == []
    assert reasons(owner) == {meant: None}


@pytest.mark.parametrize("how", ["revive", "pin"])
def test_what_expired_is_brought_back(runtime: Runtime, tenant: int, owner: Engine, how: str) -> None:
    meant = keep(runtime, tenant, "Bob likes tea.")
    pass_time(owner, 800)
    decayed(runtime, tenant)
    assert recall(runtime, tenant, SCOPE, query=RecallQuery("Bob tea")).memories == ()

    if how == "pin":
        lookup.pin(runtime, tenant, meant, pinned=True)
    else:
        fate.revive(runtime, tenant, meant)

    assert [hit.id for hit in recall(runtime, tenant, SCOPE, query=RecallQuery("Bob tea")).memories] == [
        meant
    ]
    assert decayed(runtime, tenant)["expired"] == []


def test_reviving_is_refused_where_it_mends_nothing(runtime: Runtime, tenant: int, owner: Engine) -> None:
    meant = keep(runtime, tenant, "Bob likes tea.")
    pass_time(owner, 800)
    decayed(runtime, tenant)
    again = keep(runtime, tenant, "Bob likes tea.")
    with pytest.raises(Conflict, match=str(again)):
        fate.revive(runtime, tenant, meant)
    lookup.invalidate(runtime, tenant, again)
    with pytest.raises(Conflict, match="invalidated"):
        fate.revive(runtime, tenant, again)
    with pytest.raises(NotFound):
        fate.revive(runtime, tenant, UUID(int=1))


def test_why_says_when_and_why_a_memory_fades(runtime: Runtime, tenant: int, owner: Engine) -> None:
    meant = keep(runtime, tenant, "Bob likes tea.")
    pinned = keep(runtime, tenant, "Bob is allergic to nuts.", pinned=True)
    told = lookup.why(runtime, tenant, meant)
    assert told.fades_at is not None
    assert "halves every 120 days" in told.fate
    assert f"expires on {told.fades_at:%Y-%m-%d}" in told.fate
    assert "pinned" in lookup.why(runtime, tenant, pinned).fate
    pass_time(owner, 800)
    decayed(runtime, tenant)
    assert "can be revived until" in lookup.why(runtime, tenant, meant).fate


def test_turns_leave_the_search_after_their_days_and_keep_their_text(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    chat = Scope("ada", "bob", "chat")
    record(runtime, tenant, chat, [NewTurn(Role.USER, "The heron stood in the shallow water all morning.")])
    finder.drain(runtime)
    question = RecallQuery("Where did the heron stand?")
    assert recall(runtime, tenant, SCOPE, query=question).memories
    pass_time(owner, 31)
    assert recall(runtime, tenant, SCOPE, query=question).memories == ()
    assert [row.text for row in rows(owner, "SELECT text FROM turns")] == [
        "The heron stood in the shallow water all morning."
    ]


# --- capacity -------------------------------------------------------------------------------------------------


def test_under_constant_load_the_ceiling_holds_and_pinned_rows_stay(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    pinned = [keep(runtime, tenant, f"Bob's locker has the number {n * 7}.", pinned=True) for n in range(5)]
    limit(owner, tenant, 30)
    for n in range(60):
        last = keep(runtime, tenant, f"On day {n} Bob wrote down the number {n * 13}.")
        if n % 10 == 9:
            ((current,),) = rows(owner, "SELECT count(*) FROM memories WHERE retired_at IS NULL")
            assert current <= 30
    found = reasons(owner)
    assert [found[id] for id in pinned] == [None] * 5
    assert found[last] is None, "what was written just now stays"
    assert set(found.values()) == {None, "evicted"}

    short = replace(
        runtime,
        settings=runtime.settings.model_copy(
            update={"decay": runtime.settings.decay.model_copy(update={"recoverable_days": 0})}
        ),
    )
    decayed(short, tenant)
    assert len(reasons(owner)) == 30, "after its recoverable stage nothing of the rest is left"


def test_the_recoverable_stage_has_the_same_ceiling(runtime: Runtime, tenant: int, owner: Engine) -> None:
    keep(runtime, tenant, "Bob likes tea.")
    limit(owner, tenant, 10)
    for n in range(40):
        keep(runtime, tenant, f"On day {n} Bob wrote down the number {n * 13}.")
    decayed(runtime, tenant)
    assert (
        sorted(reasons(owner).values(), key=str) == [*[None] * 10, *["evicted"] * 10][::-1]
        or len(reasons(owner)) == 20
    )


def test_the_weakest_likenesses_give_way_to_the_ceiling_of_links(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    for n in range(6):
        keep(runtime, tenant, f"Bob wrote down the number {n * 13} in his green notebook after lunch.")
    ((before,),) = rows(owner, "SELECT count(*) FROM links")
    assert before > 4
    with owner.begin() as connection:
        agents.change(connection, tenant, "ada", parts={"policy": {"max_links": 4}})
    assert decayed(runtime, tenant)["links_trimmed"] == before - 4


# --- over HTTP ------------------------------------------------------------------------------------------------


def test_reviving_over_http(runtime: Runtime, tenant: int, owner: Engine, api_key: str) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    meant = keep(runtime, tenant, "Bob likes tea.")
    pass_time(owner, 800)
    decayed(runtime, tenant)
    assert "revived until" in client.get(f"/v1/memories/{meant}/why").json()["fate"]
    revived = client.post(f"/v1/memories/{meant}/revive")
    assert (revived.status_code, revived.json()["retired_reason"]) == (200, None)
    assert client.post(f"/v1/memories/{UUID(int=1)}/revive").status_code == 404
