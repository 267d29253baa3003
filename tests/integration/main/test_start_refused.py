"""Parts that cannot work do not start: one sentence, status 1, no traceback. What passes by itself is waited for."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import parts
import pytest
from free_ports import free_port
from own_servers import wait_until
from sqlalchemy import make_url

ROOT = Path(__file__).parents[3]
WORD = "unmistakable"

MEMORY = (sys.executable, "-m", "memory_app")
CELERY = (sys.executable, "-m", "celery", "-A", "workers.app")

PARTS = {
    "serve": (*MEMORY, "serve"),
    "worker": (*MEMORY, "worker", "--queue", "ingest"),
    "worker with threads": (*MEMORY, "worker", "--queue", "model"),
    "finder": (*MEMORY, "finder"),
    "celery worker": (*CELERY, "worker", "-Q", "ingest", "--without-gossip", "--without-mingle"),
}
OF_CELERY = {
    "beat": (*MEMORY, "beat"),
    "celery beat": (*CELERY, "beat"),
    "worker": (*MEMORY, "worker", "--queue", "ingest"),
}


def end_of(command: Sequence[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a part that should end by itself."""
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=110, check=False
    )


def assert_one_sentence(ended: subprocess.CompletedProcess[str], sentence: str) -> None:
    lines = [line for line in ended.stderr.splitlines() if line.startswith("memory: ")]
    assert ended.returncode == 1, ended.stderr
    assert len(lines) == 1, ended.stderr
    assert sentence in lines[0]
    assert "Traceback" not in ended.stderr + ended.stdout
    assert WORD not in ended.stderr + ended.stdout


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "MEMORY_HTTP__PORT": str(free_port()), "PYTHONPATH": str(ROOT)}


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_a_wrong_password_ends_a_part_at_its_start(part: str, environment: dict[str, str]) -> None:
    url = make_url(environment["MEMORY_DATABASE__URL"]).set(password=WORD)
    environment["MEMORY_DATABASE__URL"] = url.render_as_string(hide_password=False)

    ended = end_of(PARTS[part], environment)

    assert_one_sentence(ended, "does not accept the password of role memory_app in MEMORY_DATABASE__URL")


@pytest.mark.slow
@pytest.mark.parametrize("command", [("migrate",), ("keys", "create", "--tenant", "mine"), ("status",)])
def test_a_wrong_password_ends_a_command(command: tuple[str, ...], environment: dict[str, str]) -> None:
    for name in ("MEMORY_DATABASE__URL", "MEMORY_DATABASE__OWNER_URL"):
        url = make_url(environment[name]).set(password=WORD)
        environment[name] = url.render_as_string(hide_password=False)

    assert_one_sentence(end_of((*MEMORY, *command), environment), "does not accept the password of role")


@pytest.mark.slow
@pytest.mark.parametrize("part", OF_CELERY)
def test_a_wrong_schedule_ends_a_part_at_its_start(
    part: str, environment: dict[str, str], tmp_path: Path
) -> None:
    schedule = tmp_path / "schedule.toml"
    schedule.write_text('[look]\ntask = "memory.nothing"\nevery_seconds = 5\n')
    environment["MEMORY_SCHEDULE_FILE"] = str(schedule)

    assert_one_sentence(end_of(OF_CELERY[part], environment), "schedule: look: unknown task 'memory.nothing'")


@pytest.mark.slow
@pytest.mark.parametrize("part", OF_CELERY)
def test_a_wrong_setting_ends_a_part_at_its_start(part: str, environment: dict[str, str]) -> None:
    environment["MEMORY_DATABASE__POOL_SIZE"] = "many"

    assert_one_sentence(end_of(OF_CELERY[part], environment), "setting MEMORY_DATABASE__POOL_SIZE")


AWAY = f"postgresql+psycopg://memory_app:{WORD}@127.0.0.1:1/memory"
REASON = "PostgreSQL is away: nobody answers at the address in MEMORY_DATABASE__URL"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "sign"),
    [(("worker", "--queue", "ingest"), " ready."), (("finder",), "finder_started")],
    ids=["worker", "finder"],
)
def test_a_server_that_is_away_is_waited_for(
    part: tuple[str, ...], sign: str, environment: dict[str, str], tmp_path: Path
) -> None:
    environment["MEMORY_DATABASE__URL"] = AWAY

    with parts.started(part[0], *part, environment=environment, folder=tmp_path) as process:
        process.wait_for(REASON)
        process.wait_for(sign)
        assert WORD not in process.output()


@pytest.mark.slow
def test_readiness_says_why_the_database_is_not_there(environment: dict[str, str], tmp_path: Path) -> None:
    environment["MEMORY_DATABASE__URL"] = AWAY
    address = f"http://127.0.0.1:{environment['MEMORY_HTTP__PORT']}/health"

    with parts.started("api", "serve", environment=environment, folder=tmp_path) as process:
        process.wait_for(REASON)
        wait_until(lambda: status_of(f"{address}/live")[0] == 200, "the API answers")
        status, body = status_of(f"{address}/ready")

    assert status == 503
    assert REASON in body["parts"]["database"]["reason"]


def status_of(address: str) -> tuple[int, Any]:
    """Status and JSON of an answer; 0 when there is none."""
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)
    except OSError:
        return 0, None
