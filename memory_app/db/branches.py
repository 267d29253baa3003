"""One transaction over several servers: it takes effect on all of them or on none, whatever dies in between.

A transaction has a branch on each server. Where only one of them changed rows, its commit decides. Where several did,
PostgreSQL's two-phase commit is used (https://www.postgresql.org/docs/current/two-phase.html): the others prepare, the
branch on the server of the home shard commits with a row in ``decisions``, and the others commit what they prepared.
What a process that died left prepared is ended by `memory_app.db.in_doubt`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import psycopg
from sqlalchemy import Connection, Engine, text

from memory_app import failpoint
from memory_app.errors import StoreUnavailable

PREFIX = "memory:"
"""Begins the names of our prepared transactions; the id of the decision follows, and the number of the branch."""

_BRANCHES = "branches"

_HAS_WRITTEN = text("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")
_LEAVE_ROLE = text("SELECT set_config('role', 'none', true)")
_DECIDE = text("INSERT INTO public.decisions (id) VALUES (:id)")


@dataclass(slots=True)
class _Branches:
    """The connections of one transaction. ``begin`` opens a further one, which ends with the others."""

    main: Connection
    begin: Callable[[Engine], Connection]
    others: list[Connection] = field(default_factory=list)
    may_write: bool = False
    infos: list[dict[Any, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._join(self.main)

    def everywhere(self) -> tuple[Connection, ...]:
        return (self.main, *self.others)

    def at(self, engine: Engine) -> Connection:
        """The branch on the server of an engine."""
        for branch in self.everywhere():
            # Engines of one server share their pool.
            if branch.engine.pool is engine.pool:
                return branch
        branch = self.begin(engine)
        self._join(branch)
        self.others.append(branch)
        return branch

    def _join(self, branch: Connection) -> None:
        # Taken once: a connection that broke meanwhile refuses to be asked for it, and would hide how it broke.
        info = branch.info
        info[_BRANCHES] = self
        self.infos.append(info)

    def leave(self) -> None:
        """Let the connections, which go back to their pools, know nothing of each other."""
        for info in self.infos:
            info.pop(_BRANCHES, None)


@contextmanager
def united(
    main: Connection,
    *,
    begin: Callable[[Engine], Connection],
    end: Callable[[Connection], None],
    home: Engine | None,
) -> Iterator[None]:
    """Let what `also_in` adds in the block belong to the transaction of ``main``, and commit all of it after the block.

    ``end`` does what was put off to the end of a branch. ``home`` is the engine of the home shard, None where ``main``
    is on its server. Raises `StoreUnavailable` where it is decided and a server went away before it took effect there.
    """
    branches = _Branches(main, begin)
    try:
        yield
        for branch in branches.everywhere():
            end(branch)
        if branches.others:
            _commit(branches, home)
    finally:
        branches.leave()


def also_in(connection: Connection, engine: Engine, *, writes: bool) -> Connection:
    """A connection to the server of an engine that belongs to the transaction of this one, which must be one of
    `memory_app.db.db.transaction`. ``writes``: rows are changed over it, and not only read or locked."""
    branches: _Branches = connection.info[_BRANCHES]
    branches.may_write |= writes
    return branches.at(engine)


def prepared_name(id: UUID, number: int) -> str:
    """The name of a prepared branch."""
    return f"{PREFIX}{id}:{number}"


def decision_of(name: str) -> UUID:
    """The id of the decision on which a prepared branch waits."""
    return UUID(name.removeprefix(PREFIX).partition(":")[0])


def _commit(branches: _Branches, home: Engine | None) -> None:
    everywhere = branches.everywhere()
    writers = [branch for branch in everywhere if branches.may_write and _has_written(branch)]
    if len(writers) > 1:
        decider = branches.main if home is None else branches.at(home)
        _commit_in_two_phases([branch for branch in writers if branch is not decider], decider)
    # The one that decides first: the others hold locks for it, or have only read.
    for branch in sorted(branches.everywhere(), key=lambda branch: branch not in writers):
        _end(branch)


def _commit_in_two_phases(writers: list[Connection], decider: Connection) -> None:
    id = uuid4()
    names = [prepared_name(id, number) for number in range(len(writers))]
    decider.execute(_DECIDE, {"id": id})
    prepared = 0
    try:
        for branch, name in zip(writers, names, strict=True):
            # As the role that logged in, who alone may end it: the transaction may be one of the bound role.
            branch.execute(_LEAVE_ROLE)
            branch.exec_driver_sql(f"PREPARE TRANSACTION '{name}'")
            prepared += 1
    except BaseException:
        for branch, name in zip(writers[:prepared], names, strict=False):
            # What cannot be ended now is found in doubt later.
            with suppress(psycopg.Error):
                _run_outside(branch, f"ROLLBACK PREPARED '{name}'")
        raise
    failpoint.reach("branches.prepared")
    # From here on nobody may roll back: whoever does not hear of a commit cannot know whether it was one.
    _end(decider)
    failpoint.reach("branches.decided")
    failure: psycopg.Error | None = None
    for branch, name in zip(writers, names, strict=True):
        try:
            _run_outside(branch, f"COMMIT PREPARED '{name}'")
        except psycopg.Error as error:
            failure = error
    if failure is not None:
        raise StoreUnavailable(
            "this is decided, and a server went away before it took effect there; it does within seconds after the "
            "server is back",
            retry_after=5,
        ) from failure


def _has_written(branch: Connection) -> bool:
    return bool(branch.execute(_HAS_WRITTEN).scalar_one())


def _end(branch: Connection) -> None:
    transaction = branch.get_transaction()
    if transaction is not None and transaction.is_active:
        transaction.commit()


def _run_outside(branch: Connection, statement: str) -> None:
    """Run a statement over the connection of a branch that is prepared, outside of any transaction."""
    driver = branch.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    driver.autocommit = True
    try:
        driver.execute(statement.encode())
    finally:
        if not driver.closed:
            driver.autocommit = False
