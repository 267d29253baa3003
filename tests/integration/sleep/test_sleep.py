"""Sleep: what a cycle merges and what it leaves alone, what it reports, and that all of it can be taken back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import all_shards
import pytest
from hot_reads import cached_context
from queries import rows, whole_rows
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.agents.rows import agents
from memory_app.db.db import transaction
from memory_app.dispatch import finder
from memory_app.dispatch.job_table import JOBS
from memory_app.errors import Conflict, InvalidInput, NotFound
from memory_app.forget.forget import forget_memory, forget_user
from memory_app.hot import cache
from memory_app.jobs import jobs
from memory_app.jobs.rows import runs
from memory_app.main.http import create_app
from memory_app.memories import lookup
from memory_app.memories.feedback import give_feedback
from memory_app.memories.remember import remember
from memory_app.recall.recall import RecallQuery, recall
from memory_app.records.records import Label, Mention, NewTurn, Origin, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import cycle as sleep
from memory_app.sleep import undo
from memory_app.sleep.plan import ClusterPlan, CyclePlan, read_neighbours
from memory_app.sleep.report import with_texts
from memory_app.turns.record import record

SCOPE = Scope("ada", "bob")

SAILING = (
    "Bob goes sailing on the lake with his cousin in the summer.",
    "Bob goes sailing on the lake with his cousin in summer.",
    "Bob goes out sailing on the lake with his cousin in the summer.",
)
NEAR_MISSES = (
    "Bob's train to work leaves at 7:15 from platform four.",
    "Bob's train to work leaves at 7:45 from platform four.",
    "Bob never eats the mushroom soup of the canteen.",
    "Bob often eats the mushroom soup of the canteen.",
)
TABLES = ("memories", "links", "mentions", "evidence", "entities")


def keep(runtime: Runtime, tenant: int, words: str, *, scope: Scope = SCOPE, **fields: Any) -> UUID:
    """Stored as it is, as if before anybody looked for repeats."""
    statement = Statement(fields.pop("kind", "fact"), words, **fields)
    return remember(runtime, tenant, scope, statement=statement, deduplicate=False).id


def everything(owner: Engine) -> dict[str, list[str]]:
    """Every row of the scope, bit for bit."""
    return {table: whole_rows(owner, table) for table in TABLES}


def current(owner: Engine) -> list[str]:
    return [
        row.text for row in rows(owner, "SELECT text FROM memories WHERE retired_at IS NULL ORDER BY text")
    ]


def slept(runtime: Runtime, tenant: int, **options: Any) -> runs.Run:
    run = sleep.ask(runtime, tenant, SCOPE, options=options)
    jobs.perform(runtime, run.id, JOBS)
    done = jobs.read(runtime, tenant, run.id)
    assert done.state == "done", done.reason
    return done


def revised(runtime: Runtime, tenant: int, revise: Callable[[CyclePlan], CyclePlan]) -> dict[str, Any]:
    """The report of a cycle whose plan is changed on its way."""
    run = sleep.ask(runtime, tenant, SCOPE)
    with transaction(runtime.engine, None) as connection:
        claimed = runs.claim(connection, run.id, timedelta(minutes=1))
    assert claimed is not None
    sleep.sleep(runtime, claimed, revise=revise)
    return jobs.read(runtime, tenant, run.id).report  # type: ignore[no-any-return]


def meanwhile(work: Callable[[], object]) -> Callable[[CyclePlan], CyclePlan]:
    def revise(plan: CyclePlan) -> CyclePlan:
        work()
        return plan

    return revise


# --- what becomes one -----------------------------------------------------------------------------------------


def test_what_says_the_same_becomes_one_and_near_misses_stay_apart(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    same = [keep(runtime, tenant, words) for words in SAILING]
    for words in NEAR_MISSES:
        keep(runtime, tenant, words)

    report = slept(runtime, tenant).report

    assert len(current(owner)) == 1 + len(NEAR_MISSES)
    assert set(NEAR_MISSES) <= set(current(owner))
    (cluster,) = report["clusters"]
    assert {cluster["anchor"], *cluster["merged"]} == {str(id) for id in same}
    assert (cluster["freed"], report["freed"], report["applied"]) == (2, 2, True)
    assert cluster["strength_after"] >= cluster["strength_before"]
    assert report["inspected"] == 7
    parents = rows(owner, "SELECT retired_reason, successor FROM memories WHERE id = ANY(:ids)", ids=same)
    assert {row.retired_reason for row in parents} == {"merged"}
    assert len({row.successor for row in parents}) == 1


def test_a_summary_holds_what_each_says_and_nothing_else(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    base = "Bob plays the cello in the town orchestra every Thursday evening after work."
    keep(runtime, tenant, base)
    keep(runtime, tenant, base + " Rehearsals happen beside the bakery.")
    keep(runtime, tenant, base + " The concerts are free.")
    slept(runtime, tenant, similarity=0.7)
    (kept,) = current(owner)
    assert kept == f"{base} Rehearsals happen beside the bakery. The concerts are free."


def families(owner: Engine) -> dict[UUID, list[str]]:
    """What each current memory is made of: its own words, or those of all that was merged into it."""
    found = {row.id: row for row in rows(owner, "SELECT id, text, successor FROM memories")}
    made_of: dict[UUID, list[str]] = {}
    parents = {row.successor for row in found.values()}
    for row in found.values():
        top = row
        while top.successor is not None:
            top = found[top.successor]
        if row.id not in parents:
            made_of.setdefault(top.id, []).append(row.text)
    return made_of


def test_a_chain_of_similar_rows_is_never_one_record_over_many_cycles(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    topics = ("sports", "cooking", "pets", "sleep")
    chain = [
        f"Bob talked about {' and '.join([one] * (8 - k) + [other] * k)} with his neighbour."
        for one, other in pairwise(topics)
        for k in range(8)
    ]
    for words in chain:
        keep(runtime, tenant, words)
    for _ in range(4):
        slept(runtime, tenant, similarity=0.85)
    made_of = families(owner)
    assert len(made_of) > 3
    for family in made_of.values():
        vectors = runtime.embedder.embed(family)
        assert (vectors @ vectors.T).min() >= 0.84, "every two are alike, not only neighbours in a chain"


def test_a_dense_topic_shrinks_and_contradictions_are_not_blended(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    alike = [
        f"Bob {often}runs along the river before breakfast{day}."
        for often in ("", "really ", "indeed ")
        for day in ("", " each morning", " every morning")
    ]
    against = [
        "Bob never runs along the river before breakfast.",
        "Bob runs 5 km along the river before breakfast.",
        "Bob runs 9 km along the river before breakfast.",
    ]
    for words in (*alike, *against):
        keep(runtime, tenant, words)
    for _ in range(3):
        slept(runtime, tenant)
    made_of = families(owner)
    assert len(made_of) < len(alike)
    for words in against:
        assert [words] in made_of.values(), "what differs stands alone"


def test_a_person_who_is_forgotten_while_a_cycle_runs_stays_forgotten(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    for words in SAILING:
        keep(runtime, tenant, words)

    def forget() -> None:
        jobs.perform(runtime, forget_user(runtime, tenant, "bob").id, JOBS)

    with pytest.raises((NotFound, jobs.Fenced)):
        revised(runtime, tenant, meanwhile(forget))
    for table in (*TABLES, "images", "checkpoints", "schedules"):
        assert rows(owner, f"SELECT 1 FROM {table}") == []


def test_an_item_is_rewritten_a_set_number_of_times(runtime: Runtime, tenant: int, owner: Engine) -> None:
    limited = replace(
        runtime,
        settings=runtime.settings.model_copy(
            update={"sleep": runtime.settings.sleep.model_copy(update={"max_rewrites": 1})}
        ),
    )
    for words in SAILING[:2]:
        keep(limited, tenant, words)
    assert len(slept(limited, tenant).report["clusters"]) == 1
    keep(limited, tenant, SAILING[2])
    assert slept(limited, tenant).report["clusters"] == []


def test_firm_and_pinned_memories_are_left_as_they_are(runtime: Runtime, tenant: int, owner: Engine) -> None:
    for words in SAILING:
        keep(runtime, tenant, words, pinned=True)
    assert slept(runtime, tenant).report["clusters"] == []
    for words in SAILING:
        keep(runtime, tenant, words.replace("lake", "river"))
    assert slept(runtime, tenant, min_strength=0.01).report["clusters"] == []


def test_similar_memories_are_linked_once(runtime: Runtime, tenant: int, owner: Engine) -> None:
    for words in NEAR_MISSES:
        keep(runtime, tenant, words)
    with owner.begin() as connection:
        connection.execute(text("DELETE FROM links"))
    assert slept(runtime, tenant).report["links"] >= 1
    assert slept(runtime, tenant).report["links"] == 0


# --- patterns -------------------------------------------------------------------------------------------------


def about(runtime: Runtime, tenant: int, label: str, words: str, at: datetime) -> UUID:
    return keep(runtime, tenant, words, valid_from=at, mentions=(Mention("concept", label),))


def test_what_comes_up_over_weeks_is_named_once_with_its_evidence(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    began = datetime(2026, 3, 2, tzinfo=UTC)
    words = (
        "He bought a hull.",
        "The mast came by train.",
        "Varnish takes two days.",
        "A sail was sewn in Porto.",
    )
    sources = [
        about(runtime, tenant, "Boat building", said, began + timedelta(weeks=n))
        for n, said in enumerate(words)
    ]
    report = slept(runtime, tenant).report
    assert [pattern["memories"] for pattern in report["patterns"]] == [4]
    (pattern,) = rows(owner, "SELECT * FROM memories WHERE synthesis_type = 'pattern'")
    assert pattern.text == "Boat building keeps coming up, since March 2026."
    assert (pattern.kind, pattern.origin) == ("artifact", "synthesized")
    parents = rows(
        owner, "SELECT target_id FROM links WHERE source_id = :id AND type = 'derived_from'", id=pattern.id
    )
    assert {row.target_id for row in parents} == set(sources)

    assert slept(runtime, tenant).report["patterns"] == [], "known already"
    lookup.invalidate(runtime, tenant, pattern.id)
    assert slept(runtime, tenant).report["patterns"] == [], "what was taken back is not said again"


def test_what_comes_up_in_one_week_is_no_pattern(runtime: Runtime, tenant: int) -> None:
    at = datetime(2026, 3, 2, tzinfo=UTC)
    for n, said in enumerate(("He bought a hull.", "The mast came.", "Varnish dries.", "A sail was sewn.")):
        about(runtime, tenant, "Boat building", said, at + timedelta(hours=n))
    assert slept(runtime, tenant).report["patterns"] == []


# --- dry runs, undo, and what happens meanwhile ------------------------------------------------------------------


def test_a_dry_run_gives_the_very_same_report_and_changes_nothing(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    for words in (*SAILING, *NEAR_MISSES):
        keep(runtime, tenant, words)
    before = everything(owner)
    rehearsed = slept(runtime, tenant, dry_run=True)
    assert everything(owner) == before
    real = slept(runtime, tenant)
    assert real.report == rehearsed.report
    assert with_texts(runtime, tenant, real).report == with_texts(runtime, tenant, rehearsed).report
    assert everything(owner) != before
    with pytest.raises(Conflict, match="dry run"):
        undo.undo_run(runtime, tenant, rehearsed.id)


def test_a_dry_run_leaves_the_cached_context_as_it_is(runtime: Runtime, tenant: int, owner: Engine) -> None:
    for words in SAILING:
        keep(runtime, tenant, words)
    scopes = [rows(owner, "SELECT DISTINCT scope_id FROM memories")[0].scope_id]
    token = cached_context(runtime.hot, scopes).token
    cache.put(runtime.hot, scopes, cache.CachedContext("anything", {}), token=token)
    slept(runtime, tenant, dry_run=True)
    assert cached_context(runtime.hot, scopes).context is not None
    slept(runtime, tenant)
    assert cached_context(runtime.hot, scopes).context is None


def test_undo_puts_back_every_row_bit_for_bit(runtime: Runtime, tenant: int, owner: Engine) -> None:
    began = datetime(2026, 3, 2, tzinfo=UTC)
    for n, words in enumerate((*SAILING, *NEAR_MISSES)):
        about(runtime, tenant, "Boat building", words, began + timedelta(weeks=n))
    (asked,) = record(
        runtime, tenant, Scope("ada", "bob", "chat"), [NewTurn(Role.USER, "I live in Paris these days.")]
    )
    finder.drain(runtime)
    keep(runtime, tenant, SAILING[0] + " Really.", evidence=(asked.id,), origin=Origin.EXTRACTED)
    before = everything(owner)
    words_before = rows(owner, "SELECT term, row_count FROM terms WHERE row_count > 0 ORDER BY term")

    run = slept(runtime, tenant)
    assert run.report["clusters"] and run.report["patterns"]
    undone = undo.undo_run(runtime, tenant, run.id)

    assert undone.report["undone_at"]
    assert everything(owner) == before
    assert rows(owner, "SELECT term, row_count FROM terms WHERE row_count > 0 ORDER BY term") == words_before
    with pytest.raises(Conflict, match="undone already"):
        undo.undo_run(runtime, tenant, run.id)


def test_one_merge_of_a_cycle_is_undone_and_then_the_rest(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    for words in SAILING:
        keep(runtime, tenant, words)
        keep(
            runtime,
            tenant,
            words.replace("sailing", "fishing").replace("lake", "river").replace("cousin", "uncle"),
        )
    before = everything(owner)
    run = slept(runtime, tenant)
    assert len(run.report["clusters"]) == 2
    anchor = UUID(run.report["clusters"][0]["anchor"])
    united = lookup.read_memory(runtime, tenant, anchor).successor
    assert united is not None
    undo.undo_merge(runtime, tenant, united)
    assert lookup.read_memory(runtime, tenant, anchor).retired_at is None
    undo.undo_run(runtime, tenant, run.id)
    assert everything(owner) == before


@pytest.mark.parametrize("what", ["rated", "pinned", "said again", "deleted"])
def test_undo_names_what_stands_on_the_cycle_and_changes_nothing(
    runtime: Runtime, tenant: int, owner: Engine, what: str
) -> None:
    kept = [keep(runtime, tenant, words) for words in SAILING]
    run = slept(runtime, tenant)
    united = lookup.read_memory(runtime, tenant, kept[0]).successor
    assert united is not None
    if what == "rated":
        give_feedback(runtime, tenant, SCOPE, target=united, label=Label.UP)
    elif what == "pinned":
        lookup.pin(runtime, tenant, united, pinned=True)
    elif what == "said again":
        remember(
            runtime,
            tenant,
            SCOPE,
            statement=Statement("fact", lookup.read_memory(runtime, tenant, united).text),
        )
    else:
        forget_memory(runtime, tenant, united)
    before = everything(owner)
    blocking = "is gone" if what == "deleted" else f"{united} was {what}"
    with pytest.raises(Conflict, match=blocking):
        undo.undo_run(runtime, tenant, run.id)
    assert everything(owner) == before


def test_being_recalled_does_not_stand_in_the_way_of_undo(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    for words in SAILING:
        keep(runtime, tenant, words)
    before = everything(owner)
    run = slept(runtime, tenant)
    with owner.begin() as connection:
        connection.execute(
            text("UPDATE memories SET recall_count = recall_count + 1 WHERE retired_at IS NULL")
        )
    undo.undo_run(runtime, tenant, run.id)
    assert everything(owner) == before


def test_a_memory_that_is_added_while_a_cycle_runs_survives_it(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    for words in SAILING[:2]:
        keep(runtime, tenant, words)
    added: list[UUID] = []
    report = revised(runtime, tenant, meanwhile(lambda: added.append(keep(runtime, tenant, SAILING[2]))))
    assert len(report["clusters"]) == 1
    (row,) = rows(owner, "SELECT retired_at, text FROM memories WHERE id = :id", id=added[0])
    assert (row.retired_at, row.text) == (None, SAILING[2])


def test_a_memory_that_changes_while_a_cycle_runs_is_left_alone(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    kept = [keep(runtime, tenant, words) for words in SAILING]
    report = revised(runtime, tenant, meanwhile(lambda: lookup.pin(runtime, tenant, kept[0], pinned=True)))
    assert (report["clusters"], len(report["left_alone"])) == ([], 1)
    assert len(current(owner)) == 3


# --- the quality gate -----------------------------------------------------------------------------------------


def test_a_cycle_with_a_wrong_merge_is_not_applied(runtime: Runtime, tenant: int, owner: Engine) -> None:
    for words in (*SAILING, *NEAR_MISSES, "Bob's sister Clara is a dentist in Porto."):
        keep(runtime, tenant, words)
    before = everything(owner)

    def blend(plan: CyclePlan) -> CyclePlan:
        (good,) = plan.clusters
        with transaction(runtime.engine, tenant) as connection:
            from_other_topics = read_neighbours(connection, plan.row.id, list(plan.inspected))
        some = tuple(n for n in from_other_topics if n.memory.text in (NEAR_MISSES[0], NEAR_MISSES[2]))
        bad = ClusterPlan(some, some[0].memory.id, some[0].memory.text, 0.5)
        probes = sleep.quality.probes(
            runtime, ["When does Bob's train leave?", "What does Bob eat in the canteen?"], [], limit=5
        )
        with transaction(runtime.engine, tenant) as connection:
            found = sleep.quality.search(connection, runtime, plan.row, probes=probes)
        return replace(plan, clusters=(good, bad), probes=probes, expected=found)

    report = revised(runtime, tenant, blend)

    assert report["applied"] is False
    assert report["gate"]["recall"] < 0.99
    assert "would find only" in report["reason"]
    assert everything(owner) == before


def test_only_a_cluster_that_would_lose_members_is_left_out(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    for words in (*SAILING, *NEAR_MISSES):
        keep(runtime, tenant, words)

    def blend(plan: CyclePlan) -> CyclePlan:
        with transaction(runtime.engine, tenant) as connection:
            inspected = read_neighbours(connection, plan.row.id, list(plan.inspected))
        some = tuple(n for n in inspected if n.memory.text in (NEAR_MISSES[0], NEAR_MISSES[2]))
        bad = ClusterPlan(some, some[0].memory.id, some[0].memory.text, 0.5)
        lost = some[1].memory
        (probe,) = sleep.quality.probes(runtime, [], [(lost.id, lost.text)], limit=1)
        before = {**plan.expected, len(plan.probes): (lost.id,)}
        return replace(plan, clusters=(*plan.clusters, bad), probes=(*plan.probes, probe), expected=before)

    report = revised(runtime, tenant, blend)

    assert (report["applied"], len(report["clusters"]), len(report["refused"])) == (True, 1, 1)
    assert set(NEAR_MISSES) <= set(current(owner))


def test_the_scopes_own_questions_are_what_a_cycle_is_checked_with(runtime: Runtime, tenant: int) -> None:
    for words in (*SAILING, *NEAR_MISSES):
        keep(runtime, tenant, words)
    record(
        runtime, tenant, Scope("ada", "bob", "chat"), [NewTurn(Role.USER, "With whom does Bob go sailing?")]
    )
    finder.drain(runtime)
    report = slept(runtime, tenant).report
    assert report["gate"] == {"probes": 3, "recall": 1.0, "floor": 0.99}, (
        "one question, and two texts that were merged"
    )


def numbers(runtime: Runtime, tenant: int) -> None:
    """Memories that nothing merges, and a question about all of them."""
    for n in range(8):
        keep(runtime, tenant, f"On day {n} Bob wrote down the number {n * 13}.")
    asked = NewTurn(Role.USER, "Which number did Bob write down on which day?")
    record(runtime, tenant, Scope("ada", "bob", "chat"), [asked])
    finder.drain(runtime)


def test_a_cycle_that_only_evicts_is_checked_too(runtime: Runtime, tenant: int, owner: Engine) -> None:
    numbers(runtime, tenant)
    with owner.begin() as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"policy": {"max_memories": 3}},
            copies=all_shards.copies(connection),
        )
    before = everything(owner)
    report = slept(runtime, tenant).report
    assert (report["clusters"], report["applied"], report["gate"]["probes"]) == ([], False, 1)
    assert "would find only" in report["reason"]
    assert everything(owner) == before


def test_a_promoting_cycle_is_checked_and_one_without_changes_is_not(runtime: Runtime, tenant: int) -> None:
    numbers(runtime, tenant)
    kept = keep(runtime, tenant, "Bob is allergic to nuts.", scope=Scope("ada", "bob", "chat"), pinned=True)
    report = slept(runtime, tenant).report
    assert str(kept) in report["promoted"]
    assert (report["clusters"], report["applied"], report["gate"]["probes"]) == ([], True, 1)
    report = slept(runtime, tenant).report
    assert (report["changes"], report["gate"]["probes"]) == (0, 0)


# --- options and bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"depth": 3}, "depth"),
        ({"max_clusters": 0}, "max_clusters"),
        ({"max_clusters": 1.5}, "max_clusters"),
        ({"similarity": 0.1}, "similarity"),
        ({"trigger": "boredom"}, "trigger"),
        ({"force": "yes"}, "force"),
        ({"max_inspected": 3, "min_cluster_size": 4}, "min_cluster_size"),
        ({"force": True, "cool_down_seconds": 60}, "force"),
    ],
)
def test_an_option_that_makes_no_sense_is_named(
    runtime: Runtime, tenant: int, options: dict[str, Any], field: str
) -> None:
    keep(runtime, tenant, SAILING[0])
    with pytest.raises(InvalidInput) as refused:
        sleep.ask(runtime, tenant, SCOPE, options=options)
    assert refused.value.field == field
    assert field in refused.value.message


def test_a_cycle_on_an_empty_scope_does_nothing_and_says_so(runtime: Runtime, tenant: int) -> None:
    kept = keep(runtime, tenant, SAILING[0])
    forget_memory(runtime, tenant, kept)
    report = slept(runtime, tenant).report
    assert (report["applied"], report["inspected"], report["clusters"], report["changes"]) == (True, 0, [], 0)
    with pytest.raises(NotFound):
        sleep.ask(runtime, tenant, Scope("nobody", "here"))


def test_two_cycles_at_once_on_one_scope_are_refused(runtime: Runtime, tenant: int) -> None:
    keep(runtime, tenant, SAILING[0])
    first = sleep.ask(runtime, tenant, SCOPE)
    with pytest.raises(Conflict, match=str(first.id)):
        sleep.ask(runtime, tenant, SCOPE)
    jobs.perform(runtime, first.id, JOBS)
    assert sleep.ask(runtime, tenant, SCOPE).id != first.id


def test_a_cool_down_is_kept_unless_forced(runtime: Runtime, tenant: int) -> None:
    for words in SAILING[:2]:
        keep(runtime, tenant, words)
    slept(runtime, tenant)
    keep(runtime, tenant, SAILING[2])
    resting = slept(runtime, tenant, cool_down_seconds=3_600).report
    assert (resting["applied"], resting["clusters"]) == (False, [])
    assert "less than" in resting["reason"]
    assert len(slept(runtime, tenant, force=True).report["clusters"]) == 1


@pytest.mark.parametrize("before", ["a dry run", "an undone cycle", "a cycle that changed nothing"])
def test_only_a_cycle_with_changes_that_stay_starts_the_cool_down(
    runtime: Runtime, tenant: int, before: str
) -> None:
    keep(runtime, tenant, SAILING[0])
    if before == "a cycle that changed nothing":
        assert slept(runtime, tenant).report["changes"] == 0
    keep(runtime, tenant, SAILING[1])
    if before == "a dry run":
        slept(runtime, tenant, dry_run=True)
    elif before == "an undone cycle":
        undo.undo_run(runtime, tenant, slept(runtime, tenant).id)
    assert len(slept(runtime, tenant, cool_down_seconds=3_600).report["clusters"]) == 1


def test_every_report_has_the_same_fields(runtime: Runtime, tenant: int) -> None:
    for words in SAILING:
        keep(runtime, tenant, words)
    real = slept(runtime, tenant)
    resting = slept(runtime, tenant, cool_down_seconds=3_600)
    assert resting.report["applied"] is False
    assert set(resting.report) == set(real.report)
    assert resting.report["timestamp"] >= real.report["timestamp"]
    assert with_texts(runtime, tenant, resting).report["clusters"] == []


def test_what_gives_way_to_the_ceiling_lets_its_scope_sleep_once(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    with owner.begin() as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"policy": {"max_memories": 5}},
            copies=all_shards.copies(connection),
        )
    for n in range(8):
        keep(runtime, tenant, f"On day {n} Bob wrote down the number {n * 13}.")
    ((run_id, options),) = rows(owner, "SELECT id, options FROM runs WHERE name = 'sleep'")
    assert options == {"trigger": "eviction"}
    jobs.perform(runtime, run_id, JOBS)
    assert jobs.read(runtime, tenant, run_id).report["trigger"] == "eviction"


def test_no_report_holds_what_was_said(runtime: Runtime, tenant: int, owner: Engine) -> None:
    for words in SAILING:
        keep(runtime, tenant, words)
    run = slept(runtime, tenant)
    assert with_texts(runtime, tenant, run).report["clusters"][0]["summary"] in SAILING
    kept = rows(owner, "SELECT CAST(r AS text) AS whole FROM runs r") + rows(
        owner, "SELECT CAST(i AS text) AS whole FROM images i"
    )
    assert not any("sailing" in row.whole for row in kept)


# --- over HTTP ------------------------------------------------------------------------------------------------


def test_sleep_and_undo_over_http(runtime: Runtime, tenant: int, owner: Engine, api_key: str) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    for words in SAILING:
        keep(runtime, tenant, words)
    base = "/v1/agents/ada/users/bob"

    def cycle(**options: object) -> dict[str, Any]:
        asked = client.post(f"{base}/sleep", json=options)
        assert asked.status_code == 202, asked.text
        jobs.perform(runtime, UUID(asked.json()["id"]), JOBS)
        return client.get(f"/v1/runs/{asked.json()['id']}?wait_seconds=1").json()  # type: ignore[no-any-return]

    rehearsed, real = cycle(dry_run=True), cycle()
    assert real["report"] == rehearsed["report"]
    assert real["report"]["clusters"][0]["summary"] in SAILING
    assert len(client.get(f"{base}/memories").json()["memories"]) == 1
    assert client.post(f"/v1/runs/{real['id']}/undo").status_code == 200
    assert len(client.get(f"{base}/memories").json()["memories"]) == 3
    assert client.post(f"/v1/runs/{real['id']}/undo").status_code == 409
    refused = client.post(f"{base}/sleep", json={"depth": 3})
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, "depth")
    refused = client.post(f"{base}/sleep", json={"max_clusters": 0})
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, "max_clusters")
    assert client.post("/v1/agents/ada/users/nobody/sleep", json={}).status_code == 404
    assert client.post(f"/v1/runs/{uuid4()}/undo").status_code == 404


def test_recall_finds_what_was_merged(runtime: Runtime, tenant: int) -> None:
    for words in (*SAILING, *NEAR_MISSES):
        keep(runtime, tenant, words)
    slept(runtime, tenant)
    best = recall(runtime, tenant, SCOPE, query=RecallQuery("With whom does Bob go sailing?")).memories[0]
    assert best.text in SAILING
