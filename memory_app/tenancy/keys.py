"""API keys of a tenant: list, make, rotate and revoke them, as somebody who may administer it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from memory_app.db.db import transaction
from memory_app.db.shards import HOME
from memory_app.errors import InvalidInput
from memory_app.records.limits import OF_KEYS, Limits, parse_limits
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import keys
from memory_app.tenancy.rows import limits as limit_rows
from memory_app.tenancy.rows.keys import KeyRow, NewKey

DAYS_LIMIT = 36_500
OVERLAP_HOURS_LIMIT = 8_760
"""A year: longer than that, two keys are no rotation."""


def list_keys(runtime: Runtime, tenant_id: int) -> tuple[KeyRow, ...]:
    """The keys of the tenant, ended ones too; never the keys themselves."""
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        return keys.listed(connection, None)


def make_key(
    runtime: Runtime,
    tenant_id: int,
    *,
    rights: Sequence[str],
    label: str | None = None,
    days: int | None = None,
    agent: str | None = None,
    user: str | None = None,
) -> NewKey:
    """Make a key that ends after ``days``, or never. Raises `InvalidInput` for what is no right or no name."""
    if days is not None and not 1 <= days <= DAYS_LIMIT:
        raise InvalidInput(f"days: 1 to {DAYS_LIMIT}", field="days")
    expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        return keys.add(connection, rights=rights, label=label, expires_at=expires_at, agent=agent, user=user)


def rotate_key(runtime: Runtime, tenant_id: int, key_id: int, *, overlap_hours: float = 24) -> NewKey:
    """Make a key like that one, which goes on for ``overlap_hours``. Raises `NotFound` and `Conflict`."""
    if not 0 <= overlap_hours <= OVERLAP_HOURS_LIMIT:
        raise InvalidInput(f"overlap_hours: 0 to {OVERLAP_HOURS_LIMIT}", field="overlap_hours")
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        return keys.rotate(connection, key_id, overlap=timedelta(hours=overlap_hours))


def revoke_key(runtime: Runtime, tenant_id: int, key_id: int) -> None:
    """End a key at once; processes that know it follow within seconds. Raises `NotFound`."""
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        keys.revoke(connection, key_id)


def limit_key(runtime: Runtime, tenant_id: int, key_id: int, *, limits: Mapping[str, int | None]) -> Limits:
    """Set the limits of a key by name, None for none; those that are not named have none. Processes follow within
    seconds. Raises `InvalidInput` naming the limit, `NotFound` for a key of another tenant."""
    new = parse_limits(limits, names=OF_KEYS)
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        limit_rows.set_of_key(connection, key_id, new)
    return new
