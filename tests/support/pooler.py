"""Debian's PgBouncer before a PostgreSQL of the test, as hosting services have one. For tests marked ``system``.

It asks for passwords as the server does, and speaks TLS when it gets a certificate.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
from free_ports import free_port
from own_servers import HOST, STOP_SECONDS, open_folder, wait_until
from redis_servers import Authority
from sqlalchemy import make_url

from memory_app.local.embedded import place

PROGRAM = "/usr/sbin/pgbouncer"


@dataclass(slots=True)
class PgBouncer:
    """A PgBouncer. ``server_url`` is an address of the PostgreSQL behind it; ``passwords`` by role."""

    folder: Path
    port: int
    server_url: str = field(repr=False)
    passwords: Mapping[str, str] = field(repr=False)
    mode: str = "transaction"
    pool_size: int = 20
    authority: Authority | None = None
    """Who signs its certificate; without one it speaks no TLS."""
    lines: tuple[str, ...] = ()
    """Further lines of its configuration."""
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def url(self, direct: str, *, host: str = HOST) -> str:
        """The same login and database as the address ``direct``, through this pooler."""
        own = make_url(direct).set(host=host, port=self.port, query={})
        return own.render_as_string(hide_password=False)

    def start(self) -> None:
        """Return once it takes logins."""
        user = place.system_user()  # PgBouncer refuses to be root, as PostgreSQL does
        run_as = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        for path in (self.folder, *self._write_files()):
            place.give(path, user)
        with (self.folder / "pgbouncer.log").open("ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, str(self.folder / "pgbouncer.ini")],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **run_as,  # type: ignore[arg-type]
            )
        wait_until(self.answers, "PgBouncer answers")

    def answers(self) -> bool:
        assert self.process is not None and self.process.poll() is None, self.log()
        with suppress(psycopg.OperationalError):
            self.console().close()
            return True
        return False

    def console(self) -> psycopg.Connection[tuple[object, ...]]:
        """Its own commands, such as ``SHOW POOLS`` and ``RECONNECT``."""
        role, password = next(iter(self.passwords.items()))
        return psycopg.connect(
            host=HOST,
            port=self.port,
            dbname="pgbouncer",
            user=role,
            password=password,
            autocommit=True,
            cursor_factory=psycopg.ClientCursor,  # it knows only the simple protocol
        )

    def log(self) -> str:
        return (self.folder / "pgbouncer.log").read_text(errors="replace")

    def stop(self) -> None:
        """At once, as a crash would."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait(STOP_SECONDS)

    def restart(self) -> None:
        self.stop()
        self.start()

    def _write_files(self) -> list[Path]:
        users = self.folder / "users.txt"
        users.write_text("".join(f'"{role}" "{password}"\n' for role, password in self.passwords.items()))
        configuration = self.folder / "pgbouncer.ini"
        configuration.write_text("\n".join(self._lines(users)) + "\n")
        return [users, configuration]

    def _lines(self, users: Path) -> list[str]:
        lines = [
            "[databases]",
            f"* = {_server_of(self.server_url)}",
            "[pgbouncer]",
            f"listen_addr = {HOST}",
            f"listen_port = {self.port}",
            "unix_socket_dir =",
            "auth_type = scram-sha-256",
            f"auth_file = {users}",
            f"admin_users = {', '.join(self.passwords)}",
            f"pool_mode = {self.mode}",
            f"default_pool_size = {self.pool_size}",
            "server_login_retry = 1",
            *self.lines,
        ]
        if self.authority is None:
            return lines
        certificate, key = self.authority.certify("pgbouncer")
        copies = [self.folder / path.name for path in (certificate, key)]
        for source, copy in zip((certificate, key), copies, strict=True):
            copy.write_bytes(source.read_bytes())
            place.give(copy, place.system_user())
        return [
            *lines,
            "client_tls_sslmode = require",
            f"client_tls_cert_file = {copies[0]}",
            f"client_tls_key_file = {copies[1]}",
        ]


def _server_of(url: str) -> str:
    """Host and port as PgBouncer writes them; the host may be the folder of a socket."""
    parts = urlsplit(url)
    host = parse_qs(parts.query).get("host", [parts.hostname or HOST])[0]
    return f"host={host} port={parts.port or 5432}"


@contextmanager
def pgbouncer(
    *urls: str,
    mode: str = "transaction",
    pool_size: int = 20,
    authority: Authority | None = None,
    lines: Sequence[str] = (),
) -> Iterator[PgBouncer]:
    """A PgBouncer before the server of ``urls``, each of which names a role and its password."""
    logins = {str(make_url(url).username): str(make_url(url).password or "") for url in urls}
    with open_folder("memory-pooler-") as folder:
        pooler = PgBouncer(folder, free_port(), urls[0], logins, mode, pool_size, authority, tuple(lines))
        try:
            pooler.start()
            yield pooler
        finally:
            pooler.stop()
