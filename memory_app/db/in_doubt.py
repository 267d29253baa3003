"""End transactions that a process left prepared when it died between the two phases of a commit.

Each waits on a decision: it is committed where the home shard has a row for it. Where it has none, one is written that
says "no", on which the commit of a process that is only slow then fails; after that it is rolled back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import psycopg
import structlog
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from memory_app.db.branches import PREFIX, decision_of
from memory_app.db.db import transaction, translated
from memory_app.errors import StoreUnavailable

log = structlog.get_logger(__name__)

AFTER = timedelta(seconds=10)
"""A prepared transaction that is older was left behind: between the two phases are milliseconds."""

NO_KEPT = timedelta(days=1)
"""How long a "no" is kept: longer than any process may be slow."""

_SAY_NO = text("INSERT INTO public.decisions (id, is_commit) VALUES (:id, false) ON CONFLICT (id) DO NOTHING")
_DECISION = text("SELECT is_commit FROM public.decisions WHERE id = :id")
# Those of the role that asks, which alone may end them.
_PREPARED = text(
    """SELECT gid, prepared < now() - CAST(:age AS interval) AS is_late FROM pg_prepared_xacts
    WHERE database = current_database() AND owner = session_user AND starts_with(gid, :prefix) ORDER BY prepared"""
)
_OLD = text("SELECT id FROM public.decisions WHERE decided_at < now() - :age ORDER BY decided_at LIMIT 1000")
_DROP = text(
    """DELETE FROM public.decisions
    WHERE id = ANY(CAST(:ids AS uuid[])) AND (is_commit OR decided_at < now() - :kept)"""
)
_MOST = text("SELECT CAST(current_setting('max_prepared_transactions') AS integer)")
_ENDED_BY_OTHERS = "42704"


@dataclass(frozen=True, slots=True)
class Settled:
    """How many transactions were ended, and how: what was left prepared, and is not any more."""

    committed: int = 0
    rolled_back: int = 0


def settle(home: Engine, others: Iterable[Engine], *, after: timedelta) -> Settled:
    """End what was left prepared on these servers longer ago than ``after``, and drop decisions that nobody needs.

    Any number may do so at once. A server that is away is left out; raises `StoreUnavailable` where the one of the home
    shard is.
    """
    counts = {True: 0, False: 0}
    with transaction(home, None) as connection:
        # Before the servers are looked at: what is decided and prepared from now on is not among them.
        old = set(connection.execute(_OLD, {"age": after}).scalars())
    for engine in others:
        try:
            for name, is_late in _prepared(engine, after):
                old.discard(decision_of(name))
                if is_late:
                    is_commit = _decided(home, decision_of(name))
                    counts[is_commit] += end(engine, name, is_commit=is_commit)
        except StoreUnavailable as error:
            # It may hold one that waits on any of them.
            old.clear()
            log.info("server_not_settled", reason=error.message)
    if old:
        with transaction(home, None) as connection:
            connection.execute(_DROP, {"ids": list(old), "kept": NO_KEPT})
    return Settled(counts[True], counts[False])


@dataclass(frozen=True, slots=True)
class State:
    """How many transactions are prepared on a server, how many may be, and how many are left there."""

    prepared: int
    most: int
    late: int


def state(connection: Connection) -> State:
    """Of the server of the connection."""
    rows = connection.execute(_PREPARED, {"age": AFTER, "prefix": PREFIX}).all()
    most = connection.execute(_MOST).scalar_one()
    return State(len(rows), most, sum(row.is_late for row in rows))


def _prepared(engine: Engine, after: timedelta) -> tuple[tuple[str, bool], ...]:
    with transaction(engine, None) as connection:
        rows = connection.execute(_PREPARED, {"age": after, "prefix": PREFIX}).all()
    return tuple((row.gid, row.is_late) for row in rows)


def _decided(home: Engine, id: UUID) -> bool:
    """Whether it is decided to commit. Nobody can decide so any more where this says no."""
    with transaction(home, None) as connection:
        # Waits for whoever is about to decide.
        connection.execute(_SAY_NO, {"id": id})
        return bool(connection.execute(_DECISION, {"id": id}).scalar_one())


def end(engine: Engine, name: str, *, is_commit: bool) -> bool:
    """End a prepared transaction; False where somebody else did."""
    verb = "COMMIT" if is_commit else "ROLLBACK"
    with translated(engine), engine.connect() as connection:
        alone = connection.execution_options(isolation_level="AUTOCOMMIT")
        try:
            alone.exec_driver_sql(f"{verb} PREPARED '{name}'")
        except DBAPIError as error:
            if isinstance(error.orig, psycopg.Error) and error.orig.sqlstate == _ENDED_BY_OTHERS:
                return False
            raise
    log.warning("prepared_transaction_ended", name=name, committed=is_commit)
    return True
