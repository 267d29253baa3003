"""The migrated database is the one the code describes, and migrating is safe to repeat."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from uuid import uuid4

import pytest
from pydantic import SecretStr
from queries import rows
from sqlalchemy import Connection, Engine, create_engine, make_url, text
from sqlalchemy.pool import NullPool

from memory_app.db import migrate, revision
from memory_app.db.tables import metadata
from memory_app.local import embedded
from memory_app.local.embedded import Servers
from memory_app.local.servers import embedded_settings
from memory_app.settings import Database, Settings
from memory_app.tenancy import schema
from memory_app.tenancy.rows import keys

COLUMNS = """
    SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
           a.attgenerated, pg_get_expr(d.adbin, d.adrelid)
    FROM pg_attribute a
    JOIN pg_class c ON c.oid = a.attrelid AND c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relname <> 'alembic_version'
    ORDER BY 1, 2"""
CONSTRAINTS = """
    SELECT r.conrelid::regclass::text, r.conname, pg_get_constraintdef(r.oid) FROM pg_constraint r
    WHERE r.connamespace = 'public'::regnamespace AND r.conrelid::regclass::text <> 'alembic_version' ORDER BY 1, 2"""
INDEXES = """
    SELECT i.indrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM pg_index i
    JOIN pg_class c ON c.oid = i.indrelid AND c.relnamespace = 'public'::regnamespace
    WHERE c.relname <> 'alembic_version' ORDER BY 1, 2"""
STORAGE = """
    SELECT c.relname, c.reloptions::text FROM pg_class c
    WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.relname <> 'alembic_version' ORDER BY 1"""
FOREIGN_KEYS = """
    SELECT f.conrelid::regclass::text, f.conname, array_agg(a.attname::text ORDER BY a.attnum)
    FROM pg_constraint f JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = ANY(f.conkey)
    WHERE f.contype = 'f' AND f.connamespace = 'public'::regnamespace GROUP BY f.oid"""
INDEXED = """
    SELECT i.indrelid::regclass::text, coalesce(pg_get_expr(i.indpred, i.indrelid), ''),
           ARRAY(SELECT pg_get_indexdef(i.indexrelid, n, true) FROM generate_series(1, i.indnkeyatts) n)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid AND c.relnamespace = 'public'::regnamespace"""
MIGRATORS = 2


@dataclass(frozen=True, slots=True)
class Indexed:
    """An index: its columns in order, and its condition, empty for one that holds every row."""

    table: str
    condition: str
    columns: list[str]

    def serves(self, table: str, columns: list[str]) -> bool:
        """Does it begin with ``columns``, and hold every row that refers to something? A scope implies its tenant."""
        wanted = set(columns) - ({"tenant_id"} if len(columns) > 1 else set())
        first = [set(self.columns[: len(wanted)]), set(self.columns[: len(columns)])]
        return (
            self.table == table
            and (wanted == first[0] or set(columns) == first[1])
            and (not self.condition or self.condition in {f"({column} IS NOT NULL)" for column in columns})
        )


@pytest.fixture
def empty(servers: Servers, template: Servers) -> Iterator[Servers]:
    """A database in which nothing was ever made."""
    name = f"test_{uuid4().hex[:12]}"
    yield embedded.create_database(servers, name)
    embedded.drop_database(servers, name)


def revision_of(database: Servers) -> str | None:
    with create_engine(database.owner_url, poolclass=NullPool).connect() as connection:
        return revision.stored(connection)


@pytest.fixture
def modelled(empty: Servers) -> Servers:
    """A database made from the models alone."""
    engine = create_engine(empty.owner_url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("CREATE EXTENSION vector"))
        migrate.run_script(connection, "base.sql")
        metadata.create_all(connection)
    return empty


@pytest.mark.parametrize(
    "part", [COLUMNS, CONSTRAINTS, INDEXES, STORAGE], ids=["columns", "constraints", "indexes", "storage"]
)
def test_the_migrated_database_equals_the_models(database: Servers, modelled: Servers, part: str) -> None:
    migrated = rows(database.owner_url, part)
    assert migrated == rows(modelled.owner_url, part)
    assert migrated


def test_every_foreign_key_has_an_index_that_serves_it(database: Servers) -> None:
    # Without one, erasing a person reads whole tables: once for each row that goes.
    indexes = [Indexed(*row) for row in rows(database.owner_url, INDEXED)]
    unserved = [
        (table, name)
        for table, name, columns in rows(database.owner_url, FOREIGN_KEYS)
        if not any(index.serves(table, columns) for index in indexes)
    ]
    assert unserved == []


def test_a_database_knows_its_revision(database: Servers, empty: Servers) -> None:
    assert revision_of(database) == revision.newest()
    assert revision_of(empty) is None


def test_migrating_again_changes_nothing(database: Servers, tenant: int, owner: Engine) -> None:
    before = [rows(database.owner_url, part) for part in (COLUMNS, CONSTRAINTS, INDEXES)]
    assert schema.upgrade(embedded_settings(database)) == revision.newest()
    assert [rows(database.owner_url, part) for part in (COLUMNS, CONSTRAINTS, INDEXES)] == before
    with owner.connect() as connection:
        assert keys.find_tenant(connection, "acme") == tenant


def test_migrating_again_waits_for_nobody_who_reads_or_writes(database: Servers, owner: Engine) -> None:
    with owner.begin() as busy:
        for table in metadata.tables:
            busy.execute(text(f"LOCK TABLE {table} IN ROW EXCLUSIVE MODE"))
        assert schema.upgrade(embedded_settings(database)) == revision.newest()


def test_several_migrators_at_once_wait_for_each_other(empty: Servers) -> None:
    with ProcessPoolExecutor(MIGRATORS, mp_context=get_context("spawn")) as pool:
        reached = pool.map(schema.upgrade, [embedded_settings(empty)] * MIGRATORS)
        assert list(reached) == [revision.newest()] * MIGRATORS
    assert rows(empty.owner_url, "SELECT version_num FROM alembic_version") == [(revision.newest(),)]


# --- an owner who is no superuser -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlainOwner:
    """A database of its own for a role that may make roles, and its address."""

    url: str
    app_url: str


@pytest.fixture
def plain_owner(servers: Servers, template: Servers, owner: Engine) -> Iterator[PlainOwner]:
    """As at a hosting service: the extension is there, the owner is no superuser. Its roles exist already."""
    name, role = f"test_{uuid4().hex[:12]}", f"owner_{uuid4().hex[:12]}"
    made = embedded.create_database(servers, name)
    with create_engine(made.owner_url, poolclass=NullPool).begin() as connection:
        _hand_over(connection, name, role)
    url = make_url(made.owner_url).set(username=role, password=role)
    yield PlainOwner(url.render_as_string(hide_password=False), made.app_url)
    embedded.drop_database(servers, name)
    with owner.begin() as connection:
        connection.execute(text(f"DROP ROLE {role}"))


def _hand_over(connection: Connection, database: str, role: str) -> None:
    connection.execute(text("CREATE EXTENSION vector"))
    connection.execute(text(f"CREATE ROLE {role} LOGIN CREATEROLE PASSWORD '{role}'"))
    # What the owner would hold had it made the roles itself.
    connection.execute(text(f"GRANT memory_app, memory_finder, memory_search TO {role} WITH ADMIN OPTION"))
    connection.execute(text(f"ALTER DATABASE {database} OWNER TO {role}"))


def test_an_owner_who_is_no_superuser_can_migrate_and_make_keys(plain_owner: PlainOwner) -> None:
    schema.upgrade(
        Settings(
            _env_file=None,
            database=Database(url=SecretStr(plain_owner.app_url), owner_url=SecretStr(plain_owner.url)),
        )
    )
    with create_engine(plain_owner.url, poolclass=NullPool).begin() as connection:
        tenant_id = keys.ensure_tenant(connection, "acme")
        _, key = keys.create(connection, "acme")
        assert [row.tenant for row in keys.listed(connection, None)] == ["acme"]
    with create_engine(plain_owner.app_url, poolclass=NullPool).begin() as connection:
        caller = keys.authenticate(connection, key)
    assert caller is not None
    assert caller.tenant_id == tenant_id
