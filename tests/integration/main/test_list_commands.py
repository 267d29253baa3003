"""Commands that show what is stored, and change what becomes of a memory: as people read it, and as JSON."""

from __future__ import annotations

import pytest
from commands import Memory

from memory_app.dispatch import finder
from memory_app.memories.facts import add_fact
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.testing import Rule, StubProvider
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


def test_memories_are_linked_and_no_longer(memory: Memory, fact: str) -> None:
    stored = memory("remember", "Mira works at the harbour.", *MIRA, "--json").json
    drawn = memory("link", fact, stored["id"], "--type", "causes", "--weight", "0.5", *MIRA, "--json").json
    assert (drawn["source"], drawn["target"], drawn["type"], drawn["weight"]) == (
        fact,
        stored["id"],
        "causes",
        0.5,
    )
    assert drawn["id"] in {row["id"] for row in memory("links", fact, *MIRA, "--json").json}
    refused = memory("link", fact, stored["id"], "--weight", "2", *MIRA)
    assert refused.status == 1 and "weight: " in refused.err
    assert "removed" in memory("unlink", drawn["id"], *MIRA).out
    assert drawn["id"] not in {row["id"] for row in memory("links", fact, *MIRA, "--json").json}
    again = memory("unlink", drawn["id"], *MIRA)
    assert again.status == 1 and drawn["id"] in again.err


def test_a_person_s_names_and_zone_are_shown_and_changed(memory: Memory, fact: str) -> None:
    changed = memory(
        "user", "mira", "--time-zone", "Europe/Lisbon", "--alias", "Mimi", "--alias", "M.", *ACME, "--json"
    ).json
    assert (changed["time_zone"], changed["zone_is_set"], changed["aliases"]) == (
        "Europe/Lisbon",
        True,
        ["Mimi", "M."],
    )
    # What is not given stays.
    memory("user", "mira", "--label", "Mira B.", *ACME)
    shown = memory("user", "mira", *ACME).out.splitlines()
    assert shown == ["mira", "label: Mira B.", "also called: Mimi, M.", "time zone: Europe/Lisbon"]
    bare = memory("user", "mira", "--label", "", "--time-zone", "", "--alias", "", *ACME, "--json").json
    assert (bare["label"], bare["zone_is_set"], bare["aliases"]) == (None, False, [])
    refused = memory("user", "mira", "--time-zone", "Lisbon", *ACME)
    assert refused.status == 1 and "time_zone: " in refused.err
    unknown = memory("user", "nobody", *ACME)
    assert unknown.status == 1 and "nobody" in unknown.err


def test_turns_are_made_memories_of_by_a_model(
    memory: Memory, fact: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = memory("synthesize", "turn", *MIRA)
    assert refused.status == 1 and "session" in refused.err
    memory("agent", "ada", "--policy", '{"extraction": "llm"}', *ACME)
    empty: dict[str, object] = {"insights": [], "identity_notes": [], "topics": [], "tones": [], "facts": []}
    with StubProvider(Rule(answer=empty)) as stub:
        monkeypatch.setenv("MEMORY_CHAT__BASE_URL", stub.base_url)
        monkeypatch.setenv("MEMORY_CHAT__MODEL", "small")
        run = memory("synthesize", "turn", "--session", "chat", *MIRA, "--json").json
        assert (run["name"], run["state"]) == ("synthesize_turns", "done")
        assert "Hello Ada." in str(stub.requests[-1].body)
        shown = memory("synthesize", "turn", "--session", "chat", *MIRA)
    assert shown.status == 0 and shown.out.startswith("run ")


@pytest.mark.parametrize("command", ["pin", "unpin", "invalidate", "revive"])
def test_what_is_no_id_or_of_nothing_is_told(memory: Memory, tenant: int, command: str) -> None:
    assert memory(command, "porto", *ACME).status == 2
    unknown = memory(command, "01a227e1-33d5-7000-8000-000000000000", *ACME)
    assert unknown.status == 1 and "no memory" in unknown.err
