"""Checks of the doctor about the shards beside the home shard."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Engine

from memory_app.db import catalog, db
from memory_app.db.catalog import DIFFERENCES_SHOWN, Difference
from memory_app.db.directory import Directory, Shard, users_by_shard
from memory_app.db.shards import at_shard
from memory_app.ops.check import Check, fail, ok


def look(engine: Engine) -> Iterator[Check]:
    """Whether every shard beside the home shard is there, migrated and whole. No check where there is no other."""
    directory = Directory(engine)
    listed = directory.shards()[1:]
    if not listed:
        return
    with db.transaction(engine, None) as connection:
        users = users_by_shard(connection)
    left_out = [shard for shard in listed if shard.difference is not None]
    for shard in left_out:
        yield _left_out(shard, users.get(shard.id, 0))
    usable = [shard for shard in listed if shard.difference is None]
    differences = [row for shard in usable for row in _differences_of(engine, shard)]
    if differences:
        finding = "; ".join(f"shard {shard}: {row.name} is {row.state}" for shard, row in differences)
        remedies = dict.fromkeys(row.remedy for _, row in differences)
        yield fail("shards", finding, to_do="; ".join(remedies))
    elif not left_out:
        yield ok("shards", f"{len(listed) + 1}, each with every object as expected")


def _left_out(shard: Shard, users: int) -> Check:
    finding, _, to_do = str(shard.difference).partition("; ")
    return fail("shards", f"{finding}; users in it, who are answered with 503: {users}", to_do=to_do)


def _differences_of(engine: Engine, shard: Shard) -> list[tuple[int, Difference]]:
    with db.transaction(at_shard(engine, shard.id), None) as connection:
        differences = catalog.differences_of(connection, shard=shard.id)
    return [(shard.id, row) for row in differences[:DIFFERENCES_SHOWN]]
