"""A shard that is away, and moves between shards that die: the other shards go on, and nobody is in two."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import all_shards
import pytest
from harness.stage import Stage
from harness.waiting import wait_until
from sqlalchemy import Connection, Engine, text

from memory_app.db import directory
from memory_app.local.embedded import Servers
from memory_app.settings import Settings
from memory_app.tenancy import schema

pytestmark = pytest.mark.faults

AWAY_SECONDS = 4
PLACES = ("move.after_locks", "move.before_commit", "move.after_commit")
MOVE_SECONDS = 60

USERS_IN = text("SELECT name FROM public.users WHERE shard = :shard ORDER BY name")
SHARD_OF = text("SELECT shard FROM public.users WHERE name = :user")
SCOPES_BY_SHARD = " UNION ALL ".join(
    f"SELECT {shard} AS shard, u.name FROM {schema_name}.scopes c JOIN public.users u ON u.id = c.user_id"
    for shard, schema_name in zip(all_shards.SHARDS, all_shards.SCHEMAS, strict=True)
)


@pytest.fixture
def sharded(
    stage: Stage, settings: Settings, database: Servers, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    """The stage over three shards, to which new users come in turn: by chance, one would be left empty at times."""
    turn = count()
    monkeypatch.setattr(directory._placement, "choice", lambda usable: usable[next(turn) % len(usable)])
    if all_shards.IS_SHARDED:
        yield stage
        return
    schema.add_shards(settings, len(all_shards.SHARDS) - 1)
    all_shards.install(database.owner_url)
    owner = all_shards.engine_over_all(database.owner_url)
    yield replace(stage, owner=owner)
    owner.dispose()


def test_F44_a_shard_away_and_back(sharded: Stage) -> None:
    """Its users wait and try again; those of the others are served meanwhile."""
    sharded.fleet.finder()
    sharded.worker()
    under_way = sharded.clients(turns=600, sessions=24, seconds=8)
    wait_until(lambda: turns_in(sharded.owner, 2) > 0, "somebody is in shard 2", seconds=30)
    rename(sharded.owner, "shard_0002", "away")
    accepted, extracted = turns_in(sharded.owner, 0, 1), turns_in(sharded.owner, 0, 1, done=True)
    time.sleep(AWAY_SECONDS)
    assert turns_in(sharded.owner, 0, 1) > accepted, "the others are served"
    wait_until(
        lambda: turns_in(sharded.owner, 0, 1, done=True) > extracted, "the others are extracted", seconds=30
    )
    rename(sharded.owner, "away", "shard_0002")
    assert under_way.retries() > 0
    sharded.settle(under_way)
    assert_nobody_is_in_two(sharded.owner)


def test_F44_moves_killed_at_each_step(sharded: Stage) -> None:
    """A move is killed wherever it is, while everybody chats and others are moved."""
    sharded.fleet.finder()
    sharded.worker()
    under_way = sharded.clients(turns=800, sessions=24, seconds=12)
    wait_until(lambda: turns_in(sharded.owner, 2) > 0, "somebody is in shard 2", seconds=30)
    for place in PLACES:
        for user in users_in(sharded.owner, 2)[:2]:
            killed = move(sharded, user, to=1, MEMORY_FAILPOINTS=f"{place}=kill")
            assert killed.returncode == -9, killed.stderr
            assert shard_of(sharded.owner, user) == (1 if place == "move.after_commit" else 2)
            done = move(sharded, user, to=1)
            assert done.returncode == 0, done.stderr
            assert shard_of(sharded.owner, user) == 1
            assert_nobody_is_in_two(sharded.owner)
            move(sharded, user, to=2)
    sharded.settle(under_way)
    assert_nobody_is_in_two(sharded.owner)


def move(stage: Stage, user: str, *, to: int, **environment: str) -> subprocess.CompletedProcess[str]:
    """Move a user by the command line, in a process of its own."""
    command = [sys.executable, "-m", "memory_app", "shards", "move-user", user, "--to", str(to)]
    with stage.owner.begin() as connection:
        tenant = connection.execute(
            text("SELECT name FROM public.tenants WHERE id = :id"), {"id": stage.tenant}
        ).scalar_one()
    return subprocess.run(
        [*command, "--tenant", tenant],
        env={**os.environ, **stage.fleet.environment, **environment},
        capture_output=True,
        text=True,
        timeout=MOVE_SECONDS,
        check=False,
    )


def rename(owner: Engine, schema_name: str, new_name: str) -> None:
    """Rename a schema when nobody is at work in it: each transaction there holds this table until it ends."""
    with owner.begin() as connection:
        connection.execute(text(f"LOCK TABLE {schema_name}.alembic_version IN ACCESS EXCLUSIVE MODE"))
        connection.execute(text(f"ALTER SCHEMA {schema_name} RENAME TO {new_name}"))


def turns_in(owner: Engine, *shards: int, done: bool = False) -> int:
    """Turns of users in these shards; ``done``: those that are extracted."""
    condition = "t.extracted_at IS NOT NULL" if done else "true"
    with owner.begin() as connection:
        return int(
            connection.execute(
                text(
                    f"""SELECT count(*) FROM turns t JOIN scopes c ON c.id = t.scope_id
                    JOIN public.users u ON u.id = c.user_id WHERE u.shard = ANY(:shards) AND {condition}"""
                ),
                {"shards": list(shards)},
            ).scalar_one()
        )


def users_in(owner: Engine, shard: int) -> list[str]:
    with owner.begin() as connection:
        return list(connection.execute(USERS_IN, {"shard": shard}).scalars())


def shard_of(owner: Engine, user: str) -> int:
    with owner.begin() as connection:
        return int(connection.execute(SHARD_OF, {"user": user}).scalar_one())


def assert_nobody_is_in_two(owner: Engine) -> None:
    """Each user's scopes stand where the directory says, and nowhere else."""

    def astray(connection: Connection) -> list[tuple[int, str]]:
        found = connection.execute(
            text(
                f"SELECT p.shard, p.name FROM ({SCOPES_BY_SHARD}) p JOIN public.users u USING (name) "
                "WHERE p.shard <> u.shard"
            )
        )
        return [(row.shard, row.name) for row in found]

    with owner.begin() as connection:
        assert astray(connection) == []
