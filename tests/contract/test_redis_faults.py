"""Every fault of a Redis that can be brought about, the sentence it gets, and whether a part may start on it."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from free_ports import free_port
from redis import Redis
from redis_servers import DebianRedis, make_authority, redis_server, redis_with_users

from memory_app.hot import HotRefused, HotUnavailable, connect
from memory_app.hot.faults import FAULTS
from memory_app.hot.inspection import check_rights, inspect
from memory_app.hot.permissions import QUEUES, Part, broker_commands, hot_commands
from memory_app.queue import QUEUES as TASK_QUEUES
from memory_app.redis_url import read

pytestmark = pytest.mark.system

SECRET = "owner-secret"


@pytest.fixture(scope="module")
def server() -> Iterator[DebianRedis]:
    with redis_server() as server:
        yield server


@pytest.fixture(scope="module")
def tls_server() -> Iterator[DebianRedis]:
    with redis_server(tls=True) as server:
        yield server


def ca_of(server: DebianRedis) -> str:
    assert server.authority is not None
    return str(server.authority.file)


def sentence(url: str, **options: object) -> str:
    """What is said of a server that no part may start on."""
    with pytest.raises(HotRefused) as raised:
        inspect(read(url, **options))  # type: ignore[arg-type]
    return check(raised.value.message)


def passing(url: str) -> str:
    """What is said of one that may be well in a moment."""
    with pytest.raises(HotUnavailable) as raised:
        inspect(read(url))
    assert not isinstance(raised.value, HotRefused)
    return check(raised.value.message)


def check(message: str) -> str:
    assert "\n" not in message and message.count(". ") == 0, "one sentence"
    assert SECRET not in message and "127.0.0.1" not in message
    return message


def test_a_wrong_password_an_unknown_user_and_one_that_is_switched_off(server: DebianRedis) -> None:
    with server.client() as owner:
        owner.acl_setuser("resting", enabled=False, passwords=["+pw"], keys=["*"], commands=["+@all"])
    for login in ("owner:wrong", "nobody:wrong", "resting:pw"):
        said = sentence(server.url(login))
        assert said.startswith(
            f"Redis does not accept user {login.partition(':')[0]} with the password in MEMORY_REDIS__URL"
        )
        assert "mend" in said


def test_no_password_where_one_is_asked_for(server: DebianRedis) -> None:
    assert "asks for a login" in sentence(f"redis://127.0.0.1:{server.port}/0")


def test_a_password_where_there_is_none() -> None:
    with redis_server("user default on nopass ~* &* +@all") as open_server:
        assert "Redis has none" in sentence(open_server.url(":pw"))


def test_a_database_that_is_missing(server: DebianRedis) -> None:
    assert "no database 99" in sentence(server.url().replace("/0", "/99"))


def test_tls_to_a_server_without(server: DebianRedis) -> None:
    assert "write redis://" in sentence(server.url().replace("redis:", "rediss:"), is_verified=False)


def test_no_tls_to_a_server_with(tls_server: DebianRedis) -> None:
    assert "write rediss://" in sentence(tls_server.url().replace("rediss:", "redis:"))


def test_an_unknown_authority(tls_server: DebianRedis, tmp_path: Path) -> None:
    assert "MEMORY_REDIS__CA_FILE" in sentence(tls_server.url())
    other = str(make_authority(tmp_path / "other").file)
    assert "not signed by a CA that we trust" in sentence(tls_server.url(), ca_file=other)


def test_a_certificate_of_another_host() -> None:
    with redis_server(tls=True, hosts="DNS:elsewhere") as elsewhere:
        said = sentence(elsewhere.url(host="localhost"), ca_file=ca_of(elsewhere))
    assert "for another host name" in said


def test_a_certificate_that_expired() -> None:
    with redis_server(tls=True, days=-1) as late:
        assert "has expired" in sentence(late.url(), ca_file=ca_of(late))


def test_a_server_that_wants_a_client_certificate() -> None:
    with redis_server("tls-auth-clients yes", tls=True) as strict:
        assert "ssl_certfile" in sentence(strict.url(), ca_file=ca_of(strict))


def test_a_cluster() -> None:
    with redis_server("cluster-enabled yes") as cluster:
        said = sentence(cluster.url())
    assert "is a Redis Cluster, which is not supported; use one server, or several with Sentinel" in said


def test_a_replica(server: DebianRedis) -> None:
    with redis_server() as replica, replica.client() as owner:
        owner.execute_command("REPLICAOF", "127.0.0.1", str(server.port))
        assert inspect(read(replica.url())).is_replica


def test_a_server_without_a_connection_left() -> None:
    with redis_server("maxclients 1") as crowded, crowded.client() as owner:
        owner.ping()
        assert "no connection left" in passing(crowded.url())


def test_a_server_that_is_away_or_unknown() -> None:
    assert "nobody answers" in passing(f"redis://127.0.0.1:{free_port()}/0")
    assert "nobody answers" in passing(f"rediss://127.0.0.1:{free_port()}/0")
    assert "host name in MEMORY_REDIS__URL is not known" in passing("redis://no-such-host.invalid/0")
    assert "no Sentinel" in passing(f"sentinel://127.0.0.1:{free_port()}/0?primary=main")


@contextmanager
def answering(answer: Callable[[bytes], bytes], *, greeting: bytes = b"") -> Iterator[str]:
    """The address of something that is no Redis of ours: it says ``answer`` to what it gets.

    With a ``greeting`` it says that at once, and no more.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(greeting)
                    if greeting:
                        connection.shutdown(socket.SHUT_WR)
                    while request := connection.recv(10_000):
                        if not greeting:
                            connection.sendall(answer(request))

        threading.Thread(target=serve, daemon=True).start()
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"
        listener.shutdown(socket.SHUT_RDWR)


