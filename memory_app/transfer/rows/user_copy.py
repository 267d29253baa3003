"""Copy all rows of a user from one shard of a server to another, and delete them where they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, text

from memory_app.db.expressions import column_list
from memory_app.db.locks import locking
from memory_app.db.shards import HOME, schema_of
from memory_app.db.tables import metadata
from memory_app.errors import Permanent

TABLES = (
    "scopes",
    "grants",
    "sessions",
    "turns",
    "runs",
    "import_parts",
    "entities",
    "memories",
    "links",
    "mentions",
    "evidence",
    "feedback",
    "checkpoints",
    "images",
    "schedules",
    "scope_models",
    "scope_sizes",
    "speakers",
    "terms",
)
"""Tables with rows of a scope, each after those that it refers to."""

# What somebody has on loan in the old shard is free in the new one; their commit finds no row to change any more. Who
# was at work is not to blame, so its start is not counted. A move is no change that anybody is told of: rows keep the
# numbers of their transactions, and those from before there were any get one that is before all.
_INSTEAD: Mapping[str, Mapping[str, str]] = {
    "sessions": {"fence": "fence + 1", "lease_until": "NULL", "starts": "0"},
    "runs": {
        "fence": "fence + 1",
        "lease_until": "NULL",
        "starts": "0",
        "created_xact": "coalesce(created_xact, 0)",
        "finished_xact": "CASE WHEN finished_at IS NOT NULL THEN coalesce(finished_xact, 0) END",
    },
    "memories": {"stored_xact": "coalesce(stored_xact, 0)"},
    "turns": {
        "accepted_xact": "coalesce(accepted_xact, 0)",
        "lease_until": "CASE WHEN indexed_at IS NULL AND starts > 0 THEN now() ELSE lease_until END",
        "starts": "CASE WHEN indexed_at IS NULL THEN 0 ELSE starts END",
    },
    # The partial indexes of a big scope stay behind.
    "scope_models": {"is_indexed": "false"},
}

_LOCK_USER = locking(
    "user",
    text("SELECT id, shard FROM public.users WHERE tenant_id = :tenant AND name = :user FOR UPDATE"),
)
_SET_SHARD = text("UPDATE public.users SET shard = :shard WHERE tenant_id = :tenant AND id = :user")
_WORK_LONG = text("SELECT set_config('statement_timeout', '10min', true)")


@dataclass(frozen=True, slots=True)
class LockedUser:
    """A user whose entry in the directory is held by this transaction."""

    id: int
    shard: int


def lock_user(connection: Connection, tenant_id: int, user: str) -> LockedUser | None:
    """Hold the user's entry in the directory, so that nobody makes a scope for, moves or erases the user meanwhile."""
    connection.execute(_WORK_LONG)
    row = connection.execute(_LOCK_USER, {"tenant": tenant_id, "user": user}).one_or_none()
    return None if row is None else LockedUser(row.id, row.shard)


def lock_scopes(connection: Connection, tenant_id: int, user: LockedUser) -> tuple[int, ...]:
    """Hold the scopes and the sessions of a user: whoever writes to them has done so, or waits and finds them gone.

    In the order of everybody else, who take a scope before its sessions, and a session before they refer to its scope.
    """
    schema = schema_of(user.shard)
    values: dict[str, Any] = {"tenant": tenant_id, "user": user.id}
    scopes = f"SELECT id FROM {schema}.scopes WHERE tenant_id = :tenant AND user_id = :user ORDER BY id"
    ids = tuple(connection.execute(locking("scope", text(f"{scopes} FOR NO KEY UPDATE")), values).scalars())
    sessions = f"SELECT id FROM {schema}.sessions WHERE scope_id = ANY(:scopes) ORDER BY id"
    connection.execute(locking("session", text(f"{sessions} FOR NO KEY UPDATE")), {"scopes": list(ids)})
    # Whoever has just written a row of the scope is waited for, and nobody can write one any more.
    connection.execute(locking("scope", text(f"{scopes} FOR UPDATE")), values)
    return ids


def shared_evidence(connection: Connection, user: LockedUser, scope_ids: Sequence[int]) -> int:
    """How often a memory of another scope rests on a turn of these."""
    count = text(
        f"""SELECT count(*) FROM {schema_of(user.shard)}.evidence
        WHERE turn_scope_id = ANY(:scopes) AND NOT scope_id = ANY(:scopes)"""
    )
    return int(connection.execute(count, {"scopes": list(scope_ids)}).scalar_one())


def move(
    connection: Connection, tenant_id: int, user: LockedUser, *, to: int, scope_ids: Sequence[int]
) -> dict[str, int]:
    """Move the rows of the locked scopes; how many by table. The user's entry then names the new shard."""
    values: dict[str, Any] = {"tenant": tenant_id, "user": user.id, "scopes": list(scope_ids), "shard": to}
    connection.execute(_SET_SHARD, values)
    _copy_directory(connection, user, to=to, values=values)
    moved = {}
    for name in TABLES:
        moved[name] = connection.execute(_copy(metadata.tables[name], user.shard, to), values).rowcount
    for name in reversed(TABLES):
        deleted = connection.execute(_delete(name, user.shard), values).rowcount
        # They are locked, so nobody can have added any. Should it be otherwise, nothing may be lost.
        if deleted != moved[name]:
            raise Permanent(
                f"{name}: {moved[name]} rows were copied and {deleted} deleted; nothing was moved"
            )
    if user.shard != HOME:
        connection.execute(text(f"DELETE FROM {schema_of(user.shard)}.users WHERE id = :user"), values)
    return moved


def _copy_directory(connection: Connection, user: LockedUser, *, to: int, values: Mapping[str, Any]) -> None:
    """What foreign keys of the new shard refer to: the user, and the agents who know the user."""
    if to == HOME:
        return
    schema = schema_of(to)
    for table, which in (
        ("users", "id = :user"),
        (
            "agents",
            f"id IN (SELECT agent_id FROM {schema_of(user.shard)}.scopes WHERE id = ANY(:scopes))",
        ),
    ):
        columns = column_list(metadata.tables[table].c)
        # FOR SHARE: a change of the agent comes before the copy, or changes it, too.
        connection.execute(
            text(
                f"""INSERT INTO {schema}.{table} ({columns}) OVERRIDING SYSTEM VALUE
                SELECT {columns} FROM public.{table} WHERE tenant_id = :tenant AND {which} FOR SHARE
                ON CONFLICT DO NOTHING"""
            ),
            values,
        )


def _of_scopes(table: str) -> str:
    return "id = ANY(:scopes)" if table == "scopes" else "scope_id = ANY(:scopes)"


def _copy(table: Table, source: int, to: int) -> Any:
    columns = column_list(table.c)
    given = column_list(table.c, None, **_INSTEAD.get(table.name, {}))
    return text(
        f"""INSERT INTO {schema_of(to)}.{table.name} ({columns}) OVERRIDING SYSTEM VALUE
        SELECT {given} FROM {schema_of(source)}.{table.name} WHERE {_of_scopes(table.name)}"""
    )


def _delete(table: str, source: int) -> Any:
    return text(f"DELETE FROM {schema_of(source)}.{table} WHERE {_of_scopes(table)}")
