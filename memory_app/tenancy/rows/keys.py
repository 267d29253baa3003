"""Tenants and API keys. Only a digest of a key is stored; making and revoking them needs the owner's connection."""

from __future__ import annotations

import hashlib
import secrets
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Text, bindparam, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert

from memory_app.db.expressions import columns_of
from memory_app.db.shards import other_schemas
from memory_app.db.tables.tenancy import api_keys, tenants
from memory_app.errors import InvalidInput, NotFound

RIGHTS = ("read", "write", "admin")
PREFIX = "mem_"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a credential belongs to. The tenant of everything that follows."""

    key_id: int
    tenant_id: int
    tenant: str
    rights: frozenset[str]


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


_AUTHENTICATE = text("SELECT key_id, tenant_id, tenant_name, rights FROM authenticate(:digest)")
_NOTE_USE = text("SELECT note_key_use(:key)")
_ENSURE_TENANT = insert(tenants).on_conflict_do_nothing().inline()
_TENANT = text("SELECT tenant_named(:name)")
_CREATE = insert(api_keys).returning(api_keys.c.id)
# With its type, which PostgreSQL cannot tell from "$1 IS NULL".
_TENANT_OF_LIST = bindparam("tenant", type_=Text)
_LIST = (
    select(*columns_of(api_keys, KeyRow), tenants.c.name.label("tenant"))
    .join_from(api_keys, tenants, tenants.c.id == api_keys.c.tenant_id)
    .where(or_(_TENANT_OF_LIST.is_(None), tenants.c.name == _TENANT_OF_LIST))
    .order_by(api_keys.c.id)
)
_REVOKE = (
    update(api_keys)
    .where(api_keys.c.id == bindparam("key"))
    # A second call leaves the time of the first.
    .values(revoked_at=func.coalesce(api_keys.c.revoked_at, func.now()))
    .returning(api_keys.c.id)
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
    row = connection.execute(_AUTHENTICATE, {"digest": digest(key)}).one_or_none()
    if row is None:
        return None
    return Caller(
        key_id=row.key_id,
        tenant_id=row.tenant_id,
        tenant=row.tenant_name,
        rights=frozenset(row.rights),
    )


def has_live_key(connection: Connection) -> bool:
    """Whether any tenant has a key that opens the door now."""
    return bool(connection.execute(text("SELECT has_live_key()")).scalar_one())


def note_use(connection: Connection, key_id: int) -> None:
    connection.execute(_NOTE_USE, {"key": key_id})


def ensure_tenant(connection: Connection, name: str) -> int:
    """The id of a tenant, made when it is new. Needs the owner's connection."""
    connection.execute(_ENSURE_TENANT, {"name": name})
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
    rights: Sequence[str] = ("read", "write"),
    label: str | None = None,
    expires_at: datetime | None = None,
) -> tuple[int, str]:
    """A new key of a tenant (made when new) as (id, key); the key is not stored and cannot be shown again."""
    unknown = set(rights) - set(RIGHTS)
    if unknown or not rights:
        raise InvalidInput(f"rights: choose from {', '.join(RIGHTS)}", field="rights")
    key = new_key()
    values = {
        "tenant_id": ensure_tenant(connection, tenant),
        # Enough for its holder to recognise it in a list, too little to guess the rest.
        "prefix": key[: len(PREFIX) + 6],
        "digest": digest(key),
        "rights": list(rights),
        "label": label,
        "expires_at": expires_at,
    }
    return int(connection.execute(_CREATE, values).scalar_one()), key


def listed(connection: Connection, tenant: str | None) -> tuple[KeyRow, ...]:
    rows = connection.execute(_LIST, {"tenant": tenant}).mappings()
    return tuple(KeyRow(**{**row, "rights": tuple(row["rights"])}) for row in rows)


def revoke(connection: Connection, key_id: int) -> None:
    """End a key at once (processes that cache it follow within seconds); `NotFound` for an unknown id."""
    if connection.execute(_REVOKE, {"key": key_id}).one_or_none() is None:
        raise NotFound(f"key {key_id}: no such key; list them with `memory keys list`", field="key")


def _checksum(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"
