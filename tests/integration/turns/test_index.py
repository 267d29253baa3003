"""Indexing: every accepted turn becomes searchable once, whoever dies or answers 429 on the way."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier
from typing import Any
from uuid import UUID

import all_shards
import pytest
from embedders import ScriptedEmbedder, failing
from redis import Redis
from sqlalchemy import Engine, text

from memory_app.agents.rows import agents
from memory_app.db.db import transaction
from memory_app.errors import BadModelOutput, ProviderUnavailable, RateLimited
from memory_app.queue import INDEX_TURNS, INGEST
from memory_app.records.records import NewTurn, Role, Stage
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.settings import Index, Settings
from memory_app.turns import index
from memory_app.turns.index import IndexReport, index_turns
from memory_app.turns.record import record
from memory_app.turns.rows import index_work, stages

SCOPE = Scope("ada", "bob", "s1")
LEASE = timedelta(seconds=45)


def said(n: int, *, word: str = "dog") -> NewTurn:
    return NewTurn(Role.USER, f"Sentence number {n} about a {word}.")


def accepted(runtime: Runtime, tenant: int, n: int, *, scope: Scope = SCOPE) -> list[UUID]:
    return [ticket.id for ticket in record(runtime, tenant, scope, [said(i) for i in range(n)])]


def stages_of(runtime: Runtime, tenant: int, ids: Sequence[UUID]) -> list[Stage]:
    with transaction(runtime.engine, tenant) as connection:
        found = [stages.ticket(connection, turn_id) for turn_id in ids]
    return [ticket.stage for ticket in found if ticket is not None]


def expire_leases(owner: Engine) -> None:
    """As if the time of every lease had passed."""
    with owner.begin() as connection:
        connection.execute(text("UPDATE turns SET lease_until = now() - interval '1 second'"))


def die_while_indexing(runtime: Runtime, owner: Engine) -> tuple[UUID, ...]:
    """A worker takes turns and is killed before it can say why; its lease runs out."""
    with transaction(runtime.engine, None) as connection:
        claimed = index_work.claim(connection, batch=64, lease=LEASE)
    expire_leases(owner)
    return tuple(turn.id for turn in claimed)


def assert_terms_equal_a_recount(owner: Engine) -> None:
    """The counted document frequencies are those of the rows that are there."""
    wanted: Counter[tuple[int, int]] = Counter()
    with owner.connect() as connection:
        for scope_id, keywords in connection.execute(
            text("SELECT scope_id, keywords::text FROM turns WHERE indexed_at IS NOT NULL")
        ):
            inside = keywords[1:].split("}")[0]
            wanted.update((scope_id, int(pair.split(":")[0])) for pair in inside.split(","))
            wanted[scope_id, 0] += 1
        counted = connection.execute(text("SELECT scope_id, term, row_count FROM terms")).all()
    assert {(row.scope_id, row.term): row.row_count for row in counted} == wanted


# --- once -----------------------------------------------------------------------------------------------------


def test_turns_of_many_sessions_and_tenants_are_indexed_together(
    runtime: Runtime, tenant: int, other_tenant: int
) -> None:
    mine = [id for n in range(3) for id in accepted(runtime, tenant, 4, scope=Scope("ada", "bob", f"s{n}"))]
    others = accepted(runtime, other_tenant, 4)
    calls: list[int] = []
    counting = ScriptedEmbedder(before=lambda texts: calls.append(len(texts)))
    assert index_turns(replace(runtime, embedder=counting)) == IndexReport(indexed=16)
    assert sorted(calls) == [4, 12], "one call for each tenant's turns"
    assert set(stages_of(runtime, tenant, mine)) == {Stage.INDEXED}
    assert set(stages_of(runtime, other_tenant, others)) == {Stage.INDEXED}


def test_a_second_run_finds_nothing_to_do(runtime: Runtime, tenant: int) -> None:
    accepted(runtime, tenant, 3)
    assert index_turns(runtime) == IndexReport(indexed=3)
    assert index_turns(runtime) == IndexReport()


def test_indexers_at_work_together_index_and_count_each_turn_once(
    runtime: Runtime, settings: Settings, tenant: int, other_tenant: int, owner: Engine
) -> None:
    for n in range(3):
        accepted(runtime, tenant, 20, scope=Scope("ada", f"user {n}", "s1"))
    accepted(runtime, other_tenant, 20)
    small = replace(runtime, settings=settings.model_copy(update={"index": Index(batch=4)}))
    together = Barrier(6)

    def work(_: int) -> IndexReport:
        together.wait()
        return index_turns(small)

    with ThreadPoolExecutor(6) as pool:
        done = sum(pool.map(work, range(6)), IndexReport())
    assert done == IndexReport(indexed=80)
    assert_terms_equal_a_recount(owner)


def test_a_slow_worker_whose_turns_were_taken_over_counts_nothing_twice(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    accepted(runtime, tenant, 2)
    slow = index._claim(runtime)
    expire_leases(owner)
    assert index_turns(runtime) == IndexReport(indexed=2)
    assert index._index_claimed(runtime, slow) == IndexReport(indexed=0)
    assert_terms_equal_a_recount(owner)


def test_no_connection_is_held_while_the_embedder_is_called(runtime: Runtime, tenant: int) -> None:
    accepted(runtime, tenant, 2)
    held: list[int] = []
    watching = ScriptedEmbedder(
        before=lambda _: held.append(runtime.engine.pool.checkedout()),  # type: ignore[attr-defined]
    )
    index_turns(replace(runtime, embedder=watching))
    assert held == [0]


@pytest.mark.parametrize("bound", [{"most_batches": 1}, {"most_seconds": 0.0}])
def test_what_is_left_over_brings_a_new_hint(
    runtime: Runtime, settings: Settings, tenant: int, bound: dict[str, Any]
) -> None:
    accepted(runtime, tenant, 5)
    small = replace(runtime, settings=settings.model_copy(update={"index": Index(batch=2)}))
    with Redis.from_url(settings.redis.url.get_secret_value(), protocol=2) as client:
        queue = f"{settings.redis.prefix}{INGEST}"
        client.delete(queue)
        assert index_turns(small, **bound) == IndexReport(indexed=2)
        tasks = [json.loads(message)["headers"]["task"] for message in client.lrange(queue, 0, -1)]
    assert tasks.count(INDEX_TURNS) == 1


# --- workers that die -----------------------------------------------------------------------------------------


def test_a_lent_turn_is_left_alone_until_its_lease_ends(runtime: Runtime, tenant: int) -> None:
    accepted(runtime, tenant, 2)
    assert len(index._claim(runtime)) == 2
    assert index._claim(runtime) == ()
    assert index_turns(runtime) == IndexReport()


def test_turns_of_a_dead_worker_are_taken_over_one_at_a_time(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    ids = accepted(runtime, tenant, 3)
    assert die_while_indexing(runtime, owner) == tuple(ids)
    (suspect,) = index._claim(runtime)
    assert (suspect.id, suspect.starts) == (ids[0], 2)
    expire_leases(owner)
    assert index_turns(runtime) == IndexReport(indexed=3)
    assert_terms_equal_a_recount(owner)


def test_a_turn_that_kills_three_workers_is_parked_and_the_others_go_on(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (poison,) = accepted(runtime, tenant, 1)
    for _ in range(3):
        assert die_while_indexing(runtime, owner) == (poison,)
    others = accepted(runtime, tenant, 3)
    assert index_turns(runtime) == IndexReport(indexed=3, failed=1)
    assert stages_of(runtime, tenant, [poison, *others]) == [Stage.FAILED, *[Stage.INDEXED] * 3]
    with transaction(runtime.engine, tenant) as connection:
        ticket = stages.ticket(connection, poison)
    assert ticket is not None
    assert ticket.reason is not None
    assert ticket.reason.startswith("quarantined")


# --- providers that refuse ------------------------------------------------------------------------------------


def test_a_text_the_embedder_cannot_read_is_parked_without_its_neighbours(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    ids = accepted(runtime, tenant, 4)
    picky = failing(BadModelOutput("the embedder answered nonsense"), at="number 2")
    assert index_turns(replace(runtime, embedder=picky)) == IndexReport(indexed=3, failed=1)
    assert stages_of(runtime, tenant, ids) == [Stage.INDEXED, Stage.INDEXED, Stage.FAILED, Stage.INDEXED]
    assert_terms_equal_a_recount(owner)
    with transaction(runtime.engine, tenant) as connection:
        ticket = stages.ticket(connection, ids[2])
    assert ticket is not None
    assert ticket.reason == "the embedder answered nonsense"


def test_while_the_embedder_is_away_turns_wait_and_none_is_given_up(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    ids = accepted(runtime, tenant, 3)
    away = replace(runtime, embedder=failing(ProviderUnavailable("nobody answers")))
    for _ in range(8):
        assert index_turns(away) == IndexReport(postponed=3)
        assert index_turns(away) == IndexReport(), "it is not asked again at once"
        expire_leases(owner)
    assert stages_of(runtime, tenant, ids) == [Stage.ACCEPTED] * 3
    assert index_turns(runtime) == IndexReport(indexed=3)


def test_a_provider_that_names_a_time_is_left_alone_until_then(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    accepted(runtime, tenant, 1)
    limited = failing(RateLimited("slow down", retry_after=600))
    index_turns(replace(runtime, embedder=limited))
    with owner.connect() as connection:
        left = connection.execute(
            text("SELECT extract(epoch FROM lease_until - now()) FROM turns")
        ).scalar_one()
    assert 590 < float(left) <= 600


def test_default_memories_that_cannot_be_stored_delay_no_turns_of_others(
    runtime: Runtime, tenant: int, other_tenant: int, owner: Engine
) -> None:
    unfit: list[dict[str, Any]] = [{"kind": "core", "text": "Be kind.", "subtype": "unknown"}]
    with owner.begin() as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"default_memories": unfit},
            copies=all_shards.copies(connection),
        )
    mine, others = accepted(runtime, tenant, 2), accepted(runtime, other_tenant, 2)
    assert index_turns(runtime) == IndexReport(indexed=4)
    assert stages_of(runtime, tenant, mine) == [Stage.INDEXED] * 2
    assert stages_of(runtime, other_tenant, others) == [Stage.INDEXED] * 2
