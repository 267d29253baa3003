"""Doctor: finds nothing wrong where nothing is, and says what is wrong and what to do where something is."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from redis import Redis
from sqlalchemy import Engine, text

from memory_app import MemoryApp, Scope
from memory_app.agents.agents import AgentChange, change_agent
from memory_app.hot.client import Hot, connect
from memory_app.jobs.life import FINDER, WORKERS, Life, listen
from memory_app.local.stack import commands
from memory_app.ops.check import Check, State
from memory_app.ops.doctor import diagnose, is_well
from memory_app.queue import QUEUES
from memory_app.settings import Database, Embedding, Settings
from memory_app.settings import Redis as RedisSection
from memory_app.turns import index

PATIENCE_SECONDS = 200.0


@contextlib.contextmanager
def working(settings: Settings, environment: dict[str, str], log: Path) -> Iterator[None]:
    """A worker of every queue, and a finder."""
    command = commands.worker(QUEUES, name="doctor", concurrency=1)
    with log.open("wb") as output:
        worker = subprocess.Popen(
            command, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        with contextlib.closing(hot_of(settings)) as hot:
            finder = Life(hot, [FINDER], log.parent)
            while not all(listen(hot)[kind].living for kind in WORKERS):
                finder.note()
                assert worker.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            finder.note()
            yield
            finder.end()
        worker.terminate()
        worker.wait(PATIENCE_SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def hot_of(settings: Settings) -> Hot:
    return connect(settings.redis_address, prefix=settings.redis.prefix, timeout_seconds=5)


def check_named(checks: tuple[Check, ...], name: str) -> Check:
    return next(check for check in checks if check.name == name)


def worst(checks: tuple[Check, ...]) -> dict[str, str]:
    """What fails, with what to do."""
    return {check.name: check.to_do for check in checks if check.state is State.FAIL}


def test_a_good_set_up_passes_and_a_stopped_worker_is_missed(
    settings: Settings, environment: dict[str, str], tmp_path: Path
) -> None:
    with working(settings, environment, tmp_path / "worker.log"):
        checks = diagnose(settings)

    assert worst(checks) == {}
    assert is_well(checks)
    assert "noeviction" in check_named(checks, "eviction").found

    after = diagnose(settings)

    assert set(worst(after)) == {*(f"queue {name}" for name in QUEUES), "finder", "beat"}
    assert "memory worker --queue model" in worst(after)["queue model"]


def test_the_command_exits_with_one_and_answers_in_json(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memory_app", "doctor", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    told = json.loads(done.stdout)
    assert (done.returncode, told["ok"]) == (1, False)
    assert {"name", "state", "found", "to_do"} == set(told["checks"][0])


def test_a_database_without_pgvector_is_told_to_migrate(settings: Settings, owner: Engine) -> None:
    with owner.begin() as connection:
        connection.execute(text("DROP EXTENSION vector CASCADE"))

    check = check_named(diagnose(settings), "pgvector")

    assert (check.state, check.to_do) == (State.FAIL, "run `memory migrate`")


def test_a_database_that_was_never_migrated_is_told_to_migrate(settings: Settings, owner: Engine) -> None:
    with owner.begin() as connection:
        connection.execute(text("DROP TABLE alembic_version"))

    check = check_named(diagnose(settings), "schema")

    assert (check.state, check.to_do) == (State.FAIL, "run `memory migrate`")


def test_the_owner_at_the_applications_door_is_refused(settings: Settings) -> None:
    owner_url = settings.database.owner_url
    assert owner_url is not None
    careless = settings.model_copy(update={"database": Database(url=owner_url, owner_url=owner_url)})

    check = check_named(diagnose(careless), "role")

    assert check.state is State.FAIL
    assert "superuser" in check.found
    assert "memory_app" in check.to_do


@pytest.mark.one_shard
def test_a_table_on_which_row_level_security_is_off_is_named(settings: Settings, owner: Engine) -> None:
    with owner.begin() as connection:
        connection.execute(text("ALTER TABLE public.links DISABLE ROW LEVEL SECURITY"))

    check = check_named(diagnose(settings), "isolation")

    assert (check.state, check.found) == (State.FAIL, "open: links")


def test_an_eviction_policy_that_drops_hints_is_refused(settings: Settings) -> None:
    with Redis.from_url(settings.redis.url.get_secret_value()) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            check = check_named(diagnose(settings), "eviction")
        finally:
            client.config_set("maxmemory-policy", "noeviction")

    assert (check.state, check.found) == (State.FAIL, "maxmemory-policy is allkeys-lru")
    assert "CONFIG SET maxmemory-policy noeviction" in check.to_do


def test_servers_that_are_away_are_named_within_seconds(settings: Settings, tmp_path: Path) -> None:
    nowhere = settings.model_copy(
        update={
            "database": Database(url=SecretStr(f"postgresql+psycopg://memory_app@/none?host={tmp_path}")),
            "redis": RedisSection(url=SecretStr("redis://127.0.0.1:1/0")),
        }
    )

    checks = diagnose(nowhere)

    assert {"postgres", "redis", "workers"} <= set(worst(checks))
    assert worst(checks)["postgres"] == "start it, or mend the address"


def test_rows_of_another_model_are_a_warning_with_the_way_to_move_them(
    settings: Settings, tenant: int
) -> None:
    with MemoryApp.connect(settings, tenant="acme") as memory:
        memory.record(Scope("ada", "mira", "chat"), "I moved to Lisbon last month.")
        for shard in memory.runtime.directory.shards():
            index.index_turns(memory.runtime.at(shard.id))
    other = settings.model_copy(update={"embedding": Embedding(provider="hash", dimensions=128)})

    check = check_named(diagnose(other), "embedder")

    assert check.state is State.WARN
    assert "hash-256" in check.found
    assert "memory reembed" in check.to_do


def test_a_turn_that_failed_is_a_warning_with_what_to_do(
    settings: Settings, tenant: int, owner: Engine
) -> None:
    with MemoryApp.connect(settings, tenant="acme") as memory:
        memory.record(Scope("ada", "mira", "chat"), "I moved to Lisbon last month.")
    with owner.begin() as connection:
        connection.execute(text("UPDATE turns SET failed_at = now(), failed_reason = 'tried thrice'"))

    check = check_named(diagnose(settings), "failed turns")

    assert (check.state, check.found) == (State.WARN, "1 set aside")


def test_agents_that_wait_for_a_model_that_is_not_set_are_counted(settings: Settings, tenant: int) -> None:
    before = check_named(diagnose(settings), "language model")
    assert (before.state, before.to_do) == (State.OK, "")
    with MemoryApp.connect(settings, tenant="acme") as memory:
        change = AgentChange(frozenset({"policy"}), policy={"extraction": "llm"})
        change_agent(memory.runtime, memory.tenant_id, Scope("ada"), change=change)

    check = check_named(diagnose(settings), "language model")

    assert check.state is State.WARN
    assert check.found.endswith(": 1")
    assert "MEMORY_CHAT__BASE_URL" in check.to_do


@pytest.mark.parametrize(("is_held", "state"), [(True, State.WARN), (False, State.FAIL)])
def test_work_that_waits_says_whether_anybody_is_at_it(
    settings: Settings, tenant: int, owner: Engine, is_held: bool, state: State
) -> None:
    with MemoryApp.connect(settings, tenant="acme") as memory:
        memory.record(Scope("ada", "mira", "chat"), "I moved to Lisbon last month.")
        memory.record(Scope("ada", "mira", "chat"), "I have a dog.")
    with owner.begin() as connection:
        connection.execute(text("UPDATE turns SET accepted_at = now() - interval '90 seconds'"))
        if is_held:
            connection.execute(
                text("UPDATE turns SET starts = 1, lease_until = now() + interval '1 minute' WHERE seq = 1")
            )

    check = check_named(diagnose(settings), "due work")

    assert check.state is state
    assert "memory finder" in check.to_do
