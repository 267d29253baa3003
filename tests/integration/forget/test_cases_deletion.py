"""What others lost or kept when something was to be forgotten: each as a rule that holds here."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any
from uuid import UUID

import pytest
from embedders import ScriptedEmbedder
from redis import Redis
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.db.db import transaction
from memory_app.dispatch.job_table import JOBS
from memory_app.errors import MemoryAppError, NotFound, Transient
from memory_app.forget.forget import forget_memory, forget_session, forget_turn, forget_user, read_erasure
from memory_app.jobs import jobs
from memory_app.main.http import create_app
from memory_app.memories import remember
from memory_app.memories.lookup import MemoryFilter, invalidate, list_memories, read_memory
from memory_app.recall.context import ContextRequest, context
from memory_app.recall.recall import RecallQuery, recall
from memory_app.records.records import Mention, NewTurn, Origin, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import consolidate
from memory_app.tenancy.policy import parse_policy
from memory_app.tenancy.rows import names
from memory_app.turns.extract import extract_session
from memory_app.turns.index import index_turns
from memory_app.turns.record import record
from memory_app.turns.rows import sessions

SCOPE, SESSION = Scope("ada", "mira"), Scope("ada", "mira", "chat")


def say(runtime: Runtime, tenant: int, *texts: str, scope: Scope = SESSION) -> list[UUID]:
    """Turns of the user, indexed and extracted."""
    tickets = record(runtime, tenant, scope, [NewTurn(Role.USER, said) for said in texts])
    index_turns(runtime)
    digest(runtime, tenant, scope)
    return [ticket.id for ticket in tickets]


def digest(runtime: Runtime, tenant: int, scope: Scope = SESSION) -> None:
    with transaction(runtime.engine, tenant) as connection:
        row = names.need_scope(connection, tenant, scope)
        session = sessions.find(connection, row.id, scope.session or "")
    assert session is not None
    extract_session(runtime, session.id)


def tell(runtime: Runtime, tenant: int, said: str, *, scope: Scope = SCOPE, **fields: Any) -> UUID:
    return remember.remember(runtime, tenant, scope, statement=Statement("fact", said, **fields)).id


def derive(runtime: Runtime, tenant: int, said: str, *, scope: Scope = SCOPE, **fields: Any) -> UUID:
    """A conclusion drawn by a job."""
    made = {"kind": "artifact", "origin": Origin.SYNTHESIZED} | fields
    return remember.remember(runtime, tenant, scope, statement=Statement(text=said, **made)).id


def tables(owner: Engine) -> list[str]:
    with owner.connect() as connection:
        return list(
            connection.execute(
                text(
                    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1"
                )
            ).scalars()
        )


def where(owner: Engine, word: str) -> list[str]:
    """Every table in which the word still stands, in any column."""
    with owner.connect() as connection:
        return [
            table
            for table in tables(owner)
            if connection.execute(
                text(f"SELECT EXISTS (SELECT FROM {table} t WHERE t::text ILIKE :like)"),
                {"like": f"%{word}%"},
            ).scalar_one()
        ]


def in_redis(runtime: Runtime, word: str) -> bool:
    settings = runtime.settings.redis
    with Redis.from_url(settings.url.get_secret_value(), protocol=2) as client:
        keys = list(client.scan_iter(f"{settings.prefix}*"))
        values = [client.dump(key) or b"" for key in keys]
    return any(word.encode() in found for found in [*keys, *values])


def rows_of_user(owner: Engine, scope: str) -> dict[str, list[str]]:
    """Everything of one user, table by table."""
    with owner.connect() as connection:
        scope_id = connection.execute(
            text("SELECT c.id FROM scopes c JOIN users u ON u.id = c.user_id WHERE u.name = :user"),
            {"user": scope},
        ).scalar_one()
        found = {}
        for table in tables(owner):
            has_scope = connection.execute(
                text(
                    """SELECT count(*) FROM information_schema.columns
                    WHERE table_name = :table AND column_name = 'scope_id'"""
                ),
                {"table": table},
            ).scalar_one()
            if has_scope:
                all_of = text(f"SELECT t::text FROM {table} t WHERE scope_id = :scope ORDER BY 1")
                found[table] = list(connection.execute(all_of, {"scope": scope_id}).scalars())
    return found


def assert_terms_equal_a_recount(owner: Engine) -> None:
    with owner.connect() as connection:
        wrong = connection.execute(
            text(
                """
                WITH held AS (
                    SELECT scope_id, unnest(terms || 0) AS term FROM memories WHERE terms IS NOT NULL
                    UNION ALL SELECT scope_id, unnest(terms || 0) FROM turns WHERE terms IS NOT NULL
                ), counted AS (SELECT scope_id, term, count(*) AS n FROM held GROUP BY 1, 2)
                SELECT t.term, t.row_count, c.n FROM terms t
                FULL JOIN counted c ON c.scope_id = t.scope_id AND c.term = t.term
                WHERE coalesce(t.row_count, 0) <> coalesce(c.n, 0)
                """
            )
        ).all()
    assert wrong == []


# --- one turn -------------------------------------------------------------------------------------------------


def test_a_forgotten_turn_is_gone_also_after_the_next_consolidation(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    kept, gone = say(
        runtime,
        tenant,
        "I live in Lisbon and I love bouldering.",
        "I work at Zanzicorp and my sister is called Quenella.",
    )
    conclusion = derive(runtime, tenant, "Quenella and Zanzicorp matter to her.", evidence=(gone,))
    derive(runtime, tenant, "Mira has settled well.", evidence=(kept, gone))
    both = derive(runtime, tenant, "Between Lisbon and Zanzicorp she found a balance.", evidence=(kept, gone))
    with owner.begin() as connection:
        connection.execute(text("UPDATE sessions SET summary = 'She works at Zanzicorp.'"))
        connection.execute(
            text("UPDATE entities SET summary = 'Works at Zanzicorp' WHERE key LIKE 'person:%'")
        )
    assert {"turns", "memories", "entities", "sessions"} <= set(where(owner, "zanzicorp"))
    context(runtime, tenant, SCOPE, request=ContextRequest("Where does she work?", session="chat"))

    receipt = forget_turn(runtime, tenant, gone)

    assert receipt.report["counts"]["turns"] == 1
    for _ in range(2):
        assert (where(owner, "zanzicorp"), where(owner, "quenella")) == ([], [])
        assert not in_redis(runtime, "Zanzicorp")
        answered = recall(
            runtime, tenant, SCOPE, query=RecallQuery("Where does she work? Zanzicorp, Quenella")
        )
        assert not any("zanzi" in hit.text.lower() or "quen" in hit.text.lower() for hit in answered.memories)
        window = context(runtime, tenant, SCOPE, request=ContextRequest("Zanzicorp?", session="chat"))
        assert "Quenella" not in window.text
        asked = consolidate.ask(runtime, tenant, SCOPE)
        jobs.perform(runtime, asked.id, JOBS)
    for memory_id in (conclusion, both):
        with pytest.raises(NotFound):
            read_memory(runtime, tenant, memory_id)
    texts = [memory.text for memory in list_memories(runtime, tenant, SCOPE, filters=MemoryFilter())]
    assert "Mira has settled well." in texts, "what says nothing of it and rests on another turn stays"
    assert any("Lisbon" in said for said in texts)
    assert_terms_equal_a_recount(owner)


def test_what_another_turn_supports_stays_when_one_of_them_is_forgotten(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    first, second = say(runtime, tenant, "I love bouldering outdoors.", "I love bouldering outdoors!")
    (memory,) = [
        m for m in list_memories(runtime, tenant, SCOPE, filters=MemoryFilter()) if "bouldering" in m.text
    ]
    assert memory.repeat_count == 2
    forget_turn(runtime, tenant, first)
    assert read_memory(runtime, tenant, memory.id).retired_at is None
    forget_turn(runtime, tenant, second)
    assert where(owner, "bouldering") == []
    assert_terms_equal_a_recount(owner)


def test_a_merged_memory_gives_way_to_the_parts_that_are_left(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    kept, gone = say(runtime, tenant, "Some words nobody needs.", "Other words nobody needs at all.")
    short = "Mira enjoys quiet evening walks along the river with her old dog after a long day of work in the city."
    long = short.replace("enjoys", "really enjoys").replace("dog", "dog Quibbler")
    old = tell(runtime, tenant, short, origin=Origin.EXTRACTED, evidence=(kept,))
    merged = remember.remember(
        runtime, tenant, SCOPE, statement=Statement("fact", long, origin=Origin.EXTRACTED, evidence=(gone,))
    )
    assert merged.outcome.value == "merged"
    forget_turn(runtime, tenant, gone)
    assert where(owner, "quibbler") == []
    stands = read_memory(runtime, tenant, old)
    assert (stands.retired_at, stands.successor) == (None, None)


def test_a_declared_statement_outlives_the_turn_that_repeated_it(runtime: Runtime, tenant: int) -> None:
    declared = tell(runtime, tenant, "Mira likes tea.")
    (turn,) = say(runtime, tenant, "Nothing to see here, really.")
    tell(runtime, tenant, "Mira likes tea.", origin=Origin.EXTRACTED, evidence=(turn,))
    forget_turn(runtime, tenant, turn)
    assert read_memory(runtime, tenant, declared).retired_at is None


def test_a_statement_declared_later_outlives_the_turn_it_came_from(runtime: Runtime, tenant: int) -> None:
    (turn,) = say(runtime, tenant, "Nothing to see here, really.")
    extracted = tell(runtime, tenant, "Mira likes tea.", origin=Origin.EXTRACTED, evidence=(turn,))
    assert tell(runtime, tenant, "Mira likes tea.") == extracted
    forget_turn(runtime, tenant, turn)
    assert read_memory(runtime, tenant, extracted).origin is Origin.DECLARED


def test_an_extraction_under_way_cannot_bring_a_forgotten_turn_back(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (ticket,) = record(runtime, tenant, SESSION, [NewTurn(Role.USER, "I live in Zanzibar.")])
    with transaction(runtime.engine, tenant) as connection:
        row = names.need_scope(connection, tenant, SESSION)
        session = sessions.find(connection, row.id, "chat")
    assert session is not None
    with transaction(runtime.engine, None) as connection:
        claimed = sessions.claim(connection, session.id, timedelta(minutes=1))
    assert claimed is not None
    forget_turn(runtime, tenant, ticket.id)
    with transaction(runtime.engine, tenant) as connection:
        assert not sessions.advance(connection, claimed, from_seq=1, to_seq=1)
    say(runtime, tenant, "I also keep bees in the garden.")
    assert where(owner, "zanzibar") == []


def test_a_statement_of_a_turn_that_was_forgotten_meanwhile_is_refused(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (turn,) = say(runtime, tenant, "Nothing to see here, really.")
    statement = Statement("fact", "Mira is fond of secrets.", origin=Origin.EXTRACTED, evidence=(turn,))
    prepared = remember.prepare(runtime, [statement], policy=parse_policy({}))
    forget_turn(runtime, tenant, turn)
    with transaction(runtime.engine, tenant) as connection:
        scope_id = names.need_scope(connection, tenant, SCOPE).id
        names.lock_scope(connection, tenant, scope_id)
        with pytest.raises(Transient, match="forgotten"):
            remember.write(connection, runtime, remember.Place(tenant, scope_id), prepared=prepared[0])
    assert where(owner, "secrets") == []


# --- one memory -----------------------------------------------------------------------------------------------


def test_deleting_removes_the_text_and_invalidating_keeps_it_as_history(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    history = tell(runtime, tenant, "Mira plays the vuvuzela.")
    wrong = tell(
        runtime,
        tenant,
        "Mira lives in Xanadu.",
        subject="Mira",
        relation="lives_in",
        object="Xanadu",
        mentions=(Mention("place", "Xanadu"),),
    )
    invalidate(runtime, tenant, history)
    forget_memory(runtime, tenant, wrong)
    assert read_memory(runtime, tenant, history).retired_reason == "invalidated"
    assert where(owner, "vuvuzela") == ["memories"]
    assert where(owner, "xanadu") == []
    with pytest.raises(NotFound):
        forget_memory(runtime, tenant, wrong)
    assert_terms_equal_a_recount(owner)


def test_a_deleted_fact_takes_its_other_intervals_and_merged_parts_along(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    def home(city: str, **fields: Any) -> UUID:
        said = f"Mira lives in {city}."
        return tell(runtime, tenant, said, subject="Mira", relation="lives_in", object=city, **fields)

    start, gap, end = (datetime(year, 1, 1, tzinfo=UTC) for year in (2018, 2020, 2021))
    home("Xanadu", valid_from=start)
    home("Porto", valid_from=gap, valid_until=end)
    current = [
        m for m in list_memories(runtime, tenant, SCOPE, filters=MemoryFilter()) if m.object == "Xanadu"
    ]
    forget_memory(runtime, tenant, current[0].id)
    assert where(owner, "xanadu") == []
    assert where(owner, "porto") != []


def test_a_conclusion_without_parents_is_retired_and_a_repetition_gone(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    parent = tell(runtime, tenant, "Mira fears vuvuzelas.")
    other = tell(runtime, tenant, "Mira sings in a choir.")
    silent = derive(runtime, tenant, "Loud evenings are hard.", parents=(parent,))
    repeating = derive(runtime, tenant, "Avoid vuvuzelas near her.", parents=(parent,))
    supported = derive(runtime, tenant, "Music decides how she feels.", parents=(parent, other))
    forget_memory(runtime, tenant, parent)
    assert read_memory(runtime, tenant, silent).retired_reason == "expired"
    with pytest.raises(NotFound):
        read_memory(runtime, tenant, repeating)
    assert read_memory(runtime, tenant, supported).retired_at is None
    assert where(owner, "vuvuzela") == []


def test_what_is_deleted_is_not_served_from_a_cache_or_an_index(
    runtime: Runtime, tenant: int, api_key: str
) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    base = "/v1/agents/ada/users/mira"
    anchor = {"text": "They both love the vuvuzela.", "kind": "anchor", "importance": 9}
    made = client.post(f"{base}/memories", json=anchor).json()
    ask = {"query": "vuvuzela", "budget_tokens": 2000}
    assert "vuvuzela" in client.post(f"{base}/context", json=ask).json()["text"]
    assert client.delete(f"/v1/memories/{made['id']}").status_code == 204
    window = client.post(f"{base}/context", json=ask).json()["text"]
    assert "They both love" not in window
    assert client.post(f"{base}/recall", json={"query": "vuvuzela"}).json()["memories"] == []
    assert client.get(f"/v1/memories/{made['id']}").status_code == 404
    assert client.delete(f"/v1/memories/{made['id']}").status_code == 404


# --- one session ----------------------------------------------------------------------------------------------


def test_a_forgotten_session_takes_only_what_came_from_it_alone(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    say(runtime, tenant, "I live in Lisbon.", "I love bouldering outdoors.")
    other = Scope("ada", "mira", "other")
    say(runtime, tenant, "I work at Zanzicorp.", "I love bouldering outdoors!", scope=other)
    tell(runtime, tenant, "A note of that Zanzicorp session.", scope=other)
    dry = forget_session(runtime, tenant, other, dry_run=True)
    assert where(owner, "zanzicorp") != []
    done = forget_session(runtime, tenant, other)
    assert done.report["counts"] == dry.report["counts"]
    assert done.report["counts"]["sessions"] == 1
    assert where(owner, "zanzicorp") == []
    texts = {memory.text for memory in list_memories(runtime, tenant, SCOPE, filters=MemoryFilter())}
    assert any("bouldering" in said for said in texts)
    assert forget_session(runtime, tenant, other).report["counts"] == {}, "repeating it is harmless"
    assert_terms_equal_a_recount(owner)


# --- a person -------------------------------------------------------------------------------------------------


def test_erasing_one_user_leaves_every_row_of_another_unchanged(
    runtime: Runtime, tenant: int, other_tenant: int, owner: Engine
) -> None:
    for tenant_id, user in ((tenant, "mira"), (tenant, "eve"), (other_tenant, "zoe")):
        say(runtime, tenant_id, "I live in Lisbon and I love tea.", scope=Scope("ada", user, "chat"))
        tell(runtime, tenant_id, "A statement.", scope=Scope("ada", user))
    before, found = (
        rows_of_user(owner, "eve"),
        recall(runtime, tenant, Scope("ada", "eve"), query=RecallQuery("tea")),
    )
    forget_user(runtime, tenant, "mira")
    forget_user(runtime, tenant, "zoe")
    assert rows_of_user(owner, "eve") == before
    again = recall(runtime, tenant, Scope("ada", "eve"), query=RecallQuery("tea"))
    assert [hit.id for hit in again.memories] == [hit.id for hit in found.memories]
    assert rows_of_user(owner, "zoe")["turns"], "another tenant's person of that name is somebody else"


def test_one_call_erases_ten_thousand_memories_and_its_receipt_is_exact(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    say(runtime, tenant, "I live in Lisbon and I love tea.")
    first = tell(runtime, tenant, "Mira owns a boat.", mentions=(Mention("thing", "Boat"),))
    with owner.begin() as connection:
        columns = """tenant_id, scope_id, kind, text, importance, confidence, origin, valid_from, last_seen,
            confirmed_at, embedding, embedding_model, keywords, terms"""
        connection.execute(
            text(
                f"""INSERT INTO memories ({columns}, canonical_key)
                SELECT {columns.replace("text", "text || n")}, 'k' || n
                FROM memories, generate_series(1, 9999) n WHERE id = :id"""
            ),
            {"id": first},
        )
        connection.execute(
            text(
                """INSERT INTO links (tenant_id, scope_id, source_id, target_id, type, weight)
                SELECT m.tenant_id, m.scope_id, m.id, :id, 'similar_to', 0.8 FROM memories m WHERE m.id <> :id"""
            ),
            {"id": first},
        )
        counted = {
            table: connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()
            for table in ("memories", "links", "turns", "sessions", "entities", "mentions", "users", "scopes")
        }
    assert counted["memories"] >= 10_000
    dry = forget_user(runtime, tenant, "mira", dry_run=True)
    assert where(owner, "lisbon") != []

    done = forget_user(runtime, tenant, "mira")

    receipt = read_erasure(runtime, tenant, UUID(done.report["erasure"]))
    assert {table: receipt.counts[table] for table in counted} == counted
    assert dict(receipt.counts) == dry.report["counts"]
    assert where(owner, "lisbon") == where(owner, "mira") == []
    assert not in_redis(runtime, "mira")
    assert forget_user(runtime, tenant, "mira").report["counts"] == {}, "repeating it is harmless"
    tell(runtime, tenant, "Mira is back.")
    assert len(list_memories(runtime, tenant, SCOPE, filters=MemoryFilter())) == 1


@pytest.mark.one_shard
def test_what_an_agent_learned_keeps_what_other_people_support(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (mine,) = say(runtime, tenant, "Please stop the Quibbler jokes, they hurt.")
    eve = Scope("ada", "eve", "chat")
    (theirs,) = say(runtime, tenant, "Please stop the jokes.", scope=eve)
    with transaction(runtime.engine, tenant) as connection:
        agent = names.ensure_scope(connection, tenant, Scope("ada"))
        readable = [
            agent.id,
            *(names.need_scope(connection, tenant, Scope("ada", user)).id for user in ("mira", "eve")),
        ]
    place = remember.Place(tenant, agent.id, turn_scopes=tuple(readable))
    said = {
        "Quibbler jokes hurt people.": (mine, theirs),
        "Jokes are not welcome everywhere.": (mine, theirs),
        "Being told off teaches.": (mine,),
    }
    statements = [
        Statement("identity", words, origin=Origin.SYNTHESIZED, evidence=evidence)
        for words, evidence in said.items()
    ]
    prepared = remember.prepare(runtime, statements, policy=parse_policy({}))
    with transaction(runtime.engine, tenant) as connection:
        names.lock_scope(connection, tenant, agent.id)
        for item in prepared:
            remember.write(connection, runtime, place, prepared=item, deduplicate=False)
    forget_user(runtime, tenant, "mira")
    left = [memory.text for memory in list_memories(runtime, tenant, Scope("ada"), filters=MemoryFilter())]
    assert left == ["Jokes are not welcome everywhere."]
    assert where(owner, "quibbler") == []


def test_what_commits_around_an_erasure_leaves_no_orphan(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    say(runtime, tenant, "I live in Lisbon.")
    is_asked, may_answer = Event(), Event()

    def wait(_: Sequence[str]) -> None:
        is_asked.set()
        assert may_answer.wait(120)

    late = replace(runtime, embedder=ScriptedEmbedder(before=wait))
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(tell, late, tenant, "Mira is being synthesised.")
        assert is_asked.wait(120)
        forget_user(runtime, tenant, "mira")
        may_answer.set()
        with pytest.raises(NotFound, match="erased while this ran; nothing was stored"):
            writing.result(120)
    assert where(owner, "lisbon") == where(owner, "synthesised") == []
    with owner.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM memories")).scalar_one() == 0


def test_writers_during_an_erasure_end_before_it_or_begin_after_it(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    stop, wrote = Event(), Event()

    def write(n: int) -> None:
        done = 0
        while not stop.is_set():
            try:
                record(
                    runtime,
                    tenant,
                    Scope("ada", "mira", f"s{n}"),
                    [NewTurn(Role.USER, f"Turn {done} of {n}.")],
                )
                tell(runtime, tenant, f"Statement {done} of writer {n}.")
                done += 1
                wrote.set()
            except (Transient, NotFound):
                continue

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(write, n) for n in range(3)]
        for _ in range(8):
            forget_user(runtime, tenant, "mira")
        # Now without one: on a busy machine erasures follow each other faster than anybody can write.
        assert wrote.wait(120), "somebody wrote between two erasures"
        stop.set()
        for writer in writers:
            writer.result(120)
    try:
        forget_user(runtime, tenant, "mira")
    except MemoryAppError as error:
        pytest.fail(error.message)
    with owner.connect() as connection:
        for table in ("memories", "turns", "sessions", "scopes", "users", "terms", "speakers"):
            assert connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one() == 0, table


def test_over_http_people_sessions_and_turns_are_forgotten_with_a_receipt(
    runtime: Runtime, tenant: int, other_tenant: int, api_key: str, owner: Engine
) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    (turn, _) = say(runtime, tenant, "I live in Lisbon.", "I love bouldering outdoors.")
    (foreign,) = say(runtime, other_tenant, "I live in Lisbon.")
    assert client.delete(f"/v1/turns/{foreign}").status_code == 404
    gone = client.delete(f"/v1/turns/{turn}")
    assert (gone.status_code, gone.json()["state"]) == (202, "done")
    assert client.get(f"/v1/turns/{turn}").status_code == 404
    dry = client.delete("/v1/users/mira", params={"dry_run": "true"}).json()
    assert dry["report"]["erasure"] is None
    done = client.delete("/v1/users/mira").json()
    assert done["report"]["counts"] == dry["report"]["counts"]
    receipt = client.get(f"/v1/erasures/{done['report']['erasure']}")
    assert receipt.json()["counts"]["turns"] == 1
    assert client.get(f"/v1/runs/{done['id']}").json()["state"] == "done"
    assert client.delete("/v1/agents/ada/users/mira/sessions/chat").status_code == 202
    assert client.delete("/v1/users/mira", params={"dryrun": "true"}).status_code == 422
