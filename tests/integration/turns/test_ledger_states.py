"""The core as a state machine: accept, borrow, apply, die, expire, park, index, replay and discard in any order.

Against real Postgres, through the product's own store. A virtual clock moves the leases and due times back instead of
waiting. After every step the rules hold: numbers without gaps, one row per key, effects once and in order, a fence
that never falls, and no commit under an old one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import Engine, create_engine, text

from memory_app.db.db import transaction
from memory_app.local.embedded import Servers
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import keys
from memory_app.turns import failed
from memory_app.turns.record import record
from memory_app.turns.rows import failed_turns, index_work, sessions, stages, turns
from memory_app.turns.rows.sessions import Claim

LEASE = timedelta(seconds=60)
STARTS_LIMIT = 3
NAMES = ("one", "two")


ENDINGS = ("apply", "apply", "apply", "keep", "keep", "die", "postpone", "park")


@dataclass(frozen=True, slots=True)
class Borrowed:
    """A session on loan, and which of its turns the worker means to extract."""

    name: str
    claim: Claim
    low: int
    high: int
    is_replay: bool


@dataclass(slots=True)
class World:
    """What the rules of one run work on."""

    runtime: Runtime
    owner: Engine
    tenant: int
    ids: dict[str, int] = field(default_factory=dict)


@pytest.mark.one_shard
@pytest.mark.timeout(300)
def test_the_core_keeps_its_promises_in_any_order(runtime: Runtime, database: Servers) -> None:
    owner = create_engine(database.owner_url)

    class Machine(Core):
        def __init__(self) -> None:
            with owner.begin() as connection:
                tenant = keys.ensure_tenant(connection, uuid4().hex)
            super().__init__(World(runtime, owner, tenant))

    quickly = settings(
        max_examples=100,
        stateful_step_count=40,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate],  # Making a failure smaller takes minutes on a real database.
    )
    try:
        run_state_machine_as_test(Machine, settings=quickly)
    finally:
        owner.dispose()


class Core(RuleBasedStateMachine):
    """Two sessions of one user. ``effects`` is what the rules applied, as the rows must tell it."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.accepted: dict[str, list[tuple[str, UUID]]] = {name: [] for name in NAMES}
        self.kept: list[Borrowed] = []
        self.parked = self.unindexed = False
        self.effects: dict[str, list[int]] = {name: [] for name in NAMES}
        self.fences: dict[str, int] = dict.fromkeys(NAMES, 0)
        self.replays: dict[str, set[int]] = {name: set() for name in NAMES}

    def scope(self, name: str) -> Scope:
        return Scope("ada", "mira", name)

    @initialize()
    def begin(self) -> None:
        for name in NAMES:
            self.accept(name, 2)

    @rule(name=st.sampled_from(NAMES), several=st.integers(1, 3))
    def accept(self, name: str, several: int) -> None:
        new = [
            NewTurn(Role.USER, f"I bought kettle {uuid4()}.", idempotency_key=uuid4().hex)
            for _ in range(several)
        ]
        tickets = record(self.world.runtime, self.world.tenant, self.scope(name), new)
        first = len(self.accepted[name]) + 1
        assert [ticket.seq for ticket in tickets] == list(range(first, first + several))
        self.accepted[name] += [
            (turn.idempotency_key or "", t.id) for turn, t in zip(new, tickets, strict=True)
        ]
        self._remember_id(name)
        self.unindexed = True

    @precondition(lambda self: any(self.accepted.values()))
    @rule(data=st.data())
    def accept_again(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([name for name in NAMES if self.accepted[name]]))
        place = data.draw(st.integers(0, len(self.accepted[name]) - 1))
        key, turn_id = self.accepted[name][place]
        with self.world.owner.connect() as connection:
            said = connection.execute(
                text("SELECT text FROM turns WHERE id = :id"), {"id": turn_id}
            ).scalar_one()
        again = [NewTurn(Role.USER, said, idempotency_key=key)]
        (ticket,) = record(self.world.runtime, self.world.tenant, self.scope(name), again)
        assert (ticket.id, ticket.seq, ticket.duplicate) == (turn_id, place + 1, True)

    @rule(name=st.sampled_from(NAMES), late=st.booleans(), ending=st.sampled_from(ENDINGS))
    def work(self, name: str, late: bool, ending: str) -> None:
        """A worker borrows the session and ends in some way; ``late``: whoever holds it has had it too long."""
        if late:
            self.let_time_pass()
        if self._column(name, "due_at") is None:
            self.accept(name, 1)
        borrowed = self._borrow(name)
        if borrowed is not None:
            self._end(borrowed, ending)

    @precondition(lambda self: self.kept)
    @rule(data=st.data(), ending=st.sampled_from(ENDINGS))
    def wake_up(self, data: st.DataObject, ending: str) -> None:
        """A worker that held on to a session, perhaps for far too long, goes on as if nothing had happened."""
        self._end(self.kept.pop(data.draw(st.integers(0, len(self.kept) - 1))), ending)

    def let_time_pass(self) -> None:
        with self.world.owner.begin() as connection:
            moved = {"tenant": self.world.tenant, "by": LEASE * 2}
            connection.execute(
                text(
                    """UPDATE sessions SET lease_until = lease_until - :by, due_at = due_at - :by
                    WHERE tenant_id = :tenant"""
                ),
                moved,
            )
            connection.execute(
                text("UPDATE turns SET lease_until = lease_until - :by WHERE tenant_id = :tenant"), moved
            )

    @precondition(lambda self: self.parked)
    @rule(again=st.booleans())
    def settle_a_failed_turn(self, again: bool) -> None:
        waiting = failed.failed(self.world.runtime, self.world.tenant)
        self.parked = len(waiting) > 1
        if waiting:
            (failed.replay if again else failed.discard)(self.world.runtime, self.world.tenant, waiting[0].id)

    @precondition(lambda self: self.unindexed)
    @rule(by=st.integers(1, 3))
    def index(self, by: int) -> None:
        """Claims of several workers at once never overlap, and what is counted is counted once."""
        with transaction(self.world.runtime.engine, None) as connection:
            lent = [index_work.claim(connection, batch=2, lease=LEASE) for _ in range(by)]
        ids = [turn.id for share in lent for turn in share]
        assert len(ids) == len(set(ids))
        self.unindexed = False

    @invariant()
    def holds(self) -> None:
        with self.world.owner.connect() as connection:
            rows = connection.execute(
                text(
                    """SELECT s.name, s.next_seq, s.extracted_seq, s.fence, t.seq, t.idempotency_key AS key,
                              t.extracted_at IS NOT NULL AS extracted, t.failed_at IS NOT NULL AS failed
                    FROM sessions s JOIN turns t ON t.scope_id = s.scope_id AND t.session_id = s.id
                    WHERE s.tenant_id = :tenant ORDER BY s.name, t.seq"""
                ),
                {"tenant": self.world.tenant},
            ).all()
            due = connection.execute(
                text(
                    """SELECT count(*) FROM sessions WHERE tenant_id = :tenant AND due_at IS NULL
                    AND parked_reason IS NULL AND extracted_seq < next_seq - 1"""
                ),
                {"tenant": self.world.tenant},
            ).scalar_one()
        assert due == 0, "what is not extracted is due"
        for name in NAMES:
            mine = [row for row in rows if row.name == name]
            assert [row.key for row in mine] == [key for key, _ in self.accepted[name]], (
                "gapless, once, in order"
            )
            if mine:
                assert mine[0].fence == self.fences[name]
                assert mine[0].extracted_seq < mine[0].next_seq == len(mine) + 1
                passed = [row for row in mine if row.seq <= mine[0].extracted_seq]
                assert all(row.extracted or row.failed or row.seq in self._waiting(name) for row in passed), (
                    "not lost"
                )
            applied = self.effects[name]
            assert len(applied) == len(set(applied)), "effects once"
            in_order = [seq for seq in applied if seq not in self.replays[name]]
            assert in_order == sorted(in_order), "effects in order"

    def _borrow(self, name: str) -> Borrowed | None:
        with transaction(self.world.runtime.engine, None) as connection:
            claimed = sessions.claim(connection, self.world.ids[name], LEASE)
        if claimed is None:
            return None
        assert claimed.fence > self.fences[name], "a fence only grows"
        self.fences[name] = claimed.fence
        with transaction(self.world.runtime.engine, self.world.tenant) as connection:
            row = sessions.read(connection, claimed.scope_id, claimed.session_id)
        assert row is not None
        if row.replay_seqs:
            return Borrowed(name, claimed, row.replay_seqs[0], row.replay_seqs[0], is_replay=True)
        return Borrowed(name, claimed, row.extracted_seq + 1, row.next_seq - 1, is_replay=False)

    def _end(self, borrowed: Borrowed, ending: str) -> None:
        if ending == "keep":
            self.kept.append(borrowed)
        elif ending == "postpone":
            with transaction(self.world.runtime.engine, self.world.tenant) as connection:
                sessions.postpone(connection, borrowed.claim, timedelta(seconds=30))
        elif ending != "die":
            self._commit(borrowed, park=ending == "park")

    def _commit(self, borrowed: Borrowed, *, park: bool) -> None:
        """Effects, or the setting aside of the first turn, together with the progress; or nothing."""
        name, claim, low = borrowed.name, borrowed.claim, borrowed.low
        high = low if park else borrowed.high
        with transaction(self.world.runtime.engine, self.world.tenant) as connection:
            if borrowed.high < low:
                sessions.release(connection, claim, extracting=True)
                return
            if borrowed.is_replay:
                moved = sessions.replayed(connection, claim, low)
            else:
                moved = sessions.advance(connection, claim, from_seq=low, to_seq=high)
            assert not moved or claim.fence == self.fences[name], "no commit under an old fence"
            if not moved:
                return
            if park:
                failed_turns.fail(
                    connection, claim.scope_id, [self.accepted[name][low - 1][1]], reason="parked"
                )
                self.parked = True
                return
            found = turns.between(connection, claim.scope_id, claim.session_id, low=low, high=high)
            stages.mark_extracted(connection, claim.scope_id, {turn.id: None for turn in found})
        self.effects[name] += [turn.seq for turn in found]
        if borrowed.is_replay:
            self.replays[name].add(low)

    def _waiting(self, name: str) -> list[int]:
        return self._column(name, "replay_seqs")  # type: ignore[return-value]

    def _column(self, name: str, column: str) -> int:
        with self.world.owner.connect() as connection:
            statement = text(f"SELECT {column} FROM sessions WHERE id = :id")
            return connection.execute(statement, {"id": self.world.ids[name]}).scalar_one()  # type: ignore[no-any-return]

    def _remember_id(self, name: str) -> None:
        if name in self.world.ids:
            return
        with self.world.owner.connect() as connection:
            statement = text("SELECT id FROM sessions WHERE tenant_id = :tenant AND name = :name")
            values = {"tenant": self.world.tenant, "name": name}
            self.world.ids[name] = connection.execute(statement, values).scalar_one()
