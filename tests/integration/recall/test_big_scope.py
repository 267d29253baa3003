"""Scopes that grew big, and small ones among big ones: found as by a scan, never too few, never anybody else's."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice

import pytest
from sqlalchemy import Connection, Engine, text

from memory_app.bench.plain_rows import unjudged_row
from memory_app.db.db import plan_anew, transaction
from memory_app.db.meter import Meter
from memory_app.memories.remember import prepare
from memory_app.memories.rows import memories, scope_models
from memory_app.memories.rows import terms as term_store
from memory_app.recall import scope_index
from memory_app.recall.recall import Hit, RecallQuery, recall
from memory_app.recall.rows import search
from memory_app.records.records import NewTurn, Role, Statement, Tier
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import Policy
from memory_app.tenancy.rows import names
from memory_app.turns.index import index_turns
from memory_app.turns.record import record

BOB, SESSION = Scope("ada", "bob"), Scope("ada", "bob", "s1")
ROWS = 1_500
WORDS = tuple(
    re.findall(
        r"\w+",
        """harbour lantern meadow copper violin glacier orchard saddle thunder pepper canyon mirror anchor blanket
cellar dolphin engine feather garden hammer island jacket kettle ladder magnet needle oyster pencil quarry ribbon
shovel ticket umbrella velvet window yacht zipper basket candle desert""",
    )
)


def sentences(count: int, *, seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    for place in range(count):
        yield f"Note {place}: the {' '.join(chance.sample(WORDS, 5))} came up."


def store(runtime: Runtime, tenant: int, scope: Scope, said: list[str], *, tags: tuple[str, ...] = ()) -> int:
    """Rows past the ladder, which would need minutes; the scope's id."""
    with transaction(runtime.engine, tenant) as connection:
        scope_id = names.ensure_scope(connection, tenant, scope).id
    statements = [Statement("fact", words, tags=tags) for words in said]
    prepared = prepare(runtime, statements, policy=Policy())
    with transaction(runtime.engine, tenant) as connection:
        scope_models.add(connection, [scope_id], runtime.embedder.model)
        for item in prepared:
            row = unjudged_row(item, model=runtime.embedder.model, now=datetime.now(UTC))
            memories.insert(connection, tenant, scope_id, new=row)
        term_store.add(connection, tenant, [(scope_id, item.keywords) for item in prepared])
    return scope_id


def asked(runtime: Runtime, tenant: int, words: str | None, **fields: object) -> tuple[Hit, ...]:
    return recall(runtime, tenant, BOB, query=RecallQuery(words, **fields)).memories  # type: ignore[arg-type]


@pytest.fixture
def big(runtime: Runtime, tenant: int) -> Runtime:
    """A scope of `ROWS` memories and as many turns, with search indexes of its own."""
    said = list(sentences(ROWS, seed=1))
    store(runtime, tenant, BOB, said[:-12])
    store(runtime, tenant, BOB, said[-12:], tags=("rare",))
    turns = iter(sentences(ROWS, seed=2))
    while batch := list(islice(turns, 500)):
        record(runtime, tenant, SESSION, [NewTurn(Role.USER, words) for words in batch])
    index_turns(runtime)
    recall_settings = runtime.settings.recall.model_copy(update={"scan_rows": 1_000})
    runtime = replace(runtime, settings=runtime.settings.model_copy(update={"recall": recall_settings}))
    assert scope_index.index_big_scopes(runtime) == 1
    return runtime


def unindexed(owner: Engine) -> None:
    """From here on the scope is scanned."""
    with owner.begin() as connection:
        connection.execute(text("UPDATE scope_models SET is_indexed = false"))


@pytest.mark.parametrize("tier", [Tier.FACTS, Tier.DAILY_LOGS])
def test_the_indexes_find_what_a_scan_finds(big: Runtime, tenant: int, owner: Engine, tier: Tier) -> None:
    questions = [" ".join(random.Random(n).sample(WORDS, 3)) for n in range(20)]
    by_index = [asked(big, tenant, words, tiers=(tier,), limit=10) for words in questions]
    unindexed(owner)
    by_scan = [asked(big, tenant, words, tiers=(tier,), limit=10) for words in questions]
    shared = [
        len({hit.id for hit in one} & {hit.id for hit in other}) / 10
        for one, other in zip(by_index, by_scan, strict=True)
    ]
    assert sum(shared) / len(shared) >= 0.9
    # What stands two turns away counts where it was found itself, and a scan finds a little more of that.
    same = [one[0].id == other[0].id for one, other in zip(by_index, by_scan, strict=True)]
    assert sum(same) >= len(same) - 1
    first_two = [{hit.id for hit in one[:2]} for one in by_index]
    assert all(other[0].id in ids for ids, other in zip(first_two, by_scan, strict=True))


