"""Tenants and API keys. Only a digest of a key is stored; making and ending them goes through functions of the
database, for the tenant of the transaction; making tenants needs the owner's connection."""

from __future__ import annotations

import hashlib
import secrets
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, Text, bindparam, func, or_, select, text
from sqlalchemy.dialects.postgresql import insert

from memory_app.db.expressions import columns_of
from memory_app.db.shards import other_schemas
from memory_app.db.tables.tenancy import api_keys, tenants
from memory_app.errors import Conflict, Forbidden, InvalidInput, NotFound
from memory_app.records.limits import NO_LIMITS, Limits, stored_limits
from memory_app.records.scope import check_name
from memory_app.tenancy.rows import limits

RIGHTS = ("read", "record", "write", "erase", "admin")
"""Recall and list; record turns; change memories, and have sleep done; delete for good; keys and policy."""

USUAL_RIGHTS = ("read", "record", "write", "erase")
"""Of a key that is made without naming any."""

PREFIX = "mem_"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a credential belongs to. The tenant of everything that follows."""

    key_id: int
    tenant_id: int
    tenant: str
    rights: frozenset[str]
    agent: str | None = None
    user: str | None = None
    """The one agent, the one person that the credential is for; None: any."""
    limits: Limits = NO_LIMITS
    tenant_limits: Limits = NO_LIMITS

    def check_bound(self, *, agent: str | None, user: str | None) -> None:
        """Raise `Forbidden` unless the names are those that the credential is for. None: about no one in particular,
        which is more than it may see."""
        for what, bound, name in (("agent", self.agent, agent), ("user", self.user, user)):
            if bound not in (None, name):
                raise Forbidden(
                    f"this key is for one {what}, and may do nothing about others or without naming it"
                )


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key as listed: never the key itself."""

    id: int
    tenant: str
    prefix: str
    rights: tuple[str, ...]
    label: str | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    agent_name: str | None
    user_name: str | None
    limits: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key just made. ``key`` is not stored and cannot be shown again."""

    id: int
    key: str = field(repr=False)
    expires_at: datetime | None


_AUTHENTICATE = text(
    """SELECT key_id, tenant_id, tenant_name, rights, agent_name, user_name, limits, tenant_limits
    FROM authenticate(:digest)"""
)
_NOTE_USE = text("SELECT note_key_use(:key)")
_ENSURE_TENANT = insert(tenants).on_conflict_do_nothing().inline()
_TENANT = text("SELECT tenant_named(:name)")
_SET_TENANT = text("SELECT set_config('memory.tenant', CAST(:tenant AS text), true)")
_ADD = text(
    """SELECT add_key(:prefix, :digest, CAST(:rights AS text[]), CAST(:label AS text),
        CAST(:expires_at AS timestamptz), CAST(:agent AS text), CAST(:user AS text))"""
)
_END = text("SELECT end_key(:key, CAST(:ends_at AS timestamptz))")
_END_ALL = text(
    "SELECT end_key(k.id, NULL) FROM api_keys k WHERE k.tenant_id = :tenant AND k.revoked_at IS NULL"
)
_FORGET = text("SELECT forget_keys(:agent, :user, CAST(:before AS timestamptz))")
_TENANT_OF_KEY = select(api_keys.c.tenant_id).where(api_keys.c.id == bindparam("key"))
# With its type, which PostgreSQL cannot tell from "$1 IS NULL".
_TENANT_OF_LIST = bindparam("tenant", type_=Text)
_LIST = (
    select(*columns_of(api_keys, KeyRow), tenants.c.name.label("tenant"))
    .join_from(api_keys, tenants, tenants.c.id == api_keys.c.tenant_id)
    .where(or_(_TENANT_OF_LIST.is_(None), tenants.c.name == _TENANT_OF_LIST))
    .order_by(api_keys.c.id)
)
_READ = (
    select(*columns_of(api_keys, KeyRow), tenants.c.name.label("tenant"), func.now().label("now"))
    .join_from(api_keys, tenants, tenants.c.id == api_keys.c.tenant_id)
    .where(api_keys.c.id == bindparam("key"))
)

_HOLDER = (
    select(
        api_keys.c.id.label("key_id"),
        api_keys.c.tenant_id,
        tenants.c.name.label("tenant_name"),
        api_keys.c.rights,
        api_keys.c.agent_name,
        api_keys.c.user_name,
        api_keys.c.limits,
        tenants.c.limits.label("tenant_limits"),
    )
    .join_from(api_keys, tenants, tenants.c.id == api_keys.c.tenant_id)
    .where(
        api_keys.c.id == bindparam("key"),
        api_keys.c.revoked_at.is_(None),
        or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > func.now()),
    )
)


def new_key() -> str:
    """A fresh key: prefix, 256 random bits, checksum (so that a mistyped key is told apart without a look-up)."""
    body = secrets.token_urlsafe(32)
    return f"{PREFIX}{body}_{_checksum(body)}"


def is_well_formed(key: str) -> bool:
    # From the right: the random part is base64 for URLs, which may contain "_" itself.
    body, _, checksum = key.removeprefix(PREFIX).rpartition("_")
    if not key.startswith(PREFIX) or not body:
        return False
    return secrets.compare_digest(checksum, _checksum(body))


def digest(key: str) -> bytes:
    """SHA-256 of the key."""
    # A slow hash would protect short passwords. It adds nothing at 256 random bits, and every request pays for it.
    return hashlib.sha256(key.encode()).digest()


def authenticate(connection: Connection, key: str) -> Caller | None:
    """Who holds this key, or None when it is unknown, revoked or expired."""
    return _caller(connection.execute(_AUTHENTICATE, {"digest": digest(key)}).one_or_none())


def holder(connection: Connection, key_id: int) -> Caller | None:
    """Who holds a key of the transaction's tenant, or None when it is unknown, revoked or expired."""
    return _caller(connection.execute(_HOLDER, {"key": key_id}).one_or_none())


