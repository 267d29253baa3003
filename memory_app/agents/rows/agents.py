"""Agents: persona, policy and the memories that a new user of theirs begins with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, MetaData, Row, and_, bindparam, select, update
from sqlalchemy.dialects.postgresql import insert

from memory_app.db.expressions import columns_of
from memory_app.db.locks import locking
from memory_app.db.tables.tenancy import agents
from memory_app.tenancy.shards import Place


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent as stored; ``persona`` None means the default one."""

    name: str
    persona: dict[str, Any] | None
    policy: dict[str, Any]
    default_memories: tuple[dict[str, Any], ...]
    created_at: datetime


_COLUMNS = columns_of(agents, AgentRow)
_IS_NAMED = and_(agents.c.tenant_id == bindparam("tenant"), agents.c.name == bindparam("agent"))

_READ = select(*_COLUMNS).where(_IS_NAMED)
_READ_LOCKED = locking("agent", _READ.with_for_update())
_ENSURE = insert(agents).on_conflict_do_nothing().inline()
_CHANGE = update(agents).where(_IS_NAMED).returning(*_COLUMNS)


def read(connection: Connection, tenant_id: int, name: str) -> AgentRow | None:
    row = connection.execute(_READ, {"tenant": tenant_id, "agent": name}).one_or_none()
    return None if row is None else _agent(row)


def lock(connection: Connection, tenant_id: int, name: str) -> AgentRow | None:
    """Read an agent that is changed in this transaction: whoever changes it as well waits."""
    row = connection.execute(_READ_LOCKED, {"tenant": tenant_id, "agent": name}).one_or_none()
    return None if row is None else _agent(row)


def change(
    connection: Connection,
    tenant_id: int,
    name: str,
    *,
    parts: Mapping[str, Mapping[str, Any] | Sequence[Mapping[str, Any]] | None],
    copies: Callable[[], Iterable[Place]],
) -> AgentRow:
    """Set the given parts (``persona``, ``policy``, ``default_memories``) of an agent, made when it is new.

    Its copies in other shards, which ``copies`` gives, then say the same. The connection works in the home shard.
    """
    connection.execute(_ENSURE, {"tenant_id": tenant_id, "name": name})
    # An UPDATE that sets nothing is no valid SQL.
    statement = _CHANGE if parts else _READ
    row = connection.execute(statement, {"tenant": tenant_id, "agent": name, **parts}).one()
    if parts:
        # One that is missing gets its copies anew when it is restored and migrated.
        for place in copies():
            of_shard = agents.to_metadata(MetaData(schema=place.schema))
            place.connection.execute(
                update(of_shard)
                .where(of_shard.c.tenant_id == tenant_id, of_shard.c.name == name)
                .values({part: row._mapping[part] for part in parts})
            )
    return _agent(row)


def _agent(row: Row[Any]) -> AgentRow:
    return AgentRow(
        name=row.name,
        persona=row.persona,
        policy=dict(row.policy),
        default_memories=tuple(row.default_memories or ()),
        created_at=row.created_at,
    )