def test_a_filter_that_few_rows_pass_gives_as_many_as_are_asked_for(big: Runtime, tenant: int) -> None:
    for words in ("harbour lantern", "nothing of the kind", None):
        found = asked(big, tenant, words, tags=("rare",), limit=12)
        assert len(found) == 12 and all(hit.tags == ("rare",) for hit in found), words
    assert len(asked(big, tenant, "harbour", limit=100, tiers=(Tier.FACTS,))) == 100
    assert len(asked(big, tenant, "harbour", limit=100, session="s1")) == 100


def test_a_pinned_memory_is_a_candidate_in_a_big_scope_too(big: Runtime, tenant: int, owner: Engine) -> None:
    with owner.begin() as connection:
        pinned = connection.execute(
            text(
                "UPDATE memories SET pinned = true WHERE id = (SELECT max(id::text)::uuid FROM memories) RETURNING id"
            )
        ).scalar_one()
    found = asked(big, tenant, "wholly unrelated", explain=True, tiers=(Tier.FACTS,))
    explained = recall(
        big, tenant, BOB, query=RecallQuery("wholly unrelated", explain=True, tiers=(Tier.FACTS,))
    )
    assert pinned in {hit.id for hit in (*found, *explained.cut)}


def test_the_vector_indexes_agree_with_a_scan(big: Runtime, tenant: int) -> None:
    with transaction(big.engine, tenant) as connection:
        found = scope_index.agreements(connection)
    assert {one.table for one in found} == {"turns", "memories"}
    assert all(one.probes == 20 and one.share >= scope_index.AGREEMENT_LEAST for one in found)


def test_few_rows_among_a_hundred_thousand_are_found_as_by_an_exact_scan(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    said = list(sentences(50, seed=3))
    store(runtime, tenant, BOB, said)
    other = store(runtime, tenant, Scope("ada", "eve"), said[:1])
    with owner.begin() as connection:
        connection.execute(
            text(
                """INSERT INTO memories (tenant_id, scope_id, kind, text, canonical_key, importance, confidence, origin,
                    valid_from, last_seen, confirmed_at, embedding, embedding_model, keywords, terms)
                SELECT tenant_id, scope_id, kind, text, canonical_key || n, importance, confidence, origin,
                    valid_from, last_seen, confirmed_at, embedding, embedding_model, keywords, terms
                FROM memories, generate_series(1, 100000) AS n WHERE scope_id = :other"""
            ),
            {"other": other},
        )
        connection.execute(
            text("UPDATE terms SET row_count = row_count + 100000 WHERE scope_id = :other AND term = :rows"),
            {"other": other, "rows": term_store.ROWS},
        )
    vectors = runtime.embedder.embed(said)
    for words in ("harbour lantern meadow", "velvet", said[7]):
        found = asked(runtime, tenant, words, preset="vector", limit=20)
        cosines = vectors @ runtime.embedder.embed([words])[0]
        exact = sorted(range(50), key=lambda place: -cosines[place])[:20]
        assert {hit.text for hit in found} == {said[place] for place in exact}
        assert [hit.text for hit in found[:5]] == [said[place] for place in exact[:5]]
    # Often enough that the server keeps plans of the statements: none that would read everybody's rows.
    eve = Scope("ada", "eve")
    for _ in range(12):
        recall(runtime, tenant, eve, query=RecallQuery("harbour lantern"))
        asked(runtime, tenant, "harbour lantern")
    with Meter(runtime.engine, owner).measured() as cost:
        asked(runtime, tenant, "harbour lantern")
    assert cost.rows < 5_000
    assert "auto" in plan_modes(runtime, tenant, BOB) and "auto" not in plan_modes(runtime, tenant, eve)


def plan_modes(runtime: Runtime, tenant: int, scope: Scope) -> set[str]:
    """How the server plans the searches of a recall in the scope."""
    modes = set()

    def note(connection: Connection, *_: object) -> None:
        modes.add(connection.exec_driver_sql("SHOW plan_cache_mode").scalar_one())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "memory_hits", lambda connection, probe: note(connection) or ())
        recall(runtime, tenant, scope, query=RecallQuery("harbour lantern"))
    return modes


def test_searches_are_planned_for_the_scopes_at_hand(runtime: Runtime, tenant: int) -> None:
    with transaction(runtime.engine, tenant) as connection:
        plan_anew(connection)
        assert connection.execute(text("SHOW plan_cache_mode")).scalar_one() == "force_custom_plan"
    with transaction(runtime.engine, tenant) as connection:
        assert connection.execute(text("SHOW plan_cache_mode")).scalar_one() == "auto"
