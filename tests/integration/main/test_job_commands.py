"""Commands that end a session, keep checkpoints, consolidate and let fade, and what is stored after them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Memory
from sqlalchemy import Engine, text

from memory_app.dispatch import finder
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.record import record

ACME = ("--tenant", "acme")
MIRA = ("--agent", "ada", "--user", "mira", *ACME)
NOTHING = "01a227e1-33d5-7000-8000-000000000000"
SAILING = (
    "Mira goes sailing on the lake with her cousin in the summer.",
    "Mira goes sailing on the lake with her cousin in summer.",
)


@pytest.fixture
def chat(runtime: Runtime, tenant: int, memory: Memory) -> None:
    """A conversation of Mira with ada, and two memories of it."""
    record(runtime, tenant, Scope("ada", "mira", "chat"), [NewTurn(Role.USER, "Hello Ada.")])
    finder.drain(runtime)
    for words in ("Mira likes pears.", "Mira works at the harbour."):
        memory("remember", words, "--importance", "9", "--session", "chat", *MIRA)


def rows(owner: Engine, statement: str) -> list[tuple[Any, ...]]:
    with owner.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def test_a_session_ends_and_is_taken_back(memory: Memory, chat: None, owner: Engine) -> None:
    run = memory("session", "end", "chat", *MIRA, "--json").json

    assert (run["name"], run["state"], len(run["report"]["promoted"])) == ("end_session", "done", 2)
    assert rows(owner, "SELECT ended_at IS NULL FROM sessions") == [(False,)]
    (point,) = memory("checkpoints", "list", *MIRA, "--json").json
    assert (point["id"], point["session"]) == (run["report"]["checkpoint"], "chat")
    # Ending it again, with no turn in between, is the same run.
    again = memory("session", "end", "chat", *MIRA)
    assert (again.status, f"run {run['id']}: 2 promoted" in again.out) == (0, True)
    assert memory("undo", run["id"], *ACME).status == 0


def test_a_session_ends_without_what_is_not_wanted(memory: Memory, chat: None, owner: Engine) -> None:
    run = memory("session", "end", "chat", "--no-promote", "--no-checkpoint", *MIRA, "--json").json

    assert (run["report"]["promoted"], run["report"]["checkpoint"], run["report"]["dropped"]) == ([], None, 2)
    assert rows(owner, "SELECT count(*) FROM checkpoints") == [(0,)]
    assert rows(owner, "SELECT DISTINCT retired_reason FROM memories") == [("evicted",)]


def test_a_cleared_session_begins_afresh_and_loses_nothing(memory: Memory, chat: None, owner: Engine) -> None:
    before = memory("expression", *MIRA, "--json").json["session_started_at"]

    done = memory("session", "clear", "chat", *MIRA)

    assert (done.status, done.out.strip()) == (0, "session chat was cleared")
    assert memory("expression", *MIRA, "--json").json["session_started_at"] > before
    assert rows(owner, "SELECT count(*) FROM turns") == [(1,)]
    assert rows(owner, "SELECT count(*) FROM memories WHERE retired_at IS NULL") == [(2,)]


@pytest.mark.parametrize("command", ["end", "clear"])
def test_a_session_that_is_not_there_is_named(memory: Memory, chat: None, command: str) -> None:
    refused = memory("session", command, "tea", *MIRA)

    assert refused.status == 1 and "'tea'" in refused.err


def test_a_checkpoint_is_made_listed_and_written_to_a_file(
    memory: Memory, chat: None, tmp_path: Path, owner: Engine
) -> None:
    file = tmp_path / "point.json"
    made = memory("checkpoints", "create", "--session", "chat", "--most", "1", *MIRA, "--json").json
    assert (made["nodes"], made["session"]) == (1, "chat")
    assert "2 memories" in memory("checkpoints", "create", *MIRA).out

    shown = memory("checkpoints", "list", *MIRA).out
    assert made["id"] in shown and "chat" in shown
    assert len(memory("checkpoints", "list", "--limit", "1", *MIRA, "--json").json) == 1
    written = memory("checkpoints", "export", made["id"], str(file), *MIRA)
    assert (written.status, f"1 nodes written to {file}" in written.out) == (0, True)
    assert len(json.loads(file.read_text())["nodes"]) == 1

    # What the file holds comes back once it is forgotten.
    memory("forget", "mira", "--yes", *ACME)
    assert memory("import", str(file), "--new-consent", *MIRA).status == 0
    assert rows(owner, "SELECT count(*) FROM memories WHERE retired_at IS NULL") == [(1,)]


def test_a_checkpoint_that_cannot_be_read_or_written_is_told(
    memory: Memory, chat: None, tmp_path: Path
) -> None:
    unknown = memory("checkpoints", "export", NOTHING, str(tmp_path / "point.json"), *MIRA)
    assert unknown.status == 1 and NOTHING in unknown.err
    made = memory("checkpoints", "create", *MIRA, "--json").json
    nowhere = memory("checkpoints", "export", made["id"], str(tmp_path / "none" / "point.json"), *MIRA)
    assert nowhere.status == 1 and "cannot be written" in nowhere.err
    session = memory("checkpoints", "create", "--session", "tea", *MIRA)
    assert session.status == 1 and "session: " in session.err


def test_what_says_the_same_is_consolidated_and_taken_back(
    memory: Memory, tenant: int, owner: Engine
) -> None:
    for words in SAILING:
        memory("remember", words, "--no-deduplicate", "--importance", "9", *MIRA)
    current = "SELECT count(*) FROM memories WHERE retired_at IS NULL"

    rehearsed = memory("consolidate", "--dry-run", *MIRA)
    assert (rehearsed.status, "1 clusters, would free 1" in rehearsed.out) == (0, True)
    assert rows(owner, current) == [(2,)]
    other = memory("consolidate", "--kind", "episode", *MIRA, "--json").json
    assert other["report"]["clusters"] == []
    done = memory("consolidate", *MIRA, "--json").json
    assert (done["report"]["merged"], rows(owner, current)) == (2, [(1,)])
    assert memory("undo", done["id"], *ACME).status == 0
    assert rows(owner, current) == [(2,)]
    refused = memory("consolidate", "--kind", "nonsense", *MIRA)
    assert refused.status == 1 and "kind" in refused.err


def test_what_has_faded_is_retired_at_once(memory: Memory, tenant: int, owner: Engine) -> None:
    # A fact would not: facts do not expire by age.
    stored = memory("remember", "Mira had pears for lunch.", "--kind", "episode", *MIRA, "--json").json
    with owner.begin() as connection:
        connection.execute(
            text(
                "UPDATE memories SET created_at = now() - interval '5 years',"
                " valid_from = now() - interval '5 years', last_seen = now() - interval '5 years'"
            )
        )

    done = memory("decay", *MIRA)

    assert (done.status, "1 retired, 0 deleted, 0 current" in done.out) == (0, True), done
    assert memory("show", stored["id"], *ACME, "--json").json["memory"]["retired_reason"] == "expired"
    assert memory("decay", *MIRA, "--json").json["report"]["retired"] == 0
    unknown = memory("decay", "--agent", "ada", "--user", "nobody", *ACME)
    assert unknown.status == 1 and "nobody" in unknown.err