def _caller(row: Row[*tuple[Any, ...]] | None) -> Caller | None:
    if row is None:
        return None
    return Caller(
        key_id=row.key_id,
        tenant_id=row.tenant_id,
        tenant=row.tenant_name,
        rights=frozenset(row.rights),
        agent=row.agent_name,
        user=row.user_name,
        limits=stored_limits(row.limits),
        tenant_limits=stored_limits(row.tenant_limits),
    )


def has_live_key(connection: Connection) -> bool:
    """Whether any tenant has a key that opens the door now."""
    return bool(connection.execute(text("SELECT has_live_key()")).scalar_one())


def note_use(connection: Connection, key_id: int) -> None:
    connection.execute(_NOTE_USE, {"key": key_id})


def ensure_tenant(connection: Connection, name: str) -> int:
    """The id of a tenant, made when it is new. Needs the owner's connection."""
    connection.execute(_ENSURE_TENANT, {"name": name})
    # On other servers the first user of the tenant brings it.
    for schema in other_schemas(connection):
        copy = f"INSERT INTO {schema}.tenants OVERRIDING SYSTEM VALUE SELECT * FROM public.tenants WHERE name = :name"
        connection.execute(text(f"{copy} ON CONFLICT DO NOTHING"), {"name": name})
    return int(connection.execute(_TENANT, {"name": name}).scalar_one())


def find_tenant(connection: Connection, name: str) -> int | None:
    """The id of a tenant, or None."""
    return connection.execute(_TENANT, {"name": name}).scalar_one_or_none()


def create(
    connection: Connection,
    tenant: str,
    *,
    rights: Sequence[str] = USUAL_RIGHTS,
    label: str | None = None,
    expires_at: datetime | None = None,
    agent: str | None = None,
    user: str | None = None,
) -> tuple[int, str]:
    """A new key of a tenant (made when new) as (id, key); needs the owner's connection. Raises as `add`."""
    check_name(tenant, field="tenant")
    connection.execute(_SET_TENANT, {"tenant": ensure_tenant(connection, tenant)})
    new = add(connection, rights=rights, label=label, expires_at=expires_at, agent=agent, user=user)
    return new.id, new.key


