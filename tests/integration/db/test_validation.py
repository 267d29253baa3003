"""Constraints that a revision added without looking at the rows are validated by an owner for whom policies hold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from databases import settings_for
from own_servers import PostgresServer, postgres_server
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool

from memory_app.db import validation
from memory_app.errors import Conflict
from memory_app.local.embedded import Servers
from memory_app.settings import Settings
from memory_app.tenancy import schema

OWNER, PASSWORD = "keeper", "owner-5f1c"

ADD_UNSEEN = """ALTER TABLE {0}.scopes DROP CONSTRAINT scopes_tenant_id_user_fkey;
    ALTER TABLE {0}.scopes ADD CONSTRAINT scopes_tenant_id_user_fkey FOREIGN KEY (tenant_id, user_id)
    REFERENCES {0}.users (tenant_id, id) ON DELETE CASCADE NOT VALID"""
IS_VALID = """SELECT convalidated FROM pg_constraint
    WHERE conname = 'scopes_tenant_id_user_fkey' AND conrelid = '{0}.scopes'::regclass"""
IS_FORCED = "SELECT relforcerowsecurity FROM pg_class WHERE oid = '{0}.scopes'::regclass"
BAD_ROWS = """ALTER TABLE {0}.scopes DROP CONSTRAINT scopes_tenant_id_user_fkey;
    INSERT INTO public.tenants (name) VALUES ('first'), ('second');
    INSERT INTO {0}.tenants OVERRIDING SYSTEM VALUE SELECT * FROM public.tenants ON CONFLICT DO NOTHING;
    INSERT INTO {0}.agents (tenant_id, name) SELECT min(id), 'ada' FROM public.tenants;
    INSERT INTO {0}.users (tenant_id, name) SELECT max(id), 'mira' FROM public.tenants;
    INSERT INTO {0}.scopes (tenant_id, agent_id, user_id)
    SELECT a.tenant_id, a.id, u.id FROM {0}.agents a, {0}.users u;
    ALTER TABLE {0}.scopes ADD CONSTRAINT scopes_tenant_id_user_fkey FOREIGN KEY (tenant_id, user_id)
    REFERENCES {0}.users (tenant_id, id) ON DELETE CASCADE NOT VALID"""


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    with postgres_server(version="18") as server:
        with server.connect() as administrator:
            administrator.execute(f"CREATE ROLE {OWNER} LOGIN CREATEROLE PASSWORD '{PASSWORD}'")
            administrator.execute(f"CREATE DATABASE memory OWNER {OWNER}")
        with server.connect("memory") as administrator:
            administrator.execute("CREATE EXTENSION vector")
        yield server


@pytest.fixture
def migrated(postgres: PostgresServer, servers: Servers) -> Settings:
    """A home shard and another one, of an owner who is no superuser."""
    settings = settings_for(postgres, servers, owner=OWNER, owner_password=PASSWORD)
    schema.upgrade(settings)
    schema.add_shards(settings, 1)
    return settings


BOTH_SHARDS = pytest.mark.parametrize("shard", ["public", "shard_0001"])


def value(postgres: PostgresServer, statement: str, shard: str) -> object:
    with postgres.connect("memory") as administrator:
        row = administrator.execute(statement.format(shard).encode()).fetchone()
    assert row is not None
    return row[0]


def run(postgres: PostgresServer, statement: str, shard: str) -> None:
    with postgres.connect("memory") as administrator:
        administrator.execute(statement.format(shard).encode())


@BOTH_SHARDS
def test_rows_are_compared_beside_a_writer(
    postgres: PostgresServer, migrated: Settings, shard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(postgres, ADD_UNSEEN, shard)
    seen: list[tuple[str, object]] = []

    def validate_beside_writer(connection: Connection, constraint: validation.Pending) -> None:
        with create_engine(postgres.url("memory"), poolclass=NullPool).begin() as writer:
            writer.execute(text(f"LOCK TABLE {shard}.scopes, {shard}.users IN ROW EXCLUSIVE MODE"))
            validate(connection, constraint)
        seen.append((constraint.name, value(postgres, IS_FORCED, shard)))

    validate = validation.validate
    monkeypatch.setattr(validation, "validate", validate_beside_writer)
    schema.upgrade(migrated)
    assert seen == [("scopes_tenant_id_user_fkey", False)]
    assert value(postgres, IS_VALID, shard)
    assert value(postgres, IS_FORCED, shard)
    assert schema.differences(migrated) == ()


@BOTH_SHARDS
def test_a_row_that_breaks_the_constraint_is_seen(
    postgres: PostgresServer, migrated: Settings, shard: str
) -> None:
    run(postgres, BAD_ROWS, shard)
    for _ in range(2):
        with pytest.raises(Conflict, match=rf"{shard}.scopes has rows that break scopes_tenant_id_user_fkey"):
            schema.upgrade(migrated)
    # Doctor says so, too: the constraint, and that row-level security does not hold for the owner yet.
    assert {difference.kind for _, difference in schema.differences(migrated)} == {"constraint", "table"}

    run(postgres, "DELETE FROM {0}.scopes", shard)
    schema.upgrade(migrated)
    assert schema.differences(migrated) == ()
    assert value(postgres, IS_FORCED, shard)
