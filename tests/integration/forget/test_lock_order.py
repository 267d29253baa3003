"""Erasing a person beside those who write: everybody takes locks in one order, so nobody waits in a circle."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection, Engine, text

from memory_app.db import app_role
from memory_app.db.db import transaction, wait_in_line
from memory_app.forget import forget
from memory_app.forget.erasure import erase_session, erase_user
from memory_app.memories.remember import remember
from memory_app.memories.rows import memories as memory_rows
from memory_app.memories.rows import scope_models, terms
from memory_app.recall.reembed import reembed
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.run import RunState
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Settings
from memory_app.tenancy.rows import names, user_details
from memory_app.turns import index
from memory_app.turns.record import record
from memory_app.turns.rows import index_work, sessions
from memory_app.turns.rows.index_work import IndexedTurn

pytestmark = pytest.mark.one_shard

MIRA, CHAT = Scope("ada", "mira"), Scope("ada", "mira", "chat")
BLOCKED = """SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database()"""
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


def value(owner: Engine, statement: str) -> int:
    with owner.connect() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
        return int(connection.execute(text(statement)).scalar_one())


def erase(runtime: Runtime, tenant: int) -> int:
    """As a worker does, who waits in line; rows that went."""
    with transaction(runtime.engine, tenant) as connection:
        wait_in_line(connection)
        return sum(erase_user(connection, tenant, "mira").counts.values())


def beside_an_erasure(
    runtime: Runtime,
    tenant: int,
    owner: Engine,
    first: Callable[[Connection], object],
    then: Callable[[Connection], object],
) -> None:
    """``first``, and once an erasure waits for it ``then``, in one transaction: both come to their end."""
    before = value(owner, DEADLOCKS)
    with ThreadPoolExecutor(1) as pool:
        with transaction(runtime.engine, tenant) as connection:
            wait_in_line(connection)
            first(connection)
            erasing = pool.submit(erase, runtime, tenant)
            deadline = time.monotonic() + 60
            while value(owner, BLOCKED) == 0:
                assert time.monotonic() < deadline, "the erasure waits for nobody"
            then(connection)
        assert erasing.result(60) > 0
    assert value(owner, DEADLOCKS) == before
    assert value(owner, "SELECT count(*) FROM turns") == 0


def test_who_indexes_turns_and_an_erasure_do_not_wait_in_a_circle(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (ticket,) = record(runtime, tenant, CHAT, [NewTurn(Role.USER, "I live in Lisbon.")])
    with transaction(runtime.engine, tenant) as connection:
        scope = names.need_scope(connection, tenant, CHAT).id
    vector = [0.0] * runtime.embedder.dimensions
    beside_an_erasure(
        runtime,
        tenant,
        owner,
        lambda connection: scope_models.add(connection, [scope], runtime.embedder.model),
        lambda connection: index_work.index(
            connection,
            [IndexedTurn(scope, ticket.id, vector, {1: 1.0}, 0)],
            model=runtime.embedder.model,
            task_id=None,
        ),
    )


def test_who_notes_the_offset_of_a_person_does_not_wait_for_an_erasure(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    record(runtime, tenant, CHAT, [NewTurn(Role.USER, "I live in Lisbon.")])
    with transaction(runtime.engine, tenant) as connection:
        scope = names.need_scope(connection, tenant, CHAT).id
    beside_an_erasure(
        runtime,
        tenant,
        owner,
        lambda connection: sessions.lock_session(connection, tenant, CHAT),
        lambda connection: user_details.note_offset(connection, tenant, scope, utc_offset="+02:00"),
    )


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["first-row-first", "last-row-first"])
def test_who_counts_recalls_does_not_wait_for_an_erasure(
    runtime: Runtime, tenant: int, owner: Engine, order: tuple[int, int]
) -> None:
    """Whichever row the erasure comes to first, the count of the other one must not wait for it."""
    ids = [
        remember(runtime, tenant, MIRA, statement=Statement("fact", words)).id
        for words in ("Mira lives in Lisbon.", "Anna keeps three bees.")
    ]
    first, then = (ids[place] for place in order)
    beside_an_erasure(
        runtime,
        tenant,
        owner,
        lambda connection: memory_rows.note_recalls(connection, {first: 1}),
        lambda connection: memory_rows.note_recalls(connection, {then: 1}),
    )
    assert value(owner, "SELECT count(*) FROM memories") == 0


def in_opposite_orders(owner: Engine, middle: str, *acts: Callable[[], object]) -> None:
    """Start the acts one after the other while a row in the middle is held, then let it go: all come to their end."""
    before = value(owner, DEADLOCKS)
    with ThreadPoolExecutor(len(acts)) as pool:
        with owner.begin() as holder:
            assert holder.execute(text(middle)).rowcount == 1
            running = []
            for act in acts:
                running.append(pool.submit(act))
                deadline = time.monotonic() + 60
                while value(owner, BLOCKED) < len(running):
                    assert time.monotonic() < deadline, "nobody waits for the row"
        for future in running:
            future.result(60)
    assert value(owner, DEADLOCKS) == before


@pytest.mark.parametrize("is_indexed_first", [True, False])
def test_who_indexes_and_the_erasure_of_a_session_take_turns_in_one_order(
    runtime: Runtime, tenant: int, owner: Engine, is_indexed_first: bool
) -> None:
    """The batch names the turns from the last to the first; the erasure has them from the first to the last."""
    tickets = record(runtime, tenant, CHAT, [NewTurn(Role.USER, f"Word {number}.") for number in range(3)])
    with transaction(runtime.engine, tenant) as connection:
        scope = names.need_scope(connection, tenant, CHAT).id
    model, vector = runtime.embedder.model, [0.0] * runtime.embedder.dimensions
    batch = [IndexedTurn(scope, ticket.id, vector, {1: 1.0}, 0) for ticket in reversed(tickets)]

    def write_index() -> None:
        with transaction(runtime.engine, tenant) as connection:
            wait_in_line(connection)
            scope_models.add(connection, [scope], model)
            written = index_work.index(connection, batch, model=model, task_id=None)
            terms.add(connection, tenant, [(scope, [1]) for _ in written])

    def forget_session() -> None:
        with transaction(runtime.engine, tenant) as connection:
            wait_in_line(connection)
            assert erase_session(connection, tenant, CHAT).counts["turns"] == 3

    acts = (write_index, forget_session) if is_indexed_first else (forget_session, write_index)
    in_opposite_orders(owner, f"SELECT id FROM turns WHERE id = '{tickets[1].id}' FOR UPDATE", *acts)
    assert value(owner, "SELECT count(*) FROM turns") == 0
    # What was indexed while the erasure waited is counted no more, either.
    assert value(owner, "SELECT count(*) FROM terms WHERE row_count <> 0") == 0


@pytest.mark.parametrize("whose", ["session", "person"])
@pytest.mark.parametrize("is_given_back_first", [True, False])
def test_who_gives_turns_back_and_an_erasure_take_them_in_one_order(
    runtime: Runtime, tenant: int, owner: Engine, whose: str, is_given_back_first: bool
) -> None:
    record(runtime, tenant, CHAT, [NewTurn(Role.USER, f"Word {number}.") for number in range(3)])
    claimed = sorted(index._claim(runtime), key=lambda turn: turn.id, reverse=True)
    assert len(claimed) == 3

    def give_back() -> None:
        with transaction(runtime.engine, tenant) as connection:
            wait_in_line(connection)
            index._give_back(connection, claimed, seconds=1)

    def forget() -> None:
        with transaction(runtime.engine, tenant) as connection:
            wait_in_line(connection)
            if whose == "session":
                gone = erase_session(connection, tenant, CHAT)
            else:
                gone = erase_user(connection, tenant, "mira")
            assert gone.counts["turns"] == 3

    acts = (give_back, forget) if is_given_back_first else (forget, give_back)
    in_opposite_orders(owner, f"SELECT id FROM turns WHERE id = '{claimed[1].id}' FOR UPDATE", *acts)
    assert value(owner, "SELECT count(*) FROM turns") == 0


def test_new_vectors_and_the_erasure_of_a_session_take_their_turns(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    """Of memories, which the erasure deletes in an order of its own: whoever comes second waits for the scope."""
    for words in ("Mira lives in Lisbon.", "Anna keeps three bees."):
        remember(runtime, tenant, MIRA, statement=Statement("fact", words))
    with owner.begin() as connection:
        connection.execute(text("UPDATE memories SET embedding_model = 'older'"))
        connection.execute(text("UPDATE scope_models SET model = 'older'"))

    with ThreadPoolExecutor(1) as pool:
        with transaction(runtime.engine, tenant) as connection:
            assert names.lock_scope(connection, tenant, names.need_scope(connection, tenant, CHAT).id)
            moving = pool.submit(reembed, runtime)
            deadline = time.monotonic() + 60
            while value(owner, BLOCKED) == 0:
                assert time.monotonic() < deadline, "the new vectors wait for nobody"
            assert value(owner, "SELECT count(*) FROM memories WHERE embedding_model = 'older'") == 2
        assert moving.result(60).moved == 2


@pytest.mark.parametrize(
    "lock",
    [
        "SELECT pg_advisory_xact_lock(hashtextextended('mira', (SELECT id FROM tenants WHERE name = 'acme')))",
        "SELECT id FROM users FOR UPDATE",
        "SELECT id FROM scopes FOR UPDATE",
        "SELECT id FROM sessions FOR UPDATE",
        "SELECT id FROM turns FOR UPDATE",
    ],
)
def test_a_call_leaves_the_erasure_to_a_worker_and_does_not_wait_long(
    settings: Settings, tenant: int, owner: Engine, lock: str
) -> None:
    """Whichever of its locks somebody holds, and however patient the role is: here without an end."""
    with owner.begin() as connection:
        app_role.write_defaults(connection, {"lock_timeout": "0", "statement_timeout": "0"})
    runtime = build(settings)
    try:
        record(runtime, tenant, CHAT, [NewTurn(Role.USER, "I live in Lisbon.")])
        with owner.begin() as connection:
            connection.execute(text(lock))
            assert forget.forget_user(runtime, tenant, "mira").state is RunState.QUEUED
    finally:
        runtime.close()
