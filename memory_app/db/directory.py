"""The directory: which shards there are, and which one holds the rows of a user. Read through a short cache.

What the cache says of a user may be old. It does no harm: the rows of a user stand in one shard only, and whoever does
not find the user there asks the directory itself (`memory_app.tenancy.rows.names`).
"""

from __future__ import annotations

import random
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock

import structlog
from sqlalchemy import Connection, Engine, bindparam, select, text

from memory_app.db import revision
from memory_app.db.db import transaction
from memory_app.db.servers import Servers, unknown
from memory_app.db.shards import HOME, missing
from memory_app.db.tables.tenancy import users
from memory_app.errors import ShardMissing, StoreUnavailable

log = structlog.get_logger(__name__)

KNOWN_SECONDS = 2.0
"""How long the list of shards is trusted."""

SWITCH_SECONDS, SWITCH_PAUSE_SECONDS = 3.0, 0.05
"""How long a shard that is being switched to another server is waited for, and how often it is looked for."""

USERS_KEPT = 50_000
"""Users whose shard a process remembers."""

_placement = random.SystemRandom()
"""Not the generator of the module: an app that seeds it would put all of its new users into the same shards."""

# Whether the schema is there on another server, its first use tells.
_SHARDS = text(
    """SELECT id, revision, is_open, is_listed, server, is_closed, server IS NOT NULL
        OR to_regclass('shard_' || lpad(id::text, 4, '0') || '.alembic_version') IS NOT NULL AS is_there
    FROM (SELECT id, revision, is_open, true AS is_listed, server, is_closed FROM public.shards
          UNION ALL SELECT id, NULL, false, false, NULL, false FROM public.shards_of_users() id
          WHERE id > 0 AND id NOT IN (SELECT id FROM public.shards)) entry ORDER BY id"""
)
_USERS_SHARD = select(users.c.shard).where(
    users.c.tenant_id == bindparam("tenant"), users.c.name == bindparam("user")
)
_USERS_BY_SHARD = text("SELECT shard, user_count FROM users_by_shard()")


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard of the list, or one that users are in though the list lacks it.

    ``is_open``: new users come to it. ``revision`` None: it is being made. ``is_there``: its schema is. ``server``
    None: it is on that of the home shard.
    """

    id: int
    revision: str | None
    is_open: bool
    is_there: bool = True
    is_listed: bool = True
    server: str | None = None
    is_closed: bool = False
    """Whether it is just being switched to another server."""
    is_named: bool = True
    """Whether the settings of this process name its server."""

    @property
    def difference(self) -> str | None:
        """What keeps this code from working in it, and what to do; None: nothing does."""
        # The home shard answers for itself.
        if self.id == HOME:
            return None
        if self.is_closed:
            return f"shard {self.id} is going to another server; `memory shards move` ends that"
        if self.server is not None and not self.is_named:
            return f"shard {self.id} cannot be reached: {unknown(self.server)}"
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

    servers: Servers
    _shards: tuple[Shard, ...] = (Shard(HOME, None, True),)
    _read_at: float = -KNOWN_SECONDS
    _left_out: Mapping[int, str] = field(default_factory=dict)
    _homes: OrderedDict[tuple[int, str], int] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    @property
    def engine(self) -> Engine:
        """The engine of the home shard."""
        return self.servers.home

    def known(self) -> tuple[Shard, ...]:
        """The shards as they were when the list was read last; the home shard first."""
        with self._lock:
            return self._shards

    def known_shard(self, number: int) -> Shard | None:
        """A shard as the list said that was read last."""
        return next((shard for shard in self.known() if shard.id == number), None)

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
            with transaction(self.servers.home, None) as connection:
                listed = read(connection, servers=self.servers.names())
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
        return tuple(self.servers.at(shard.id, shard.server) for shard in self.usable())

    def engine_of(self, number: int) -> Engine:
        """The engine bound to a shard. Raises `ShardMissing` where this code cannot work in it."""
        return self.servers.at(number, self.check(number))

    def check(self, number: int) -> str | None:
        """The server of a shard, None for that of the home shard. Raises `ShardMissing` where this code cannot work in
        the shard."""
        if number == HOME:
            return None
        listed = {shard.id: shard for shard in self.shards()}
        # One that was added since the list was read.
        shard = listed.get(number) or {shard.id: shard for shard in self.read_again()}.get(number)
        difference = (
            f"there is no shard {number} in the list of shards" if shard is None else shard.difference
        )
        if shard is None or difference is not None:
            raise ShardMissing(str(difference), retry_after=5)
        return shard.server

    def has_moved(self, number: int, before: Shard | None) -> bool:
        """Whether a shard is on another server than it was; waited for while it is just being switched."""
        until = time.monotonic() + SWITCH_SECONDS
        while True:
            now = {shard.id: shard for shard in self.read_again()}.get(number)
            if now is None or before is None or not now.is_closed:
                return now is not None and before is not None and now.server != before.server
            if time.monotonic() > until:
                return False
            time.sleep(SWITCH_PAUSE_SECONDS)

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
        with transaction(self.servers.home, tenant_id) as connection:
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


def read(connection: Connection, *, servers: Collection[str] = ()) -> tuple[Shard, ...]:
    """The shards, from the home shard, which comes first. ``servers``: those that the settings name."""
    listed = {
        row.id: Shard(**row._mapping, is_named=row.server is None or row.server in servers)
        for row in connection.execute(_SHARDS)
    }
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