OLD = b"*6\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n6.2.7\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"
SENTINEL = b"*2\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n"


PLAIN = {b"PING": b"+PONG\r\n", b"CLIENT": b"+OK\r\n"}


def to_hello(reply: bytes) -> Callable[[bytes], bytes]:
    """This to HELLO, and to other commands what a Redis says."""
    return lambda request: b"".join(
        PLAIN.get(name, reply) for name in re.findall(rb"\*\d+\r\n\$\d+\r\n(\w+)\r\n", request)
    )


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (OLD, "too old; move to Redis 7"),
        (b"-ERR unknown command `HELLO`, with args beginning with: \r\n", "too old; move to Redis 7"),
        (SENTINEL, "is a Sentinel; write sentinel://"),
        (b"-MOVED 866 10.0.0.1:6379\r\n", "is a Redis Cluster"),
    ],
)
def test_what_answers_is_no_redis_that_we_can_work_with(reply: bytes, said: str) -> None:
    with answering(to_hello(reply)) as url:
        assert said in sentence(url)


def test_what_answers_is_no_redis_at_all() -> None:
    with answering(lambda _: b"HTTP/1.1 400 Bad Request\r\n") as url:
        assert "is no Redis" in sentence(url)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (b"-LOADING Redis is loading the dataset in memory\r\n", "loading its data"),
        (
            b"-MISCONF Redis is configured to save RDB snapshots, but unable to persist\r\n",
            "cannot save its data",
        ),
    ],
)
def test_what_passes_by_itself(reply: bytes, said: str) -> None:
    with answering(to_hello(reply)) as url:
        assert said in passing(url)


def test_protected_mode() -> None:
    denial = b"-DENIED Redis is running in protected mode because protected mode is enabled\r\n"
    with answering(lambda _: b"", greeting=denial) as url:
        assert "protected mode" in sentence(url)


