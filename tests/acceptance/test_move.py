"""From the embedded servers to servers of one's own: everything is there afterwards, or nothing and why not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from documentation import block_run_by, command_lines
from own_servers import (
    PostgresServer,
    ValkeyServer,
    clean_environment,
    open_folder,
    postgres_server,
    valkey_server,
)
from pydantic import SecretStr
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from memory_app.dispatch import finder
from memory_app.errors import Conflict
from memory_app.forget.forget import forget_user
from memory_app.local import embedded
from memory_app.local.embedded import lifetime
from memory_app.local.servers import embedded_settings
from memory_app.memories.remember import remember
from memory_app.ops.doctor import diagnose
from memory_app.recall.context import ContextRequest, context
from memory_app.recall.recall import RecallQuery, recall
from memory_app.records.records import Mention, NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import build
from memory_app.settings import Database, Embedding, Settings
from memory_app.settings import Redis as RedisSection
from memory_app.tenancy import schema
from memory_app.tenancy.rows import keys
from memory_app.transfer.move import move
from memory_app.transfer.rows import copy
from memory_app.turns.record import record

OWNER_PASSWORD, APP_PASSWORD = "owner-secret", "app-secret"
BOB, CHAT = Scope("ada", "bob"), Scope("ada", "bob", "chat")
QUESTIONS = ("Where does Bob live?", "With whom does Bob go sailing?", "What is Rex?")
HASH = Embedding(provider="hash", dimensions=256)


@dataclass(frozen=True, slots=True)
class Target:
    """Servers that ask for passwords. The owner of the database is no superuser."""

    postgres: PostgresServer
    valkey: ValkeyServer
    settings: Settings


@pytest.fixture(params=["18", "16"])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    with postgres_server(version=request.param) as postgres, valkey_server() as valkey:
        with postgres.connect() as connection:
            connection.execute(f"CREATE ROLE keeper LOGIN CREATEROLE PASSWORD '{OWNER_PASSWORD}'")
            connection.execute("CREATE DATABASE memory OWNER keeper")
        with postgres.connect("memory") as connection:
            connection.execute("CREATE EXTENSION vector")
        database = Database(
            url=SecretStr(postgres.url("memory", user="memory_app", password=APP_PASSWORD)),
            owner_url=SecretStr(postgres.url("memory", user="keeper", password=OWNER_PASSWORD)),
        )
        redis = RedisSection(url=SecretStr(valkey.url))
        yield Target(
            postgres, valkey, Settings(_env_file=None, database=database, redis=redis, embedding=HASH)
        )


@pytest.fixture
def folder() -> Iterator[Path]:
    """A data folder in which `memory up` has worked, and whose servers are stopped."""
    with open_folder("memory-move-") as parent:
        path = parent / ".memory"
        with embedded.running(path, durable=False) as servers:
            settings = embedded_settings(servers).model_copy(update={"embedding": HASH})
            schema.upgrade(settings)
            fill(settings)
        yield path
        embedded.remove(path)


def fill(settings: Settings) -> None:
    """Two tenants, turns with vectors, memories, an erasure, a key, counters that have moved on."""
    owner_url = settings.database.owner_url
    assert owner_url is not None
    engine = create_engine(owner_url.get_secret_value(), poolclass=NullPool)
    with engine.begin() as connection:
        tenant = keys.ensure_tenant(connection, "acme")
        other = keys.ensure_tenant(connection, "globex")
        keys.create(connection, "acme", rights=keys.RIGHTS)
    with closing(build(settings)) as runtime:
        turns = [
            NewTurn(Role.USER, "I live in Paris these days.", metadata={"tab": "a\tb\\c\nd"}),
            NewTurn(Role.USER, "I have a dog named Rex. 🐕\u200d"),
        ]
        record(runtime, tenant, CHAT, turns)
        record(runtime, other, CHAT, [NewTurn(Role.USER, "I keep bees.")])
        finder.drain(runtime)
        sailing = Statement(
            "fact", "Bob goes sailing on the lake with his cousin.", mentions=(Mention("concept", "Sailing"),)
        )
        remember(runtime, tenant, BOB, statement=sailing)
        remember(runtime, tenant, Scope("ada", "eve"), statement=Statement("fact", "Eve keeps a tarantula."))
        forget_user(runtime, tenant, "eve")


def answers(settings: Settings) -> list[Any]:
    """What Bob's questions find, as people see it."""
    with closing(build(settings)) as runtime:
        with create_engine(owner_of(settings), poolclass=NullPool).connect() as connection:
            tenant = keys.find_tenant(connection, "acme")
        assert tenant is not None
        hits = [recall(runtime, tenant, BOB, query=RecallQuery(question)).memories for question in QUESTIONS]
        window = context(runtime, tenant, BOB, request=ContextRequest("Where does Bob live?", session="chat"))
        return [[(hit.id, hit.text, f"{hit.score:.4f}") for hit in each] for each in hits] + [window.ids]


def owner_of(settings: Settings) -> str:
    assert settings.database.owner_url is not None
    return settings.database.owner_url.get_secret_value()


def counts(settings: Settings, *, superuser: str | None = None) -> dict[str, int]:
    """Rows by table, as somebody sees them whom no policy holds back."""
    with create_engine(superuser or owner_of(settings), poolclass=NullPool).connect() as connection:
        return {
            table: connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()
            for table in copy.TABLES
        }


