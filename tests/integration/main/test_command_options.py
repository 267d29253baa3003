"""Options with which commands say all that a call over HTTP can: what is stored by them, and what is found."""

from __future__ import annotations

from typing import Any

from commands import Memory
from sqlalchemy import Engine, text

from memory_app.dispatch import finder
from memory_app.runtime import Runtime

ACME = ("--tenant", "acme")
MIRA = ("--agent", "ada", "--user", "mira", *ACME)
NOTHING = "01a227e1-33d5-7000-8000-000000000000"


def row_of(owner: Engine, statement: str) -> tuple[Any, ...]:
    with owner.connect() as connection:
        return tuple(connection.execute(text(statement)).one())


def test_a_turn_is_recorded_with_all_that_is_known_of_it(
    memory: Memory, runtime: Runtime, tenant: int, owner: Engine
) -> None:
    details = (
        "--emotional-tone",
        "warm",
        "--tool",
        "calendar",
        "--tool",
        "mail",
        "--metadata",
        '{"room": 7}',
    )
    first = memory("record", "I live in Porto.", *details, "--idempotency-key", "a", *MIRA, "--json").json
    again = memory("record", "I live in Porto.", *details, "--idempotency-key", "a", *MIRA, "--json").json
    assert again["id"] == first["id"]
    (turn,) = memory("turns", "cli", *MIRA, "--json").json
    assert (turn["emotional_tone"], turn["tools_used"], turn["metadata"]) == (
        "warm",
        ["calendar", "mail"],
        {"room": 7},
    )

    edited = memory("record", "I live in Lisbon.", "--replaces", first["id"], *MIRA, "--json").json

    # It is hidden at once, and a worker erases it.
    assert [turn["id"] for turn in memory("turns", "cli", *MIRA, "--json").json] == [edited["id"]]
    finder.drain(runtime)
    assert row_of(owner, "SELECT id::text, text FROM turns") == (edited["id"], "I live in Lisbon.")
    refused = memory("record", "Hello.", "--metadata", "[]", *MIRA)
    assert refused.status == 1 and "--metadata: a JSON object is required" in refused.err
    unknown = memory("record", "Hello.", "--replaces", NOTHING, *MIRA)
    assert unknown.status == 1 and "replaces" in unknown.err


def test_a_statement_is_stored_with_its_parts_and_times(memory: Memory, tenant: int, owner: Engine) -> None:
    parts = ("--subject", "Mira", "--relation", "lives_in", "--object", "Porto", "--subtype", "relationship")
    times = ("--valid-from", "2020-05-01T00:00:00+00:00", "--valid-until", "2021-05-01T00:00:00+00:00")
    scale = ("--importance", "3", "--importance-scale", "0-3")
    memory("remember", "Mira lived in Porto.", *parts, *times, *scale, *MIRA)

    assert row_of(
        owner,
        "SELECT subject, relation, object, subtype, importance, valid_from::date::text, valid_until::date::text"
        " FROM memories",
    ) == ("Mira", "lives_in", "Porto", "relationship", 9, "2020-05-01", "2021-05-01")
    refused = memory("remember", "Mira likes pears.", "--subject", "Mira", *MIRA)
    assert refused.status == 1 and "relation" in refused.err
    assert memory("remember", "Mira likes pears.", "--said-at", "yesterday", *MIRA).status == 2


def test_facts_are_found_by_what_was_known_and_by_words(memory: Memory, tenant: int) -> None:
    memory("fact", "Mira", "likes", "pears", *MIRA)
    memory("fact", "Mira", "likes", "jazz", *MIRA)

    def objects(*options: str) -> list[str]:
        return [hit["memory"]["object"] for hit in memory("facts", *options, *MIRA, "--json").json]

    assert objects("--object", "pears") == ["pears"]
    assert objects("--known-at", "2000-01-01T00:00:00+00:00") == []
    assert objects("--query", "jazz", "--match", "keyword") == ["jazz"]
    assert objects("--query", "Mira likes jazz.", "--limit", "1") == ["jazz"]
    newest = memory("facts", "--limit", "1", *MIRA, "--json").json[0]["memory"]["id"]
    assert objects("--cursor", newest) == ["pears"]


def test_recall_is_narrowed_to_one_session(memory: Memory, runtime: Runtime, tenant: int) -> None:
    for session, words in (("chat", "My dog Rex likes the beach."), ("tea", "The beach was empty today.")):
        memory("record", words, "--session", session, *MIRA)
    finder.drain(runtime)

    turns = ("recall", "beach", "--tier", "daily-logs", *MIRA, "--json")
    assert len(memory(*turns).json["memories"]) == 2
    (row,) = memory(*turns, "--only-session", "tea").json["memories"]
    assert row["text"] == "The beach was empty today."


def test_listings_of_the_operator_have_pages(memory: Memory, tenant: int) -> None:
    for kind in ("one", "two"):
        memory("agent", kind, "--replace", "--policy", "{}", *ACME)
    (newest,) = memory("audit", "list", "--limit", "1", *ACME, "--json").json

    (before,) = memory("audit", "list", "--limit", "1", "--cursor", str(newest["seq"]), *ACME, "--json").json

    assert before["seq"] < newest["seq"]
    for command in ("failed", "refused"):
        assert memory(command, "--cursor", NOTHING, *ACME, "--json").json == []
        wrong = memory(command, "--cursor", "porto", *ACME)
        assert wrong.status == 1 and "cursor" in wrong.err
