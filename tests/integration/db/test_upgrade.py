"""A database of the first release, with rows of every table, becomes one like a fresh one and loses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import lived
import pytest
from databases import failures, load, objects, role_defaults, settings_for
from own_servers import PostgresServer, postgres_server, wait_until
from queries import rows
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from memory_app import MemoryApp
from memory_app.db import revision
from memory_app.dispatch import finder
from memory_app.errors import NotFound
from memory_app.local.embedded import Servers
from memory_app.settings import Settings
from memory_app.tenancy import schema

FIRST = Path(__file__).with_name("revision_0001.sql")
ROLES = ("CREATE ROLE memory_app LOGIN", "CREATE ROLE memory_finder", "CREATE ROLE memory_search")

COLUMNS = """SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> 'alembic_version'
      AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1, a.attnum"""


WAITING = "SELECT mode FROM pg_locks WHERE NOT granted AND relation = 'turns'::regclass"


@dataclass(frozen=True, slots=True)
class Upgraded:
    """The database after the upgrade, and its rows before and right after it (other tests write to it)."""

    postgres: PostgresServer
    settings: Settings
    before: dict[str, list[str]]
    after: dict[str, list[str]]


def content(url: str, columns: dict[str, list[str]]) -> dict[str, list[str]]:
    """Every row as text, of the columns named, by table."""
    return {
        table: sorted(
            row[0] for row in rows(url, f"SELECT CAST(ROW({', '.join(names)}) AS text) FROM {table}")
        )
        for table, names in columns.items()
    }


@pytest.fixture(scope="module")
def upgraded(servers: Servers) -> Iterator[Upgraded]:
    with postgres_server(version="18") as postgres:
        postgres.create_database("memory")
        with postgres.connect() as administrator:
            for statement in ROLES:
                administrator.execute(statement)
        assert load(postgres, FIRST) == []
        columns: dict[str, list[str]] = {}
        for table, column in rows(postgres.url("memory"), COLUMNS):
            columns.setdefault(table, []).append(column)
        before = content(postgres.url("memory"), columns)
        settings = settings_for(postgres, servers)
        assert rows(postgres.url("memory"), "SELECT version_num FROM alembic_version") == [("0001",)]
        schema.upgrade(settings)
        after = content(postgres.url("memory"), columns)
        yield Upgraded(postgres, settings, before, after)


def test_the_first_release_had_rows_in_every_table(upgraded: Upgraded) -> None:
    assert len(upgraded.before) == 22
    assert [table for table, each in upgraded.before.items() if not each] == []


def test_no_row_is_lost_or_changed(upgraded: Upgraded) -> None:
    # A key that could write could record and erase, and still can now that each has a right of its own.
    keys = [key.replace("{read,write}", "{read,write,record,erase}") for key in upgraded.before["api_keys"]]
    assert keys != upgraded.before["api_keys"]
    assert upgraded.after == upgraded.before | {"api_keys": keys}


def test_every_object_is_as_in_a_fresh_database(upgraded: Upgraded, servers: Servers) -> None:
    upgraded.postgres.create_database("fresh")
    fresh = settings_for(upgraded.postgres, servers, database="fresh")
    schema.upgrade(fresh)

    assert objects(upgraded.settings) == objects(fresh)
    assert role_defaults(upgraded.postgres) == role_defaults(upgraded.postgres, "fresh")
    assert role_defaults(upgraded.postgres)
    assert failures(upgraded.settings) == {}


def test_the_upgraded_database_works(upgraded: Upgraded) -> None:
    with MemoryApp.connect(upgraded.settings, tenant=lived.TENANT) as memory:
        waiting = memory.context(lived.SECOND_CHAT, "Where is the office?")
        assert "Rua Augusta" in waiting.text
        finder.drain(memory.runtime)

        hits = memory.recall(lived.CHAT, lived.QUESTIONS[0]).memories
        assert any("Lisbon" in hit.text for hit in hits)
        remembered = memory.remember(lived.ADA_MIRA, "Mira has a brother called Paul.")
        assert remembered.id in [hit.id for hit in memory.recall(lived.ADA_MIRA, "Who is Paul?").memories]
        assert memory.run(memory.sleep(lived.ADA_MIRA).id).state == "queued"
        finder.drain(memory.runtime)
        memory.forget("mira")
        with pytest.raises(NotFound):
            memory.recall(lived.ADA_MIRA, lived.QUESTIONS[0])


def test_a_vacuum_in_the_way_of_the_upgrade_holds_up_nobody_else(
    upgraded: Upgraded, servers: Servers
) -> None:
    postgres = upgraded.postgres
    postgres.create_database("vacuumed")
    assert load(postgres, FIRST, database="vacuumed") == []
    url = postgres.url("vacuumed")

    with ThreadPoolExecutor(1) as pool, create_engine(url, poolclass=NullPool).connect() as vacuum:
        # The lock that VACUUM and ANALYZE take.
        vacuum.execute(text("LOCK TABLE turns IN SHARE UPDATE EXCLUSIVE MODE"))
        upgrade = pool.submit(schema.upgrade, settings_for(postgres, servers, database="vacuumed"))
        wait_until(lambda: rows(url, WAITING) != [] or upgrade.done(), "the upgrade waits for the vacuum")
        assert not upgrade.done()
        with create_engine(url, poolclass=NullPool).begin() as caller:
            caller.execute(text("LOCK TABLE turns IN ROW EXCLUSIVE MODE NOWAIT"))
        vacuum.rollback()
        assert upgrade.result() == revision.newest()
