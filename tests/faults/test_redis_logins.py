"""F38, the half of Redis: the user is switched off under load, its password changes, the certificate is replaced.

Nobody dies over it, each says precisely what is wrong, and all goes on when it is mended, without a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from free_ports import free_port
from harness.fleet import Member
from harness.redis_server import RedisServer, redis_server
from harness.stage import Stage, seen_through
from harness.waiting import wait_until
from own_servers import open_folder
from redis_servers import DebianRedis, make_authority

pytestmark = pytest.mark.faults

PASSWORD = "pw"
SECONDS = 60


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """With a user that every part shares."""
    with redis_server(tmp_path / "redis", free_port()) as server:
        server.command("ACL", "SETUSER", "parts", "on", f">{PASSWORD}", "~*", "&*", "+@all", "-@admin")
        yield server


@contextmanager
def seen_as_user(stage: Stage, server: RedisServer) -> Iterator[Stage]:
    url = server.url.replace("redis://", f"redis://parts:{PASSWORD}@")
    with seen_through(stage, redis_url=url, MEMORY_FINDER__DRAIN_AFTER_SECONDS="60") as stage:
        yield stage


def write(member: Member, text: str) -> None:
    wait_until(lambda: text in member.said(), f"{member.name} says {text!r}", seconds=SECONDS)


def assert_told(members: list[Member], reason: str) -> None:
    """The same processes as before, each with this reason, and none with a password or a traceback."""
    for member in members:
        assert member.is_alive()
        assert reason in member.said()
        assert "Traceback" not in member.said()
        assert f":{PASSWORD}@" not in member.said()


CHANGES = {
    "user off": (
        (("ACL", "SETUSER", "parts", "off"), ("CLIENT", "KILL", "USER", "parts")),
        ("ACL", "SETUSER", "parts", "on"),
        "does not accept user parts",
    ),
    "password changed": (
        (("ACL", "SETUSER", "parts", "resetpass", ">other"), ("CLIENT", "KILL", "USER", "parts")),
        ("ACL", "SETUSER", "parts", f">{PASSWORD}"),
        "does not accept user parts",
    ),
    "channels taken": (
        (("ACL", "SETUSER", "parts", "resetchannels"),),
        ("ACL", "SETUSER", "parts", "&*"),
        "may not use the channels",
    ),
    "keys taken": (
        (("ACL", "SETUSER", "parts", "resetkeys"),),
        ("ACL", "SETUSER", "parts", "~*"),
        "may not touch one of our keys",
    ),
    "command taken": (
        (("ACL", "SETUSER", "parts", "-brpop"),),
        ("ACL", "SETUSER", "parts", "+brpop"),
        "may not run",
    ),
}


@pytest.mark.parametrize(
    "change",
    ["user off", *(pytest.param(name, marks=pytest.mark.slow) for name in CHANGES if name != "user off")],
)
def test_F38_the_redis_user_changes(stage: Stage, server: RedisServer, change: str) -> None:
    faults, remedy, reason = CHANGES[change]
    with seen_as_user(stage, server) as stage:
        stage.fleet.finder()
        workers = [stage.worker(queues="ingest,maintenance"), stage.fleet.model_worker()]
        stage.wait_for(*workers)
        under_way = stage.clients(turns=300, seconds=6)
        stage.wait_for_progress(40)
        for fault in faults:
            server.command(*fault)
        for worker in workers:
            write(worker, reason)
        accepted = len(list(stage.ledger))
        wait_until(
            lambda: under_way.is_done() or len(list(stage.ledger)) > accepted + 20,
            "accepting goes on",
            seconds=SECONDS,
        )
        server.command(*remedy)
        stage.settle(under_way)
        assert_told(workers, reason)


@pytest.mark.system
@pytest.mark.slow
def test_F38_the_certificate_of_redis_is_replaced(stage: Stage) -> None:
    with open_folder("memory-tls-") as folder:
        good, other = make_authority(folder / "good"), make_authority(folder / "other")
        server = DebianRedis(folder / "redis", free_port(), authority=good)
        server.start()
        try:
            url = f"{server.url()}?ssl_ca_certs={good.file}"
            with seen_through(stage, redis_url=url, MEMORY_FINDER__DRAIN_AFTER_SECONDS="60") as stage:
                stage.fleet.finder()
                worker = stage.worker()
                under_way = stage.clients(turns=300, seconds=8)
                stage.wait_for_progress(40)
                restart(server, lambda: setattr(server, "authority", other))
                write(worker, "is not signed by a CA that we trust")
                restart(server, lambda: setattr(server, "authority", good))
                stage.settle(under_way)
                assert_told([worker], "is not signed by a CA that we trust")
        finally:
            server.stop()


def restart(server: DebianRedis, change: Callable[[], None]) -> None:
    server.stop()
    change()
    server.start()
