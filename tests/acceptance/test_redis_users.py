"""Each part with its own user of Redis, over TLS: all of it works, nothing was refused, and nobody may do more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from fleet import Fleet
from own_servers import wait_until
from parts import run
from redis import Redis
from redis.exceptions import NoPermissionError
from redis_servers import DebianRedis, redis_with_users

pytestmark = [pytest.mark.system, pytest.mark.slow]


@pytest.fixture(scope="module")
def server() -> Iterator[DebianRedis]:
    with redis_with_users(tls=True) as server:
        yield server


@pytest.fixture
def fleet(server: DebianRedis, environment: Mapping[str, str], tmp_path: Path) -> Fleet:
    """With the prefix of the file, so the Redis is not shared."""
    own = {name: value for name, value in environment.items() if not name.startswith("MEMORY_REDIS")}
    return Fleet(server, own, tmp_path)


def refusals(server: DebianRedis) -> list[object]:
    """What Redis denied to the users of the product since the last look."""
    with server.client() as client:
        entries = client.acl_log()
        client.acl_log_reset()
    return [entry for entry in entries if str(entry["username"]).startswith("memory-")]


def shows(fleet: Fleet, path: str, words: str) -> bool:
    """Whether a page of Flower has these words; it may not listen yet, and be slow."""
    try:
        return words in fleet.flower_page(path)
    except OSError:
        return False


def hears_of_work(fleet: Fleet, key: str) -> bool:
    fleet.extract(key, "I moved to Lisbon and I have a dog called Bruno.")
    return shows(fleet, "/api/tasks", "memory.index_turns")


def answers_roll_call(fleet: Fleet) -> bool:
    """Whether the worker is in the list of `memory status`, which gives it a second to answer."""
    status = run("status", environment=fleet.environment_of("doctor"))
    return "worker ingest-model-maintenance@" in status.stdout


def test_every_part_works_over_tls_with_its_own_user(fleet: Fleet, server: DebianRedis, api_key: str) -> None:
    refusals(server)
    with fleet.running() as parts:
        parts["worker"].wait_for("ready.")
        wait_until(fleet.is_healthy, "the whole pipe is ready, Beat included")
        # It hears of a task only while it listens.
        wait_until(lambda: shows(fleet, "/api/workers?refresh=1", "ingest"), "Flower sees the worker")
        fleet.extract(api_key, "I moved to Lisbon and I have a dog called Bruno.")
        checks = fleet.run_doctor()
        parts["beat"].wait_for("Sending due task")
        wait_until(lambda: hears_of_work(fleet, api_key), "Flower hears the events")
        wait_until(lambda: shows(fleet, "/broker", "ingest"), "Flower shows the queues")
        wait_until(lambda: answers_roll_call(fleet), "the worker answers the roll call")
    assert {name for name, check in checks.items() if check["state"] == "fail"} == set()
    assert checks["queue ingest"]["found"] == "1 worker"
    assert refusals(server) == [], "each user may do what its part does"
    outputs = "".join(part.output() for part in parts.values())
    assert "Traceback" not in outputs
    assert "pass/" not in outputs and "pass%2F" not in outputs


FORBIDDEN: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "api": (
        ("BRPOP", "memory:ingest", "1"),
        ("DEL", "memory:ingest"),
        ("LRANGE", "memory:ingest", "0", "-1"),
        ("HGET", "memory:unacked", "tag"),
        ("PUBLISH", "memory:/0.celery.pidbox", "shutdown"),
        ("PSUBSCRIBE", "memory:/0.celeryev/*"),
        ("EVAL", "return redis.call('GET', KEYS[1])", "1", "others"),
    ),
    "worker": (("GET", "others"), ("PSUBSCRIBE", "*"), ("PUBLISH", "others", "x"), ("DEL", "memory:ingest")),
    "beat": (
        ("GET", "memory:scope:{1}:context"),
        ("LRANGE", "memory:scope:{1}:stream", "0", "-1"),
        ("SET", "memory:limit:x", "1"),
        ("HGETALL", "memory:life:finder"),
        ("EVALSHA", "0" * 40, "1", "memory:limit:x"),
        ("BRPOP", "memory:ingest", "1"),
        ("PUBLISH", "memory:/0.celery.pidbox", "shutdown"),
    ),
    "finder": (("BRPOP", "memory:ingest", "1"), ("PUBLISH", "memory:/0.celery.pidbox", "x")),
    "flower": (
        ("LPUSH", "memory:ingest", "x"),
        ("BRPOP", "memory:ingest", "1"),
        ("GET", "memory:scope:{1}:context"),
    ),
    "doctor": (
        ("LPUSH", "memory:ingest", "x"),
        ("GET", "memory:scope:{1}:context"),
        ("PSUBSCRIBE", "memory:/0.celeryev/*"),
    ),
}
FORBIDDEN_TO_ALL = (
    ("FLUSHALL",),
    ("FLUSHDB",),
    ("CONFIG", "GET", "*"),
    ("CONFIG", "SET", "maxmemory", "1"),
    ("ACL", "LIST"),
    ("KEYS", "*"),
    ("SCAN", "0"),
    ("MONITOR",),
    ("SHUTDOWN",),
    ("CLIENT", "LIST"),
    ("REPLICAOF", "NO", "ONE"),
    ("GET", "others"),
    ("SET", "others", "1"),
    ("EVAL", "return 1", "0"),
    ("FUNCTION", "LIST"),
)


@pytest.mark.parametrize("part", FORBIDDEN)
def test_no_user_may_do_what_its_part_does_not_do(fleet: Fleet, part: str) -> None:
    address = fleet.environment_of(part)
    client = Redis.from_url(
        address["MEMORY_REDIS__URL"],
        protocol=2,
        ssl_ca_certs=address["MEMORY_REDIS__CA_FILE"],
        socket_timeout=10,
    )
    with client:
        assert client.ping()
        for command in (*FORBIDDEN_TO_ALL, *FORBIDDEN[part]):
            with pytest.raises(NoPermissionError):
                client.execute_command(*command)
