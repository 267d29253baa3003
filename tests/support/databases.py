"""Databases of tests that migrate, dump and restore: their settings, what the catalog says of them, and psql."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any
from uuid import uuid4

from own_servers import PostgresServer
from pydantic import SecretStr
from queries import rows
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from memory_app import MemoryApp, Scope
from memory_app.db import catalog
from memory_app.local.embedded import Servers
from memory_app.ops.doctor import State, diagnose
from memory_app.settings import Database, Embedding, Settings
from memory_app.settings import Redis as RedisSection

APP_PASSWORD = "app-77aa"
DIMENSIONS = 16
WORKING = frozenset({"beat", "finder", "due work"})
"""Checks of doctor that want parts to run."""


def settings_for(
    postgres: PostgresServer,
    servers: Servers,
    *,
    database: str = "memory",
    owner: str = "postgres",
    owner_password: str | None = None,
) -> Settings:
    """Settings of an application on that database; Redis is that of the test run, with a prefix that has no keys."""
    return Settings(
        _env_file=None,
        database=Database(
            url=SecretStr(postgres.url(database, user="memory_app", password=APP_PASSWORD)),
            owner_url=SecretStr(postgres.url(database, user=owner, password=owner_password)),
        ),
        redis=RedisSection(url=SecretStr(servers.redis_url), prefix=f"test-{uuid4().hex[:12]}:"),
        embedding=Embedding(provider="hash", dimensions=DIMENSIONS),
    )


def libpq_url(url: str) -> str:
    """As PostgreSQL's own programs take it."""
    return url.replace("postgresql+psycopg://", "postgresql://")


def run_program(postgres: PostgresServer, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``psql``, ``pg_dump`` and so on, of the version of that server."""
    return subprocess.run(
        [str(postgres.programs / name), *arguments],
        env={"PATH": os.defpath, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )


def load(postgres: PostgresServer, file: Path, *, database: str = "memory") -> list[str]:
    """Let psql run a file, whatever fails; the errors."""
    url = libpq_url(postgres.url(database))
    done = run_program(postgres, "psql", "--quiet", "--no-psqlrc", "--file", str(file), url)
    return [line for line in done.stderr.splitlines() if "ERROR:" in line]


def objects(settings: Settings) -> dict[str, str]:
    """What the catalog says, to the application."""
    url = settings.database.url.get_secret_value()
    with create_engine(url, poolclass=NullPool).begin() as connection:
        return catalog.objects(connection)


def role_defaults(postgres: PostgresServer, database: str = "memory") -> list[tuple[Any, ...]]:
    """How sessions of each role behave in a database."""
    statement = """SELECT r.rolname, unnest(s.setconfig) FROM pg_db_role_setting s
        JOIN pg_database d ON d.oid = s.setdatabase JOIN pg_roles r ON r.oid = s.setrole
        WHERE d.datname = current_database() ORDER BY 1, 2"""
    return rows(postgres.url(database), statement)


def failures(settings: Settings) -> dict[str, str]:
    """What doctor finds wrong, but for parts that are away and the work that waits: none runs here."""
    return {
        check.name: check.found
        for check in diagnose(settings)
        if check.state is State.FAIL and check.name not in WORKING and not check.name.startswith("queue ")
    }


def answers(
    memory: MemoryApp, scope: Scope, questions: tuple[str, ...]
) -> list[list[tuple[str, str, float]]]:
    """What is recalled: id, text and score of each hit."""
    return [
        [(str(hit.id), hit.text, hit.score) for hit in memory.recall(scope, question).memories]
        for question in questions
    ]
