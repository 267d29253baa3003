"""Store the items of a file in a scope, a few hundred at a time: turns by the door of turns, statements by that of
memories. What is there already stays as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sqlalchemy import Connection

from memory_app.db.db import transaction
from memory_app.errors import Conflict, Erased, InvalidInput, Permanent
from memory_app.extraction.rules import read_declared
from memory_app.jobs import schedule
from memory_app.language.zones import zone_of
from memory_app.memories import capacity
from memory_app.memories.forbidden import check_allowed
from memory_app.memories.ladder_writer import Prepared
from memory_app.memories.remember import Place, drop_context, needs_seed, prepare, seed, write_all
from memory_app.records.erased import Refusal
from memory_app.records.records import Statement
from memory_app.records.reports import ImportProgress
from memory_app.records.scope import Scope
from memory_app.records.statement import checked_statement
from memory_app.runtime import Runtime
from memory_app.tenancy import quotas
from memory_app.tenancy.digests import digests_of
from memory_app.tenancy.policy import ExtractionMode, Policy, parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.tenancy.shards import in_scopes_shard
from memory_app.transfer.importers.plan import Planned, SessionTurn
from memory_app.transfer.importers.records import Memory
from memory_app.transfer.rows import imports
from memory_app.turns import erased
from memory_app.turns.erased import Waited
from memory_app.turns.record import record

T = TypeVar("T")

TURNS_AT_ONCE = 200
"""Turns in one transaction, which holds their session."""

# One call of the embedder, and the scope is held while they are judged.
STATEMENTS_AT_ONCE = 50

_ENDS_ALL = (Refusal.SENT_BEFORE, Refusal.UNTIMED)


@dataclass(slots=True)
class Storage:
    """Stores items in the order in which they are added. ``waited``: since when the file waits for its import.

    ``progress`` counts what is stored; it grows by `store`, which `add` calls when enough is together.
    """

    runtime: Runtime
    tenant_id: int
    scope: Scope
    waited: Waited
    progress: ImportProgress
    _turns: list[SessionTurn] = field(default_factory=list)
    _statements: list[Statement] = field(default_factory=list)
    _left_out: int = 0
    _counts: Counter[str] = field(default_factory=Counter)
    _refused: Counter[str] = field(default_factory=Counter)

    def add(self, item: Planned) -> bool:
        """Take an item; True where something was stored. Raises `Transient`: then nothing of what waits is lost."""
        stored = self._is_full_for(item)
        if stored:
            self.store()
        if isinstance(item, SessionTurn):
            self._turns.append(item)
        elif isinstance(item, Memory):
            self._statements.append(item.statement)
        else:
            self._left_out += 1
        return stored

    def store(self) -> None:
        """Store what was added. Raises `Transient`, and then knows how much of it is stored."""
        items = len(self._turns) + len(self._statements) + self._left_out
        # Of a try that broke off: what it stored counts as known now.
        self._counts.clear()
        self._refused.clear()
        if self._turns:
            self._in_parts(self._turns, self._record)
            self._turns = []
        if self._statements:
            self._in_parts(self._statements, self._remember)
            self._statements = []
        self._left_out = 0
        earlier = self.progress
        self.progress = ImportProgress(
            items=earlier.items + items,
            recorded=earlier.recorded + self._counts["recorded"],
            remembered=earlier.remembered + self._counts["remembered"],
            known=earlier.known + self._counts["known"],
            refused=dict(Counter(earlier.refused) + self._refused),
        )

    def _is_full_for(self, item: Planned) -> bool:
        if len(self._turns) >= TURNS_AT_ONCE or len(self._statements) >= STATEMENTS_AT_ONCE:
            return True
        return bool(self._turns) and isinstance(item, SessionTurn) and item.session != self._turns[0].session

    def _in_parts(self, items: Sequence[T], store: Callable[[Sequence[T]], None]) -> None:
        """Store the items together or, where one of them is refused, one by one. Raises `Permanent` for a person who
        was erased since the file came."""
        try:
            store(items)
        except Erased as error:
            if error.reason in _ENDS_ALL:
                raise Permanent("the person or a session was erased after the file came") from error
            self._one_by_one(items, store, error)
        except (Conflict, InvalidInput) as error:
            self._one_by_one(items, store, error)

    def _one_by_one(
        self, items: Sequence[T], store: Callable[[Sequence[T]], None], error: Conflict | InvalidInput
    ) -> None:
        if len(items) == 1:
            self._refused[error.kind] += 1
            return
        for item in items:
            self._in_parts([item], store)

    def _record(self, turns: Sequence[SessionTurn]) -> None:
        scope = replace(self.scope, session=turns[0].session)
        new = [item.turn for item in turns]
        tickets = record(self.runtime, self.tenant_id, scope, new, waited=self.waited)
        duplicates = sum(ticket.duplicate for ticket in tickets)
        self._counts["known"] += duplicates
        self._counts["recorded"] += len(tickets) - duplicates

    def _remember(self, statements: Sequence[Statement]) -> None:
        count = _remember(
            self.runtime, self.tenant_id, replace(self.scope, session=None), statements, waited=self.waited
        )
        self._counts["remembered"] += count
        self._counts["known"] += len(statements) - count


@in_scopes_shard
def _remember(
    runtime: Runtime, tenant_id: int, scope: Scope, statements: Sequence[Statement], *, waited: Waited
) -> int:
    """Store the statements that were not imported before; how many. All or none of them."""
    assert scope.user is not None
    with transaction(runtime.engine, tenant_id) as connection:
        _check_person(connection, runtime, tenant_id, scope=scope, waited=waited)
        row = names.ensure_scope(connection, tenant_id, scope)
    if needs_seed(row):
        seed(runtime, tenant_id, row.id)
    policy = parse_policy(row.policy)
    read = [_read(statement, row, policy) for statement in statements]
    # Between two transactions: none is open while the embedder is called.
    prepared = prepare(runtime, read, policy=policy)
    place = Place(tenant_id, row.id, turn_scopes=row.visible)
    with transaction(runtime.engine, tenant_id) as connection:
        _check_person(connection, runtime, tenant_id, scope=scope, waited=waited)
        names.hold_scope(connection, tenant_id, scope, row.id)
        known = imports.known_keys(connection, row.id, {item.key for item in prepared})
        fresh = _first_of_each(prepared, known)
        if not fresh:
            return 0
        quotas.admit_memories(runtime, tenant_id, scope.user, len(fresh))
        written = write_all(connection, runtime, place, prepared=fresh)
        capacity.keep_ceiling(
            connection,
            runtime,
            tenant_id,
            scope_id=row.id,
            policy=policy,
            written=[result.id for result in written],
        )
        schedule.wake(connection, runtime, [row.id])
    drop_context(runtime, row.id)
    return len(fresh)


def _first_of_each(prepared: Sequence[Prepared], known: frozenset[str]) -> list[Prepared]:
    """Those that are new, each once."""
    by_key: dict[str, Prepared] = {}
    for item in prepared:
        if item.key not in known:
            by_key.setdefault(item.key, item)
    return list(by_key.values())


def _read(statement: Statement, row: ScopeRow, policy: Policy) -> Statement:
    """The statement with the fact that its words state. Raises `InvalidInput` for what may not be kept."""
    checked, _ = checked_statement(statement)
    check_allowed(checked, policy)
    if policy.extraction is ExtractionMode.OFF:
        return checked
    at = checked.said_at or row.now
    return read_declared(checked, user=row.user, at=at, zone=zone_of(row.time_zone))


def _check_person(
    connection: Connection, runtime: Runtime, tenant_id: int, *, scope: Scope, waited: Waited
) -> None:
    """Raise `Erased` where the person was erased since the file came, and keep them from it until the commit."""
    erased.hold(connection, tenant_id, scope)
    erased.check_waited(connection, tenant_id, scope, waited=waited, made=digests_of(runtime.settings))
