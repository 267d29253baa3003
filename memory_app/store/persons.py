"""Everything that is stored about one person, gone in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, text

TABLES = (
    "feedback",
    "evidence",
    "mentions",
    "links",
    "checkpoints",
    "memories",
    "entities",
    "turns",
    "terms",
    "speakers",
    "runs",
    "sessions",
)
"""What hangs on a scope and is counted in a receipt, in an order in which no row still refers to one that is gone."""


_USER = text(
    """
    SELECT id FROM users WHERE tenant_id = :tenant AND name = :user
      AND (CAST(:before AS timestamptz) IS NULL OR created_at < :before)
    FOR NO KEY UPDATE
    """
)
_SCOPES = text(
    "SELECT id FROM scopes WHERE tenant_id = :tenant AND user_id = :user ORDER BY id FOR NO KEY UPDATE"
)
_LOCK_SESSIONS = text("SELECT id FROM sessions WHERE scope_id = ANY(:scopes) ORDER BY id FOR UPDATE")
_COUNTS_ELSEWHERE = text(
    "DELETE FROM evidence WHERE turn_scope_id = ANY(:scopes) AND scope_id <> ALL(:scopes)"
)
_DELETE_SCOPES = text("DELETE FROM scopes WHERE tenant_id = :tenant AND id = ANY(:scopes)")
_NEW_USER = text(
    "UPDATE users SET time_zone = DEFAULT, created_at = now() WHERE tenant_id = :tenant AND id = :user"
)
_NEW_SCOPES = text("UPDATE scopes SET seeded_at = NULL WHERE tenant_id = :tenant AND id = ANY(:scopes)")
_DELETE_USER = text("DELETE FROM users WHERE tenant_id = :tenant AND id = :user")


def lock_user(
    connection: Connection, tenant_id: int, user: str, *, before: datetime | None = None
) -> int | None:
    """The user's id, held until the end of the transaction; None for nobody we know.

    With ``before`` only a user who was known before that instant.
    """
    values = {"tenant": tenant_id, "user": user, "before": before}
    return connection.execute(_USER, values).scalar_one_or_none()


def lock_scopes(connection: Connection, tenant_id: int, user_id: int) -> tuple[int, ...]:
    """The scopes of a user with all agents, and their sessions, held until the end of the transaction.

    Whoever is about to add a memory waits and then finds the scope gone; whoever adds turns is waited for.
    """
    scopes = tuple(connection.execute(_SCOPES, {"tenant": tenant_id, "user": user_id}).scalars())
    connection.execute(_LOCK_SESSIONS, {"scopes": list(scopes)})
    return scopes


def delete_user(
    connection: Connection, tenant_id: int, user_id: int, scope_ids: Sequence[int]
) -> dict[str, int]:
    """Delete the user and everything in the scopes; rows by table."""
    values = {"tenant": tenant_id, "user": user_id, "scopes": list(scope_ids)}
    counts = {"evidence elsewhere": connection.execute(_COUNTS_ELSEWHERE, values).rowcount}
    for table in TABLES:
        statement = text(f"DELETE FROM {table} WHERE tenant_id = :tenant AND scope_id = ANY(:scopes)")
        counts[table] = connection.execute(statement, values).rowcount
    counts["scopes"] = connection.execute(_DELETE_SCOPES, values).rowcount
    counts["users"] = connection.execute(_DELETE_USER, values).rowcount
    return {table: count for table, count in counts.items() if count}


def start_anew(connection: Connection, tenant_id: int, user_id: int, scope_ids: Sequence[int]) -> None:
    """Let the user be one who came today: without the old time zone, and given the agents' default memories again."""
    values = {"tenant": tenant_id, "user": user_id, "scopes": list(scope_ids)}
    connection.execute(_NEW_USER, values)
    connection.execute(_NEW_SCOPES, values)
