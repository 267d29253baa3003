"""What grows with backlogs, scopes and memories must not make every call grow: rows are counted, never seconds.

Each test fills a database, measures, fills in more, and compares; `memory bench growth` prints the same at real sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, text

from memory_app import MemoryApp
from memory_app.agents.agents import AgentChange, change_agent
from memory_app.bench.rows.crowd import AGENT, Crowd
from memory_app.db.db import transaction
from memory_app.db.meter import Cost, Meter
from memory_app.dispatch import finder, periodic, upkeep
from memory_app.dispatch.job_table import JOBS
from memory_app.forget.rows import retention
from memory_app.jobs import jobs
from memory_app.jobs.rows import health, runs, schedules
from memory_app.memories.entity_names import KnownEntity
from memory_app.memories.remember import remember
from memory_app.memories.rows import entities, reembedding
from memory_app.ops.doctor import diagnose
from memory_app.recall import scope_index
from memory_app.recall.recall import RecallQuery, recall
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import cycle, decay, synthesis
from memory_app.tenancy.rows import names
from memory_app.transfer.snapshot import canonical_meta
from memory_app.turns.extract import extract_session
from memory_app.turns.index import index_turns
from memory_app.turns.record import record
from memory_app.turns.rows import extract_work, index_work

pytestmark = pytest.mark.one_shard

BOB = Scope(AGENT, "bob")
LEASE = timedelta(seconds=45)
MONTHS = timedelta(days=60)
FEW = 150
"""Rows of a look that does not grow, with what it reads of the catalogue of tenants and agents."""


@pytest.fixture
def crowd(runtime: Runtime, owner: Engine, tenant: int) -> Crowd:
    """Rows of ``acme``, past the product."""
    embedder = runtime.embedder
    return Crowd(owner, tenant, model=embedder.model, dimensions=embedder.dimensions)


@pytest.fixture
def other_crowd(runtime: Runtime, owner: Engine, other_tenant: int) -> Crowd:
    embedder = runtime.embedder
    return Crowd(owner, other_tenant, model=embedder.model, dimensions=embedder.dimensions)


TABLES = text(
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = CAST('public' AS regnamespace)"
)


@pytest.fixture
def meter(runtime: Runtime, owner: Engine) -> Meter:
    # Statistics that arrive in the middle of what is counted would give its second half other plans.
    with owner.begin() as connection:
        for name in connection.execute(TABLES).scalars().all():
            connection.execute(text(f"ALTER TABLE {name} SET (autovacuum_enabled = off)"))
    return Meter(runtime.engine, owner)


def cost(meter: Meter, act: Callable[[], object]) -> Cost:
    with meter.measured() as spent:
        act()
    return spent


def backlog(crowd: Crowd, turns: int, *, scopes: int = 5) -> None:
    crowd.scopes(scopes)
    crowd.sessions(turns=turns // scopes, extracted=False)
    crowd.turns(turns // scopes, indexed=False)
    crowd.settle()


def claim(runtime: Runtime, batch: int = 64) -> tuple[index_work.ClaimedTurn, ...]:
    with transaction(runtime.engine, None) as connection:
        return index_work.claim(connection, batch=batch, lease=LEASE)


def due_work(runtime: Runtime) -> dict[str, health.DueWork]:
    with transaction(runtime.engine, None) as connection:
        return {work.kind: work for work in health.due_work(connection)}


def column(owner: Engine, statement: str, **values: Any) -> list[Any]:
    with owner.connect() as connection:
        return list(connection.execute(text(statement), values).scalars())


def change(owner: Engine, statement: str, **values: Any) -> None:
    with owner.begin() as connection:
        connection.execute(text(statement), values)


# --- a backlog ------------------------------------------------------------------------------------------------


def limit_daily_logs(owner: Engine, days: int) -> None:
    """Give every agent a hard limit: its turns leave the search, whether or not a model read them."""
    policy = f'{{"daily_log_limit_days": {days}}}'
    change(owner, "UPDATE agents SET policy = policy || CAST(:policy AS jsonb)", policy=policy)


def test_a_claim_does_not_walk_past_turns_that_are_lent(runtime: Runtime, crowd: Crowd, meter: Meter) -> None:
    backlog(crowd, 3_000)
    crowd.lend_turns()
    crowd.settle()
    assert claim(runtime) == ()
    assert cost(meter, lambda: claim(runtime)).rows <= FEW


def test_a_claim_reads_about_as_many_turns_as_it_takes(runtime: Runtime, crowd: Crowd, meter: Meter) -> None:
    backlog(crowd, 3_000)
    claim(runtime)
    assert cost(meter, lambda: claim(runtime)).rows <= 4 * 64 + FEW


def test_a_turn_that_killed_its_worker_is_found_by_index(
    runtime: Runtime, crowd: Crowd, owner: Engine
) -> None:
    backlog(crowd, 3_000)
    (suspect,) = column(owner, "SELECT id FROM turns ORDER BY random() LIMIT 1")
    change(
        owner, "UPDATE turns SET starts = 1, lease_until = now() - interval '1 s' WHERE id = :id", id=suspect
    )
    change(owner, "ANALYZE turns")
    look = """EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT scope_id, id FROM turns
        WHERE indexed_at IS NULL AND failed_at IS NULL AND starts > 0 AND lease_until <= now()
        ORDER BY lease_until LIMIT 1"""
    (plan,) = column(owner, look)
    top = plan[0]["Plan"]
    assert top["Shared Hit Blocks"] + top["Shared Read Blocks"] <= 4
    assert [turn.id for turn in claim(runtime)] == [suspect], "and is lent alone"


def test_looking_what_is_due_reads_no_more_of_a_longer_backlog(
    runtime: Runtime, crowd: Crowd, meter: Meter
) -> None:
    backlog(crowd, 3_000)
    finder.look(runtime)
    assert cost(meter, lambda: finder.look(runtime)).rows <= 2 * health.COUNTED + FEW
    assert cost(meter, lambda: due_work(runtime)).rows <= FEW
    with transaction(runtime.engine, None) as connection:
        state = health.pipeline_state(connection)
    assert (state.unindexed, state.claimable) == (health.COUNTED, health.COUNTED)


def test_the_age_of_the_oldest_turn_is_told_whatever_the_backlog(
    runtime: Runtime, crowd: Crowd, owner: Engine
) -> None:
    backlog(crowd, 50)
    change(owner, "UPDATE turns SET accepted_at = now() - interval '9 minutes'")
    with transaction(runtime.engine, None) as connection:
        assert health.pipeline_state(connection).oldest_unindexed_seconds == pytest.approx(540, abs=60)


# --- in turn across tenants -------------------------------------------------------------------------------------


def test_a_flood_of_one_tenant_leaves_every_claim_room_for_another(
    runtime: Runtime, crowd: Crowd, other_crowd: Crowd, other_tenant: int
) -> None:
    backlog(crowd, 1_000)
    backlog(other_crowd, 3, scopes=1)
    claimed = claim(runtime)
    assert len(claimed) == 64, "what one does not need is for the other"
    assert sum(turn.tenant_id == other_tenant for turn in claimed) == 3


def test_a_claim_is_shared_where_all_have_many_turns(
    runtime: Runtime, crowd: Crowd, other_crowd: Crowd, other_tenant: int
) -> None:
    backlog(crowd, 500)
    backlog(other_crowd, 500)
    assert sum(turn.tenant_id == other_tenant for turn in claim(runtime)) == 32


def test_what_waits_for_a_retry_does_not_stand_before_what_is_new(
    runtime: Runtime, crowd: Crowd, owner: Engine
) -> None:
    backlog(crowd, 100)
    change(owner, "UPDATE turns SET lease_until = now() + interval '1 hour' WHERE seq <= 10")
    change(owner, "UPDATE turns SET lease_until = now() - interval '1 second' WHERE seq = 11")
    claimed = [turn.id for turn in claim(runtime, batch=1_000)]
    late = set(column(owner, "SELECT id FROM turns WHERE seq = 11"))
    assert len(claimed) == 50, "those whose time has not come stay"
    assert set(claimed[-5:]) <= set(claimed) and late <= set(claimed)


def test_sessions_runs_and_jobs_that_are_due_are_taken_from_each_tenant(
    runtime: Runtime, crowd: Crowd, other_crowd: Crowd, owner: Engine, other_tenant: int
) -> None:
    for one, scopes in ((crowd, 60), (other_crowd, 2)):
        one.scopes(scopes)
        one.sessions(turns=1, extracted=False)
        one.due_sessions()
        one.due_runs()
        one.schedules()
    with transaction(runtime.engine, None) as connection:
        due_sessions = [session.id for session in extract_work.due_sessions(connection, most=10)]
        due_runs = [run.run_id for run in runs.due(connection, most=10)]
        due_jobs = schedules.due(connection, most=20)
    theirs = set(column(owner, "SELECT id FROM sessions WHERE tenant_id = :id", id=other_tenant))
    their_runs = set(column(owner, "SELECT id FROM runs WHERE tenant_id = :id", id=other_tenant))
    assert (len(due_sessions), len(set(due_sessions) & theirs)) == (10, 2)
    assert (len(due_runs), len(set(due_runs) & their_runs)) == (10, 2)
    assert (len(due_jobs), sum(job.tenant_id == other_tenant for job in due_jobs)) == (20, 8)


# --- many scopes ------------------------------------------------------------------------------------------------


def test_looks_over_everybodys_scopes_read_no_more_of_many(
    runtime: Runtime, crowd: Crowd, meter: Meter
) -> None:
    crowd.scopes(1_500)
    crowd.sessions(turns=3, extracted=True, age=timedelta(hours=2))
    crowd.count_terms()
    crowd.schedules()
    crowd.settle()

    def stale() -> None:
        with transaction(runtime.engine, None) as connection:
            reembedding.stale_scopes(connection, model=runtime.embedder.model, limit=50)

    def due() -> None:
        with transaction(runtime.engine, None) as connection:
            schedules.due(connection, most=100)

    for look in (stale, due, lambda: scope_index.index_big_scopes(runtime)):
        look()
        assert cost(meter, look).rows <= 100 + FEW, look


def test_silent_sessions_of_agents_without_a_model_are_gone_through_once(
    runtime: Runtime, crowd: Crowd, meter: Meter, owner: Engine, tenant: int
) -> None:
    crowd.scopes(500)
    crowd.scope_with_model()
    crowd.sessions(turns=3, extracted=True, age=timedelta(hours=2))
    crowd.settle()
    asked = sum(synthesis.enqueue_idle(runtime) for _ in range(8))
    assert asked == 1, "the one of the agent with a model"
    assert synthesis.enqueue_idle(runtime) == 0
    assert cost(meter, lambda: synthesis.enqueue_idle(runtime)).rows <= FEW
    change(owner, "UPDATE sessions SET next_seq = next_seq + 1")
    assert sum(synthesis.enqueue_idle(runtime) for _ in range(8)) == 0, "its run waits"
    change(owner, "UPDATE runs SET state = 'done', finished_at = now()")
    assert sum(synthesis.enqueue_idle(runtime) for _ in range(8)) == 1, "there are new turns"


def test_a_session_that_rules_extract_never_waits_for_a_synthesis(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    record(runtime, tenant, Scope(AGENT, "bob", "chat"), [NewTurn(Role.USER, "I live in Paris.")])
    finder.drain(runtime)
    assert column(owner, "SELECT asked_seq FROM sessions") == [1]


def test_the_size_of_a_scope_is_noted_as_it_grows_and_shrinks(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    said = [NewTurn(Role.USER, f"Box {n} stands in room {n * 7}.") for n in range(130)]
    record(runtime, tenant, Scope(AGENT, "bob", "chat"), said)
    index_turns(runtime)
    assert column(owner, "SELECT row_count FROM scope_sizes") == [128], "at every 64th row"
    change(owner, "UPDATE turns SET accepted_at = now() - interval '60 days'")
    limit_daily_logs(owner, 30)
    perform(runtime, tenant, decay.ask(runtime, tenant, BOB).id)
    (noted,) = column(owner, "SELECT row_count FROM scope_sizes")
    assert noted < 64


# --- big scopes -------------------------------------------------------------------------------------------------


@pytest.fixture
def narrow(runtime: Runtime) -> Runtime:
    """Scopes are big from a hundred rows on, and one may have search indexes."""
    recall_settings = runtime.settings.recall.model_copy(update={"scan_rows": 100, "big_scopes_max": 1})
    return replace(runtime, settings=runtime.settings.model_copy(update={"recall": recall_settings}))


def scope_id_of(runtime: Runtime, tenant: int, scope: Scope) -> int:
    with transaction(runtime.engine, tenant) as connection:
        return names.ensure_scope(connection, tenant, scope).id


def indexed(owner: Engine) -> list[int]:
    return column(owner, "SELECT scope_id FROM scope_models WHERE is_indexed ORDER BY 1")


def test_no_more_scopes_get_search_indexes_than_may_have_some(
    narrow: Runtime, crowd: Crowd, tenant: int, owner: Engine
) -> None:
    biggest, second = (scope_id_of(narrow, tenant, Scope(AGENT, user)) for user in ("ada", "bob"))
    crowd.memories(biggest, 200, links_each=0)
    crowd.memories(second, 150, links_each=0)
    assert scope_index.index_big_scopes(narrow) == 1
    assert scope_index.index_big_scopes(narrow) == 0
    assert indexed(owner) == [biggest]
    assert recall(narrow, tenant, BOB, query=RecallQuery("case archive")).memories, "the other one is scanned"

    found = {check.name: check for check in diagnose(narrow.settings)}["big scopes"]
    assert (found.state, found.found) == ("warn", "1 of at most 1 have search indexes")

    change(owner, "DELETE FROM scopes WHERE id = :id", id=biggest)
    assert scope_index.index_big_scopes(narrow) == 1, "who is gone makes room"
    assert indexed(owner) == [second]


def test_a_server_with_few_locks_gets_few_search_indexes(runtime: Runtime) -> None:
    with transaction(runtime.engine, None) as connection:
        room = scope_index.room(connection, setting=10_000)
        locks = connection.execute(
            text("SELECT current_setting('max_locks_per_transaction')::integer")
        ).scalar_one()
    assert room.indexed == 0
    assert 0 < room.most * 6 <= 3 * int(locks)


# --- one person's memories --------------------------------------------------------------------------------------


def perform(runtime: Runtime, tenant: int, run_id: UUID) -> dict[str, Any]:
    jobs.perform(runtime, run_id, JOBS)
    done = jobs.read(runtime, tenant, run_id)
    assert done.state == "done", done.reason
    return done.report  # type: ignore[no-any-return]


def test_a_batch_of_statements_scans_the_scope_once(
    runtime: Runtime, crowd: Crowd, meter: Meter, tenant: int, owner: Engine
) -> None:
    said = ("I really like chess.", "My dog is called Rex.", "I play the accordion.", "I collect old radios.")
    read = {}
    for held in (500, 2_000):
        scope = Scope(AGENT, f"user {held}", "chat")
        crowd.memories(scope_id_of(runtime, tenant, scope), held, links_each=0)
        # The first write into a scope counts what it holds.
        remember(runtime, tenant, Scope(AGENT, scope.user), statement=Statement("fact", "The kettle is old."))
        record(runtime, tenant, scope, [NewTurn(Role.USER, text) for text in said])
        index_turns(runtime)
        crowd.settle()
        (session,) = column(owner, "SELECT max(id) FROM sessions")
        with meter.measured() as spent:
            done = extract_session(runtime, session)
        assert done.memories == len(said)
        read[held] = spent.rows
    assert 1_500 <= read[2_000] - read[500] < 2 * 1_500


def test_a_write_near_the_ceiling_counts_nothing(
    runtime: Runtime, crowd: Crowd, meter: Meter, tenant: int
) -> None:
    held, links_each = 1_000, 20
    crowd.memories(scope_id_of(runtime, tenant, BOB), held, links_each=links_each)
    policy = {"max_memories": held + 100, "max_links": held * links_each + 1_000}
    change_agent(runtime, tenant, Scope(AGENT), change=AgentChange(frozenset({"policy"}), policy=policy))
    crowd.settle()
    said = [f"The {word} kettle stands on shelf {n}." for n, word in enumerate(("red", "old", "tin", "wet"))]
    remember(runtime, tenant, BOB, statement=Statement("fact", said[0]))
    for another in said[1:]:
        with meter.measured() as spent:
            remember(runtime, tenant, BOB, statement=Statement("fact", another))
        assert spent.rows < held * 2, "one scan for what is near, and no link of the others"


def test_a_memory_keeps_its_strongest_links_only(runtime: Runtime, tenant: int, owner: Engine) -> None:
    few = runtime.settings.remember.model_copy(update={"links_each": 5, "link_similarity": 0.2})
    runtime = replace(runtime, settings=runtime.settings.model_copy(update={"remember": few}))
    for n in range(30):
        remember(
            runtime,
            tenant,
            BOB,
            statement=Statement("fact", f"I love X{n} cake with cream."),
            deduplicate=False,
        )
    degrees = column(
        owner,
        """SELECT count(*) FROM (SELECT source_id AS id FROM links UNION ALL SELECT target_id FROM links) AS e
        GROUP BY id""",
    )
    assert len(degrees) >= 20
    assert max(degrees) == 5


def test_facts_of_one_subject_do_not_all_count_for_the_next_one(
    runtime: Runtime, meter: Meter, tenant: int, crowd: Crowd, owner: Engine
) -> None:
    def like(thing: str) -> None:
        fact = Statement("fact", f"I like {thing}.", subject="I", relation="likes", object=thing)
        remember(runtime, tenant, BOB, statement=fact)

    like("tea")
    change(
        owner,
        """INSERT INTO memories (tenant_id, scope_id, kind, text, canonical_key, subject_key, relation, object_key,
            importance, confidence, origin, valid_from, valid_until, retired_at, retired_reason, last_seen,
            confirmed_at)
        SELECT tenant_id, scope_id, kind, text || n, canonical_key || n, subject_key, relation, 'thing-' || n,
            importance, confidence, origin, valid_from, now(), now(), 'superseded', last_seen, confirmed_at
        FROM memories, generate_series(1, 2000) AS n""",
    )
    crowd.settle()
    like("coffee")
    assert cost(meter, lambda: like("rowing")).rows <= 4 * FEW


def test_a_cycle_over_more_clusters_sends_hardly_more_statements(
    runtime: Runtime, meter: Meter, tenant: int
) -> None:
    sent = {}
    for user, clusters in (("few", 5), ("many", 60)):
        scope = Scope(AGENT, user)
        for n in range(clusters):
            for said in (
                f"Crate {n * 3} stands in cellar {n}.",
                f"Indeed crate {n * 3} stands in cellar {n}.",
            ):
                remember(runtime, tenant, scope, statement=Statement("fact", said), deduplicate=False)
        run = cycle.ask(runtime, tenant, scope, options={"force": True, "min_strength": 1, "similarity": 0.6})
        with meter.measured() as spent:
            report = perform(runtime, tenant, run.id)
        sent[user] = spent.statements
        assert len(report["clusters"]) >= clusters // 2
    assert sent["many"] <= sent["few"] + 40


def test_whom_a_text_names_is_found_without_reading_everybody(
    runtime: Runtime, meter: Meter, tenant: int, crowd: Crowd, owner: Engine
) -> None:
    remember(runtime, tenant, BOB, statement=Statement("fact", "The kettle is old."))
    (scope_id,) = column(owner, "SELECT id FROM scopes")
    change(
        owner,
        """INSERT INTO entities (tenant_id, scope_id, key, type, label, first_seen, last_seen)
        SELECT :tenant, :scope, 'person:' || name || '_berg', 'person', initcap(name) || ' Berg', now(), now()
        FROM (SELECT 'xa' || translate(n::text, '0123456789', 'abcdefghij') AS name
              FROM generate_series(1, 3000) AS n) AS named""",
        tenant=tenant,
        scope=scope_id,
    )
    crowd.settle()
    texts = ["Xabc Berg and I sail with Xacd and the others."]
    with transaction(runtime.engine, tenant) as connection:
        found: list[KnownEntity] = []
        spent = cost(meter, lambda: found.extend(entities.likely_named(connection, scope_id, texts)))
    assert [entity.key for entity in found] == ["person:xabc_berg", "person:xacd_berg"]
    assert spent.rows <= FEW


# --- transfer ---------------------------------------------------------------------------------------------------


def with_entities(snapshot: dict[str, Any], count: int) -> dict[str, Any]:
    """As many things, every third of them merged into the one before it."""
    (entity,) = snapshot["entities"]
    things = [
        entity
        | {
            "key": f"thing:thing-{n}",
            "type": "thing",
            "label": f"Thing {n}",
            "merged_into": f"thing:thing-{n - 1}" if n % 3 == 2 else None,
        }
        for n in range(count)
    ]
    counts = snapshot["counts"] | {"nodes": 0, "entities": count, "mentions": 0, "links": 0}
    empty = {"nodes": [], "mentions": [], "links": [], "canonical": canonical_meta([])}
    return snapshot | empty | {"entities": things, "counts": counts}


def test_an_import_reads_as_much_for_each_of_many_entities_as_of_few(
    runtime: Runtime, meter: Meter, tenant: int, owner: Engine
) -> None:
    memory = MemoryApp(runtime, tenant_id=tenant)
    memory.add_fact(BOB, "Mira", "lives_in", "Lisbon")
    snapshot = memory.export(BOB)
    snapshot["entities"] = snapshot["entities"][:1]
    each = {}
    for count in (200, 800):
        given = with_entities(snapshot, count)
        with meter.measured() as spent:
            memory.load(Scope(AGENT, f"target {count}"), given)
        each[count] = spent.rows / count
    assert each[800] <= 1.3 * each[200]
    merged = column(
        owner, "SELECT count(*) FROM entities WHERE merged_into IS NOT NULL AND key LIKE 'thing:%'"
    )
    assert merged == [66 + 266]


# --- what nobody asks for any more ------------------------------------------------------------------------------


def test_runs_go_after_a_while_unless_something_rests_on_them(
    runtime: Runtime, crowd: Crowd, meter: Meter, tenant: int, owner: Engine
) -> None:
    scope_id = scope_id_of(runtime, tenant, BOB)
    crowd.old_runs(scope_id, 700, age=MONTHS)
    crowd.old_runs(scope_id, 3, age=timedelta(days=2))
    picture, by_hand, asked, *_ = column(
        owner, "SELECT id FROM runs WHERE finished_at < now() - interval '9 days'"
    )
    change(
        owner,
        """INSERT INTO images (tenant_id, scope_id, run_id, source, change, row_key)
        VALUES (:tenant, :scope, :run, 'links', 'insert', '{}')""",
        tenant=tenant,
        scope=scope_id,
        run=picture,
    )
    change(owner, "UPDATE runs SET name = 'merge_entities' WHERE id = :id", id=by_hand)
    remember(runtime, tenant, BOB, statement=Statement("fact", "Bob sails."))
    change(owner, "UPDATE runs SET model = 'small' WHERE id = :id", id=asked)
    change(owner, "UPDATE memories SET run_id = :id", id=asked)

    assert upkeep.tidy(runtime) == 697
    assert set(column(owner, "SELECT id FROM runs WHERE kept_at IS NOT NULL")) == {picture, by_hand, asked}
    assert len(column(owner, "SELECT id FROM runs")) == 6
    crowd.settle()
    assert cost(meter, lambda: upkeep.tidy(runtime)).rows <= FEW, "what is kept is not gone through each time"

    change(owner, "UPDATE runs SET kept_at = kept_at - interval '31 days'")
    change(owner, "DELETE FROM images")
    change(owner, "DELETE FROM memories")
    assert upkeep.tidy(runtime) == 2
    assert by_hand in column(owner, "SELECT id FROM runs"), "a merge by hand can be undone at any time"


def test_turns_too_old_to_be_searched_give_up_what_only_search_needs(
    runtime: Runtime, crowd: Crowd, meter: Meter, tenant: int, owner: Engine
) -> None:
    record(runtime, tenant, Scope(AGENT, "bob", "chat"), [NewTurn(Role.USER, "I parked on level nine.")] * 3)
    finder.drain(runtime)
    change(owner, "UPDATE turns SET accepted_at = now() - interval '31 days' WHERE seq < 3")
    limit_daily_logs(owner, 30)
    counted = "SELECT row_count FROM terms WHERE term = 0"
    (before,) = column(owner, counted)

    report = perform(runtime, tenant, decay.ask(runtime, tenant, BOB).id)

    assert report["turns_lapsed"] == 2
    left = column(owner, "SELECT seq FROM turns WHERE embedding IS NOT NULL AND terms IS NOT NULL")
    assert left == [3]
    assert column(owner, "SELECT text FROM turns") == ["I parked on level nine."] * 3
    assert column(owner, counted) == [before - 2]
    (due,) = column(owner, "SELECT due_at FROM schedules WHERE job = 'decay' AND due_at IS NOT NULL")
    assert report["next_lapse_at"] is not None and due is not None


def test_a_search_does_not_come_by_turns_that_lapsed(
    runtime: Runtime, crowd: Crowd, meter: Meter, tenant: int, owner: Engine
) -> None:
    crowd.scopes(1)
    crowd.sessions(turns=1_200, extracted=True, age=MONTHS)
    crowd.turns(1_200, indexed=True, age=MONTHS)
    crowd.count_terms()
    limit_daily_logs(owner, 30)
    scope = Scope(AGENT, "crowd 1")
    assert perform(runtime, tenant, decay.ask(runtime, tenant, scope).id)["turns_lapsed"] == 1_200
    crowd.settle()
    recall(runtime, tenant, scope, query=RecallQuery("Which dog?"))
    spent = cost(meter, lambda: recall(runtime, tenant, scope, query=RecallQuery("Which dog did I walk?")))
    assert spent.rows <= FEW


def test_a_look_for_old_turns_reads_none_whose_words_are_gone(
    runtime: Runtime, crowd: Crowd, meter: Meter, tenant: int, owner: Engine
) -> None:
    crowd.scopes(1)
    crowd.sessions(turns=1_200, extracted=True, age=MONTHS)
    crowd.turns(1_200, indexed=True, age=MONTHS)
    crowd.count_terms()
    policy = '{"retention": {"turns": 30}, "extraction": "off"}'
    change(owner, "UPDATE agents SET policy = policy || CAST(:policy AS jsonb)", policy=policy)
    run = decay.ask(runtime, tenant, Scope(AGENT, "crowd 1"))
    assert perform(runtime, tenant, run.id)["deleted"] == {"turns": 1_200}
    crowd.settle()
    (scope_id,) = column(owner, "SELECT DISTINCT scope_id FROM turns")
    month = timedelta(days=30)

    def look() -> None:
        with transaction(runtime.engine, tenant) as connection:
            assert not retention.delete_words(connection, scope_id, age=month, extracting=False, limit=200)
            assert retention.next_turn(connection, scope_id, age=month) is None

    assert cost(meter, look).rows <= FEW


def test_a_recall_reads_no_grants_of_other_people(
    runtime: Runtime, tenant: int, owner: Engine, meter: Meter
) -> None:
    """One agent may recall what another knows, for many people."""
    app, coach = MemoryApp(runtime, tenant), Scope("coach", "bob")
    app.remember(coach, "Bob likes green tea.")
    app.remember(BOB, "Bob drinks no coffee.")
    change(owner, "ANALYZE")

    def look() -> None:
        assert app.recall(coach, "What does Bob drink?").memories

    look()
    without = cost(meter, look)
    change(
        owner,
        """WITH a AS (SELECT id, tenant_id FROM agents),
        u AS (INSERT INTO users (tenant_id, name)
              SELECT :tenant, 'user' || n FROM generate_series(1, 3000) n RETURNING *),
        c AS (INSERT INTO scopes (tenant_id, agent_id, user_id)
              SELECT u.tenant_id, a.id, u.id FROM u, a RETURNING *)
        INSERT INTO grants (tenant_id, scope_id, to_scope_id, kinds)
        SELECT x.tenant_id, x.id, y.id, '{fact}' FROM c x JOIN c y ON y.user_id = x.user_id AND y.agent_id > x.agent_id
        """,
        tenant=tenant,
    )
    change(owner, "ANALYZE")
    look()
    with_others = cost(meter, look)
    assert with_others.statements == without.statements
    assert with_others.rows <= without.rows + FEW
    app.set_grant("bob", BOB.agent, to="coach", kinds=["fact"])
    look()
    with_one = cost(meter, look)
    assert with_one.statements <= without.statements + 5
    assert with_one.rows <= without.rows + 2 * FEW


def test_due_periodic_jobs_are_noted_whatever_the_number_of_scopes(
    runtime: Runtime, crowd: Crowd, owner: Engine
) -> None:
    crowd.scopes(200)
    crowd.schedules()
    asked = periodic.enqueue_due(runtime)
    assert 0 < asked.runs <= runtime.settings.schedule.batch
