"""List the sessions of an agent and a user."""

from __future__ import annotations

from memory_app.db.db import transaction
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_scopes_shard
from memory_app.turns.rows import sessions
from memory_app.turns.rows.sessions import SessionRow


@in_scopes_shard
def list_sessions(
    runtime: Runtime, tenant_id: int, scope: Scope, *, active: bool | None, limit: int
) -> tuple[SessionRow, ...]:
    """Sessions, latest activity first; ``active`` tells those not yet ended from the others."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        return sessions.listed(connection, row.id, active=active, limit=limit)
