"""Files that wait to be imported, in parts, until their run has ended; and what was imported before."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from uuid import UUID

from sqlalchemy import Connection, bindparam, delete, exists, func, insert, select

from memory_app.db.expressions import among
from memory_app.db.tables.jobs import runs
from memory_app.db.tables.memories import memories
from memory_app.db.tables.transfer import import_parts
from memory_app.jobs.rows.runs import RunLease
from memory_app.records.records import Origin
from memory_app.records.run import OPEN, RunName

_OF_RUN = import_parts.c.run_id == bindparam("run")
_ADD = insert(import_parts)
_READ = select(import_parts.c.content).where(_OF_RUN, import_parts.c.number == bindparam("part"))
_SIZE = select(func.coalesce(func.sum(func.length(import_parts.c.content)), 0)).where(_OF_RUN)
_DROP = delete(import_parts).where(_OF_RUN)
# By the index of what is due, which holds all that is open.
_WAITING = select(func.count()).where(
    runs.c.tenant_id == bindparam("tenant"),
    runs.c.due_at.is_not(None),
    runs.c.name == RunName.IMPORT_FILE,
    runs.c.state.in_(OPEN),
    exists().where(import_parts.c.run_id == runs.c.id),
)
_KNOWN = select(memories.c.canonical_key).where(
    memories.c.scope_id == bindparam("scope"),
    among(memories.c.canonical_key, "keys"),
    memories.c.origin == Origin.IMPORTED,
)


def add_parts(
    connection: Connection, tenant_id: int, scope_id: int, *, run_id: UUID, parts: Iterable[bytes]
) -> int:
    """Store the parts of a file for its run; their number."""
    number = 0
    for content in parts:
        row = {"tenant_id": tenant_id, "scope_id": scope_id, "run_id": run_id, "number": number}
        connection.execute(_ADD, row | {"content": content})
        number += 1
    return number


def read_part(connection: Connection, run_id: UUID, number: int) -> bytes | None:
    """A part of the file of a run, counted from 0; None behind the last one."""
    values = {"run": run_id, "part": number}
    content: bytes | None = connection.execute(_READ, values).scalar_one_or_none()
    return content


def size(connection: Connection, run_id: UUID) -> int:
    """Bytes of the file that waits for a run; 0 where there is none."""
    return int(connection.execute(_SIZE, {"run": run_id}).scalar_one())


def drop_parts(connection: Connection, claimed: RunLease) -> None:
    """Delete the file of a run that has ended."""
    connection.execute(_DROP, {"run": claimed.run_id})


def waiting(connection: Connection, tenant_id: int) -> int:
    """Files of the tenant in this shard that wait for their import, or are being imported."""
    return int(connection.execute(_WAITING, {"tenant": tenant_id}).scalar_one())


def known_keys(connection: Connection, scope_id: int, keys: Collection[str]) -> frozenset[str]:
    """Those of the canonical keys whose statements were imported into the scope before, also if retired since."""
    values = {"scope": scope_id, "keys": list(keys)}
    return frozenset(connection.execute(_KNOWN, values).scalars())
