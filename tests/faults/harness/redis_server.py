"""A Valkey server of a test's own, which it may kill, fill and restart with other options."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from harness.waiting import wait_until
from memory_app.local.embedded import valkey


@dataclass(slots=True)
class RedisServer:
    """A server in the foreground, on a fixed port of loopback."""

    port: int
    folder: Path
    options: tuple[str, ...] = ()
    running: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> Redis:
        return Redis.from_url(self.url, protocol=2, socket_timeout=5)

    def start(self, *options: str) -> None:
        """Start it, and wait until it answers; ``options`` as on its command line."""
        self.options = options or self.options
        self.folder.mkdir(exist_ok=True)
        with (self.folder / "server.out").open("ab") as log:
            self.running = subprocess.Popen(
                [
                    str(valkey.program()),
                    "--port",
                    str(self.port),
                    "--bind",
                    "127.0.0.1",
                    "--save",
                    "",
                    *self.options,
                ],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        wait_until(self.answers, "Valkey answers", seconds=20)

    def answers(self) -> bool:
        with suppress(RedisError), self.client() as client:
            return bool(client.ping())
        return False

    def kill(self) -> None:
        """SIGKILL; whatever was not written is gone."""
        if self.running is not None:
            self.running.send_signal(signal.SIGKILL)
            self.running.wait()
            self.running = None

    def is_primary(self) -> bool:
        """False, too, at the moment of the promotion, when the server closes all connections."""
        with suppress(RedisConnectionError), self.client() as client:
            return bool(client.info("replication")["role"] == "master")
        return False

    def hints_taken(self) -> int:
        """How many messages were put into its queues."""
        with self.client() as client:
            pushes: dict[str, dict[str, int]] = client.info("commandstats")  # type: ignore[assignment]
            return pushes.get("cmdstat_lpush", {}).get("calls", 0)

    def command(self, *words: str) -> None:
        with self.client() as client:
            client.execute_command(*words)


@contextmanager
def redis_server(folder: Path, port: int, *options: str) -> Iterator[RedisServer]:
    server = RedisServer(port, folder, options)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def sentinel_of(primary: RedisServer, folder: Path, port: int) -> Iterator[str]:
    """A sentinel that gives up ``primary`` after a second and promotes its replica; the address for the settings."""
    folder.mkdir()
    configuration = folder / "sentinel.conf"
    configuration.write_text(
        f"""port {port}
        bind 127.0.0.1
        sentinel monitor main 127.0.0.1 {primary.port} 1
        sentinel down-after-milliseconds main 1000
        sentinel failover-timeout main 3000
        """
    )
    with (folder / "sentinel.out").open("ab") as log:
        running = subprocess.Popen(
            [str(valkey.program()), str(configuration), "--sentinel"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_until(lambda: _replicas(port) == 1, "the sentinel knows the replica", seconds=30)
        yield f"sentinel://127.0.0.1:{port}/0?primary=main"
    finally:
        running.kill()
        running.wait()


def _replicas(port: int) -> int:
    with suppress(RedisError), Redis(port=port, protocol=2, socket_timeout=5) as sentinel:
        return len(sentinel.execute_command("SENTINEL", "REPLICAS", "main"))
    return 0
