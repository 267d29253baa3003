"""Users move between servers with all they have."""

from __future__ import annotations

import pytest
from queries import rows
from sqlalchemy import Engine
from two_servers import BOB, East, say

from memory_app import MemoryApp
from memory_app.dispatch import finder
from memory_app.errors import StoreUnavailable
from memory_app.runtime import Runtime
from memory_app.transfer import shards
from memory_app.transfer.rows import user_copy
from memory_app.transfer.rows.user_copy import TABLES

pytestmark = pytest.mark.one_shard

PLACES = {0: "public", 1: "shard_0001"}
LEASES = ("fence", "lease_until", "starts", "is_indexed")
"""What a move changes on purpose; so are the numbers of transactions."""


def held(owner: Engine, east: East, shard: int) -> dict[str, list[dict[str, object]]]:
    """All rows of people in a shard, by table."""
    engine = owner if shard == 0 else east.engine()
    found = {}
    for table in TABLES:
        if table == "scopes":
            where = "r.user_id IS NOT NULL"
        else:
            where = f"r.scope_id IN (SELECT id FROM {PLACES[shard]}.scopes WHERE user_id IS NOT NULL)"
        statement = (
            f"SELECT to_jsonb(r) FROM {PLACES[shard]}.{table} r WHERE {where} ORDER BY to_jsonb(r)::text"
        )
        found[table] = [
            {name: value for name, value in row.items() if name not in LEASES and not name.endswith("_xact")}
            for (row,) in rows(engine, statement)
        ]
    return found


@pytest.fixture
def lived(app: MemoryApp, runtime: Runtime) -> MemoryApp:
    """Bob has told a little, and it was worked through."""
    say(app, "I live in Porto with my dog Rex.", key="k1")
    say(app, "My sister Anna is a nurse.", key="k2")
    finder.drain(runtime)
    finder.drain(runtime)
    app.checkpoint(BOB)
    assert app.recall(BOB, "Where do I live?").memories
    return app


def test_every_row_comes_along_and_back(
    lived: MemoryApp, runtime: Runtime, tenant: int, owner: Engine, east: East
) -> None:
    before = held(owner, east, 1)
    assert before["turns"] and before["memories"] and before["entities"] and before["checkpoints"]
    for source, target in ((1, 0), (0, 1), (1, 0)):
        moved = shards.move_user(runtime, tenant, "bob", to=target)
        assert (moved.source, moved.target) == (source, target)
        after = held(owner, east, target)
        assert {table: len(found) for table, found in after.items()} == moved.rows
        assert after == before
        assert not any(held(owner, east, source).values())
        assert rows(owner, "SELECT shard FROM public.users") == [(target,)]
        assert say(lived, "My sister Anna is a nurse.", key="k2").duplicate
        assert "Porto" in lived.context(BOB, query="Where do I live?").text
    say(lived, "I moved to Lisbon.", key="k3")
    finder.drain(runtime)
    assert rows(owner, "SELECT max(seq) FROM turns") == [(3,)]


def test_a_move_that_fails_leaves_everything_where_it_was(
    lived: MemoryApp,
    runtime: Runtime,
    tenant: int,
    owner: Engine,
    east: East,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = held(owner, east, 1)

    def break_off(*_: object) -> None:
        raise StoreUnavailable("the server went away")

    monkeypatch.setattr(shards, "TRIES", 1)
    monkeypatch.setattr(user_copy, "_delete", break_off)
    with pytest.raises(StoreUnavailable):
        shards.move_user(runtime, tenant, "bob", to=0)
    assert held(owner, east, 1) == before
    assert not any(held(owner, east, 0).values())
    assert rows(owner, "SELECT shard FROM public.users") == [(1,)]


def test_whoever_knows_the_old_place_finds_the_user(lived: MemoryApp, runtime: Runtime, tenant: int) -> None:
    shards.move_user(runtime, tenant, "bob", to=0)
    runtime.directory.note(tenant, "bob", 1)
    assert "Porto" in lived.context(BOB, query="Where do I live?").text
    runtime.directory.note(tenant, "bob", 1)
    assert say(lived, "I have a boat.").seq == 3
