"""TLS to Redis: hot memory and the broker verify the same, against Debian's redis-server with a CA of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis_servers import DebianRedis, make_authority, redis_server

from memory_app import queue
from memory_app.errors import MemoryAppError
from memory_app.hot import connect
from memory_app.jobs.workers_ping import consumers
from memory_app.queue import Sender
from memory_app.redis_url import Address, read

pytestmark = pytest.mark.system


def hot_connects(address: Address) -> bool:
    hot = connect(address, timeout_seconds=5)
    try:
        hot.ping()
    except MemoryAppError:
        return False
    finally:
        hot.close()
    return True


def sender_connects(address: Address) -> bool:
    sender = Sender(address, prefix="memory:")
    try:
        return sender.send(queue.INDEX_TURNS)
    finally:
        sender.close()


def roster_connects(address: Address) -> bool:
    try:
        consumers(address, prefix="memory:", timeout_seconds=0.2)
    except MemoryAppError:
        return False
    return True


Connects = Callable[[Address], bool]


@pytest.fixture(params=[hot_connects, sender_connects, roster_connects], ids=["hot", "sender", "roster"])
def connects(request: pytest.FixtureRequest) -> Connects:
    """Whether one kind of client gets through."""
    client: Connects = request.param
    return client


@pytest.fixture(scope="module")
def server() -> Iterator[DebianRedis]:
    with redis_server(tls=True) as server:
        yield server


@pytest.fixture
def ca_file(server: DebianRedis) -> str:
    assert server.authority is not None
    return str(server.authority.file)


def test_a_known_authority_and_the_right_name_are_enough(
    server: DebianRedis, ca_file: str, connects: Connects
) -> None:
    assert connects(read(server.url(), ca_file=ca_file))
    assert connects(read(f"{server.url(host='localhost')}?ssl_ca_certs={ca_file}&ssl_cert_reqs=required"))


def test_an_unknown_authority_is_refused(server: DebianRedis, connects: Connects, tmp_path: Path) -> None:
    assert not connects(read(server.url()))
    assert not connects(read(server.url(), ca_file=str(make_authority(tmp_path / "other").file)))


def test_another_name_than_the_certificates_is_refused(connects: Connects) -> None:
    with redis_server(tls=True, hosts="DNS:elsewhere") as elsewhere:
        assert elsewhere.authority is not None
        assert not connects(read(elsewhere.url(host="localhost"), ca_file=str(elsewhere.authority.file)))


def test_only_the_settings_switch_verification_off(server: DebianRedis, connects: Connects) -> None:
    assert connects(read(server.url(), is_verified=False))


def test_a_server_with_tls_is_not_spoken_to_without(server: DebianRedis, connects: Connects) -> None:
    assert not connects(read(server.url().replace("rediss://", "redis://")))


def test_a_client_certificate_is_shown_where_the_server_wants_one(connects: Connects, tmp_path: Path) -> None:
    with redis_server("tls-auth-clients yes", tls=True) as strict:
        assert strict.authority is not None
        certificate, key = strict.authority.certify("client")
        url = f"{strict.url()}?ssl_ca_certs={strict.authority.file}"
        assert not connects(read(url))
        assert connects(read(f"{url}&ssl_certfile={certificate}&ssl_keyfile={key}"))
