"""Checks of the doctor about the shards beside the home shard."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from memory_app.db import catalog, db, in_doubt, prerequisites
from memory_app.db.catalog import DIFFERENCES_SHOWN, Difference
from memory_app.db.directory import Directory, Shard, users_by_shard
from memory_app.db.shards import moved_schemas
from memory_app.errors import MemoryAppError
from memory_app.ops.check import Check, fail, ok, warn

RECOUNT_SECONDS = 1.0
"""Between two counts of the users of a shard."""


def look(directory: Directory) -> Iterator[Check]:
    """Whether every shard beside the home shard is there, migrated and whole, and every server as it must be. No check
    where there is no other shard."""
    listed = directory.shards()[1:]
    if not listed:
        return
    with db.transaction(directory.servers.home, None) as connection:
        users = users_by_shard(connection)
    left_out = [shard for shard in listed if shard.difference is not None]
    for shard in left_out:
        yield _left_out(shard, users.get(shard.id, 0))
    usable = [shard for shard in listed if shard.difference is None]
    away: list[str] = []
    differences: list[tuple[int, Difference]] = []
    for shard in usable:
        try:
            differences += _differences_of(directory, shard)
        except MemoryAppError as error:
            away.append(f"shard {shard.id}: {error.message}")
    if away:
        yield fail("shards", "; ".join(away), to_do="mend the servers that they are on")
    if differences:
        finding = "; ".join(f"shard {shard}: {row.name} is {row.state}" for shard, row in differences)
        remedies = dict.fromkeys(row.remedy for _, row in differences)
        yield fail("shards", finding, to_do="; ".join(remedies))
    elif not left_out and not away:
        yield ok("shards", f"{len(listed) + 1}, each with every object as expected")
    for server in sorted({shard.server for shard in usable if shard.server is not None}):
        yield _server(directory, server)
    yield from _left_behind(directory)
    yield from _disagreements(directory, usable)


def _server(directory: Directory, server: str) -> Check:
    """Whether a server beside that of the home shard can take part in a transaction over both."""
    name = f"server {server}"
    try:
        with db.transaction(directory.servers.engine(server), None) as connection:
            state = in_doubt.state(connection)
    except MemoryAppError as error:
        return fail(name, error.message, to_do="mend it; users of its shards are answered with 503 meanwhile")
    if state.most == 0:
        to_do = f"ALTER SYSTEM SET max_prepared_transactions = {prerequisites.PREPARED_WANTED} there, and restart it"
        return fail(name, "max_prepared_transactions is 0: nothing takes effect on two servers", to_do=to_do)
    if state.late:
        finding = f"{state.late} transactions wait between the two phases of their commit, and hold rows"
        return warn(name, finding, to_do="see that a finder runs (`memory finder`) and reaches all servers")
    return ok(name, f"{state.prepared} of {state.most} prepared transactions")


def _left_behind(directory: Directory) -> Iterator[Check]:
    """What moved to another server and is still where it was: it holds words of people who may be erased by now."""
    schemas: list[str] = []
    for server in (None, *directory.servers.names()):
        with suppress(MemoryAppError), db.transaction(directory.servers.engine(server), None) as connection:
            schemas += moved_schemas(connection)
    if schemas:
        to_do = "; ".join(f"`memory shards drop-moved {int(schema[-4:])}`" for schema in sorted(set(schemas)))
        yield warn("moved shards", f"still where they were before: {', '.join(schemas)}", to_do=to_do)


def _disagreements(directory: Directory, usable: Sequence[Shard]) -> Iterator[Check]:
    """Shards that hold other numbers of users than the directory says, as after a restore of one of both."""
    differing = _user_counts(directory, usable)
    if differing:
        # Somebody may have come or gone between the two counts.
        time.sleep(RECOUNT_SECONDS)
        again = _user_counts(directory, usable)
        differing = {shard: counts for shard, counts in again.items() if differing.get(shard) == counts}
    if differing:
        finding = "; ".join(
            f"shard {shard} holds {count} users, and the directory has {listed} there"
            for shard, (count, listed) in differing.items()
        )
        to_do = "restore the directory and the shards of one moment; who is in one of them only is a stranger or lost"
        yield fail("users of shards", finding, to_do=to_do)


def _user_counts(directory: Directory, usable: Sequence[Shard]) -> dict[int, tuple[int, int]]:
    """Users that a shard holds, and that the directory has there, of each shard where the two differ."""
    counts: dict[int, int] = {}
    for shard in usable:
        with suppress(MemoryAppError), db.transaction(directory.engine_of(shard.id), None) as connection:
            counts[shard.id] = sum(users_by_shard(connection).values())
    with db.transaction(directory.servers.home, None) as connection:
        listed = users_by_shard(connection)
    return {
        shard: (count, listed.get(shard, 0))
        for shard, count in counts.items()
        if count != listed.get(shard, 0)
    }


def _left_out(shard: Shard, users: int) -> Check:
    finding, _, to_do = str(shard.difference).partition("; ")
    return fail("shards", f"{finding}; users in it, who are answered with 503: {users}", to_do=to_do)


def _differences_of(directory: Directory, shard: Shard) -> list[tuple[int, Difference]]:
    with db.transaction(directory.engine_of(shard.id), None) as connection:
        differences = catalog.differences_of(connection, shard=shard.id)
    return [(shard.id, row) for row in differences[:DIFFERENCES_SHOWN]]
