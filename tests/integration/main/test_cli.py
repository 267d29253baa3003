"""The command line: results on standard output, one line about a failure, and the exit status that tells them apart."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Memory
from sqlalchemy import Engine, text

from memory_app import MemoryApp, Scope
from memory_app.local.stack import ports
from memory_app.queue import FIND_DUE
from memory_app.settings import Settings
from workers.schedule import DEFAULT, beat_schedule

EXAMPLE_SCHEDULE = Path(__file__).parents[3] / "celerybeat-schedule.example"


def test_a_key_is_made_with_its_tenant_shown_once_and_revoked(memory: Memory) -> None:
    made = memory("keys", "create", "--tenant", "acme", "--label", "trial", "--json").json
    assert made["key"].startswith("mem_")

    assert memory("keys", "revoke", str(made["id"])).status == 0

    listed = memory("keys", "list", "--json").out
    (row,) = json.loads(listed)
    assert (row["tenant"], row["label"], row["revoked_at"] is None) == ("acme", "trial", False)
    assert made["key"] not in listed


def test_what_is_recorded_and_remembered_is_recalled_and_counted(memory: Memory, tenant: int) -> None:
    whose = ("--tenant", "acme", "--agent", "ada", "--user", "mira")
    recorded = memory("record", "My dog Bruno likes the beach.", *whose, "--json").json
    remembered = memory(
        "remember", "Mira is allergic to peanuts.", "--importance", "8", *whose, "--json"
    ).json
    assert (recorded["stage"], remembered["outcome"]) == ("accepted", "inserted")

    found = memory("recall", "allergic to peanuts", *whose, "--json").json
    chosen = ("--min-score", "0.4", "--weight", "keyword=0.5", "--threshold", "0.1", "--expand-graph")
    narrow = memory("recall", "allergic to peanuts", *chosen, "--depth", "2", *whose, "--json").json
    nothing = memory("recall", "zinc futures", "--min-score", "0.4", *whose, "--json").json
    shape = ("--turns", "5", "--topic-limit", "3", "--anchor-limit", "2", "--no-expand-graph")
    window = memory("context", "What does Bruno like?", "--session", "cli", *shape, *whose)
    status = memory("status", "--json").json

    assert found["memories"][0]["id"] == remembered["id"]
    assert [row["id"] for row in narrow["memories"]] == [remembered["id"]]
    assert nothing["memories"] == []
    assert "My dog Bruno likes the beach." in window.out
    assert status["tenants"]["acme"] == {
        "sessions": 1,
        "turns": {"accepted": 1},
        "memories": {"fact": 1},
        "missed_periods": {},
    }
    assert status["workers"] == {}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("recall", "anything", "--tenant", "nobody"), "memory keys create --tenant nobody"),
        (("recall", "anything", "--data", "nowhere"), "memory up"),
        (("flower",), "FLOWER_BASIC_AUTH"),
    ],
)
def test_a_failure_is_one_line_that_says_what_to_do(
    memory: Memory, arguments: tuple[str, ...], told: str
) -> None:
    done = memory(*arguments)

    assert (done.status, done.out) == (1, "")
    assert told in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("recall", "--no-such-option"),
        ("worker", "--queue", "nope"),
        ("record", "hello there", "--at", "yesterday"),
    ],
)
def test_wrong_usage_has_a_status_of_its_own(memory: Memory, arguments: tuple[str, ...]) -> None:
    assert memory(*arguments).status == 2


def test_a_setting_that_cannot_be_is_named(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_HTTP__PORT", "many")

    done = memory("status")

    assert done.status == 1
    assert "MEMORY_HTTP__PORT" in done.err


def test_a_database_that_lacks_a_function_is_a_failure_of_one_line(memory: Memory, owner: Engine) -> None:
    with owner.begin() as connection:
        connection.execute(text("DROP FUNCTION tenant_named"))

    done = memory("recall", "anything")

    assert (done.status, done.err.count("\n")) == (1, 1)
    assert "memory doctor" in done.err


def test_migrating_what_is_migrated_changes_nothing(memory: Memory) -> None:
    done = memory("migrate")

    assert (done.status, "revision" in done.out) == (0, True)


def test_the_example_schedule_holds_every_job_of_the_product() -> None:
    jobs = beat_schedule(EXAMPLE_SCHEDULE)

    assert {job["task"] for job in jobs.values()} == {job["task"] for job in DEFAULT.values()}
    assert jobs["find-due"]["task"] == FIND_DUE


def test_a_port_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind((ports.HOST, 0))
        taken.listen()
        number = taken.getsockname()[1]

        assert not ports.is_open(number)
        assert ports.choose(number, file=tmp_path / "port") != number


def test_a_person_is_forgotten_after_a_rehearsal_and_a_question(
    environment: dict[str, str], settings: Settings, tenant: int
) -> None:
    with MemoryApp.connect(settings, tenant="acme") as memory:
        memory.record(Scope("ada", "mira", "chat"), "I moved to Lisbon last month.")
    command = [sys.executable, "-m", "memory_app", "forget", "mira", "--tenant", "acme"]

    def run(*more: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *more], env=environment, input=answer, capture_output=True, text=True, check=False
        )

    rehearsed, refused, done = run("--dry-run"), run(answer="n\n"), run("--yes")

    assert rehearsed.returncode == 0
    assert "would be deleted" in rehearsed.stdout
    assert refused.returncode == 1
    assert done.returncode == 0
    assert "receipt: " in done.stdout
    assert "Lisbon" not in done.stdout
    assert "turns" not in run("--dry-run").stdout, "nothing is left to delete"
