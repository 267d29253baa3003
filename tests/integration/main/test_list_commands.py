"""Commands that show what is stored, and change what becomes of a memory: as people read it, and as JSON."""

from __future__ import annotations

import pytest
from commands import Memory

from memory_app.dispatch import finder
from memory_app.memories.facts import add_fact
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.record import record

ACME = ("--tenant", "acme")
MIRA = ("--agent", "ada", "--user", "mira", *ACME)


@pytest.fixture
def fact(runtime: Runtime, tenant: int) -> str:
    """A fact of Mira with ada, beside a turn of hers."""
    record(runtime, tenant, Scope("ada", "mira", "chat"), [NewTurn(Role.USER, "Hello Ada.")])
    finder.drain(runtime)
    statement = Statement("fact", "Mira lives in Porto.", subject="Mira", relation="lives_in", object="Porto")
    return str(add_fact(runtime, tenant, Scope("ada", "mira"), statement=statement).id)


def test_listings_are_for_people_and_for_programs(memory: Memory, fact: str) -> None:
    shown = {
        ("turns", "chat", *MIRA): "Hello Ada.",
        ("sessions", *MIRA): "chat",
        ("facts", "--subject", "Mira", *MIRA): "Mira lives in Porto.",
        ("entities", *MIRA): "porto",
        ("users", *ACME): "mira",
        ("agents", *ACME): "ada",
    }
    for command, words in shown.items():
        told = memory(*command)
        assert (told.status, words in told.out) == (0, True), (command, told)
        rows = memory(*command, "--json").json
        assert isinstance(rows, list) and rows, command
    assert memory("links", fact, *MIRA, "--json").json == []
    assert memory("facts", "--as-of", "2000-01-01T00:00:00+00:00", *MIRA, "--json").json == []


def test_a_memory_is_pinned_ended_and_rated(memory: Memory, fact: str) -> None:
    assert memory("pin", fact, *ACME, "--json").json["pinned"] is True
    assert memory("unpin", fact, *ACME, "--json").json["pinned"] is False
    assert "up" in memory("feedback", fact, "up", *MIRA).out
    assert "(invalidated)" in memory("invalidate", fact, *ACME).out
    refused = memory("revive", fact, *ACME)
    assert refused.status == 1 and "was invalidated" in refused.err


@pytest.mark.parametrize("command", ["pin", "unpin", "invalidate", "revive"])
def test_what_is_no_id_or_of_nothing_is_told(memory: Memory, tenant: int, command: str) -> None:
    assert memory(command, "porto", *ACME).status == 2
    unknown = memory(command, "01a227e1-33d5-7000-8000-000000000000", *ACME)
    assert unknown.status == 1 and "no memory" in unknown.err
