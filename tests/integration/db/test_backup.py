"""A dump restored into an empty cluster, and `memory migrate`: the same memory, kept apart and protected as before."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import lived
import pytest
from databases import (
    answers,
    failures,
    libpq_url,
    load,
    objects,
    role_defaults,
    rows,
    run_program,
    settings_for,
)
from documentation import block_run_by, command_lines
from own_servers import PostgresServer, clean_environment, open_folder, postgres_server
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from memory_app import MemoryApp
from memory_app.db.tables import metadata
from memory_app.dispatch import finder
from memory_app.errors import NotFound, StoreUnavailable
from memory_app.local.embedded import Servers
from memory_app.settings import Settings
from memory_app.tenancy import schema
from memory_app.tenancy.rows import keys

ROOT = Path(__file__).parents[3]

VERSIONS = (("16", "16"), ("16", "18"), ("18", "18"))
"""Of the server that is dumped and the one that is restored to."""

DURATION = re.compile(r"less than a minute|\d+ minutes?")


@dataclass(frozen=True, slots=True)
class Source:
    """A filled database, and what it answers."""

    postgres: PostgresServer
    settings: Settings
    answers: list[list[tuple[str, str, float]]]
    window: str
    counts: dict[str, int]


def count(postgres: PostgresServer) -> dict[str, int]:
    with create_engine(postgres.url("memory"), poolclass=NullPool).connect() as connection:
        return lived.counts(connection, list(metadata.tables))


@contextmanager
def filled(version: str, servers: Servers) -> Iterator[Source]:
    with postgres_server(version=version) as postgres:
        postgres.create_database("memory")
        settings = settings_for(postgres, servers)
        schema.upgrade(settings)
        owner = create_engine(postgres.url("memory"), poolclass=NullPool)
        with owner.begin() as connection:
            keys.ensure_tenant(connection, lived.TENANT)
        with MemoryApp.connect(settings, tenant=lived.TENANT) as memory:
            lived.live(memory, owner)
            yield Source(
                postgres,
                settings,
                answers(memory, lived.CHAT, lived.QUESTIONS),
                memory.context(lived.SECOND_CHAT).text,
                count(postgres),
            )


@pytest.fixture(scope="module")
def on_16(servers: Servers) -> Iterator[Source]:
    with filled("16", servers) as source:
        yield source


@pytest.fixture(scope="module")
def on_18(servers: Servers) -> Iterator[Source]:
    with filled("18", servers) as source:
        yield source


def without_durations(window: str) -> str:
    """The window but for how long ago things were, which goes on while a backup is made and restored."""
    return DURATION.sub("a while", window)


def check_restored(source: Source, target: PostgresServer, settings: Settings) -> None:
    """All that must be as before."""
    assert failures(settings) == {}
    assert objects(settings) == objects(source.settings)
    assert role_defaults(target) == role_defaults(source.postgres)
    assert count(target) == source.counts
    with MemoryApp.connect(settings, tenant=lived.TENANT) as memory:
        # Redis has nothing under this prefix, as after a flush: the window's turns come from the database.
        assert without_durations(memory.context(lived.SECOND_CHAT).text) == without_durations(source.window)
        assert "Rua Augusta" in source.window
        for before, after in zip(source.answers, answers(memory, lived.CHAT, lived.QUESTIONS), strict=True):
            assert [hit[:2] for hit in after] == [hit[:2] for hit in before]
            assert before
            # Recency moved on by the seconds that the restore took.
            assert [hit[2] for hit in after] == pytest.approx([hit[2] for hit in before], abs=1e-3)
        check_isolation(settings, memory.tenant_id)
        check_writes(memory)


def check_isolation(settings: Settings, tenant_id: int) -> None:
    url = settings.database.url.get_secret_value()
    visible = "SELECT count(*) FROM {}"
    for table in metadata.tables:
        assert rows(url, visible.format(table)) == [(0,)], table
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"SET LOCAL memory.tenant = '{tenant_id}'")
        tenants = connection.exec_driver_sql("SELECT DISTINCT tenant_id FROM memories").scalars().all()
    assert tenants == [tenant_id]


def check_writes(memory: MemoryApp) -> None:
    finder.drain(memory.runtime)
    made = memory.remember(lived.ADA_MIRA, "Mira has a brother called Paul.")
    assert made.id in [hit.id for hit in memory.recall(lived.ADA_MIRA, "Who is Paul?").memories]
    memory.sleep(lived.ADA_MIRA)
    finder.drain(memory.runtime)
    memory.forget("mira")
    with pytest.raises(NotFound):
        memory.recall(lived.ADA_MIRA, "Who is Paul?")


@pytest.mark.parametrize(("old", "new"), VERSIONS)
def test_a_dump_restored_into_an_empty_cluster_is_mended_by_migrate(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path, old: str, new: str
) -> None:
    source: Source = request.getfixturevalue(f"on_{old}")
    file = tmp_path / "memory.sql"
    url = libpq_url(source.postgres.url("memory"))
    dumped = run_program(source.postgres, "pg_dump", "--file", str(file), url)
    assert dumped.returncode == 0, dumped.stderr
    with postgres_server(version=new) as target:
        target.create_database("memory")
        errors = load(target, file)
        settings = settings_for(target, servers)
        # Everything that names one of our roles fails; nothing else does.
        assert len(errors) > 100
        assert [line for line in errors if not re.search(r'role "memory_\w+" does not exist', line)] == []
        with pytest.raises(StoreUnavailable), MemoryApp.connect(settings, tenant=lived.TENANT):
            pass

        schema.upgrade(settings)

        check_restored(source, target, settings)


def test_a_restore_by_an_ordinary_owner_compares_references(
    on_18: Source, servers: Servers, tmp_path: Path
) -> None:
    """Under row-level security PostgreSQL would compare what the owner sees, which is nothing, and find it right."""
    file = tmp_path / "memory.dump"
    dumped = run_program(
        on_18.postgres,
        "pg_dump",
        "--format=custom",
        "--file",
        str(file),
        libpq_url(on_18.postgres.url("memory")),
    )
    assert dumped.returncode == 0, dumped.stderr
    with postgres_server(version="18") as target:
        target.create_database("memory")
        with target.connect("memory") as administrator:
            administrator.execute("CREATE ROLE keeper LOGIN CREATEROLE PASSWORD 'k'")
            administrator.execute("ALTER DATABASE memory OWNER TO keeper")
            administrator.execute("CREATE EXTENSION vector")
            for role in ("memory_app LOGIN", "memory_bound", "memory_finder", "memory_search"):
                administrator.execute(f"CREATE ROLE {role}")
        url = libpq_url(target.url("memory", user="keeper", password="k"))

        def restore(*sections: str) -> str:
            options = [f"--section={section}" for section in sections]
            return run_program(
                target, "pg_restore", "--no-owner", "--no-comments", *options, "--dbname", url, str(file)
            ).stderr

        assert "violates" not in restore("pre-data", "data")
        with target.connect("memory") as administrator:
            administrator.execute("DELETE FROM entities")
        refused = {line for line in restore("post-data").splitlines() if "violates foreign key" in line}
        assert len(refused) == 1
        assert '"mentions"' in refused.pop()
        with target.connect("memory") as administrator:
            protected = administrator.execute(
                "SELECT bool_and(relrowsecurity AND relforcerowsecurity) FROM pg_class WHERE relname = 'mentions'"
            ).fetchone()
        assert protected == (True,)


def test_the_commands_of_the_documentation_restore_without_an_error(
    on_18: Source, servers: Servers, tmp_path: Path
) -> None:
    with postgres_server(version="18") as target, open_folder() as folder:
        settings = settings_for(target, servers)
        owner_url = settings.database.owner_url
        assert owner_url is not None
        command = folder / "memory"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m memory_app "$@"\n')
        command.chmod(0o755)
        environment = {
            **clean_environment(),
            "PATH": f"{folder}:{target.programs}:/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "OLD": libpq_url(on_18.postgres.url("memory")),
            "SERVER": libpq_url(target.url("postgres")),
            "NEW": libpq_url(target.url("memory")),
            "MEMORY_DATABASE__URL": settings.database.url.get_secret_value(),
            "MEMORY_DATABASE__OWNER_URL": owner_url.get_secret_value(),
        }
        for line in documented():
            done = subprocess.run(
                ["/bin/sh", "-c", line],
                env=environment,
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{line}: {done.stderr}"

        check_restored(on_18, target, settings)


def test_a_dump_is_restored_for_an_owner_who_is_no_superuser(
    on_18: Source, servers: Servers, tmp_path: Path
) -> None:
    file = tmp_path / "memory.dump"
    url = libpq_url(on_18.postgres.url("memory"))
    assert run_program(on_18.postgres, "pg_dump", "-Fc", "--file", str(file), url).returncode == 0
    with postgres_server(version="18") as target:
        with target.connect() as administrator:
            administrator.execute("CREATE ROLE keeper LOGIN CREATEROLE PASSWORD 'keeper-4'")
            administrator.execute("CREATE DATABASE memory OWNER keeper")
        with target.connect("memory") as administrator:
            administrator.execute("CREATE EXTENSION vector")
        options = (
            "--no-owner",
            "--role=keeper",
            "--no-comments",
            "--dbname",
            libpq_url(target.url("memory")),
        )
        restored = run_program(target, "pg_restore", *options, str(file))
        errors = [line for line in restored.stderr.splitlines() if "ERROR:" in line]
        assert [line for line in errors if not re.search(r'role "memory_\w+" does not exist', line)] == []
        settings = settings_for(target, servers, owner="keeper", owner_password="keeper-4")

        schema.upgrade(settings)

        check_restored(on_18, target, settings)


def documented() -> list[str]:
    """The lines of the block in docs/backup.md, without comments."""
    lines = command_lines(block_run_by("docs/backup.md", __file__))
    assert len(lines) >= 4
    return lines


def test_a_role_under_row_level_security_gets_no_dump_instead_of_a_part(on_18: Source) -> None:
    with on_18.postgres.connect() as administrator:
        administrator.execute("CREATE ROLE clerk LOGIN PASSWORD 'clerk-11' IN ROLE pg_read_all_data")
    url = libpq_url(on_18.postgres.url("memory", user="clerk", password="clerk-11"))

    refused = run_program(on_18.postgres, "pg_dump", url)

    assert refused.returncode != 0
    assert "row-level security" in refused.stderr
    with on_18.postgres.connect() as administrator:
        administrator.execute("ALTER ROLE clerk BYPASSRLS")
    dumped = run_program(on_18.postgres, "pg_dump", url)
    assert (dumped.returncode, "Bruno" in dumped.stdout) == (0, True)
