"""Rows that somebody else holds locked for long, such as a frozen process or an operator: nobody died of it.

Each attempt ends with a lock time-out and cannot say so in the row. A turn must not be set aside for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from embedders import ScriptedEmbedder
from queries import rows
from sqlalchemy import Engine, text

from memory_app.db import app_role
from memory_app.db.db import transaction
from memory_app.errors import StoreUnavailable
from memory_app.records.records import NewTurn, Role, Stage
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Extract, Index, Settings
from memory_app.turns import extract, index
from memory_app.turns.extract import extract_session
from memory_app.turns.index import IndexReport, index_turns
from memory_app.turns.record import record
from memory_app.turns.rows import index_work, sessions, stages

pytestmark = pytest.mark.one_shard

SCOPE = Scope("ada", "bob", "s1")
LIMIT = Extract().starts_limit
ATTEMPTS = LIMIT + 2


@pytest.fixture
def hasty(settings: Settings, owner: Engine) -> Iterator[Runtime]:
    """Gives up waiting for a lock at once, and borrows for a second."""
    with owner.begin() as connection:
        app_role.write_defaults(connection, {"lock_timeout": "50"})
    short = {"index": Index(lease_seconds=1), "extract": Extract(lease_seconds=1)}
    runtime = build(settings.model_copy(update=short))
    yield runtime
    runtime.close()


@contextmanager
def held(owner: Engine, statement: str, **values: object) -> Iterator[None]:
    """As somebody who reads rows FOR UPDATE and goes away without an end of the transaction."""
    with owner.connect() as connection:
        connection.execute(text(statement), values)
        yield
        connection.rollback()


def expire_leases(owner: Engine) -> None:
    """As if leases, and pauses after an error, were over."""
    with owner.begin() as connection:
        connection.execute(text("UPDATE turns SET lease_until = now() - interval '1 second'"))
        connection.execute(
            text(
                """UPDATE sessions SET lease_until = now() - interval '1 second',
                due_at = least(due_at, now() - interval '1 second')"""
            )
        )


def spoken(runtime: Runtime, tenant: int, said: str = "I live in Paris these days.") -> UUID:
    (ticket,) = record(runtime, tenant, SCOPE, [NewTurn(Role.USER, said)])
    return ticket.id


def stage(runtime: Runtime, tenant: int, turn_id: UUID) -> Stage:
    with transaction(runtime.engine, tenant) as connection:
        ticket = stages.ticket(connection, turn_id)
    assert ticket is not None
    return ticket.stage


def only_session(owner: Engine) -> int:
    return int(rows(owner, "SELECT id FROM sessions")[0].id)


def do_something_else(runtime: Runtime) -> None:
    """Whatever the process does next, it first gives back what it could not before; here a session that is gone."""
    extract_session(runtime, 0)


@contextmanager
def meeting_a_lock(runtime: Runtime, owner: Engine, statement: str) -> Iterator[Runtime]:
    """Somebody locks rows while an attempt embeds ``:words``, after its claim and before its effects."""
    with ExitStack() as holding:
        statements = iter([statement])

        def take(texts: Sequence[str]) -> None:
            for once in statements:
                holding.enter_context(held(owner, once, words=texts[0]))

        yield replace(runtime, embedder=ScriptedEmbedder(before=take))


def test_a_turn_whose_row_is_locked_each_time_is_indexed_once_it_is_free(
    hasty: Runtime, tenant: int, owner: Engine
) -> None:
    turn_id = spoken(hasty, tenant)
    for _ in range(ATTEMPTS):
        with (
            meeting_a_lock(hasty, owner, "SELECT FROM turns FOR UPDATE") as unlucky,
            pytest.raises(StoreUnavailable),
        ):
            index_turns(unlucky)
        expire_leases(owner)
        do_something_else(hasty)
        expire_leases(owner)
    assert index_turns(hasty) == IndexReport(indexed=1)
    assert stage(hasty, tenant, turn_id) is Stage.INDEXED


def test_a_session_whose_row_is_locked_each_time_is_extracted_later(
    hasty: Runtime, tenant: int, owner: Engine
) -> None:
    turn_id = spoken(hasty, tenant)
    index_turns(hasty)
    session = only_session(owner)
    for _ in range(ATTEMPTS):
        with (
            meeting_a_lock(hasty, owner, "SELECT FROM sessions FOR UPDATE") as unlucky,
            pytest.raises(StoreUnavailable),
        ):
            extract_session(unlucky, session)
        expire_leases(owner)
        do_something_else(hasty)
        expire_leases(owner)
    assert extract_session(hasty, session).turns == 1
    assert stage(hasty, tenant, turn_id) is Stage.EXTRACTED


def test_workers_that_overtake_each_other_at_a_lock_set_no_turn_aside(
    hasty: Runtime, tenant: int, owner: Engine
) -> None:
    turn_id = spoken(hasty, tenant)
    index_turns(hasty)
    session = only_session(owner)
    claims = [extract._claim(hasty, session)]

    def overtake(_: Sequence[str]) -> None:
        """The lease of the one that waits is over before its wait is."""
        expire_leases(owner)
        claims.append(extract._claim(hasty, session))

    with held(owner, "SELECT FROM scopes FOR NO KEY UPDATE"):
        for _ in range(ATTEMPTS):
            assert claims[-1] is not None
            slow = replace(hasty, embedder=ScriptedEmbedder(before=overtake))
            assert extract._extract_claimed(slow, claims[-1]).failed == 0
    assert claims[-1] is not None
    assert len(claims) == ATTEMPTS + 1
    assert extract._extract_claimed(hasty, claims[-1]).turns == 1
    assert stage(hasty, tenant, turn_id) is Stage.EXTRACTED


def test_rows_that_are_locked_all_the_time_are_lent_to_nobody(
    hasty: Runtime, tenant: int, owner: Engine
) -> None:
    turn_id = spoken(hasty, tenant)
    session = only_session(owner)
    with held(owner, "SELECT FROM turns FOR UPDATE"), held(owner, "SELECT FROM sessions FOR UPDATE"):
        for _ in range(ATTEMPTS):
            assert index_turns(hasty) == IndexReport()
            with pytest.raises(StoreUnavailable):
                extract_session(hasty, session)
    assert index_turns(hasty) == IndexReport(indexed=1)
    assert extract_session(hasty, session).turns == 1
    assert stage(hasty, tenant, turn_id) is Stage.EXTRACTED


def test_turns_of_others_are_given_back_together_with_the_locked_one(
    hasty: Runtime, tenant: int, other_tenant: int, owner: Engine
) -> None:
    spoken(hasty, tenant)
    spoken(hasty, other_tenant, "I have a dog named Rex.")
    first = "SELECT FROM turns WHERE position(text in :words) > 0 FOR UPDATE"
    with meeting_a_lock(hasty, owner, first) as unlucky, pytest.raises(StoreUnavailable):
        index_turns(unlucky)
    assert sorted(row.starts for row in rows(owner, "SELECT starts FROM turns")) == [0, 1]


def test_a_late_word_of_a_living_worker_leaves_the_starts_after_its_own(
    hasty: Runtime, tenant: int, owner: Engine
) -> None:
    spoken(hasty, tenant)
    session = only_session(owner)
    claims, borrowed = [], []
    for _ in range(LIMIT):
        claims.append(extract._claim(hasty, session))
        borrowed += index._claim(hasty)
        expire_leases(owner)
    with transaction(hasty.engine, tenant) as connection:
        for _ in range(2):
            second = claims[1]
            assert second is not None
            assert not sessions.postpone(connection, second, timedelta(0))
            index_work.postpone(connection, borrowed[1:2], timedelta(hours=1))
    assert rows(owner, "SELECT starts, failures FROM sessions") == [(LIMIT - 2, 1)]
    assert rows(owner, "SELECT starts, lease_until < now() FROM turns") == [(LIMIT - 2, True)]


def test_a_late_word_about_work_that_is_done_meanwhile_changes_nothing(
    hasty: Runtime, tenant: int, owner: Engine
) -> None:
    spoken(hasty, tenant)
    session = only_session(owner)
    late = extract._claim(hasty, session)
    assert late is not None
    expire_leases(owner)
    assert extract_session(hasty, session).turns == 1
    before = rows(owner, "SELECT * FROM sessions")
    with transaction(hasty.engine, tenant) as connection:
        assert not sessions.postpone(connection, late, timedelta(0))
    assert rows(owner, "SELECT * FROM sessions") == before
