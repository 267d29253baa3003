"""The hard ceilings of a scope, whichever door its memories and links come through: nobody ever sees them passed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import all_shards
import pytest
from sqlalchemy import Engine, text

from memory_app.agents.rows import agents
from memory_app.bench.plain_rows import unjudged_row
from memory_app.db.db import transaction
from memory_app.dispatch import finder
from memory_app.dispatch.job_table import JOBS
from memory_app.jobs import jobs
from memory_app.memories.remember import prepare, remember
from memory_app.memories.rows import links, memories, scope_models
from memory_app.memories.rows import terms as term_store
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Chat, Settings
from memory_app.sleep import decay, synthesis
from memory_app.tenancy.policy import Policy
from memory_app.tenancy.rows import names
from memory_app.testing import Rule, StubProvider
from memory_app.turns.record import record

SCOPE, CHAT = Scope("ada", "bob"), Scope("ada", "bob", "chat")
QUESTIONS = (
    "Where did I park the blue car yesterday?",
    "Which trains leave for Porto after nine?",
    "How long do lentils have to boil?",
    "Who painted the ceiling in the old chapel?",
    "What does a new clutch cost these days?",
    "Why is the cellar always so damp?",
    "When does the swimming pool close on Mondays?",
    "Can you explain how vaccines are tested?",
)
NOTES = tuple(f"Bob wrote down the number {n * 13} in his green notebook after lunch." for n in range(6))


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as stub:
        yield stub


@pytest.fixture
def asking(settings: Settings, stub: StubProvider) -> Iterator[Runtime]:
    """The live parts with a model."""
    runtime = all_shards.at_work(
        build(settings.model_copy(update={"chat": Chat(base_url=stub.base_url, model="small")}))
    )
    yield runtime
    runtime.close()


def set_policy(owner: Engine, tenant: int, **policy: Any) -> None:
    with owner.begin() as connection:
        agents.change(
            connection, tenant, "ada", parts={"policy": policy}, copies=all_shards.copies(connection)
        )


def column(owner: Engine, statement: str) -> list[Any]:
    with owner.connect() as connection:
        return list(connection.execute(text(statement)).scalars())


def kinds(owner: Engine) -> list[str]:
    return column(owner, "SELECT kind FROM memories WHERE retired_at IS NULL ORDER BY kind")


def link_types(owner: Engine) -> list[str]:
    return column(owner, "SELECT type FROM links ORDER BY type")


def keep(runtime: Runtime, tenant: int, *texts: str) -> None:
    for said in texts:
        remember(runtime, tenant, SCOPE, statement=Statement("fact", said), deduplicate=False)


def fill(runtime: Runtime, tenant: int, count: int) -> None:
    """Rows past the ladder, which would need minutes."""
    said = [f"Note {n}: box {n * 7} stands in room {n * 11}." for n in range(count)]
    with transaction(runtime.engine, tenant) as connection:
        scope_id = names.ensure_scope(connection, tenant, SCOPE).id
    prepared = prepare(runtime, [Statement("fact", words) for words in said], policy=Policy())
    with transaction(runtime.engine, tenant) as connection:
        scope_models.add(connection, [scope_id], runtime.embedder.model)
        for item in prepared:
            row = unjudged_row(item, model=runtime.embedder.model, now=datetime.now(UTC))
            memories.insert(connection, tenant, scope_id, new=row)
        term_store.add(connection, tenant, [(scope_id, item.keywords) for item in prepared])


def synthesised(runtime: Runtime, tenant: int, scope: Scope, kind: str) -> dict[str, Any]:
    run = synthesis.ask_for(runtime, tenant, scope, type=kind)
    jobs.perform(runtime, run.id, JOBS)
    done = jobs.read(runtime, tenant, run.id)
    assert done.state == "done", done.reason
    return done.report  # type: ignore[no-any-return]


# --- memories -------------------------------------------------------------------------------------------------


def test_a_chat_of_questions_only_keeps_the_ceiling(runtime: Runtime, tenant: int, owner: Engine) -> None:
    set_policy(owner, tenant, max_memories=3)
    for said in QUESTIONS:
        record(runtime, tenant, CHAT, [NewTurn(Role.USER, said)])
        finder.drain(runtime)
        assert len(kinds(owner)) <= 3
    assert kinds(owner) == ["query"] * 3
    last = column(owner, "SELECT text FROM memories WHERE retired_at IS NULL ORDER BY id DESC LIMIT 1")
    assert last == [QUESTIONS[-1]], "what was asked just now stays"


def test_many_questions_extracted_at_once_keep_the_ceiling(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    set_policy(owner, tenant, max_memories=3)
    record(runtime, tenant, CHAT, [NewTurn(Role.USER, said) for said in QUESTIONS])
    finder.drain(runtime)
    assert kinds(owner) == ["query"] * 3


def test_the_synthesis_of_a_session_keeps_the_ceiling(asking: Runtime, tenant: int, owner: Engine) -> None:
    keep(asking, tenant, *NOTES[:3])
    said = ("My sister moved to Porto in spring.", "I repair old clocks for a living.")
    record(asking, tenant, CHAT, [NewTurn(Role.USER, words) for words in said])
    set_policy(owner, tenant, max_memories=3, extraction="llm")

    report = synthesised(asking, tenant, CHAT, "session")

    assert (report["statements"], report["summary"]) == (2, True)
    assert len(kinds(owner)) == 3
    assert "episode" in kinds(owner), "the summary, written last, stays"


def test_deep_synthesis_keeps_the_ceiling(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine
) -> None:
    pattern = {"text": "Bob notes numbers after lunch.", "memories": ["m1", "m2"], "feeling": None}
    stub.follow(Rule(answer={"consolidated": [], "patterns": [pattern], "links": []}))
    keep(asking, tenant, *NOTES[:3])
    set_policy(owner, tenant, max_memories=3, extraction="llm")

    assert synthesised(asking, tenant, SCOPE, "deep")["patterns"] == 1

    assert kinds(owner) == ["artifact", "fact", "fact"]


def test_a_big_ceiling_is_not_passed_by_one(runtime: Runtime, tenant: int, owner: Engine) -> None:
    fill(runtime, tenant, 1_000)
    set_policy(owner, tenant, max_memories=1_000)
    seen = []
    for n in range(300):
        keep(runtime, tenant, f"On day {n} Bob wrote down the number {n * 13}.")
        seen += column(owner, "SELECT count(*) FROM memories WHERE retired_at IS NULL")
    assert max(seen) == 1_000
    assert min(seen) == 980, "more gives way than has to, so that not every write weighs everything"


# --- links ----------------------------------------------------------------------------------------------------


def test_a_big_scope_evicts_repeatedly_and_never_passes_its_ceiling(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    fill(runtime, tenant, 5_000)
    set_policy(owner, tenant, max_memories=5_000)
    seen = []
    for n in range(250):
        keep(runtime, tenant, f"On day {n} Bob wrote down the number {n * 13}.")
        seen += column(owner, "SELECT count(*) FROM memories WHERE retired_at IS NULL")
    assert (min(seen), max(seen)) == (4_900, 5_000)
    assert sum(later < earlier for earlier, later in pairwise(seen)) == 2, "it gave way again, twice"


def test_no_write_leaves_more_links_than_may_be(runtime: Runtime, tenant: int, owner: Engine) -> None:
    set_policy(owner, tenant, max_links=4)
    for said in NOTES:
        keep(runtime, tenant, said)
        assert len(link_types(owner)) <= 4
    assert link_types(owner) == ["similar_to"] * 4


def test_deep_synthesis_leaves_no_more_links_than_may_be(
    asking: Runtime, stub: StubProvider, tenant: int, owner: Engine
) -> None:
    pairs = [("m1", "m2"), ("m2", "m3"), ("m3", "m1")]
    found = [{"source": one, "target": other, "type": "causes", "weight": 0.9} for one, other in pairs]
    stub.follow(Rule(answer={"consolidated": [], "patterns": [], "links": found}))
    keep(asking, tenant, "Bob likes tea.", "The printer needs toner.", "Ana sails in summer.")
    set_policy(owner, tenant, max_links=2, extraction="llm")

    assert synthesised(asking, tenant, SCOPE, "deep")["links"] == 3

    assert link_types(owner) == ["causes"] * 2


def test_links_of_every_type_give_way_but_for_where_a_memory_comes_from(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    keep(runtime, tenant, "Bob likes tea.", "The printer needs toner.")
    first, second = column(owner, "SELECT id FROM memories ORDER BY id")
    with transaction(runtime.engine, tenant) as connection:
        scope_id = names.ensure_scope(connection, tenant, SCOPE).id
        for kind in ("causes", "derived_from", "similar_to"):
            links.add(connection, tenant, scope_id, edges=[(first, second, 0.9)], type=kind)
    set_policy(owner, tenant, max_links=0)

    run = decay.ask(runtime, tenant, SCOPE)
    jobs.perform(runtime, run.id, JOBS)

    assert jobs.read(runtime, tenant, run.id).report["links_trimmed"] == 2
    assert link_types(owner) == ["derived_from"]
