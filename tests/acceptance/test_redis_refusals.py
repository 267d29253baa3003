"""What each part does at its start when Redis is not as it should be: one sentence and status 1, or it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from fleet import COMMANDS, Fleet
from free_ports import free_port
from own_servers import wait_until
from parts import call, run, started
from redis_servers import DebianRedis, make_authority, redis_server, redis_with_users

pytestmark = pytest.mark.system

TRACEBACK = "Traceback"


@pytest.fixture
def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a part without a Redis."""
    own = {name: value for name, value in environment.items() if not name.startswith("MEMORY_REDIS")}
    return own | {"FLOWER_BASIC_AUTH": "me:flower-secret", "FLOWER_PORT": str(free_port())}


@pytest.fixture(scope="module")
def users() -> Iterator[DebianRedis]:
    with redis_with_users(tls=True) as server:
        yield server


def refusal(part: str, environment: Mapping[str, str]) -> str:
    """The one line of a part that does not start."""
    done = run(*COMMANDS[part], environment=environment)
    assert done.returncode == 1, done.stderr
    assert TRACEBACK not in done.stderr + done.stdout
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("memory: ")]
    return line


@pytest.mark.parametrize("part", COMMANDS)
def test_a_wrong_password_is_said_at_the_start(part: str, clean: dict[str, str], users: DebianRedis) -> None:
    assert users.authority is not None
    address = {
        "MEMORY_REDIS__URL": users.url(f"memory-{part}:not-the-password"),
        "MEMORY_REDIS__CA_FILE": str(users.authority.file),
    }
    line = refusal(part, clean | address)
    assert f"Redis does not accept user memory-{part} with the password in MEMORY_REDIS__URL" in line
    assert "not-the-password" not in line


@pytest.mark.parametrize("part", ["api", "worker", "flower"])
def test_an_unknown_authority_is_refused_by_api_and_worker_alike(
    part: str, clean: dict[str, str], users: DebianRedis, tmp_path: Path
) -> None:
    address = {
        "MEMORY_REDIS__URL": users.url(users.login(part)),
        "MEMORY_REDIS__CA_FILE": str(make_authority(tmp_path / "other").file),
    }
    assert "is not signed by a CA that we trust" in refusal(part, clean | address)


def test_the_spelling_of_other_clients_for_no_verification_is_refused(
    clean: dict[str, str], users: DebianRedis
) -> None:
    for part in ("api", "worker"):
        address = {"MEMORY_BROKER__URL": f"{users.url(users.login(part))}?ssl_cert_reqs=CERT_NONE"}
        line = refusal(part, clean | address)
        assert "broker.url: ssl_cert_reqs=CERT_NONE would trust any server" in line
        assert "MEMORY_REDIS__VERIFY_TLS=false" in line


def test_the_user_of_another_part_is_not_enough(clean: dict[str, str], users: DebianRedis) -> None:
    assert users.authority is not None
    address = {
        "MEMORY_REDIS__URL": users.url(users.login("api")),
        "MEMORY_REDIS__CA_FILE": str(users.authority.file),
    }
    assert "the Redis user memory-api may not run BRPOP on memory:ingest" in refusal(
        "worker", clean | address
    )


def test_a_cluster_and_a_policy_that_drops_hints_are_refused(clean: dict[str, str]) -> None:
    with redis_server("cluster-enabled yes") as cluster:
        line = refusal("worker", clean | {"MEMORY_REDIS__URL": cluster.url()})
        assert "is a Redis Cluster, which is not supported" in line
    with redis_server("maxmemory-policy allkeys-lru") as forgetful:
        line = refusal("beat", clean | {"MEMORY_REDIS__URL": forgetful.url()})
        assert "set maxmemory-policy noeviction" in line


def test_without_redis_the_api_starts_and_accepts(
    clean: dict[str, str], api_key: str, tmp_path: Path
) -> None:
    port = free_port()
    away = {"MEMORY_REDIS__URL": f"redis://127.0.0.1:{free_port()}/0", "MEMORY_HTTP__PORT": str(port)}
    with started("api", "serve", environment=clean | away, folder=tmp_path) as api:
        api.wait_for("redis_not_ready")
        wait_until(lambda: is_live(port), "the API answers")
        path = "/v1/agents/ada/users/mira/sessions/chat/turns"
        assert call(port, path, api_key, {"role": "user", "content": "I live in Lisbon."})["tickets"]


def is_live(port: int) -> bool:
    try:
        return bool(call(port, "/health/live", "")["ok"])
    except OSError:
        return False


def test_a_worker_waits_for_a_redis_that_is_away(clean: dict[str, str], tmp_path: Path) -> None:
    port = free_port()
    environment = clean | {"MEMORY_REDIS__URL": f"redis://:owner-secret@127.0.0.1:{port}/0"}
    with started("worker", *COMMANDS["worker"], environment=environment, folder=tmp_path) as worker:
        worker.wait_for("redis_not_ready")
        worker.wait_for("broker_not_reached")
        server = DebianRedis(tmp_path / "redis", port)
        server.start()
        try:
            worker.wait_for("ready.")
        finally:
            server.stop()
        assert TRACEBACK not in worker.output()


DOCTORS: Mapping[str, tuple[tuple[str, ...], str, str]] = {
    "cluster": (("cluster-enabled yes",), "redis", "is a Redis Cluster"),
    "policy": (("maxmemory-policy allkeys-lru",), "eviction", "allkeys-lru"),
    "channels": (
        ("user default on >owner-secret ~* +@all resetchannels",),
        "rights in redis",
        "may not use the channel memory:/0.celery.pidbox",
    ),
}


@pytest.mark.parametrize("fault", DOCTORS)
def test_doctor_tells_the_faults_apart(fault: str, clean: dict[str, str], tmp_path: Path) -> None:
    lines, name, found = DOCTORS[fault]
    with redis_server(*lines) as server:
        check = Fleet(server, clean, tmp_path).run_doctor(MEMORY_REDIS__URL=server.url())[name]
    assert check["state"] == "fail"
    assert found in check["found"]
    assert check["to_do"]


def test_doctor_warns_of_tls_that_verifies_nothing(
    clean: dict[str, str], users: DebianRedis, tmp_path: Path
) -> None:
    checks = Fleet(users, clean, tmp_path).run_doctor(
        MEMORY_REDIS__VERIFY_TLS="false", MEMORY_REDIS__CA_FILE=""
    )
    assert checks["tls of redis"]["state"] == "warn"
    assert checks["redis"]["state"] == "ok"
    assert checks["rights in redis"] == {
        "name": "rights in redis",
        "state": "ok",
        "found": "user memory-doctor may do what the part doctor needs",
        "to_do": "",
    }
