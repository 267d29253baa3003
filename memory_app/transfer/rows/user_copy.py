"""Copy all rows of a user from one shard to another, and delete them where they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, text

from memory_app.db.expressions import column_list
from memory_app.db.locks import locking
from memory_app.db.shards import HOME
from memory_app.db.tables import metadata
from memory_app.db.tables.tenancy import agents, users
from memory_app.errors import Permanent
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import Place

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

# On another server numbers of transactions mean something else: there the rows are from before all that is told.
_ON_ANOTHER_SERVER: Mapping[str, Mapping[str, str]] = {
    "turns": {
        "accepted_xact": "0",
        "indexed_xact": "CASE WHEN indexed_xact IS NOT NULL THEN 0 END",
        "settled_xact": "CASE WHEN settled_xact IS NOT NULL THEN 0 END",
    },
    "memories": {
        "stored_xact": "0",
        "altered_xact": "CASE WHEN altered_xact IS NOT NULL THEN 0 END",
    },
    "runs": {
        "created_xact": "0",
        "finished_xact": "CASE WHEN finished_at IS NOT NULL THEN 0 END",
    },
}

ROWS_AT_ONCE = 200
"""Rows that are held in memory on their way from one server to another; a vector is some kilobytes of text."""

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


def lock_scopes(source: Place, tenant_id: int, user: LockedUser) -> tuple[int, ...]:
    """Hold the scopes and the sessions of a user: whoever writes to them has done so, or waits and finds them gone.

    In the order of everybody else, who take a scope before its sessions, and a session before they refer to its scope.
    """
    schema, connection = source.schema, source.connection
    connection.execute(_WORK_LONG)
    values: dict[str, Any] = {"tenant": tenant_id, "user": user.id}
    scopes = f"SELECT id FROM {schema}.scopes WHERE tenant_id = :tenant AND user_id = :user ORDER BY id"
    ids = tuple(connection.execute(locking("scope", text(f"{scopes} FOR NO KEY UPDATE")), values).scalars())
    sessions = f"SELECT id FROM {schema}.sessions WHERE scope_id = ANY(:scopes) ORDER BY id"
    connection.execute(locking("session", text(f"{sessions} FOR NO KEY UPDATE")), {"scopes": list(ids)})
    # Whoever has just written a row of the scope is waited for, and nobody can write one any more.
    connection.execute(locking("scope", text(f"{scopes} FOR UPDATE")), values)
    return ids


def shared_evidence(source: Place, scope_ids: Sequence[int]) -> int:
    """How often a memory of another scope rests on a turn of these."""
    count = text(
        f"""SELECT count(*) FROM {source.schema}.evidence
        WHERE turn_scope_id = ANY(:scopes) AND NOT scope_id = ANY(:scopes)"""
    )
    return int(source.connection.execute(count, {"scopes": list(scope_ids)}).scalar_one())


@dataclass(frozen=True, slots=True)
class Move:
    """A move of a user whose scopes are locked; ``directory`` is the home shard, which is told of it."""

    tenant_id: int
    user: LockedUser
    scope_ids: Sequence[int]
    directory: Connection
    source: Place
    target: Place
    to: int

    @property
    def values(self) -> dict[str, Any]:
        return {
            "tenant": self.tenant_id,
            "user": self.user.id,
            "scopes": list(self.scope_ids),
            "shard": self.to,
        }


def move(moving: Move) -> dict[str, int]:
    """Move the rows; how many by table. The user's entry then names the new shard."""
    source, target, values = moving.source, moving.target, moving.values
    target.connection.execute(_WORK_LONG)
    moving.directory.execute(_SET_SHARD, values)
    _copy_directory(moving)
    moved = {name: _copy(metadata.tables[name], source, target, values) for name in TABLES}
    for name in reversed(TABLES):
        deleted = source.connection.execute(_delete(name, source), values).rowcount
        # They are locked, so nobody can have added any. Should it be otherwise, nothing may be lost.
        if deleted != moved[name]:
            raise Permanent(
                f"{name}: {moved[name]} rows were copied and {deleted} deleted; nothing was moved"
            )
    if moving.user.shard != HOME:
        source.connection.execute(text(f"DELETE FROM {source.schema}.users WHERE id = :user"), values)
    return moved


def _copy_directory(moving: Move) -> None:
    """What foreign keys of the new shard refer to: the user, and the agents who know the user."""
    if moving.to == HOME:
        return
    source = moving.source
    known = text(f"SELECT DISTINCT agent_id FROM {source.schema}.scopes WHERE id = ANY(:scopes)")
    agent_ids = list(source.connection.execute(known, moving.values).scalars())
    if moving.target.connection is not moving.directory:
        names.copy_tenant(moving.target.connection, moving.directory, moving.tenant_id)
    for table, which in ((users, "id = :user"), (agents, "id = ANY(:agents)")):
        # FOR SHARE: a change of the agent comes before the copy, or changes it, too.
        entries = text(
            f"SELECT to_jsonb(e) FROM public.{table.name} e WHERE tenant_id = :tenant AND {which} FOR SHARE"
        )
        found = moving.directory.execute(entries, {**moving.values, "agents": agent_ids}).scalars().all()
        names.copy_entries(moving.target.connection, table, found, schema=moving.target.schema)


def _of_scopes(table: str) -> str:
    return "id = ANY(:scopes)" if table == "scopes" else "scope_id = ANY(:scopes)"


def _copy(table: Table, source: Place, target: Place, values: Mapping[str, Any]) -> int:
    """Copy the rows of a table; how many."""
    columns = column_list(table.c)
    instead = dict(_INSTEAD.get(table.name, {}))
    into = f"INSERT INTO {target.schema}.{table.name} ({columns}) OVERRIDING SYSTEM VALUE"
    which = f"{source.schema}.{table.name} WHERE {_of_scopes(table.name)}"
    if source.connection is target.connection:
        given = column_list(table.c, None, **instead)
        return source.connection.execute(text(f"{into} SELECT {given} FROM {which}"), values).rowcount
    instead |= _ON_ANOTHER_SERVER.get(table.name, {})
    given = column_list(table.c, None, **instead)
    insert = text(
        f"""{into} SELECT {given}
        FROM jsonb_populate_recordset(CAST(NULL AS {target.schema}.{table.name}), CAST(:rows AS jsonb))"""
    )
    # As text on the way: a vector is a text in JSON, and numbers are written so that they are read as the same.
    found = source.connection.execute(
        text(f"SELECT CAST(to_jsonb(r) AS text) FROM (SELECT * FROM {which}) r"),
        values,
        execution_options={"stream_results": True},
    )
    copied = 0
    for part in found.scalars().partitions(ROWS_AT_ONCE):
        copied += target.connection.execute(insert, {"rows": f"[{','.join(part)}]"}).rowcount
    return copied


def _delete(table: str, place: Place) -> Any:
    return text(f"DELETE FROM {place.schema}.{table} WHERE {_of_scopes(table)}")
