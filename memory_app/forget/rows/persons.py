"""Lock and delete everything that is stored about one person."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, DateTime, and_, bindparam, delete, func, or_, select, text, update

from memory_app.db.expressions import among, not_among
from memory_app.db.locks import locking
from memory_app.db.shards import HOME, at_home, directory_of, shard_of
from memory_app.db.tables import metadata
from memory_app.db.tables.events import webhooks
from memory_app.db.tables.memories import evidence
from memory_app.db.tables.tenancy import scopes, users
from memory_app.db.tables.turns import sessions
from memory_app.tenancy.rows import keys

# Children first: the foreign keys would delete them with their parents, and then nobody could say how many rows went.
TABLES = (
    "grants",
    "images",
    "feedback",
    "evidence",
    "mentions",
    "links",
    "checkpoints",
    "import_parts",
    "memories",
    "entities",
    "turns",
    "terms",
    "speakers",
    "scope_sizes",
    "scope_models",
    "schedules",
    "runs",
    "sessions",
)
"""Tables with rows of a scope that a receipt counts, in the order of their deletion."""

_BEFORE = bindparam("before", type_=DateTime(timezone=True))
_USER = locking(
    "user",
    select(users.c.id)
    .where(
        users.c.tenant_id == bindparam("tenant"),
        users.c.name == bindparam("name"),
        or_(_BEFORE.is_(None), users.c.created_at < _BEFORE),
    )
    .with_for_update(key_share=True),
)
_SCOPES = locking(
    "scope",
    select(scopes.c.id)
    .where(scopes.c.tenant_id == bindparam("tenant"), scopes.c.user_id == bindparam("user"))
    .order_by(scopes.c.id)
    .with_for_update(key_share=True),
)
_LOCK_SESSIONS = locking(
    "session",
    select(sessions.c.id)
    .where(among(sessions.c.scope_id, "scopes"))
    .order_by(sessions.c.id)
    .with_for_update(),
)
COUNTS_ELSEWHERE = delete(evidence).where(
    among(evidence.c.turn_scope_id, "scopes"), not_among(evidence.c.scope_id, "scopes")
)
DELETE_ROWS = {
    name: delete(table).where(table.c.tenant_id == bindparam("tenant"), among(table.c.scope_id, "scopes"))
    for name, table in ((name, metadata.tables[name]) for name in TABLES)
}
# As strong as their deletion: waits for those who add rows to them, and whoever comes later finds them gone.
_CLOSE_USER = locking(
    "user",
    select(users.c.id)
    .where(users.c.tenant_id == bindparam("tenant"), users.c.id == bindparam("user"))
    .with_for_update(),
)
_CLOSE_SCOPES = locking(
    "scope",
    select(scopes.c.id)
    .where(scopes.c.tenant_id == bindparam("tenant"), scopes.c.user_id == bindparam("user"))
    .order_by(scopes.c.id)
    .with_for_update(),
)
DELETE_SCOPES = delete(scopes).where(scopes.c.tenant_id == bindparam("tenant"), among(scopes.c.id, "scopes"))
_IS_USER = and_(users.c.tenant_id == bindparam("tenant"), users.c.id == bindparam("user"))
_NEW_USER = (
    update(users)
    .where(_IS_USER)
    .values(
        time_zone=text("DEFAULT"),
        zone_is_set=text("DEFAULT"),
        utc_offset=text("DEFAULT"),
        label=text("DEFAULT"),
        aliases=text("DEFAULT"),
        created_at=func.now(),
    )
)
_NEW_SCOPES = (
    update(scopes)
    .where(scopes.c.tenant_id == bindparam("tenant"), among(scopes.c.id, "scopes"))
    .values(seeded_at=None)
)
_DELETE_USER = delete(users).where(_IS_USER)
# As strong as the lock of the user's row, which in the home shard is the same row.
_LOCK_ENTRY = locking(
    "user", text("SELECT FROM public.users WHERE tenant_id = :tenant AND name = :name FOR NO KEY UPDATE")
)
_IN_DIRECTORY = "WHERE tenant_id = :tenant AND id = :user"
_DELETE_ENTRY = text(f"DELETE FROM public.users {_IN_DIRECTORY}")
_DELETE_WEBHOOKS = delete(webhooks).where(
    webhooks.c.tenant_id == bindparam("tenant"),
    webhooks.c.user_name == bindparam("name"),
    or_(_BEFORE.is_(None), webhooks.c.created_at < _BEFORE),
)
_NEW_ENTRY = text(
    f"""UPDATE public.users SET time_zone = DEFAULT, zone_is_set = DEFAULT, utc_offset = DEFAULT, label = DEFAULT,
        aliases = DEFAULT, created_at = now()
    {_IN_DIRECTORY}"""
)


def lock_entry(connection: Connection, tenant_id: int, user: str) -> None:
    """Hold the user's entry in the directory until the end of the transaction: nobody moves the user meanwhile."""
    directory_of(connection).execute(_LOCK_ENTRY, {"tenant": tenant_id, "name": user})


