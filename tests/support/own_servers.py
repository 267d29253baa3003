"""Servers as people run them: over TCP, with passwords. For tests that connect as a deployment does.

PostgreSQL 16 or 18 comes from the embedded wheel, Valkey from its own; both listen on loopback only.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from free_ports import free_port
from redis import Redis
from redis.exceptions import RedisError

from memory_app.local.embedded import place, postgres, valkey

HOST = "127.0.0.1"
START_SECONDS = 120.0
STOP_SECONDS = 60.0
POLL_SECONDS = 0.05
PROGRAMS = {"15": "/usr/lib/postgresql/15/bin", "16": "pginstall/bin", "18": "pginstall18/bin"}
"""Folder of the programs by PostgreSQL's major version: inside the wheel, or Debian's, which lacks pgvector."""


def wait_until(condition: Callable[[], object], description: str, *, seconds: float = START_SECONDS) -> None:
    """Return once ``condition()`` is true; fail with ``description`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{description}: not within {seconds:g} s"
        time.sleep(POLL_SECONDS)


@dataclass(slots=True)
class PostgresServer:
    """A cluster whose every login needs a password (scram-sha-256). The superuser is ``postgres``."""

    folder: Path
    port: int
    version: str = "18"
    password: str = field(default_factory=lambda: secrets.token_hex(12), repr=False)
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def programs(self) -> Path:
        """The wheel's programs of this version: ``psql``, ``pg_dump`` and so on."""
        wheel = place.wheel(postgres.WHEEL)
        assert wheel is not None
        return wheel / PROGRAMS[self.version]

    def url(self, database: str = "postgres", *, user: str = "postgres", password: str | None = None) -> str:
        """Address of a database, as settings take it."""
        return f"postgresql+psycopg://{user}:{password or self.password}@{HOST}:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        """As superuser, each statement in its own transaction."""
        return psycopg.connect(
            host=HOST,
            port=self.port,
            dbname=database,
            user="postgres",
            password=self.password,
            autocommit=True,
        )

    def create_database(self, name: str) -> None:
        with self.connect() as connection:
            connection.execute(f'CREATE DATABASE "{name}"')

    def start(self, settings: Mapping[str, str] | None = None) -> None:
        """Make the cluster at the first start; return once it takes logins."""
        user = place.system_user()
        run_as = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        if not (self.folder / "PG_VERSION").exists():
            self._make_cluster(run_as)
        options = {
            "listen_addresses": HOST,
            "port": str(self.port),
            "unix_socket_directories": "",
            "fsync": "off",
            "dynamic_shared_memory_type": "posix",
            "timezone": "Europe/Berlin",  # not what the product expects: it must not depend on it
            **(settings or {}),
        }
        arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.programs / "postgres"), "-D", str(self.folder), *arguments],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **run_as,  # type: ignore[arg-type]
            )
        wait_until(self.answers, "PostgreSQL answers")

    def answers(self) -> bool:
        with suppress(psycopg.OperationalError):
            self.connect().close()
            return True
        return False

    def stop(self) -> None:
        """A fast stop: open transactions are rolled back."""
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(signal.SIGINT)
            process.wait(STOP_SECONDS)

    def _make_cluster(self, run_as: Mapping[str, object]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        password_file = self.folder.parent / f"{self.folder.name}.password"
        password_file.write_text(self.password)
        for path in (self.folder, password_file):
            place.give(path, place.system_user())
        subprocess.run(
            [
                str(self.programs / "initdb"),
                "--username=postgres",
                f"--pwfile={password_file}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                str(self.folder),
            ],
            cwd="/",
            check=True,
            capture_output=True,
            **run_as,  # type: ignore[arg-type]
        )


@dataclass(slots=True)
class ValkeyServer:
    """A Valkey with a password and an append-only file. ``options`` as on its command line."""

    folder: Path
    port: int
    options: tuple[str, ...] = ()
    password: str = field(default_factory=lambda: secrets.token_hex(12), repr=False)
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@{HOST}:{self.port}/0"

    def client(self) -> Redis:
        return Redis.from_url(self.url, protocol=2, socket_timeout=10)

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = ["appendonly yes", 'save ""', "maxmemory-policy noeviction", f"requirepass {self.password}"]
        configuration = self.folder / "valkey.conf"
        configuration.write_text("\n".join([f"bind {HOST}", f"port {self.port}", *lines, ""]))
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(valkey.program()), str(configuration), *self.options],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(self.answers, "Valkey answers")

    def answers(self) -> bool:
        with suppress(RedisError), self.client() as client:
            return bool(client.ping())
        return False

    def stop(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.terminate()
            process.wait(STOP_SECONDS)


@contextmanager
def open_folder(prefix: str = "memory-servers-") -> Iterator[Path]:
    """A temporary folder that root's Postgres, which is another user's, may pass; gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres_server(
    *, version: str = "18", settings: Mapping[str, str] | None = None
) -> Iterator[PostgresServer]:
    """A running PostgreSQL with nothing in it."""
    with open_folder() as folder:
        server = PostgresServer(folder / "postgres", free_port(), version)
        try:
            server.start(settings)
            yield server
        finally:
            server.stop()


@contextmanager
def valkey_server(*options: str) -> Iterator[ValkeyServer]:
    """A running Valkey with nothing in it."""
    with open_folder() as folder:
        server = ValkeyServer(folder / "valkey", free_port(), options)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def clean_environment() -> dict[str, str]:
    """The environment without any setting of ours."""
    ours = ("MEMORY_", "FLOWER_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}
