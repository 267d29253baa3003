"""Real servers for every test: one Postgres and one Valkey per run, a migrated template, a copy per test."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from uuid import uuid4

import all_shards
import pytest
from commands import Done, Memory
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from pydantic import SecretStr
from redis import Redis
from run_folder import RunFolder, open_run_folder
from sqlalchemy import Engine
from wide_screen import widen

from memory_app.local import embedded
from memory_app.local.embedded import Servers
from memory_app.local.servers import embedded_settings
from memory_app.main.cli import main
from memory_app.runtime import Runtime, build
from memory_app.settings import Database, Embedding, Settings
from memory_app.settings import Redis as RedisSection
from memory_app.tenancy import schema
from memory_app.tenancy.rows import keys

# How long an example takes says something about the machine, nothing about the code.
hypothesis_settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("any-machine")

TEMPLATE = "template_migrated"

POSTGRES_VERSION = os.environ.get("TEST_POSTGRES_VERSION")
"""``16`` or ``18``; unset takes the one that the product starts."""


RUN_FOLDER = pytest.StashKey[RunFolder]()


def pytest_configure(config: pytest.Config) -> None:
    """Whatever ends this process, even SIGKILL: what the tests started ends with it."""
    config.stash[RUN_FOLDER] = open_run_folder()


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[RUN_FOLDER].close()


@pytest.fixture(scope="session")
def servers(pytestconfig: pytest.Config) -> Iterator[Servers]:
    """Postgres and Valkey of this run, with nothing in them."""
    folder = pytestconfig.stash[RUN_FOLDER].path / "servers"
    try:
        started = embedded.start(folder, version=POSTGRES_VERSION, durable=False)
        if all_shards.IS_SHARDED:
            all_shards.allow_two_phases(started.owner_url)
            embedded.stop(folder)
            started = embedded.start(folder, version=POSTGRES_VERSION, durable=False)
        yield started
    finally:
        embedded.remove(folder)


@pytest.fixture(scope="session")
def template(servers: Servers) -> Servers:
    """A migrated database that nobody uses, to be copied."""
    made = embedded.create_database(servers, TEMPLATE)
    schema.upgrade(embedded_settings(made))
    if all_shards.IS_SHARDED:
        all_shards.add(embedded_settings(made))
        all_shards.install(made.owner_url)
    return made


@pytest.fixture
def database(servers: Servers, template: Servers) -> Iterator[Servers]:
    """A migrated database of this test alone."""
    name = f"test_{uuid4().hex[:12]}"
    yield embedded.create_database(servers, name, template=TEMPLATE)
    embedded.drop_database(servers, name)


@pytest.fixture
def settings(database: Servers) -> Settings:
    """Settings of this test: its own database, its own prefix in Redis, the embedder that loads at once."""
    return Settings(
        _env_file=None,
        database=all_shards.with_servers(
            Database(url=SecretStr(database.app_url), owner_url=SecretStr(database.owner_url))
        ),
        redis=RedisSection(url=SecretStr(database.redis_url), prefix=f"test-{uuid4().hex[:12]}:"),
        embedding=Embedding(provider="hash", dimensions=256),
    )


@pytest.fixture
def environment(settings: Settings) -> dict[str, str]:
    """The same settings as a child process reads them."""
    owner_url = settings.database.owner_url
    assert owner_url is not None
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")},
        "MEMORY_DATABASE__URL": settings.database.url.get_secret_value(),
        "MEMORY_DATABASE__OWNER_URL": owner_url.get_secret_value(),
        "MEMORY_REDIS__URL": settings.redis.url.get_secret_value(),
        "MEMORY_REDIS__PREFIX": settings.redis.prefix,
        "MEMORY_EMBEDDING__PROVIDER": settings.embedding.provider,
        "MEMORY_EMBEDDING__DIMENSIONS": str(settings.embedding.dimensions),
        "PYTHONUNBUFFERED": "1",
        **all_shards.variables(settings),
    }


@pytest.fixture
def runtime(settings: Settings) -> Iterator[Runtime]:
    """The live parts of this process. Afterwards no key of ours may be left without an expiry."""
    runtime = all_shards.at_work(build(settings))
    yield runtime
    runtime.close()
    with Redis.from_url(settings.redis.url.get_secret_value(), protocol=2) as client:
        left = list(client.scan_iter(f"{settings.redis.prefix}*"))
        ours = [
            key for key in left if b"_kombu" not in key and key.split(b":")[-1] not in (b"ingest", b"model")
        ]
        endless = [key for key in ours if client.ttl(key) == -1 and client.type(key) != b"list"]
        if left:
            client.delete(*left)
    assert endless == [], "every key expires"


@pytest.fixture
def owner(database: Servers) -> Iterator[Engine]:
    """The database as its owner sees it, beyond row-level security."""
    engine = all_shards.owner_engine(database.owner_url)
    yield engine
    engine.dispose()


@pytest.fixture
def tenant(owner: Engine) -> int:
    """The id of a tenant called ``acme``."""
    with owner.begin() as connection:
        return keys.ensure_tenant(connection, "acme")


@pytest.fixture
def other_tenant(owner: Engine) -> int:
    """The id of another tenant, who must never see anything of ``acme``."""
    with owner.begin() as connection:
        return keys.ensure_tenant(connection, "globex")


@pytest.fixture
def api_key(owner: Engine, tenant: int) -> str:
    """A key of ``acme`` with every right."""
    with owner.begin() as connection:
        _, key = keys.create(connection, "acme", rights=keys.RIGHTS)
    return key


@pytest.fixture
def memory(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Memory]:
    """Runs a command in this process. A traceback would leave as an exception and fail the test."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    widen(monkeypatch)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def run(*arguments: str) -> Done:
        monkeypatch.setattr("sys.argv", ["memory", *arguments])
        capsys.readouterr()
        try:
            main()
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        return Done(status, *capsys.readouterr())

    yield run
    root.handlers[:] = handlers
    root.setLevel(level)
