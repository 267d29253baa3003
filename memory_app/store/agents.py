"""Agents: persona, policy and the memories that a new user of theirs begins with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, text


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent as stored; ``persona`` None means the default one."""

    name: str
    persona: dict[str, Any] | None
    policy: dict[str, Any]
    default_memories: tuple[dict[str, Any], ...]
    created_at: datetime


_COLUMNS = "a.name, a.persona, a.policy, a.default_memories, a.created_at"

_READ = text(f"SELECT {_COLUMNS} FROM agents a WHERE a.tenant_id = :tenant AND a.name = :name")
_ENSURE = text("INSERT INTO agents (tenant_id, name) VALUES (:tenant, :name) ON CONFLICT DO NOTHING")
_CHANGE = text(
    f"""
    UPDATE agents a
    SET persona = CASE WHEN :with_persona THEN CAST(:persona AS jsonb) ELSE a.persona END,
        policy = CASE WHEN :with_policy THEN CAST(:policy AS jsonb) ELSE a.policy END,
        default_memories = CASE WHEN :with_memories THEN CAST(:memories AS jsonb) ELSE a.default_memories END
    WHERE a.tenant_id = :tenant AND a.name = :name
    RETURNING {_COLUMNS}
    """
)


def read(connection: Connection, tenant_id: int, name: str) -> AgentRow | None:
    row = connection.execute(_READ, {"tenant": tenant_id, "name": name}).one_or_none()
    return None if row is None else _agent(row)


def change(
    connection: Connection,
    tenant_id: int,
    name: str,
    *,
    parts: Mapping[str, Mapping[str, Any] | Sequence[Mapping[str, Any]] | None],
) -> AgentRow:
    """Set the given parts (``persona``, ``policy``, ``default_memories``) of an agent, made when it is new."""
    connection.execute(_ENSURE, {"tenant": tenant_id, "name": name})
    persona = parts.get("persona")
    values = {
        "tenant": tenant_id,
        "name": name,
        "with_persona": "persona" in parts,
        "persona": None if persona is None else _json(persona),
        "with_policy": "policy" in parts,
        "policy": _json(parts.get("policy") or {}),
        "with_memories": "default_memories" in parts,
        "memories": _json(parts.get("default_memories") or []),
    }
    return _agent(connection.execute(_CHANGE, values).one())


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _agent(row: Row[Any]) -> AgentRow:
    return AgentRow(
        row.name, row.persona, dict(row.policy), tuple(row.default_memories or ()), row.created_at
    )
