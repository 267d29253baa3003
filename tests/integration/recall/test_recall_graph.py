"""What stands around a hit: entities and links, times that a question names, and the count of what was shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, text

from memory_app import queue
from memory_app.db.db import transaction
from memory_app.hot import recall_counts
from memory_app.memories.remember import remember
from memory_app.memories.rows import links
from memory_app.recall.context import ContextRequest, context
from memory_app.recall.counts import note_recalls
from memory_app.recall.recall import Hit, RecallQuery, recall
from memory_app.recall.rows import scope_facts
from memory_app.records.records import Mention, NewTurn, Role, Statement, Tier
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.index import index_turns
from memory_app.turns.record import record

BOB, SESSION = Scope("ada", "bob"), Scope("ada", "bob", "s1")


def know(runtime: Runtime, tenant: int, words: str, **fields: Any) -> UUID:
    statement = Statement(**{"kind": "fact", "text": words} | fields)
    return remember(runtime, tenant, BOB, statement=statement, deduplicate=False).id


def join(runtime: Runtime, tenant: int, owner: Engine, source: UUID, target: UUID, weight: float) -> None:
    with owner.connect() as connection:
        scope_id = connection.execute(text("SELECT scope_id FROM memories LIMIT 1")).scalar_one()
    with transaction(runtime.engine, tenant) as connection:
        links.add(connection, tenant, scope_id, edges=[(source, target, weight)], type="similar_to")


def asked(runtime: Runtime, tenant: int, words: str, **fields: Any) -> tuple[Hit, ...]:
    return recall(runtime, tenant, BOB, query=RecallQuery(words, **fields)).memories


def counts(owner: Engine) -> dict[UUID, int]:
    with owner.connect() as connection:
        rows = connection.execute(
            text("SELECT id, recall_count FROM memories WHERE last_recalled IS NOT NULL")
        )
        return {row.id: row.recall_count for row in rows}


# --- links ----------------------------------------------------------------------------------------------------


def test_graph_expansion_brings_what_is_linked_and_says_by_which_link(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    horse = know(runtime, tenant, "Bob rides a horse.")
    stable = know(runtime, tenant, "The yard burned down in spring.")
    village = know(runtime, tenant, "Lena moved into Ghent.")
    for n in range(8):
        know(runtime, tenant, f"A horse, number {n}.")
    join(runtime, tenant, owner, stable, horse, 0.9)
    join(runtime, tenant, owner, stable, village, 0.8)
    query = "Bob rides horse"
    plain = [hit.id for hit in asked(runtime, tenant, query, limit=3)]
    assert plain[0] == horse and stable not in plain
    found = {hit.id: hit for hit in asked(runtime, tenant, query, limit=3, expand_graph=True, explain=True)}
    assert stable in found and village not in found
    explained = found[stable].explain
    assert explained is not None
    (link,) = explained["via"]  # type: ignore[misc]
    assert (link["from"], link["type"], round(link["weight"], 3)) == (str(horse), "similar_to", 0.9)  # type: ignore[has-type]
    assert explained["contributions"]["linked"] > 0  # type: ignore[index]


def test_the_depth_of_the_expansion_counts_links(runtime: Runtime, tenant: int, owner: Engine) -> None:
    chain = [know(runtime, tenant, words) for words in ("Bob rides a horse.", "Rain in Ghent.", "Old oak.")]
    for source, target in pairwise(chain):
        join(runtime, tenant, owner, source, target, 1.0)

    def linked(depth: int) -> set[object]:
        hits = asked(runtime, tenant, "rides horse", preset="keyword", expand_graph=True, depth=depth)
        return {hit.id for hit in hits}

    assert linked(1) == set(chain[:2])
    assert linked(2) == set(chain)


def test_retired_memories_are_not_reached_by_links(runtime: Runtime, tenant: int, owner: Engine) -> None:
    horse, gone = know(runtime, tenant, "Bob rides a horse."), know(runtime, tenant, "Rain in Ghent.")
    join(runtime, tenant, owner, horse, gone, 1.0)
    with owner.begin() as connection:
        connection.execute(
            text("UPDATE memories SET retired_at = now(), retired_reason = 'evicted' WHERE id = :id"),
            {"id": gone},
        )
    assert [hit.id for hit in asked(runtime, tenant, "horse", expand_graph=True)] == [horse]


# --- entities -------------------------------------------------------------------------------------------------


def test_entity_first_prefers_rows_of_the_entity_mentioned_most(runtime: Runtime, tenant: int) -> None:
    rare = know(runtime, tenant, "She has a garden.", mentions=(Mention("person", "Ann"),))
    for said in ("He has a garden.", "He has a boat.", "He has a car."):
        know(runtime, tenant, said, mentions=(Mention("person", "Lena"),))
    alone = know(runtime, tenant, "There is a garden.")
    found = {
        hit.id: hit.explain["signals"]["frequency"]  # type: ignore[index]
        for hit in asked(runtime, tenant, "garden", preset="entity_first", explain=True)
    }
    assert list(found.values())[:3] == [1.0, 1.0, 1.0]
    assert round(found[rare], 3) == 0.333 and found[alone] == 0
    few = asked(runtime, tenant, "garden", preset="entity_first", limit=1)
    assert few[0].id == next(iter(found)), "the same order, however few rows are handed over"


def test_an_entity_in_the_question_brings_the_memories_that_mention_it(runtime: Runtime, tenant: int) -> None:
    about = know(runtime, tenant, "She paints at night.", mentions=(Mention("person", "Lena O'Hara"),))
    know(runtime, tenant, "He paints at night, too.")
    found = asked(runtime, tenant, "Tell me of Lena O'Hara's work", tiers=(Tier.FACTS,), explain=True)
    assert found[0].id == about
    assert found[0].explain is not None and found[0].explain["signals"]["mentions"] == 1.0  # type: ignore[index]
    cards = asked(runtime, tenant, "Tell me of Lena O'Hara's work", tiers=(Tier.ENTITIES,))
    assert [hit.id for hit in cards] == ["person:lena_ohara"]


def test_at_most_two_entities_are_taken_in_over_strong_memories(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    lena = Mention("person", "Lena")
    for n, place in enumerate(("Ghent", "Riga", "Oslo")):
        strength: dict[str, Any] = {"importance": 9} if n % 2 else {"pinned": True}
        know(runtime, tenant, f"Lena lived in {place}.", mentions=(lena, Mention("place", place)), **strength)
        know(runtime, tenant, f"{place} is cold.", mentions=(Mention("place", place),))
    know(runtime, tenant, "Lena and Cork.", mentions=(lena, Mention("place", "Cork")), importance=5)
    know(runtime, tenant, "Cork is wet.", mentions=(Mention("place", "Cork"),))
    with owner.connect() as connection:
        scope_id, entity = connection.execute(
            text("SELECT scope_id, id FROM entities WHERE key = 'person:lena'")
        ).one()
    with transaction(runtime.engine, tenant) as connection:
        shares = scope_facts.mentioning(connection, [scope_id], [entity])
    with owner.connect() as connection:
        words = {row.id: row.text for row in connection.execute(text("SELECT id, text FROM memories"))}
    assert {words[id] for id, share in shares.items() if share == 1.0} == {
        "Lena lived in Ghent.",
        "Lena lived in Riga.",
        "Lena lived in Oslo.",
        "Lena and Cork.",
    }
    beside = {words[id] for id, share in shares.items() if share == 0.5}
    assert len(beside) == 2 and beside < {"Ghent is cold.", "Riga is cold.", "Oslo is cold."}


# --- times ----------------------------------------------------------------------------------------------------


def test_a_time_named_in_the_question_is_a_signal_of_what_was_said_then(
    runtime: Runtime, tenant: int
) -> None:
    now = datetime.now(UTC)
    for days in (1, 40):
        said = NewTurn(Role.USER, f"We went swimming, {days} times.", at=now - timedelta(days=days))
        record(runtime, tenant, SESSION, [said])
    index_turns(runtime)
    found = asked(runtime, tenant, "How often did we swim yesterday?", explain=True)
    in_time = {hit.text: hit.explain["signals"]["in_time"] for hit in found if hit.explain}  # type: ignore[index]
    assert in_time == {"We went swimming, 1 times.": 1.0, "We went swimming, 40 times.": 0.0}


# --- repeats --------------------------------------------------------------------------------------------------


def test_many_repeats_do_not_hide_what_else_there_is(runtime: Runtime, tenant: int) -> None:
    said = ["My horse is brown."] * 150 + [f"Horse number {n} is mine." for n in range(12)]
    record(runtime, tenant, SESSION, [NewTurn(Role.USER, words) for words in said])
    index_turns(runtime)
    found = [hit.text for hit in asked(runtime, tenant, "my horse is brown", limit=10)]
    assert len(found) == 10 and len(set(found)) == 10


# --- counting -------------------------------------------------------------------------------------------------


def test_what_was_shown_is_counted_by_the_task_and_not_by_the_question(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    horse, van = know(runtime, tenant, "Bob rides a horse."), know(runtime, tenant, "Eve drives a van.")
    for _ in range(3):
        assert [hit.id for hit in asked(runtime, tenant, "horse", limit=1)] == [horse]
    context(runtime, tenant, BOB, request=ContextRequest(query="van"))
    assert counts(owner) == {}
    assert note_recalls(runtime) == 2
    counted = counts(owner)
    assert counted[horse] >= 3 and counted[van] == 1
    assert note_recalls(runtime) == 0, "a second run finds nothing to count"


def test_an_answer_sends_a_message_only_where_many_counts_wait(
    runtime: Runtime, tenant: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(runtime.sender, "send", lambda name, **_: bool(sent.append(name)) or True)
    know(runtime, tenant, "Bob rides a horse.")
    sent.clear()
    asked(runtime, tenant, "horse")
    assert sent == []
    monkeypatch.setattr(recall_counts, "MANY_WAITING", 3)
    for _ in range(4):
        asked(runtime, tenant, "horse")
    assert sent == [queue.NOTE_RECALLS], "one message until the task begins"
    note_recalls(runtime)
    for _ in range(3):
        asked(runtime, tenant, "horse")
    assert sent == [queue.NOTE_RECALLS] * 2


def test_a_memory_that_is_gone_meanwhile_is_not_counted(runtime: Runtime, tenant: int, owner: Engine) -> None:
    know(runtime, tenant, "Bob rides a horse.")
    asked(runtime, tenant, "horse")
    with owner.begin() as connection:
        connection.execute(text("DELETE FROM memories"))
    assert note_recalls(runtime) == 0