def lock_user(
    connection: Connection, tenant_id: int, user: str, *, before: datetime | None = None
) -> int | None:
    """The user's id, held until the end of the transaction; None for nobody we know.

    With ``before`` only a user who was known before that instant.
    """
    values = {"tenant": tenant_id, "name": user, "before": before}
    return connection.execute(_USER, values).scalar_one_or_none()


def lock_scopes(connection: Connection, tenant_id: int, user_id: int) -> tuple[int, ...]:
    """The scopes of a user with all agents, and their sessions, held until the end of the transaction."""
    # Who is about to add a memory waits for the scope, and then finds it gone.
    scopes = tuple(connection.execute(_SCOPES, {"tenant": tenant_id, "user": user_id}).scalars())
    # Who adds turns locks only the session; this waits for them, so that their turns are deleted, too.
    connection.execute(_LOCK_SESSIONS, {"scopes": list(scopes)})
    return scopes


def delete_named(
    connection: Connection, tenant_id: int, user: str, *, before: datetime | None = None
) -> dict[str, int]:
    """Delete the keys and webhooks that are for this person alone, and so name them; rows by table."""
    # In the home shard, as the directory is.
    with at_home(connection, writes=True) as home:
        counts = {
            "api_keys": keys.delete_named(home, user=user, before=before),
            "webhooks": home.execute(
                _DELETE_WEBHOOKS, {"tenant": tenant_id, "name": user, "before": before}
            ).rowcount,
        }
    return {table: count for table, count in counts.items() if count}


def close_scopes(connection: Connection, tenant_id: int, user_id: int) -> tuple[int, ...]:
    """All scopes of a user, from now on to the end of the transaction without anybody who writes to them.

    Before any row is deleted, and a session before its scope: who indexes holds the scope and then changes rows, who
    records holds the session and then refers to the scope. In another order one would wait for the other in a circle.
    """
    values = {"tenant": tenant_id, "user": user_id}
    # First, so that no scope of another agent is added to those that are locked next.
    connection.execute(_CLOSE_USER, values)
    scope_ids = lock_scopes(connection, tenant_id, user_id)
    connection.execute(_CLOSE_SCOPES, values)
    return scope_ids


def delete_user(
    connection: Connection,
    tenant_id: int,
    *,
    user_id: int,
    scope_ids: Sequence[int],
    note: Callable[[Mapping[str, int]], None],
) -> dict[str, int]:
    """Delete the user and everything in the scopes, which are closed; rows by table. ``note`` is told the counts as
    they grow."""
    values = {"tenant": tenant_id, "user": user_id, "scopes": list(scope_ids)}
    counts = {"evidence elsewhere": connection.execute(COUNTS_ELSEWHERE, values).rowcount}
    for table, statement in DELETE_ROWS.items():
        counts[table] = connection.execute(statement, values).rowcount
        if counts[table]:
            note({name: count for name, count in counts.items() if count})
    counts["scopes"] = connection.execute(DELETE_SCOPES, values).rowcount
    counts["users"] = connection.execute(_DELETE_USER, values).rowcount
    if shard_of(connection) != HOME:
        directory_of(connection, writes=True).execute(_DELETE_ENTRY, values)
    return {table: count for table, count in counts.items() if count}


def start_anew(connection: Connection, tenant_id: int, *, user_id: int, scope_ids: Sequence[int]) -> None:
    """Make the user one who came today: without the old time zone."""
    values = {"tenant": tenant_id, "user": user_id, "scopes": list(scope_ids)}
    connection.execute(_NEW_USER, values)
    if shard_of(connection) != HOME:
        directory_of(connection, writes=True).execute(_NEW_ENTRY, values)
    # The default memories of the agents were erased with the rest, so they are stored again.
    connection.execute(_NEW_SCOPES, values)