def add(
    connection: Connection,
    *,
    rights: Sequence[str],
    label: str | None = None,
    expires_at: datetime | None = None,
    agent: str | None = None,
    user: str | None = None,
) -> NewKey:
    """A new key of the transaction's tenant. Raises `InvalidInput` for what is no right or no name."""
    unknown = set(rights) - set(RIGHTS)
    if unknown or not rights:
        raise InvalidInput(f"rights: choose from {', '.join(RIGHTS)}", field="rights")
    for name, value in (("label", label), ("agent", agent), ("user", user)):
        if value is not None:
            check_name(value, field=name)
    key = new_key()
    values = {
        # Enough for its holder to recognise it in a list, too little to guess the rest.
        "prefix": key[: len(PREFIX) + 6],
        "digest": digest(key),
        # In one order, each once.
        "rights": [right for right in RIGHTS if right in rights],
        "label": label,
        "expires_at": expires_at,
        "agent": agent,
        "user": user,
    }
    return NewKey(int(connection.execute(_ADD, values).scalar_one()), key, expires_at)


def rotate(connection: Connection, key_id: int, *, overlap: timedelta) -> NewKey:
    """A new key like one of the transaction's tenant, which ends after ``overlap``.

    The new one lives as long as the old one was to. Raises `NotFound`, and `Conflict` for one that has ended.
    """
    row = connection.execute(_READ, {"key": key_id}).one_or_none()
    if row is None:
        raise _unknown(key_id)
    if row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= row.now):
        raise Conflict(f"key {key_id} has ended; make a new one", field="id")
    life = None if row.expires_at is None else row.expires_at - row.created_at
    new = add(
        connection,
        rights=row.rights,
        label=row.label,
        expires_at=None if life is None else row.now + life,
        agent=row.agent_name,
        user=row.user_name,
    )
    if row.limits:
        limits.set_of_key(connection, new.id, stored_limits(row.limits))
    connection.execute(_END, {"key": key_id, "ends_at": row.now + overlap})
    return new


def listed(connection: Connection, tenant: str | None) -> tuple[KeyRow, ...]:
    rows = connection.execute(_LIST, {"tenant": tenant}).mappings()
    return tuple(KeyRow(**{**row, "rights": tuple(row["rights"])}) for row in rows)


def enter_tenant_of(connection: Connection, key_id: int) -> None:
    """Let the owner's transaction work for the tenant of a key. Raises `NotFound`."""
    tenant_id = connection.execute(_TENANT_OF_KEY, {"key": key_id}).scalar_one_or_none()
    if tenant_id is None:
        raise _unknown(key_id)
    connection.execute(_SET_TENANT, {"tenant": tenant_id})


def enter_tenant(connection: Connection, tenant: str) -> None:
    """Let the owner's transaction work for a named tenant. Raises `NotFound`."""
    tenant_id = find_tenant(connection, tenant)
    if tenant_id is None:
        raise NotFound(f"tenant {tenant!r}: not known", field="tenant")
    connection.execute(_SET_TENANT, {"tenant": tenant_id})


def revoke(connection: Connection, key_id: int) -> None:
    """End a key at once (processes that cache it follow within seconds); `NotFound` for one of another tenant than the
    transaction's."""
    if connection.execute(_END, {"key": key_id, "ends_at": None}).scalar_one() is None:
        raise _unknown(key_id)


def revoke_all(connection: Connection, tenant_id: int) -> int:
    """End all keys of the transaction's tenant at once; how many there were."""
    return len(connection.execute(_END_ALL, {"tenant": tenant_id}).all())


def delete_named(
    connection: Connection,
    *,
    agent: str | None = None,
    user: str | None = None,
    before: datetime | None = None,
) -> int:
    """Delete the keys of the transaction's tenant that are for this agent or this person; how many.

    With ``before`` only those that were made before that instant. Processes follow within seconds.
    """
    values = {"agent": agent, "user": user, "before": before}
    return int(connection.execute(_FORGET, values).scalar_one())


def _unknown(key_id: int) -> NotFound:
    return NotFound(f"key {key_id}: no such key; list them with `memory keys list`", field="id")


def _checksum(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"