@pytest.mark.parametrize("part", Part)
def test_each_user_of_the_file_has_the_rights_of_its_part(part: Part, users: DebianRedis) -> None:
    address = read(users.url(users.login(part)))
    commands = (*hot_commands(part, prefix="memory:", db=0), *broker_commands(part, prefix="memory:", db=0))
    check_rights(address, commands)
    with pytest.raises(HotRefused, match="MEMORY_REDIS__PREFIX"):
        check_rights(
            address, hot_commands(part, prefix="other:", db=0) or broker_commands(part, prefix="other:", db=0)
        )
    with users.client() as owner:
        assert list(owner.scan_iter("*rights*")) == [], "nothing was run"


@pytest.fixture(scope="module")
def users() -> Iterator[DebianRedis]:
    with redis_with_users() as server:
        yield server


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("resetchannels",), "user lacking may not use the channel memory:/0.celery.pidbox"),
        (("-brpop",), "user lacking may not run BRPOP on memory:ingest"),
        (("resetkeys", "~memory:scope:*"), "user lacking may not run GET on memory:hint:rights"),
        (("-@scripting",), "user lacking may not run EVALSHA"),
        (("-multi",), "user lacking may not run MULTI"),
    ],
)
def test_a_right_that_is_missing_is_named(server: DebianRedis, change: tuple[str, ...], said: str) -> None:
    with server.client() as owner:
        owner.execute_command("ACL", "SETUSER", "lacking", "reset", "on", ">pw", "~*", "&*", "+@all", *change)
    part = Part.WORKER
    commands = (*hot_commands(part, prefix="memory:", db=0), *broker_commands(part, prefix="memory:", db=0))
    with pytest.raises(HotRefused) as raised:
        check_rights(read(server.url("lacking:pw")), commands)
    assert said in check(raised.value.message)
    assert "deploy/redis/users.acl" in raised.value.message


@pytest.mark.parametrize("kind", ["redis", "valkey"])
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("GET", "others"), "may not touch one of our keys"),
        (("SET", "ours", "1"), "may not run the command 'set'"),
        (("PUBLISH", "others", "1"), "may not use the channels"),
        (("PSUBSCRIBE", "others"), "may not use the channels"),
    ],
)
def test_what_either_server_denies_while_we_work_is_told_apart(
    server: DebianRedis, redis_url: str, raw: Redis, kind: str, command: tuple[str, ...], said: str
) -> None:
    rights = ("~ours*", "&ours*", "-@all", "+get", "+publish", "+psubscribe")
    with server.client() as debian:
        owner = debian if kind == "redis" else raw
        owner.execute_command("ACL", "SETUSER", "few", "reset", "on", ">pw", *rights)
    valkey = urlsplit(redis_url)
    url = server.url("few:pw") if kind == "redis" else f"redis://few:pw@{valkey.hostname}:{valkey.port}/0"
    hot = connect(read(url), timeout_seconds=5)
    with pytest.raises(HotRefused) as raised, hot.calling() as redis:
        redis.execute_command(*command)
    hot.close()
    assert said in check(raised.value.message)


def test_the_broker_is_named_by_its_own_setting(server: DebianRedis) -> None:
    address = replace(read(server.url("owner:wrong")), setting="broker.url")
    with pytest.raises(HotRefused, match="MEMORY_BROKER__URL"):
        inspect(address)


def test_the_queues_are_those_of_the_tasks() -> None:
    assert QUEUES == TASK_QUEUES


def test_every_fault_is_one_sentence_that_says_what_to_do() -> None:
    for fault in FAULTS:
        assert ";" in fault.sentence or "wait" in fault.sentence or ":" in fault.sentence, fault.name
        assert not fault.sentence.endswith(".")
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_every_sentence_is_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs/troubleshooting.md").read_text()
    words = {"setting": "`URL`", "user": "NAME", "db": 9, "kind": "", "detail": "BRPOP"}
    assert [fault.name for fault in FAULTS if fault.sentence.format(**words) not in page] == []
