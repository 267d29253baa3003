"""Commands about one memory, fact or entity, and about what a scope holds: what they show, and what is stored after."""

from __future__ import annotations

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


def current_texts(owner: Engine) -> set[str]:
    with owner.connect() as connection:
        return set(connection.execute(text("SELECT text FROM memories WHERE retired_at IS NULL")).scalars())


def test_a_fact_of_three_parts_is_stored_as_they_are(memory: Memory, tenant: int, owner: Engine) -> None:
    since = ("--valid-from", "2020-05-01T00:00:00+00:00")
    stored = memory("fact", "Mira", "lives_in", "Porto", *since, "--importance", "8", *MIRA, "--json").json

    assert stored["outcome"] == "inserted"
    with owner.connect() as connection:
        row = connection.execute(
            text("SELECT subject, relation, object, importance, valid_from::date::text FROM memories")
        ).one()
    assert tuple(row) == ("Mira", "lives_in", "Porto", 8, "2020-05-01")
    # Another place ends the first.
    shown = memory("fact", "Mira", "lives_in", "Lisbon", "--object-type", "place", *MIRA)
    assert (shown.status, "superseded" in shown.out) == (0, True)
    assert memory("entity", "place:lisbon", *MIRA).status == 0


@pytest.mark.parametrize(
    ("more", "status", "told"),
    [
        (("--object-type", "nonsense"), 1, "object_type: "),
        (("--importance", "5", "--importance-scale", "stars"), 1, "importance_scale: "),
        (("--valid-from", "yesterday"), 2, "--valid-from"),
    ],
)
def test_a_wrong_part_of_a_fact_is_named(
    memory: Memory, tenant: int, more: tuple[str, ...], status: int, told: str
) -> None:
    refused = memory("fact", "Mira", "likes", "pears", *more, *MIRA)

    assert refused.status == status and told in refused.err


def test_a_memory_is_shown_with_its_fields_and_versions(memory: Memory, tenant: int) -> None:
    first = memory("remember", "Mira works at the harbour.", "--tag", "work", *MIRA, "--json").json["id"]
    second = memory("correct", first, "Mira works at the market.", *ACME, "--json").json["id"]

    shown = memory("show", first, *ACME).out
    assert "tags: work" in shown and "versions, oldest first:" in shown and second in shown
    document = memory("show", second, *ACME, "--json").json
    assert document["memory"]["text"] == "Mira works at the market."
    assert [version["id"] for version in document["versions"]] == [first, second]


def test_a_merged_memory_is_taken_apart(memory: Memory, tenant: int, owner: Engine) -> None:
    for words in SAILING:
        memory("remember", words, "--no-deduplicate", *MIRA)
    memory("sleep", *MIRA)
    (merged,) = memory("list", *MIRA, "--json").json

    done = memory("unmerge", merged["id"], *ACME)

    assert (done.status, done.out.count("sailing")) == (0, 2)
    assert current_texts(owner) == set(SAILING)
    entries = memory("audit", "list", "--action", "memory.unmerge", *ACME, "--json").json
    assert {entry["target"] for entry in entries} == {merged["id"]}
    again = memory("unmerge", done.out.split()[0], *ACME)
    assert again.status == 1 and "not made by merging" in again.err


def test_an_entity_is_shown_merged_and_apart_again(memory: Memory, tenant: int) -> None:
    memory("fact", "Bob", "likes", "jazz", "--subject-type", "person", *MIRA)
    memory("fact", "Robert", "plays", "chess", "--subject-type", "person", *MIRA)

    shown = memory("entity", "person:bob", *MIRA).out
    assert "person:bob: Bob (person)" in shown and "jazz" in shown and "chess" not in shown
    merged = memory("entity", "person:bob", "--merge-into", "person:robert", *MIRA, "--json").json
    assert merged["card"]["entity"]["key"] == "person:robert"
    # The old key leads to the one that is left.
    card = memory("entity", "person:bob", *MIRA, "--json").json
    assert card["entity"]["key"] == "person:robert" and card["alias_keys"] == ["person:bob"]
    assert memory("undo", merged["run_id"], *ACME).status == 0
    assert memory("entity", "person:bob", *MIRA, "--json").json["entity"]["key"] == "person:bob"

    told = memory("entity", "person:bob", "--merge-into", "person:robert", *MIRA).out
    assert "`memory undo " in told
    itself = memory("entity", "person:robert", "--merge-into", "person:robert", *MIRA)
    assert itself.status == 1 and "into: " in itself.err
    unknown = memory("entity", "person:nobody", *MIRA)
    assert unknown.status == 1 and "person:nobody" in unknown.err


@pytest.fixture
def chat(runtime: Runtime, tenant: int) -> None:
    """A conversation of Mira with ada, in which she asked something."""
    turns = [NewTurn(Role.USER, "Where is the nearest harbour?"), NewTurn(Role.ASSISTANT, "In Porto.")]
    record(runtime, tenant, Scope("ada", "mira", "chat"), turns)
    finder.drain(runtime)


def test_a_scope_is_counted_beside_its_limits(memory: Memory, chat: None) -> None:
    memory("remember", "Mira likes pears.", *MIRA)

    counts = memory("stats", *MIRA, "--json").json
    assert counts["memories"]["fact"] == 1
    assert (counts["rows"]["turns"], counts["rows"]["sessions"]) == (2, 1)
    shown = memory("stats", *MIRA).out
    assert "mira with ada" in shown and str(counts["max_memories"]) in shown and "failed turns" in shown
    unknown = memory("stats", "--agent", "ada", "--user", "nobody", *ACME)
    assert unknown.status == 1 and "nobody" in unknown.err


def test_a_question_like_one_that_was_asked_is_found(memory: Memory, chat: None) -> None:
    (row,) = memory("queries", "Where is the nearest harbour?", "--session", "chat", *MIRA, "--json").json

    assert (row["text"], row["session"], row["repeats"]) == ("Where is the nearest harbour?", "chat", 1)
    assert "nearest harbour" in memory("queries", "Where is a harbour?", *MIRA).out
    empty = memory("queries", " ", *MIRA)
    assert empty.status == 1 and "text: " in empty.err


def test_how_an_agent_speaks_is_shown(memory: Memory, chat: None) -> None:
    memory("agent", "ada", "--persona", '{"name": "Ada the second"}', *ACME)

    state = memory("expression", *MIRA, "--json").json
    assert (state["session"], state["persona"]["name"]) == ("chat", "Ada the second")
    shown = memory("expression", *MIRA).out
    assert 'persona.name = "Ada the second"' in shown and "session: chat" in shown


@pytest.mark.parametrize("command", ["show", "unmerge"])
def test_what_is_no_memory_is_told(memory: Memory, tenant: int, command: str) -> None:
    assert memory(command, "porto", *ACME).status == 2
    unknown = memory(command, NOTHING, *ACME)
    assert unknown.status == 1 and NOTHING in unknown.err
