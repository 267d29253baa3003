"""Migrating where one is no superuser, where roles and pgvector are somebody else's, and beside others.

Each test has a cluster of its own, since roles belong to a cluster.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from uuid import uuid4

import pytest
from own_servers import PostgresServer, postgres_server, wait_until
from pydantic import SecretStr
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from memory_app.db import catalog, migrate, revision
from memory_app.db.db import transaction
from memory_app.dispatch import finder
from memory_app.errors import Misconfigured, StoreRefused, StoreUnavailable
from memory_app.local.embedded import Servers
from memory_app.memories.remember import remember
from memory_app.recall import scope_index
from memory_app.recall.recall import RecallQuery, recall
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Database, Embedding, Settings
from memory_app.settings import Redis as RedisSection
from memory_app.tenancy import schema
from memory_app.tenancy.rows import keys
from memory_app.turns.record import record

PASSWORD = "owner-5f1c"
ASKED = "let an administrator run, in this database: "
CHAT = Scope("ada", "mira", "chat-1")


BOTH_VERSIONS = pytest.mark.parametrize("cluster", ["16", "18"], indirect=True)


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """A server with nothing but a superuser and a login role called keeper."""
    with postgres_server(version=getattr(request, "param", "18")) as server:
        server.create_database("memory")
        with server.connect() as administrator:
            administrator.execute(f"CREATE ROLE keeper LOGIN PASSWORD '{PASSWORD}'")
        yield server


def settings_for(cluster: PostgresServer, servers: Servers, *, database: str = "memory") -> Settings:
    """As the owner keeper and a password of one's own choice have it."""
    return Settings(
        _env_file=None,
        database=Database(
            url=SecretStr(cluster.url(database, user="memory_app", password="app-77aa")),
            owner_url=SecretStr(cluster.url(database, user="keeper", password=PASSWORD)),
        ),
        redis=RedisSection(url=SecretStr(servers.redis_url), prefix=f"test-{uuid4().hex[:12]}:"),
        embedding=Embedding(provider="hash", dimensions=256),
    )


def run(cluster: PostgresServer, *statements: str, database: str = "memory") -> None:
    """As the administrator."""
    with cluster.connect(database) as administrator:
        for statement in statements:
            administrator.execute(statement)


def upgrade_as_told(cluster: PostgresServer, settings: Settings) -> list[str]:
    """Migrate; where it asks for an administrator, run exactly what it asks for and try again. What it asked for."""
    asked: list[str] = []
    while True:
        try:
            schema.upgrade(settings)
        except Misconfigured as error:
            _, _, statements = error.message.partition(ASKED)
            assert statements, error.message
            assert len(asked) < 20, asked
            run(cluster, *statements.split("; "))
            asked += statements.split("; ")
        else:
            return asked


def differences(settings: Settings) -> tuple[catalog.Difference, ...]:
    url = settings.database.url.get_secret_value()
    with create_engine(url, poolclass=NullPool).begin() as connection:
        return catalog.differences_of(connection)


def use(settings: Settings) -> None:
    """Record, index, extract, remember and recall as the application; by scan, and by indexes that the owner builds."""
    runtime = build(settings)
    assert runtime.owner is not None
    try:
        with runtime.owner.begin() as connection:
            tenant = keys.ensure_tenant(connection, "acme")
        record(
            runtime, tenant, CHAT, [NewTurn(Role.USER, "I moved to Lisbon and I have a dog called Bruno.")]
        )
        finder.drain(runtime)
        remember(runtime, tenant, CHAT, statement=Statement("fact", "Mira plays the violin in an orchestra."))
        by_scan = texts(runtime, tenant)
        assert any("Lisbon" in words for words in by_scan)
        with transaction(runtime.engine, tenant) as connection:
            scope_ids = connection.execute(text("SELECT DISTINCT scope_id FROM turns")).scalars().all()
        for scope_id in scope_ids:
            scope_index.index_scope(runtime, runtime.owner, tenant_id=tenant, scope_id=scope_id)
        assert texts(runtime, tenant) == by_scan
    finally:
        runtime.close()


def texts(runtime: Runtime, tenant: int) -> list[str]:
    hits = recall(runtime, tenant, CHAT, query=RecallQuery("Where does Mira live?")).memories
    return [hit.text for hit in hits]


@BOTH_VERSIONS
def test_an_owner_without_rights_is_told_what_an_administrator_must_run(
    cluster: PostgresServer, servers: Servers
) -> None:
    settings = settings_for(cluster, servers)

    asked = upgrade_as_told(cluster, settings)

    assert asked == [
        "ALTER DATABASE memory OWNER TO keeper",
        "CREATE EXTENSION vector",
        "CREATE ROLE memory_app LOGIN",
        "GRANT memory_app TO keeper WITH ADMIN OPTION",
        "ALTER ROLE keeper CREATEROLE",
        "CREATE ROLE memory_finder NOLOGIN",
        "GRANT memory_finder TO keeper WITH INHERIT TRUE, SET TRUE",
        "CREATE ROLE memory_search NOLOGIN",
        "GRANT memory_search TO keeper WITH INHERIT TRUE, SET TRUE",
        "CREATE ROLE memory_bound NOLOGIN",
        "GRANT memory_bound TO memory_app WITH INHERIT FALSE, SET TRUE",
    ]
    assert differences(settings) == ()
    use(settings)


def test_an_owner_who_may_make_roles_needs_the_extension_only(
    cluster: PostgresServer, servers: Servers
) -> None:
    run(cluster, "ALTER DATABASE memory OWNER TO keeper", "ALTER ROLE keeper CREATEROLE")
    settings = settings_for(cluster, servers)

    assert upgrade_as_told(cluster, settings) == ["CREATE EXTENSION vector"]

    assert differences(settings) == ()
    assert schema.upgrade(settings) == revision.newest()
    use(settings)


