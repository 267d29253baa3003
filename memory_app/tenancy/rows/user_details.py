"""What is noted of a user beside the name: label and aliases, the zone in which they speak.

Each is written to the entry in the directory and to its copy in the user's shard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, TextClause, text

from memory_app.db.shards import HOME, directory_of, shard_of

_TABLES = ("users", "public.users")
"""The copy in the user's shard, and the entry in the directory."""

# Whoever records holds a session by now, for which an erasure of the user waits who holds the user. A later turn notes
# the offset as well.
_NOTE_OFFSET = {
    table: text(
        f"""
        UPDATE {table} SET utc_offset = :utc_offset
        WHERE tenant_id = :tenant AND id = (
            SELECT u.id FROM {table} u WHERE u.tenant_id = :tenant AND u.id = :user FOR NO KEY UPDATE SKIP LOCKED)
        """
    )
    for table in _TABLES
}
# Only where nobody set one; somebody who holds the user is waited for by none, as above.
_NOTE_ZONE = {
    table: text(
        f"""
        UPDATE {table} SET time_zone = :time_zone
        WHERE tenant_id = :tenant AND NOT zone_is_set AND id = (
            SELECT u.id FROM {table} u WHERE u.tenant_id = :tenant AND u.id = :user FOR NO KEY UPDATE SKIP LOCKED)
        """
    )
    for table in _TABLES
}
_USER_OF_SCOPE = text("SELECT user_id FROM scopes WHERE tenant_id = :tenant AND id = :scope")
_SET_TIME_ZONE = {
    table: text(
        f"UPDATE {table} SET time_zone = :time_zone, zone_is_set = :is_set WHERE tenant_id = :tenant AND name = :user"
    )
    for table in _TABLES
}
_SET_NAMES = {
    table: text(
        f"""UPDATE {table} SET label = :label, aliases = CAST(:aliases AS text[])
        WHERE tenant_id = :tenant AND name = :user"""
    )
    for table in _TABLES
}


def set_time_zone(
    connection: Connection, tenant_id: int, *, user: str, zone: str, is_set: bool = False
) -> None:
    """The zone in which the user's "yesterday" is read; one that is no zone is read as UTC.

    ``is_set``: somebody set it, so that UTC is meant and not only the default.
    """
    values = {"tenant": tenant_id, "user": user, "time_zone": zone, "is_set": is_set}
    _change_user(connection, _SET_TIME_ZONE, values)


def set_names(
    connection: Connection, tenant_id: int, *, user: str, label: str | None, aliases: Sequence[str]
) -> None:
    """What the app calls the user, and further names of theirs."""
    values = {"tenant": tenant_id, "user": user, "label": label, "aliases": list(aliases)}
    _change_user(connection, _SET_NAMES, values)


def note_offset(connection: Connection, tenant_id: int, user_id: int, *, utc_offset: str) -> None:
    """The offset of the times that the user sends: their zone while none is set."""
    values = {"tenant": tenant_id, "user": user_id, "utc_offset": utc_offset}
    _change_user(connection, _NOTE_OFFSET, values)


def note_zone(connection: Connection, tenant_id: int, scope_id: int, *, zone: str) -> None:
    """The zone that the user of the scope says is theirs; it counts unless somebody set one."""
    names = {"tenant": tenant_id, "scope": scope_id}
    user_id = connection.execute(_USER_OF_SCOPE, names).scalar_one_or_none()
    if user_id is not None:
        _change_user(connection, _NOTE_ZONE, {"tenant": tenant_id, "user": user_id, "time_zone": zone})


def _change_user(
    connection: Connection, statements: Mapping[str, TextClause], values: Mapping[str, object]
) -> None:
    """Change the entry in the directory and its copy, by statements for each table."""
    copy, entry = (statements[table] for table in _TABLES)
    connection.execute(copy, values)
    # In the home shard both are one.
    if shard_of(connection) != HOME:
        directory_of(connection, writes=True).execute(entry, values)
