"""A server that is away costs its own users only, and each of them is told why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import all_shards
import pytest
from own_servers import PostgresServer, postgres_server, wait_until
from pydantic import SecretStr
from queries import rows
from sqlalchemy import Engine, text
from two_servers import BOB, say

from memory_app import MemoryApp
from memory_app.dispatch import finder
from memory_app.errors import Misconfigured, ShardMissing, StoreUnavailable
from memory_app.ops.check import State
from memory_app.ops.doctor import diagnose
from memory_app.ops.health import health
from memory_app.records.records import Ticket
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Server, Settings
from memory_app.tenancy import schema

pytestmark = pytest.mark.one_shard

EVE = Scope("ada", "eve", "s")
SAID = (("I live in Porto.", "k1"), ("I have a dog.", "k2"))


@pytest.fixture
def east_server() -> Iterator[PostgresServer]:
    """A server of this test alone, which it may stop."""
    with postgres_server(settings=all_shards.TWO_PHASES) as server:
        yield server


def stay_home(owner: Engine) -> None:
    with owner.begin() as connection:
        connection.execute(text("UPDATE public.shards SET is_open = (id = 0)"))


def test_the_others_go_on_and_it_is_found_again(
    app: MemoryApp, runtime: Runtime, owner: Engine, east_server: PostgresServer, in_east: Settings
) -> None:
    say(app, "I live in Porto.", key="k1")
    stay_home(owner)
    runtime.directory.read_again()
    say(app, "I live in Bonn.", scope=EVE)
    east_server.stop()
    with pytest.raises(StoreUnavailable):
        say(app, "I have a dog.", key="k2")
    with pytest.raises(StoreUnavailable, match="MEMORY_DATABASE__SERVERS__EAST__URL"):
        say(app, "I have a dog.", key="k2")
    say(app, "I have a cat.", scope=EVE)
    with pytest.raises(StoreUnavailable):
        finder.drain(runtime)
    assert rows(owner, "SELECT count(*) FROM turns WHERE indexed_at IS NULL") == [(0,)]
    assert "cat" in app.context(EVE, query="Which pet do I have?").text
    (part,) = (part for part in health(runtime).parts if part.name == "shards")
    assert "EAST" in str(part.reason) and not part.is_needed
    checks = {check.name: check for check in diagnose(in_east)}
    assert checks["server east"].state is State.FAIL
    east_server.start(all_shards.TWO_PHASES)
    tickets: list[Ticket] = []

    def is_accepted() -> bool:
        with suppress(StoreUnavailable):
            tickets[:] = [say(app, words, key=key) for words, key in SAID]
        return len(tickets) == len(SAID)

    wait_until(is_accepted, "the pause between two logins ends")
    assert [ticket.seq for ticket in tickets] == [1, 2]
    assert tickets[0].duplicate


def test_a_process_that_does_not_name_the_server_says_so(
    app: MemoryApp, in_east: Settings, tenant: int
) -> None:
    say(app, "I live in Porto.")
    database = in_east.database.model_copy(update={"servers": {}})
    unaware = build(in_east.model_copy(update={"database": database}))
    try:
        with pytest.raises(ShardMissing, match="do not name server 'east'"):
            MemoryApp(unaware, tenant).turns(BOB)
        say(MemoryApp(unaware, tenant), "I live in Bonn.", scope=EVE)
    finally:
        unaware.close()


def test_a_server_without_two_phases_gets_no_shard(settings: Settings) -> None:
    with postgres_server() as server:
        server.create_database("memory")
        url = server.url("memory", user="memory_app", password="some password")
        west = Server(url=SecretStr(url), owner_url=SecretStr(server.url("memory")))
        database = settings.database.model_copy(update={"servers": {"west": west}})
        both = settings.model_copy(update={"database": database})
        with pytest.raises(Misconfigured, match="max_prepared_transactions"):
            schema.add_shards(both, 1, server="west")
