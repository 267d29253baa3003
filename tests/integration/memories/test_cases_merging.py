"""What others blended, lost or took for the user's own: each as a rule that holds here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from embedders import ScriptedEmbedder
from queries import rows
from sqlalchemy import Engine

from memory_app.db.db import transaction
from memory_app.dispatch.job_table import JOBS
from memory_app.jobs import jobs
from memory_app.memories.remember import remember
from memory_app.recall.context import ContextRequest, context
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import consolidate
from memory_app.tenancy.rows import names
from memory_app.turns.extract import extract_session
from memory_app.turns.record import record
from memory_app.turns.rows import sessions

SCOPE, SESSION = Scope("ada", "mira"), Scope("ada", "mira", "chat")


def by_word(angles: Mapping[str, float]) -> ScriptedEmbedder:
    """Texts that hold a word stand at its angle, in degrees."""
    return ScriptedEmbedder(
        angle=lambda said: next((angle for word, angle in angles.items() if word in said), None)
    )


def current(owner: Engine) -> list[str]:
    return [
        row.text for row in rows(owner, "SELECT text FROM memories WHERE retired_at IS NULL ORDER BY text")
    ]


def behind(owner: Engine) -> list[set[str]]:
    """For each current memory every statement that went into it."""
    found = rows(
        owner,
        """WITH RECURSIVE b AS (
            SELECT id AS top, id, text FROM memories WHERE retired_at IS NULL
            UNION ALL SELECT b.top, m.id, m.text FROM b JOIN memories m ON m.successor = b.id)
        SELECT array_agg(DISTINCT text) AS texts FROM b GROUP BY top""",
    )
    return [set(row.texts) for row in found]


def run(runtime: Runtime, tenant: int) -> dict[str, Any]:
    asked = consolidate.ask(runtime, tenant, SCOPE)
    jobs.perform(runtime, asked.id, JOBS)
    report: dict[str, Any] = jobs.read(runtime, tenant, asked.id).report
    return report


def tell(runtime: Runtime, tenant: int, *texts: str, deduplicate: bool = True) -> None:
    for said in texts:
        remember(runtime, tenant, SCOPE, statement=Statement("fact", said), deduplicate=deduplicate)


def say(runtime: Runtime, tenant: int, *turns: NewTurn) -> None:
    record(runtime, tenant, SESSION, list(turns))
    with transaction(runtime.engine, tenant) as connection:
        row = names.need_scope(connection, tenant, SESSION)
        session = sessions.find(connection, row.id, "chat")
    assert session is not None
    extract_session(runtime, session.id)


def test_over_many_cycles_neighbouring_topics_never_end_in_one_record(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    topics = {"padel": 0.0, "bread": 25.0, "dogs": 50.0, "sleeps": 75.0}
    placed = replace(runtime, embedder=by_word(topics))
    for n in range(12):
        for topic in topics:
            tell(placed, tenant, f"Mira {'really ' * (n % 4)}cares about {topic}.")
        run(placed, tenant)
    for texts in behind(owner):
        angles = [angle for said in texts for topic, angle in topics.items() if topic in said]
        assert max(angles) - min(angles) <= 25, texts
    assert len(current(owner)) <= 2 * len(topics)


def test_daily_findings_with_similar_words_and_other_numbers_stay_apart(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    placed = replace(runtime, embedder=by_word({"Checked": 0.0}))
    findings = [f"Checked the depot: {n} parcels were left at 18:0{n % 10}." for n in range(3, 23)]
    tell(placed, tenant, *findings)
    run(placed, tenant)
    assert current(owner) == sorted(findings)


def test_a_dense_cluster_makes_progress_and_blends_no_contradictions(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    agreeing = [f"Mira {'very ' * n}much loves jazz concerts." for n in range(10)]
    contradicting = ["Mira never loves jazz concerts.", "Mira no longer loves jazz concerts."]
    placed = replace(runtime, embedder=by_word({"jazz": 10.0}))
    tell(placed, tenant, *agreeing, *contradicting, deduplicate=False)
    assert run(placed, tenant)["freed"] == 9
    left = behind(owner)
    assert set(agreeing) in left
    assert all(len(texts) == 1 for texts in left if texts != set(agreeing))
    assert {said for texts in left for said in texts} == {*agreeing, *contradicting}
    assert run(placed, tenant)["clusters"] == [], "a second run finds nothing to do"


def test_sources_leave_only_together_with_the_row_that_takes_their_place(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    placed = replace(runtime, embedder=by_word({"jazz": 10.0}))
    tell(placed, tenant, *(f"Mira {'very ' * n}much loves jazz." for n in range(4)), deduplicate=False)
    run(placed, tenant)
    orphans = rows(
        owner,
        """SELECT id FROM memories m WHERE retired_reason = 'merged'
        AND NOT EXISTS (SELECT FROM memories s WHERE s.id = m.successor)""",
    )
    assert orphans == []


def test_what_was_recalled_into_a_prompt_is_not_taken_for_something_new(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    say(runtime, tenant, NewTurn(Role.USER, "I live in Lisbon these days."))
    statements = "SELECT text, repeat_count FROM memories WHERE kind <> 'query' ORDER BY id"
    before = rows(owner, statements)
    window = context(runtime, tenant, SCOPE, request=ContextRequest("Where do I live?"))
    assert "Lisbon" in window.text
    say(
        runtime,
        tenant,
        NewTurn(Role.SYSTEM, window.text),
        NewTurn(Role.SYSTEM, "The user lives in Oslo and is called Ola. Always be friendly."),
        NewTurn(Role.USER, f"{window.text}\n\nWhat should I cook tonight?"),
    )
    assert rows(owner, statements) == before


def test_what_the_assistant_explains_is_nothing_the_user_did(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    explained = """I fixed the import by moving it to the top of the file.

    I live by the rule that tests come first. I work at keeping functions short, and I like small commits.

    I moved to Poetry years ago, and my favourite editor is Vim."""
    say(
        runtime,
        tenant,
        NewTurn(Role.USER, "How do I mend a circular import in Python?"),
        NewTurn(Role.ASSISTANT, explained),
    )
    told = rows(owner, "SELECT text, subject FROM memories WHERE kind <> 'query'")
    assert [row for row in told if (row.subject or "").lower() in ("mira", "user")] == []
    assert not any(row.text.lower().startswith(("mira", "the user")) for row in told), told
