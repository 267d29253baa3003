"""Changing the embedder: search answers at every moment, every row is moved, none is lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event

import pytest
from embedders import failing
from sqlalchemy import Engine, text

from memory_app.errors import BadModelOutput, ProviderUnavailable
from memory_app.memories.remember import remember
from memory_app.providers.embedders import HashEmbedder
from memory_app.recall.recall import Recalled, RecallQuery, recall
from memory_app.recall.reembed import reembed
from memory_app.recall.scope_index import index_big_scopes
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.index import index_turns
from memory_app.turns.record import record

BOB, SESSION = Scope("ada", "bob"), Scope("ada", "bob", "s1")
OLD, NEW = "hash-256", "hash-128"
ANIMALS = ("heron", "otter", "badger", "lynx", "marten", "stork", "beaver", "weasel")


def fill(runtime: Runtime, tenant: int, n: int) -> None:
    said = [
        NewTurn(Role.USER, f"On walk number {i} I met a {ANIMALS[i % 8]} by the river.") for i in range(n)
    ]
    record(runtime, tenant, SESSION, said)
    index_turns(runtime)
    for animal in ANIMALS:
        statement = Statement("fact", f"Bob is fond of every {animal}.")
        remember(runtime, tenant, BOB, statement=statement, deduplicate=False)


def changed(runtime: Runtime) -> Runtime:
    """The same process after a restart with another model in its settings."""
    return replace(runtime, embedder=HashEmbedder(128))


def models(owner: Engine) -> dict[str, int]:
    """Rows by the model of their vectors, checked against the vectors' own lengths."""
    with owner.connect() as connection:
        rows = connection.execute(
            text(
                """SELECT embedding_model AS model, vector_dims(embedding) AS size, count(*) AS n FROM (
                SELECT embedding_model, embedding FROM turns UNION ALL
                SELECT embedding_model, embedding FROM memories) AS r GROUP BY 1, 2"""
            )
        ).all()
    assert all(row.model == f"hash-{row.size}" for row in rows)
    return {row.model: row.n for row in rows}


def registered(owner: Engine) -> list[str]:
    with owner.connect() as connection:
        return list(connection.execute(text("SELECT model FROM scope_models ORDER BY model")).scalars())


def asked(runtime: Runtime, tenant: int, words: str, **fields: object) -> Recalled:
    return recall(runtime, tenant, BOB, query=RecallQuery(words, **fields))  # type: ignore[arg-type]


def test_rows_of_the_former_model_are_found_by_its_own_vectors(runtime: Runtime, tenant: int) -> None:
    fill(runtime, tenant, 16)
    found = asked(changed(runtime), tenant, "otterly", preset="vector")
    assert "otter" in found.memories[0].text, "no word is the same; only the vector finds it"
    assert found.degraded == ()


def test_rows_of_an_unavailable_model_are_found_by_words_and_it_says_so(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    fill(runtime, tenant, 16)
    with owner.begin() as connection:
        for table in ("turns", "memories"):
            connection.execute(text(f"UPDATE {table} SET embedding_model = 'gone-256'"))
        connection.execute(text("UPDATE scope_models SET model = 'gone-256'"))
    found = asked(changed(runtime), tenant, "otter")
    assert "otter" in found.memories[0].text
    assert found.degraded == ("similarity",)


def test_every_row_is_moved_and_the_former_model_is_forgotten(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    fill(runtime, tenant, 200)
    told: list[int] = []
    done = reembed(changed(runtime), on_progress=lambda now: told.append(now.moved))
    assert (done.moved, done.refused, done.scopes, done.is_done) == (208, 0, 1, True)
    assert told == sorted(told) and len(told) > 4, "progress is told batch by batch"
    assert models(owner) == {NEW: 208}
    assert registered(owner) == [NEW]
    assert reembed(changed(runtime)).moved == 0, "a second run finds nothing to do"


def test_a_run_that_is_stopped_goes_on_where_it_was(runtime: Runtime, tenant: int, owner: Engine) -> None:
    fill(runtime, tenant, 200)
    first = reembed(changed(runtime), most_seconds=0)
    assert (first.moved, first.is_done) == (0, False)
    away = replace(runtime, embedder=failing(ProviderUnavailable("away"), at="number 150 ", dimensions=128))
    with pytest.raises(ProviderUnavailable):
        reembed(away)
    between = models(owner)
    assert between[NEW] > 0 and between[OLD] > 0
    assert reembed(changed(runtime)).moved == between[OLD]
    assert models(owner) == {NEW: 208}


def test_a_row_that_the_new_model_refuses_keeps_its_vector_and_its_place(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    fill(runtime, tenant, 20)
    strict = replace(runtime, embedder=failing(BadModelOutput("no"), at="number 7 ", dimensions=128))
    done = reembed(strict)
    assert (done.moved, done.refused, done.is_done) == (27, 1, False)
    assert models(owner) == {NEW: 27, OLD: 1}
    assert any("number 7 " in hit.text for hit in asked(strict, tenant, "walk number 7").memories)


def test_search_answers_at_every_moment_while_rows_move_and_others_write(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    fill(runtime, tenant, 300)
    after, over = changed(runtime), Event()

    def ask(place: int) -> int:
        answered = 0
        while not over.is_set() or answered == 0:
            animal = ANIMALS[(place + answered) % 8]
            found = asked(after, tenant, f"where did I meet the {animal}", limit=5)
            assert len(found.memories) == 5
            assert all(animal in hit.text for hit in found.memories[:3]), animal
            assert found.degraded == ()
            answered += 1
        return answered

    def write(old: Runtime) -> int:
        written = 0
        while not over.is_set() or written == 0:
            statement = Statement("fact", f"Note {old.embedder.model} {written} about a crane.")
            remember(old, tenant, BOB, statement=statement, deduplicate=False)
            written += 1
        return written

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask, place) for place in (0, 3)]
        writing = [pool.submit(write, one) for one in (runtime, after)]
        try:
            reembed(after)
        finally:
            over.set()
        assert all(job.result() > 0 for job in asking)
        written = sum(job.result() for job in writing)
    reembed(after)  # what a process with the old settings wrote to the last moment
    assert models(owner) == {NEW: 308 + written}
    assert registered(owner) == [NEW]


def test_the_search_indexes_of_a_big_scope_follow_the_model(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    small = runtime.settings.recall.model_copy(update={"scan_rows": 100})
    runtime = replace(runtime, settings=runtime.settings.model_copy(update={"recall": small}))
    fill(runtime, tenant, 200)
    assert index_big_scopes(runtime) == 1
    after = changed(runtime)
    assert reembed(after).is_done
    with owner.connect() as connection:
        kept = connection.execute(
            text("SELECT indexdef FROM pg_indexes WHERE indexname ~ '_hnsw_' ORDER BY indexname")
        ).scalars()
        definitions = list(kept)
    assert len(definitions) == 2 and all(f"'{NEW}'" in one for one in definitions)
    assert "otter" in asked(after, tenant, "where is the otter").memories[0].text
