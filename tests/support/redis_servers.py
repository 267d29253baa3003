"""Debian's redis-server as people run it: TLS with a CA of the test, one user for each part, Sentinel, a cluster.

The Valkey of the wheel is built without TLS. For tests with the marker ``system``.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from free_ports import free_port
from own_servers import HOST, STOP_SECONDS, open_folder, wait_until
from redis import Redis
from redis.exceptions import RedisError

PROGRAM = "/usr/bin/redis-server"
USERS = Path(__file__).parents[2] / "deploy/redis/users.acl"
FILL = USERS.with_name("fill-users.sh")
LOOPBACK = "DNS:localhost,IP:127.0.0.1"
"""Names in a certificate, as openssl takes them."""

PARTS = ("api", "worker", "beat", "finder", "flower", "doctor")


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA of one test."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "ca.pem"

    def certify(self, name: str, *, hosts: str = LOOPBACK, days: int = 2) -> tuple[Path, Path]:
        """Certificate and key of a server or a client."""
        key, request, certificate = (self.folder / f"{name}.{suffix}" for suffix in ("key", "csr", "pem"))
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={hosts}\nauthorityKeyIdentifier=keyid\n")
        openssl("req", *NEW_KEY, "-keyout", str(key), "-out", str(request), "-subj", f"/CN={name}")
        openssl(
            *("x509", "-req", "-in", str(request), "-out", str(certificate), "-days", str(days)),
            *("-CA", str(self.file), "-CAkey", str(self.folder / "ca.key"), "-CAcreateserial"),
            *("-extfile", str(extensions)),
        )
        return certificate, key

    def client_options(self, name: str) -> dict[str, Any]:
        """For a client that shows a certificate and takes any server, as redis-py takes them."""
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        if not certificate.exists():
            self.certify(name)
        return {
            "ssl_cert_reqs": "none",
            "ssl_check_hostname": False,
            "ssl_certfile": str(certificate),
            "ssl_keyfile": str(key),
        }


NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def make_authority(folder: Path) -> Authority:
    folder.mkdir(parents=True, exist_ok=True)
    authority = Authority(folder)
    openssl(
        *("req", "-x509", *NEW_KEY, "-keyout", str(folder / "ca.key"), "-out", str(authority.file)),
        *("-days", "2", "-subj", f"/CN=CA {folder.name}", "-addext", "keyUsage=critical,keyCertSign"),
    )
    return authority


@dataclass(slots=True)
class DebianRedis:
    """A redis-server; ``lines`` are of its configuration file. With an ``authority`` it speaks TLS."""

    folder: Path
    port: int
    lines: tuple[str, ...] = ()
    authority: Authority | None = None
    hosts: str = LOOPBACK
    days: int = 2
    password: str = "owner-secret"
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def scheme(self) -> str:
        return "rediss" if self.authority else "redis"

    def url(self, login: str | None = None, *, host: str = HOST) -> str:
        """For the default user, or for ``login`` as user:password."""
        return f"{self.scheme}://{login or f':{self.password}'}@{host}:{self.port}/0"

    def login(self, part: str) -> str:
        """User and password of a part, as an address takes them."""
        return f"memory-{part}:{quote(password_of(part), safe='')}"

    def client(self) -> Redis:
        """As its owner."""
        tls = {} if self.authority is None else self.authority.client_options("owner")
        return Redis.from_url(self.url("owner:owner-secret"), protocol=2, socket_timeout=10, **tls)

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = ["save ''", "maxmemory-policy noeviction", f"bind {HOST}", *self._port_lines(), *self.lines]
        if "cluster-enabled yes" in lines:
            # Its usual port for the other nodes is 10,000 above the own one, and may lie beyond the last.
            lines.append(f"cluster-port {free_port()}")
        if not any(line.startswith("aclfile") for line in lines):
            lines += [f"requirepass {self.password}", "user owner on >owner-secret ~* &* +@all"]
        configuration = self.folder / "redis.conf"
        configuration.write_text("\n".join([*lines, ""]))
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, str(configuration)],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(self.answers, "redis-server answers")

    def _port_lines(self) -> list[str]:
        if self.authority is None:
            return [f"port {self.port}"]
        certificate, key = self.authority.certify("server", hosts=self.hosts, days=self.days)
        return [
            "port 0",
            f"tls-port {self.port}",
            "tls-auth-clients no",
            f"tls-cert-file {certificate}",
            f"tls-key-file {key}",
            f"tls-ca-cert-file {self.authority.file}",
        ]

    def answers(self) -> bool:
        assert self.process is not None and self.process.poll() is None, self.log()
        with suppress(RedisError), self.client() as client:
            return bool(client.ping())
        return False

    def log(self) -> str:
        return (self.folder / "server.log").read_text()

    def stop(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait(STOP_SECONDS)


def password_of(part: str) -> str:
    """Of the user of a part, as the tests fill it in; with characters that an address must encode."""
    return f"pass/{part}@:1"


def fill_users(folder: Path, *, prefix: str = "memory:") -> Path:
    """The ACL file as compose makes it, with an owner for the test beside the users of the product."""
    passwords: Mapping[str, str] = {f"REDIS_{part.upper()}_PASSWORD": password_of(part) for part in PARTS}
    filled = subprocess.run(
        ["sh", str(FILL), str(USERS)],
        env={**passwords, "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "users.acl"
    file.write_text(filled.replace("memory:", prefix) + "user owner on >owner-secret ~* &* +@all\n")
    return file


@contextmanager
def redis_server(
    *lines: str, tls: bool = False, hosts: str = LOOPBACK, days: int = 2
) -> Iterator[DebianRedis]:
    """A running redis-server with a password; with ``tls``, one that has a certificate for ``hosts``."""
    assert shutil.which(PROGRAM), "apt-get install redis-server"
    with open_folder("memory-redis-") as folder:
        authority = make_authority(folder / "ca") if tls else None
        server = DebianRedis(folder / "redis", free_port(), lines, authority, hosts, days)
        try:
            server.start()
            yield server
        finally:
            server.stop()


@contextmanager
def redis_with_users(*, prefix: str = "memory:", tls: bool = False) -> Iterator[DebianRedis]:
    """A running redis-server that knows the users of ``deploy/redis/users.acl`` and no other but the test's owner."""
    with open_folder("memory-users-") as folder:
        file = fill_users(folder, prefix=prefix)
        with redis_server(f"aclfile {file}", tls=tls) as server:
            yield server