def environment_of(settings: Settings) -> dict[str, str]:
    return clean_environment() | {
        "MEMORY_DATABASE__URL": settings.database.url.get_secret_value(),
        "MEMORY_DATABASE__OWNER_URL": owner_of(settings),
        "MEMORY_REDIS__URL": settings.redis.url.get_secret_value(),
        "MEMORY_EMBEDDING__PROVIDER": "hash",
        "MEMORY_EMBEDDING__DIMENSIONS": "256",
    }


def run(*arguments: str, cwd: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "memory_app", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def run_move(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return run("move", "--data", str(folder), cwd=folder.parent, environment=environment)


@pytest.mark.timeout(600)
def test_a_data_folder_is_moved_by_one_command(folder: Path, target: Target) -> None:
    with embedded.running(folder, durable=False) as servers:
        source = embedded_settings(servers).model_copy(update={"embedding": HASH})
        before, rows = answers(source), counts(source)
    environment = environment_of(target.settings)

    commands = [
        line
        for line in command_lines(block_run_by("docs/backup.md", __file__))
        if not line.startswith("export ")
    ]
    assert commands == ["memory stop --data .memory", "memory move --data .memory"]
    stopped = run("stop", "--data", ".memory", cwd=folder.parent, environment=environment)
    assert stopped.returncode == 0, stopped.stderr
    done = run("move", "--data", ".memory", "--json", cwd=folder.parent, environment=environment)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == rows
    superuser = target.postgres.url("memory")
    assert counts(target.settings, superuser=superuser) == rows
    assert rows["turns"] == 3
    assert embedded.find(folder) is None, "its servers are stopped again"
    assert answers(target.settings) == before
    checks = {check.name: check.state for check in diagnose(target.settings)}
    assert {checks[name] for name in ("postgres", "schema", "role", "isolation", "redis")} == {"ok"}
    # New rows go on counting where the source was, and the triggers work again.
    with closing(build(target.settings)) as runtime:
        with create_engine(superuser, poolclass=NullPool).connect() as connection:
            tenant = keys.find_tenant(connection, "acme")
        assert tenant is not None
        record(runtime, tenant, Scope("zoe", "kim", "chat"), [NewTurn(Role.USER, "I play chess.")])
        finder.drain(runtime)
        assert recall(runtime, tenant, Scope("zoe", "kim"), query=RecallQuery("chess")).memories

    again = run_move(folder, environment)
    assert (again.returncode, again.stderr.strip().count("memory: ")) == (1, 1)
    assert "the target is not empty" in again.stderr
    assert "Traceback" not in again.stderr


@pytest.mark.parametrize("target", ["18"], indirect=True)
@pytest.mark.timeout(600)
def test_a_move_that_fails_leaves_the_target_empty_and_says_why(folder: Path, target: Target) -> None:
    schema.upgrade(target.settings)
    superuser = target.postgres.url("memory")
    with embedded.running(folder, durable=False) as servers:
        source = embedded_settings(servers)
        with target.postgres.connect("memory") as connection:
            connection.execute("ALTER TABLE turns ADD CONSTRAINT no_bees CHECK (text NOT LIKE '%bees%')")
        with pytest.raises(Conflict, match="refuses a row of turns \\(no_bees\\)"):
            move(source, target.settings, say=lambda _: None)
        assert set(counts(target.settings, superuser=superuser).values()) == {0}

        with target.postgres.connect("memory") as connection:
            connection.execute("ALTER TABLE turns DROP CONSTRAINT no_bees")
        # Somebody still writes to the source.
        with create_engine(source.database.url.get_secret_value(), poolclass=NullPool).connect() as writer:
            writer.execute(text("LOCK TABLE turns IN ROW EXCLUSIVE MODE"))
            with pytest.raises(Conflict, match="somebody works in the source"):
                move(source, target.settings, say=lambda _: None)
        assert set(counts(target.settings, superuser=superuser).values()) == {0}

        assert move(source, target.settings, say=lambda _: None).rows["turns"] == 3


def test_what_cannot_be_moved_is_said_in_one_line(tmp_path: Path) -> None:
    environment = clean_environment()
    nothing_named = run_move(tmp_path, environment)
    assert "MEMORY_DATABASE__URL is not set" in nothing_named.stderr

    environment |= {
        "MEMORY_DATABASE__URL": "postgresql+psycopg://memory_app:x@127.0.0.1:1/memory",
        "MEMORY_DATABASE__OWNER_URL": "postgresql+psycopg://keeper:x@127.0.0.1:1/memory",
        "MEMORY_REDIS__URL": "redis://127.0.0.1:1/0",
    }
    no_source = run_move(tmp_path, environment)
    assert "holds no embedded database" in no_source.stderr

    (tmp_path / embedded.START_LOCK).touch()
    (tmp_path / "up.pid").write_text("4711")
    (tmp_path / "up.lock").touch()
    with lifetime.claimed(tmp_path / "up.lock") as descriptor:
        assert descriptor is not None
        in_use = run_move(tmp_path, environment)
    assert "`memory up` (process 4711) works in" in in_use.stderr
    for done in (nothing_named, no_source, in_use):
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
