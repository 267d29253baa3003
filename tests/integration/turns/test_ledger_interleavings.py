"""Two workers, one producer and a lease that runs out: all orders of their statements with up to two interruptions.

An interruption takes the turn from somebody who could go on; races that need more of them are rare. A schedule in
which a statement would have to wait for a lock is dropped: the order in which it comes later is another schedule.
After each the session is worked off and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count, pairwise

import pytest
from sqlalchemy import Engine, text

from memory_app.db import app_role, db
from memory_app.db.db import transaction
from memory_app.errors import StoreUnavailable
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.settings import Settings
from memory_app.tenancy.rows import names
from memory_app.turns.redacted import Prepared
from memory_app.turns.rows import acceptance, sessions, stages, turns
from memory_app.turns.rows.sessions import Debounce

LEASE = timedelta(hours=1)
AT_ONCE = Debounce(1, timedelta(0), timedelta(0))

Actor = Generator[None, None, None]
"""Runs to the next boundary between two statements."""


class _Fenced(Exception):
    """The transaction must roll back, as in the product."""


@dataclass(slots=True)
class Trial:
    """One session and what was applied to it, in the order of the commits."""

    engine: Engine
    tenant: int
    scope: Scope
    id: int
    applied: list[int] = field(default_factory=list)
    fences: list[int] = field(default_factory=list)


def drain(trial: Trial) -> Actor:
    """What a worker does with a due session, statement by statement, through the product's store."""
    with transaction(trial.engine, None) as connection:
        claimed = sessions.claim(connection, trial.id, LEASE)
    if claimed is None:
        return
    trial.fences.append(claimed.fence)
    yield
    with transaction(trial.engine, trial.tenant) as connection:
        row = sessions.read(connection, claimed.scope_id, claimed.session_id)
        assert row is not None
        low, high = row.extracted_seq + 1, row.next_seq - 1
        if row.fence != claimed.fence or high < low:
            sessions.release(connection, claimed, extracting=True)
            return
    yield
    try:
        with transaction(trial.engine, trial.tenant) as connection:
            names.lock_scope(connection, trial.tenant, claimed.scope_id)
            found = turns.between(connection, claimed.scope_id, claimed.session_id, low=low, high=high)
            stages.mark_extracted(connection, claimed.scope_id, {turn.id: None for turn in found})
            yield
            if not sessions.advance(connection, claimed, from_seq=low, to_seq=high):
                raise _Fenced
            yield
    except _Fenced:
        return
    trial.applied += [turn.seq for turn in found]


def accept(trial: Trial) -> Actor:
    """What a producer does, statement by statement."""
    with transaction(trial.engine, trial.tenant) as connection:
        session = sessions.lock_session(connection, trial.tenant, trial.scope)
        assert session is not None
        yield
        turn = NewTurn(Role.USER, "I bought another kettle.")
        acceptance.accept(
            connection,
            trial.tenant,
            session,
            new_turns=[Prepared(turn, "mira", None)],
            debounce=AT_ONCE,
            request_id=None,
            places={},
        )
        yield


def let_leases_run_out(trial: Trial) -> Actor:
    with transaction(trial.engine, trial.tenant) as connection:
        connection.execute(
            text("UPDATE sessions SET lease_until = lease_until - :by WHERE id = :id"),
            {"by": LEASE * 2, "id": trial.id},
        )
    return
    yield


INTERRUPTIONS = 2
DONE = -1
"""Stands in a schedule behind the last step of an actor."""

ACTORS: tuple[Callable[[Trial], Actor], ...] = (drain, drain, accept, let_leases_run_out)


@pytest.mark.timeout(300)
def test_every_order_of_two_drains_an_accept_and_an_expiry(
    settings: Settings, owner: Engine, tenant: int
) -> None:
    with owner.begin() as connection:
        app_role.write_defaults(connection, {"lock_timeout": "1"})
    impatient = db.connect(settings.database.url.get_secret_value())
    numbers = count(1)
    open_schedules: list[tuple[int, ...]] = [()]
    tried = dropped = 0
    try:
        while open_schedules:
            trial = new_trial(impatient, tenant, next(numbers))
            if run(trial, open_schedules.pop(), open_schedules):
                finish(trial)
                tried += 1
            else:
                dropped += 1
    finally:
        impatient.dispose()
    assert tried > 300, f"{tried} schedules tried, {dropped} dropped"


def new_trial(impatient: Engine, tenant: int, number: int) -> Trial:
    """A session with two accepted turns."""
    scope = Scope("ada", "mira", f"session {number}")
    said = [
        Prepared(NewTurn(Role.USER, f"I bought a kettle with the number {n}."), "mira", None) for n in (1, 2)
    ]
    with transaction(impatient, tenant) as connection:
        place = names.ensure_scope(connection, tenant, Scope("ada", "mira"))
        sessions.ensure_session(connection, tenant, place.id, name=scope.session or "")
        session = sessions.lock_session(connection, tenant, scope)
        assert session is not None
        acceptance.accept(
            connection, tenant, session, new_turns=said, debounce=AT_ONCE, request_id=None, places={}
        )
    return Trial(impatient, tenant, scope, session.id)


def run(trial: Trial, prefix: tuple[int, ...], open_schedules: list[tuple[int, ...]]) -> bool:
    """Follow the prefix, then go on with the first actor that is not done, noting the other choices for later.

    False when a statement had to wait.
    """
    actors = {place: make(trial) for place, make in enumerate(ACTORS)}
    schedule: tuple[int, ...] = ()
    try:
        while actors:
            choices = sorted(actors)
            if len(schedule) < len(prefix):
                chosen = prefix[len(schedule)]
                assert chosen != DONE
            else:
                chosen = schedule[-1] if schedule and schedule[-1] in actors else choices[0]
                others = [(*schedule, other) for other in choices if other != chosen]
                open_schedules += [other for other in others if interruptions(other) <= INTERRUPTIONS]
            schedule = (*schedule, chosen)
            if next(actors[chosen], "done") == "done":
                del actors[chosen]
                schedule = (*schedule, DONE)
    except StoreUnavailable:
        return False
    finally:
        for actor in actors.values():
            actor.close()
    return True


def interruptions(schedule: tuple[int, ...]) -> int:
    """How often the turn goes to somebody else although the one before could go on."""
    return sum(a != b and DONE not in (a, b) for a, b in pairwise(schedule))


def finish(trial: Trial) -> None:
    """Whatever happened, the next workers bring the session to its end, and each turn took effect once, in order."""
    while len(trial.applied) < 3 and len(trial.fences) < 9:
        for _ in let_leases_run_out(trial):
            pass
        for _ in drain(trial):
            pass
    assert trial.applied == [1, 2, 3]
    assert trial.fences == sorted(set(trial.fences)), "each claim has a newer fence"
    with transaction(trial.engine, trial.tenant) as connection:
        row = connection.execute(
            text(
                """SELECT s.extracted_seq, s.next_seq, s.due_at, s.lease_until,
                          (SELECT array_agg(t.seq ORDER BY t.seq) FROM turns t
                           WHERE t.session_id = s.id AND t.extracted_at IS NOT NULL) AS extracted
                FROM sessions s WHERE s.id = :id"""
            ),
            {"id": trial.id},
        ).one()
    assert (row.extracted_seq, row.next_seq, row.due_at, row.lease_until) == (3, 4, None, None)
    assert row.extracted == [1, 2, 3]
