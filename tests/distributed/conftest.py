"""Two PostgreSQL servers: one with the home shard, and one called ``east`` with shard 1, where all new users come."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import all_shards
import pytest
from own_servers import PostgresServer, postgres_server
from pydantic import SecretStr
from sqlalchemy import Engine, text
from two_servers import East

from memory_app import MemoryApp
from memory_app.runtime import Runtime, build
from memory_app.settings import Server, Settings
from memory_app.tenancy import schema


@pytest.fixture(scope="session")
def east_server() -> Iterator[PostgresServer]:
    """A server of this run, for which transactions can be prepared."""
    with postgres_server(settings=all_shards.TWO_PHASES) as server:
        yield server


@pytest.fixture
def east(east_server: PostgresServer) -> Iterator[East]:
    """An empty database of this test on the other server."""
    name = f"east_{uuid4().hex[:12]}"
    east_server.create_database(name)
    yield East(east_server, name)
    with east_server.connect() as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def spread(settings: Settings, east: East) -> Settings:
    """Settings that name both servers; shard 1 is on the other one."""
    password = "of the role memory_app there"
    app_url = east.server.url(east.database, user="memory_app", password=password)
    server = Server(url=SecretStr(app_url), owner_url=SecretStr(east.owner_url))
    database = settings.database.model_copy(update={"servers": {"east": server}})
    both = settings.model_copy(update={"database": database})
    assert schema.add_shards(both, 1, server="east") == (1,)
    return both


@pytest.fixture
def in_east(spread: Settings, owner: Engine) -> Settings:
    """The same; all new users come to the shard on the other server."""
    with owner.begin() as connection:
        connection.execute(text("INSERT INTO public.shards (id, is_open) VALUES (0, false)"))
    return spread


@pytest.fixture
def runtime(in_east: Settings) -> Iterator[Runtime]:
    """The live parts of this process."""
    runtime = build(in_east)
    yield runtime
    runtime.close()


@pytest.fixture
def app(runtime: Runtime, tenant: int) -> MemoryApp:
    return MemoryApp(runtime, tenant)
