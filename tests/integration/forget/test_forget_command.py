"""``memory forget`` of a session, a turn or a memory: what goes, what stays, and which calls are refused."""

from __future__ import annotations

import subprocess
import sys

import pytest
from commands import Memory
from sqlalchemy import Engine, text

from memory_app.dispatch import finder
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.record import record

ACME = ("--tenant", "acme")
MIRA = ("--agent", "ada", "--user", "mira")
NOTHING = "01a227e1-33d5-7000-8000-000000000000"


@pytest.fixture
def chats(runtime: Runtime, tenant: int) -> list[str]:
    """Two turns of Mira in one session and one in another; the ids of the turns."""
    ids = []
    for session, words in (
        ("chat", ("My dog is called Rex.", "I live in Porto.")),
        ("tea", ("I work at the harbour.",)),
    ):
        turns = [NewTurn(Role.USER, text) for text in words]
        ids += [str(ticket.id) for ticket in record(runtime, tenant, Scope("ada", "mira", session), turns)]
    finder.drain(runtime)
    return ids


def texts_of(owner: Engine, table: str) -> set[str]:
    with owner.connect() as connection:
        return set(connection.execute(text(f"SELECT text FROM {table}")).scalars())


def test_one_session_is_forgotten_after_a_rehearsal(memory: Memory, chats: list[str], owner: Engine) -> None:
    rehearsed = memory("forget", "--session", "chat", *MIRA, "--dry-run", *ACME)
    assert (rehearsed.status, "would be deleted" in rehearsed.out) == (0, True)
    assert len(texts_of(owner, "turns")) == 3

    run = memory("forget", "--session", "chat", *MIRA, "--yes", *ACME, "--json").json

    assert run["report"]["counts"]["turns"] == 2
    assert texts_of(owner, "turns") == {"I work at the harbour."}
    entries = memory("audit", "list", "--action", "erase.session", *ACME, "--json").json
    assert {entry["target"] for entry in entries} == {"dry_run", None}


def test_one_turn_is_forgotten(memory: Memory, chats: list[str], owner: Engine) -> None:
    done = memory("forget", "--turn", chats[0], "--yes", *ACME)

    assert (done.status, "receipt: " in done.out) == (0, True)
    assert texts_of(owner, "turns") == {"I live in Porto.", "I work at the harbour."}
    assert not any("Rex" in words for words in texts_of(owner, "memories"))


def test_one_memory_is_forgotten_and_named_in_the_question(
    memory: Memory, environment: dict[str, str], chats: list[str], owner: Engine
) -> None:
    stored = memory("remember", "Mira likes pears.", *MIRA, *ACME, "--json").json["id"]
    command = [sys.executable, "-m", "memory_app", "forget", "--memory", stored, *ACME]

    refused = subprocess.run(
        command, env=environment, input="n\n", capture_output=True, text=True, check=False
    )
    assert (refused.returncode, "Mira likes pears." in refused.stderr) == (1, True)
    assert "Mira likes pears." in texts_of(owner, "memories")
    done = memory("forget", "--memory", stored, "--yes", *ACME, "--json").json

    assert done["report"]["counts"]["memories"] == 1
    assert "Mira likes pears." not in texts_of(owner, "memories")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "name one of"),
        (("mira", "--session", "chat"), "name one of"),
        (("--turn", NOTHING, "--memory", NOTHING), "name one of"),
        (("--user", "mira"), "stands alone"),
        (("mira", "--agent", "ada"), "stands alone"),
        (("--turn", NOTHING, "--dry-run"), "--dry-run"),
    ],
)
def test_what_is_not_clear_is_not_forgotten(
    memory: Memory, chats: list[str], owner: Engine, arguments: tuple[str, ...], told: str
) -> None:
    refused = memory("forget", *arguments, "--yes", *ACME)

    assert (refused.status, told in refused.err) == (2, True)
    assert len(texts_of(owner, "turns")) == 3


@pytest.mark.parametrize("part", ["--turn", "--memory"])
def test_a_part_that_is_not_there_is_named(memory: Memory, tenant: int, part: str) -> None:
    for more in (("--yes",), ()) if part == "--memory" else (("--yes",),):
        unknown = memory("forget", part, NOTHING, *more, *ACME)
        assert unknown.status == 1 and NOTHING in unknown.err
