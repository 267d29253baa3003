"""The directory: which shards there are, and which one holds the rows of a user. Read through a short cache.

What the cache says of a user may be old. It does no harm: the rows of a user stand in one shard only, and whoever does
not find the user there asks the directory itself (`memory_app.tenancy.rows.names`).
"""

from __future__ import annotations

import random
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock

import structlog
from sqlalchemy import Connection, Engine, bindparam, select, text

from memory_app.db import revision
from memory_app.db.db import transaction
from memory_app.db.shards import HOME, at_shard, missing
from memory_app.db.tables.tenancy import users
from memory_app.errors import ShardMissing, StoreUnavailable

log = structlog.get_logger(__name__)

KNOWN_SECONDS = 2.0
"""How long the list of shards is trusted."""

USERS_KEPT = 50_000
"""Users whose shard a process remembers."""

_placement = random.SystemRandom()
"""Not the generator of the module: an app that seeds it would put all of its new users into the same shards."""

_SHARDS = text(
    """SELECT id, revision, is_open, is_listed,
    to_regclass('shard_' || lpad(id::text, 4, '0') || '.alembic_version') IS NOT NULL AS is_there
    FROM (SELECT id, revision, is_open, true AS is_listed FROM public.shards
          UNION ALL SELECT id, NULL, false, false FROM public.shards_of_users() id
          WHERE id > 0 AND id NOT IN (SELECT id FROM public.shards)) entry ORDER BY id"""
)
_USERS_SHARD = select(users.c.shard).where(
    users.c.tenant_id == bindparam("tenant"), users.c.name == bindparam("user")
)
_USERS_BY_SHARD = text("SELECT shard, user_count FROM users_by_shard()")


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard of the list, or one that users are in though the list lacks it.

    ``is_open``: new users come to it. ``revision`` None: it is being made. ``is_there``: its schema is.
    """

    id: int
    revision: str | None
    is_open: bool
    is_there: bool = True
    is_listed: bool = True

    @property
    def difference(self) -> str | None:
        """What keeps this code from working in it, and what to do; None: nothing does."""
        # The home shard answers for itself.
        if self.id == HOME:
            return None
        if self.revision is None and self.is_listed:
            return f"shard {self.id} is not finished; run `memory migrate`"
        if not self.is_there:
            return missing(self.id)
        if not self.is_listed:
            return f"shard {self.id} holds users and is not in the list of shards; run `memory migrate`"
        # A newer release may have migrated it.
        if revision.is_ahead(self.revision) or self.revision == revision.newest():
            return None
        if self.revision not in revision.known():
            return (
                f"shard {self.id} is at revision {self.revision!r}, which no release has; restore the list of shards "
                "from a backup"
            )
        return (
            f"shard {self.id} is at revision {self.revision}, behind {revision.newest()} of this code; "
            "run `memory migrate`"
        )


@dataclass(slots=True)
class Directory:
    """What this process knows of the directory. Safe between threads."""

    engine: Engine
    _shards: tuple[Shard, ...] = (Shard(HOME, None, True),)
    _read_at: float = -KNOWN_SECONDS
    _left_out: Mapping[int, str] = field(default_factory=dict)
    _homes: OrderedDict[tuple[int, str], int] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def known(self) -> tuple[Shard, ...]:
        """The shards as they were when the list was read last; the home shard first."""
        with self._lock:
            return self._shards

    def shards(self) -> tuple[Shard, ...]:
        """The shards, read again where that was long ago; as they were while the home shard is away."""
        now = time.monotonic()
        with self._lock:
            if now - self._read_at < KNOWN_SECONDS:
                return self._shards
        return self.read_again()

    def read_again(self) -> tuple[Shard, ...]:
        """The shards as the list is now; as they were while the home shard is away."""
        now = time.monotonic()
        try:
            with transaction(self.engine, None) as connection:
                listed = read(connection)
        except StoreUnavailable:
            # Whoever goes on is told so by the first statement that needs the home shard.
            return self.known()
        with self._lock:
            self._shards, self._read_at = listed, now
            before, self._left_out = self._left_out, _left_out(listed)
        _tell_changes(before, self._left_out)
        return listed

    def usable(self) -> tuple[Shard, ...]:
        """Those that this code can work in."""
        return tuple(shard for shard in self.shards() if shard.difference is None)

    def engines(self) -> tuple[Engine, ...]:
        """The engine bound to each shard that this code can work in."""
        return tuple(at_shard(self.engine, shard.id) for shard in self.usable())

    def check(self, number: int) -> None:
        """Raise `ShardMissing` where this code cannot work in the shard."""
        if number == HOME:
            return
        listed = {shard.id: shard for shard in self.shards()}
        # One that was added since the list was read.
        shard = listed.get(number) or {shard.id: shard for shard in self.read_again()}.get(number)
        difference = (
            f"there is no shard {number} in the list of shards" if shard is None else shard.difference
        )
        if difference is not None:
            raise ShardMissing(difference, retry_after=5)

    def shard_of_user(self, tenant_id: int, user: str) -> int:
        """The shard of a user; of one whom nobody knows yet, the shard to put them in."""
        with self._lock:
            number = self._homes.get((tenant_id, user))
            if number is not None:
                self._homes.move_to_end((tenant_id, user))
                return number
        # Only for users who are new here, so that the usual call reads nothing.
        shards = self.shards()
        if len(shards) == 1:
            self.note(tenant_id, user, HOME)
            return HOME
        stored = self.read_shard_of_user(tenant_id, user)
        if stored is not None:
            return stored
        # Not noted: another process may put the same user elsewhere, and the directory decides.
        return self.shard_for_new(shards)

    def shard_for_new(self, shards: Iterable[Shard]) -> int:
        """The shard for a user whom nobody knows yet, among these."""
        usable = [shard.id for shard in shards if shard.is_open and shard.difference is None]
        return _placement.choice(usable or [HOME])

    def read_shard_of_user(self, tenant_id: int, user: str) -> int | None:
        """The shard of a user by the directory itself, which is then remembered; None for nobody we know."""
        if len(self.known()) == 1:
            return HOME
        with transaction(self.engine, tenant_id) as connection:
            stored = users_shard(connection, tenant_id, user)
        if stored is not None:
            self.note(tenant_id, user, stored)
        return stored

    def note(self, tenant_id: int, user: str, number: int) -> None:
        """Remember where a user is."""
        with self._lock:
            self._homes[tenant_id, user] = number
            self._homes.move_to_end((tenant_id, user))
            if len(self._homes) > USERS_KEPT:
                self._homes.popitem(last=False)


def read(connection: Connection) -> tuple[Shard, ...]:
    """The shards, from the home shard, which comes first."""
    listed = {row.id: Shard(**row) for row in connection.execute(_SHARDS).mappings()}
    # Nothing has to be said of the home shard, as long as it is the only one or takes new users.
    home = listed.pop(HOME, Shard(HOME, None, True))
    return (home, *listed.values())


def _left_out(listed: Iterable[Shard]) -> dict[int, str]:
    return {shard.id: shard.difference for shard in listed if shard.difference is not None}


def _tell_changes(before: Mapping[int, str], after: Mapping[int, str]) -> None:
    # Only changes: every part reads the list every few seconds.
    for shard, reason in after.items():
        if before.get(shard) != reason:
            log.error("shard_left_out", shard=shard, reason=reason)
    for shard in before.keys() - after.keys():
        log.info("shard_in_use_again", shard=shard)


def users_shard(connection: Connection, tenant_id: int, user: str) -> int | None:
    """The shard of a user, from the home shard; None for nobody we know."""
    return connection.execute(_USERS_SHARD, {"tenant": tenant_id, "user": user}).scalar_one_or_none()


def users_by_shard(connection: Connection) -> dict[int, int]:
    """How many users of all tenants each shard holds, from the home shard."""
    return {row.shard: row.user_count for row in connection.execute(_USERS_BY_SHARD)}
