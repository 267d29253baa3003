"""Storage quotas: how many turns a tenant and a person may have stored, and how many memories a person.

Checked before anything is accepted, so that nothing that was accepted is lost. A quota is a brake: what is stored is
counted every few seconds, and other processes may add to it meanwhile. Erasing makes room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from memory_app import metrics
from memory_app.db.db import transaction
from memory_app.db.shards import HOME, unbound
from memory_app.errors import QuotaExceeded
from memory_app.records.limits import Limits
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import limits as rows
from memory_app.tenancy.shards import in_usable

LIMITS_SECONDS = 5.0
"""How long limits are trusted: a change of them is followed within that time."""

USER_SECONDS = 2.0

# Summed up over all sessions of the tenant, in every shard.
TENANT_SECONDS = 30.0

RETRY_AFTER_SECONDS = 60.0
"""Somebody has to erase, or to raise the quota, so there is no hurry."""


@dataclass(frozen=True, slots=True)
class Quota:
    """How much is stored of what a quota limits; ``of`` says what that is, in words."""

    name: str
    stored: int
    limit: int
    of: str

    def check(self, count: int) -> None:
        """Raise `QuotaExceeded` where ``count`` more are too many."""
        if self.stored + count <= self.limit:
            return
        metrics.limited.labels(self.name).inc()
        raise QuotaExceeded(
            f"{self.name}: {self.stored} {self.of} are stored and {self.limit} may be; erase some, or have the "
            "operator raise the quota",
            field=self.name,
            retry_after=RETRY_AFTER_SECONDS,
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """The limits of a tenant, and how many turns it has stored."""

    limits: Limits
    turns: int


def standing(runtime: Runtime, tenant_id: int) -> Standing:
    """How a tenant stands to its limits; its turns as they were counted within `TENANT_SECONDS`."""
    return Standing(read_limits(runtime, tenant_id), turns(runtime, tenant_id))


def limits_of(runtime: Runtime, tenant_id: int) -> Limits:
    """The limits of the tenant, at most `LIMITS_SECONDS` old."""
    return runtime.recent.read(
        ("limits", tenant_id), seconds=LIMITS_SECONDS, look=lambda: read_limits(runtime, tenant_id)
    )


def read_limits(runtime: Runtime, tenant_id: int) -> Limits:
    """The same, read at this moment."""
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        return rows.of_tenant(connection, tenant_id)


def turn_quotas(runtime: Runtime, tenant_id: int, user: str, limits: Limits) -> tuple[Quota, ...]:
    """The quotas that a further turn of the person counts against; reads nothing where none is set.

    Call it in the person's shard.
    """
    quotas: list[Quota] = []
    if limits.user_turns is not None:
        stored = _of_user(runtime, tenant_id, user, "user_turns", rows.turns_of_user)
        quotas.append(Quota("user_turns", stored, limits.user_turns, of="turns of this person"))
    if limits.turns is not None:
        quotas.append(Quota("turns", turns(runtime, tenant_id), limits.turns, of="turns of this tenant"))
    return tuple(quotas)


def note_turns(runtime: Runtime, tenant_id: int, user: str, count: int) -> None:
    """Turns were stored: they count from now on, before the stored ones are counted again."""
    runtime.recent.add(("turns", tenant_id), count)
    runtime.recent.add(("user_turns", tenant_id, user), count)


def admit_memories(runtime: Runtime, tenant_id: int, user: str, count: int = 1) -> None:
    """Raise `QuotaExceeded` where the person may not have so many more memories. Call it in the person's shard."""
    limit = limits_of(runtime, tenant_id).user_memories
    if limit is None:
        return
    stored = _of_user(runtime, tenant_id, user, "user_memories", rows.memories_of_user)
    Quota("user_memories", stored, limit, of="memories of this person").check(count)
    runtime.recent.add(("user_memories", tenant_id, user), count)


def admit_import(
    runtime: Runtime, tenant_id: int, *, turns: Mapping[str, int], memories: Mapping[str, int]
) -> None:
    """Raise `QuotaExceeded` where an import brings more turns or memories than a person, or all together, may have.

    ``turns`` and ``memories``: how many, by the name of the person. Call it in the shard of all of them.
    """
    limits = limits_of(runtime, tenant_id)
    for user, count in turns.items():
        for quota in turn_quotas(runtime, tenant_id, user, limits):
            # One person's are all of the tenant's that are new, or part of them.
            quota.check(count if quota.name == "user_turns" else sum(turns.values()))
    for user, count in memories.items():
        admit_memories(runtime, tenant_id, user, count)


def turns(runtime: Runtime, tenant_id: int) -> int:
    """Stored turns of the tenant in all shards that can be used."""

    def of_shard(here: Runtime) -> int:
        with transaction(unbound(here.engine), tenant_id) as connection:
            return rows.turns(connection, tenant_id)

    return runtime.recent.read(
        ("turns", tenant_id), seconds=TENANT_SECONDS, look=lambda: sum(in_usable(runtime, of_shard))
    )


def _of_user(
    runtime: Runtime, tenant_id: int, user: str, name: str, count: Callable[[Connection, int, str], int]
) -> int:
    def look() -> int:
        with transaction(unbound(runtime.engine), tenant_id) as connection:
            return count(connection, tenant_id, user)

    return runtime.recent.read((name, tenant_id, user), seconds=USER_SECONDS, look=look)
