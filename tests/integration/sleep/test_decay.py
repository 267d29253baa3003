"""Decay and capacity: what fades is retired before it goes, what is too much gives way, and what brings it back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import all_shards
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
from memory_app.records.kinds import KINDS
from memory_app.records.records import Mention, NewTurn, Role, Statement
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
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"policy": {"max_memories": most}},
            copies=all_shards.copies(connection),
        )


# --- fading ---------------------------------------------------------------------------------------------------


def test_what_has_faded_expires_and_the_rest_stays(runtime: Runtime, tenant: int, owner: Engine) -> None:
    old = keep(runtime, tenant, "Bob likes tea.", kind="episode")
    core = keep(runtime, tenant, "Ada never gives medical advice.", kind="core")
    pinned = keep(runtime, tenant, "Bob and Ada met in May.", kind="episode", pinned=True)
    pass_time(owner, 800)
    new = keep(runtime, tenant, "Bob bought a boat.", kind="episode")

    report = decayed(runtime, tenant)

    assert report["expired"] == [str(old)]
    assert reasons(owner) == {old: "expired", core: None, pinned: None, new: None}


def test_what_was_retired_goes_for_good_after_its_days(runtime: Runtime, tenant: int, owner: Engine) -> None:
    keep(runtime, tenant, "Bob likes tea.", kind="episode")
    pass_time(owner, 800)
    decayed(runtime, tenant)
    pass_time(owner, 29)
    assert decayed(runtime, tenant)["purged"] == 0
    pass_time(owner, 2)
    assert decayed(runtime, tenant)["purged"] == 1
    assert reasons(owner) == {}
    assert rows(owner, "SELECT term FROM terms WHERE row_count > 0") == []


def test_the_purge_is_known_beforehand(runtime: Runtime, tenant: int, owner: Engine) -> None:
    keep(runtime, tenant, "Bob likes tea.", kind="episode")
    assert decayed(runtime, tenant)["next_purge_at"] is None
    pass_time(owner, 800)
    assert decayed(runtime, tenant)["next_purge_at"] is not None


def test_a_recall_keeps_a_memory_from_fading(runtime: Runtime, tenant: int, owner: Engine) -> None:
    meant = keep(runtime, tenant, "Bob likes tea.", kind="episode")
    pass_time(owner, 800)
    recall(runtime, tenant, SCOPE, query=RecallQuery("What does Bob like?"))
    counts.note_recalls(runtime)
    assert decayed(runtime, tenant)["expired"] == []
    assert reasons(owner) == {meant: None}


@pytest.mark.parametrize("how", ["revive", "pin"])
def test_what_expired_is_brought_back(runtime: Runtime, tenant: int, owner: Engine, how: str) -> None:
    meant = keep(runtime, tenant, "Bob likes tea.", kind="episode")
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
    meant = keep(runtime, tenant, "Bob likes tea.", kind="episode")
    pass_time(owner, 800)
    decayed(runtime, tenant)
    again = keep(runtime, tenant, "Bob likes tea.", kind="episode")
    with pytest.raises(Conflict, match=str(again)):
        fate.revive(runtime, tenant, meant)
    lookup.invalidate(runtime, tenant, again)
    with pytest.raises(Conflict, match="invalidated"):
        fate.revive(runtime, tenant, again)
    with pytest.raises(NotFound):
        fate.revive(runtime, tenant, UUID(int=1))


def test_why_says_when_and_why_a_memory_fades(runtime: Runtime, tenant: int, owner: Engine) -> None:
    meant = keep(runtime, tenant, "Bob likes tea.", kind="episode")
    pinned = keep(runtime, tenant, "Bob and Ada met in May.", kind="episode", pinned=True)
    told = lookup.why(runtime, tenant, meant)
    assert told.fades_at is not None
    assert "halves every 30 days" in told.fate
    assert f"expires on {told.fades_at:%Y-%m-%d}" in told.fate
    assert "pinned" in lookup.why(runtime, tenant, pinned).fate
    pass_time(owner, 800)
    decayed(runtime, tenant)
    assert "can be revived until" in lookup.why(runtime, tenant, meant).fate


# --- what age does not take -----------------------------------------------------------------------------------

LASTING = {
    "fact": "Bob sails at the weekend.",
    "anchor": "They call the river their old friend.",
    "value": "Being honest, even when it hurts.",
    "artifact": "Bob sleeps badly before he travels.",
    "identity": "Ada learns to wait before she answers.",
    "core": "Ada never gives medical advice.",
    "capability": "Ada can read tables.",
}
FLEETING = {
    "episode": "Bob told of his day at the harbour.",
    "expression": "Somewhat playful today.",
    "query": "What is the capital of Chad?",
}


def test_every_kind_says_whether_it_expires() -> None:
    assert LASTING.keys() | FLEETING.keys() == KINDS.keys()
    assert {name for name, kind in KINDS.items() if kind.expires} == FLEETING.keys()


def test_after_ten_years_every_fact_anchor_and_entity_is_still_there(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    about = (Mention("person", "Bob"),)
    lasting = {
        kind: keep(runtime, tenant, words, kind=kind, importance=1, confidence=0.1, mentions=about)
        for kind, words in LASTING.items()
    }
    fleeting = {
        keep(runtime, tenant, words, kind=kind, importance=1, confidence=0.1)
        for kind, words in FLEETING.items()
    }
    for _ in range(10):
        pass_time(owner, 365)
        decayed(runtime, tenant)

    assert reasons(owner) == dict.fromkeys(lasting.values())
    assert not fleeting & reasons(owner).keys()
    assert [row.key for row in rows(owner, "SELECT key FROM entities")] == ["person:bob"]
    hits = recall(runtime, tenant, SCOPE, query=RecallQuery("Does Bob sail at the weekend?")).memories
    assert hits[0].id == lasting["fact"]
    why = lookup.why(runtime, tenant, lasting["fact"])
    assert why.fades_at is None and "never expire" in why.fate


VITAL: tuple[dict[str, Any], ...] = (
    {"words": "Noor carries an EpiPen in her bag."},
    {
        "words": "Noor reacts to penicillin.",
        "subject": "Noor",
        "relation": "allergic_to",
        "object": "penicillin",
    },
    {"words": "Noor ist Diabetikerin."},
    {"words": "Noor answers to Nono.", "subject": "Noor", "relation": "preferred_name", "object": "Nono"},
    {"words": "Please always answer in French.", "kind": "expression"},
    {
        "words": "Noor asked Ada: short answers.",
        "kind": "expression",
        "subject": "Noor",
        "relation": "wants_replies",
        "object": "short answers",
    },
)


def test_health_names_and_instructions_neither_expire_nor_give_way(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    vital = {keep(runtime, tenant, importance=1, confidence=0.1, **fields) for fields in VITAL}
    pass_time(owner, 3_650)
    limit(owner, tenant, 10)
    for n in range(40):
        keep(runtime, tenant, f"On day {n} Bob wrote down the number {n * 13}.", importance=9)
    decayed(runtime, tenant)

    current = {id for id, reason in reasons(owner).items() if reason is None}
    assert vital < current and len(current) == 10
    assert all("never evicted" in lookup.why(runtime, tenant, id).fate for id in vital)


# --- turns ----------------------------------------------------------------------------------------------------

HERON = "The heron stood in the shallow water all morning."


def searchable(runtime: Runtime, tenant: int, owner: Engine, *, days: float) -> bool:
    """Whether the turn about the heron is found after so many days, when decay has run."""
    pass_time(owner, days)
    decayed(runtime, tenant)
    assert [row.text for row in rows(owner, "SELECT text FROM turns")] == [HERON]
    return bool(recall(runtime, tenant, SCOPE, query=RecallQuery("Where did the heron stand?")).memories)


def tell_of_the_heron(runtime: Runtime, tenant: int) -> None:
    record(runtime, tenant, Scope("ada", "bob", "chat"), [NewTurn(Role.USER, HERON)])
    finder.drain(runtime)


def test_a_turn_that_no_model_distilled_stays_findable(runtime: Runtime, tenant: int, owner: Engine) -> None:
    tell_of_the_heron(runtime, tenant)
    assert searchable(runtime, tenant, owner, days=3_650)


def test_a_curated_turn_leaves_the_search_after_its_days(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    tell_of_the_heron(runtime, tenant)
    with owner.begin() as connection:
        connection.execute(text("UPDATE sessions SET synthesized_seq = 1"))

    assert searchable(runtime, tenant, owner, days=29)
    assert decayed(runtime, tenant)["next_lapse_at"] is not None
    assert not searchable(runtime, tenant, owner, days=2)
    assert decayed(runtime, tenant)["next_lapse_at"] is None


def test_an_agents_hard_limit_takes_every_turn_out_of_the_search(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    tell_of_the_heron(runtime, tenant)
    with owner.begin() as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"policy": {"daily_log_limit_days": 7}},
            copies=all_shards.copies(connection),
        )

    assert searchable(runtime, tenant, owner, days=6)
    pass_time(owner, 2)
    # At once, before any job has run.
    assert recall(runtime, tenant, SCOPE, query=RecallQuery("Where did the heron stand?")).memories == ()
    assert not searchable(runtime, tenant, owner, days=0)
    assert rows(owner, "SELECT FROM turns WHERE keywords IS NOT NULL OR embedding IS NOT NULL") == []


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
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"policy": {"max_links": 4}},
            copies=all_shards.copies(connection),
        )
    assert decayed(runtime, tenant)["links_trimmed"] == before - 4


# --- over HTTP ------------------------------------------------------------------------------------------------


def test_reviving_over_http(runtime: Runtime, tenant: int, owner: Engine, api_key: str) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    meant = keep(runtime, tenant, "Bob likes tea.", kind="episode")
    pass_time(owner, 800)
    decayed(runtime, tenant)
    assert "revived until" in client.get(f"/v1/memories/{meant}/why").json()["fate"]
    revived = client.post(f"/v1/memories/{meant}/revive")
    assert (revived.status_code, revived.json()["retired_reason"]) == (200, None)
    assert client.post(f"/v1/memories/{UUID(int=1)}/revive").status_code == 404