def test_roles_that_somebody_else_made_are_asked_for(cluster: PostgresServer, servers: Servers) -> None:
    run(
        cluster,
        "ALTER DATABASE memory OWNER TO keeper",
        "ALTER ROLE keeper CREATEROLE",
        "CREATE EXTENSION vector",
        "CREATE ROLE memory_app LOGIN BYPASSRLS",
        "CREATE ROLE memory_finder LOGIN",
        "CREATE ROLE memory_search",
        "CREATE ROLE memory_bound",
    )
    settings = settings_for(cluster, servers)

    asked = upgrade_as_told(cluster, settings)

    assert asked == [
        "ALTER ROLE memory_app LOGIN NOSUPERUSER NOBYPASSRLS",
        "GRANT memory_app TO keeper WITH ADMIN OPTION",
        "ALTER ROLE memory_finder NOLOGIN NOSUPERUSER NOBYPASSRLS",
        "GRANT memory_finder TO keeper WITH INHERIT TRUE, SET TRUE",
        "GRANT memory_search TO keeper WITH INHERIT TRUE, SET TRUE",
        "GRANT memory_bound TO memory_app WITH INHERIT FALSE, SET TRUE",
    ]
    assert differences(settings) == ()


@BOTH_VERSIONS
def test_pgvector_may_be_in_a_schema_of_its_own(cluster: PostgresServer, servers: Servers) -> None:
    run(
        cluster,
        "ALTER DATABASE memory OWNER TO keeper",
        "ALTER ROLE keeper CREATEROLE",
        'CREATE SCHEMA "Shared extensions"',
        'CREATE EXTENSION vector SCHEMA "Shared extensions"',
    )
    settings = settings_for(cluster, servers)

    assert upgrade_as_told(cluster, settings) == [
        'GRANT USAGE ON SCHEMA "Shared extensions" TO keeper WITH GRANT OPTION'
    ]

    assert differences(settings) == ()
    use(settings)


def test_tables_of_another_role_are_not_touched(cluster: PostgresServer, servers: Servers) -> None:
    mine = settings_for(cluster, servers)
    owners = mine.model_copy(
        update={"database": mine.database.model_copy(update={"owner_url": SecretStr(cluster.url("memory"))})}
    )
    schema.upgrade(owners)

    with pytest.raises(Misconfigured, match="the tables belong to role postgres, not to keeper"):
        schema.upgrade(mine)


def upgrade_beside(settings: Settings) -> str:
    return schema.upgrade(settings)


def test_two_databases_of_a_cluster_are_migrated_at_the_same_moment(
    cluster: PostgresServer, servers: Servers
) -> None:
    run(cluster, "ALTER ROLE keeper SUPERUSER")
    names = ("first", "second", "third")
    for name in names:
        cluster.create_database(name)
    each = [settings_for(cluster, servers, database=name) for name in names]

    with ProcessPoolExecutor(len(each), mp_context=get_context("spawn")) as pool:
        assert list(pool.map(upgrade_beside, each)) == [revision.newest()] * len(each)

    assert [differences(settings) for settings in each] == [()] * len(each)


# --- beside those who work ------------------------------------------------------------------------------------


@pytest.mark.one_shard
def test_migrate_gives_up_a_lock_that_it_does_not_get_and_changes_nothing(
    settings: Settings, database: Servers, owner: Engine
) -> None:
    with owner.begin() as connection:
        connection.execute(text("DROP POLICY tenant ON turns"))
        connection.execute(text("REVOKE SELECT ON links FROM memory_app"))
    url, app_url = database.owner_url, database.app_url
    with owner.begin() as reader:
        reader.execute(text("LOCK TABLE turns IN ACCESS SHARE MODE"))
        with pytest.raises(StoreUnavailable, match="stayed in use for 0 s and nothing was changed"):
            migrate.upgrade(migrate.Logins(url, app_url), {}, patience_seconds=0)

    left = {difference.name for difference in differences(settings)}
    assert left == {"policy turns.tenant", "right of memory_app on table links"}


@pytest.mark.one_shard
def test_migrate_waits_politely_until_a_long_transaction_has_ended(
    settings: Settings, database: Servers, owner: Engine
) -> None:
    with owner.begin() as connection:
        connection.execute(text("DROP POLICY tenant ON turns"))
    holds, may_end = threading.Event(), threading.Event()

    def read_for_long() -> None:
        with owner.begin() as reader:
            reader.execute(text("LOCK TABLE turns IN ACCESS SHARE MODE"))
            holds.set()
            assert may_end.wait(60)

    def attempts() -> int:
        """Policies are made in a transaction each time: a try that was given up has used an id."""
        with owner.connect() as connection:
            statement = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()"
            return int(connection.execute(text(statement)).scalar_one())

    with ThreadPoolExecutor(2) as pool:
        reader = pool.submit(read_for_long)
        assert holds.wait(60)
        before = attempts()
        migrator = pool.submit(schema.upgrade, settings)
        wait_until(lambda: attempts() > before or migrator.done(), "a try was given up")
        assert not migrator.done()
        may_end.set()
        reader.result()
        assert migrator.result() == revision.newest()

    assert differences(settings) == ()


# --- servers that will not do ---------------------------------------------------------------------------------


@pytest.mark.system
def test_a_server_that_is_too_old_is_refused(servers: Servers) -> None:
    with postgres_server(version="15") as server:
        server.create_database("memory")
        run(server, f"CREATE ROLE keeper LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
        with pytest.raises(StoreRefused, match=r"PostgreSQL 15\.\d+ .*is too old; .* version 16 or newer"):
            schema.upgrade(settings_for(server, servers))
