"""What an agent shows every person, and an agent that is replaced as a whole, by commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Memory
from sqlalchemy import Engine, text

ACME = ("--tenant", "acme")
ADA = ("--agent", "ada", *ACME)
RULE = [{"text": "Ada never gives medical advice.", "kind": "core", "tags": ["rule"]}]


def test_what_is_stored_for_all_is_shown_to_everybody(memory: Memory, tenant: int, owner: Engine) -> None:
    stored = memory("remember", "The shop is closed on Mondays.", "--for-all", *ADA, "--json").json
    memory("remember", "Mira likes pears.", "--user", "mira", *ADA)

    with owner.connect() as connection:
        users = connection.execute(
            text("SELECT s.user_id FROM memories m JOIN scopes s ON s.id = m.scope_id WHERE m.id = :id"),
            {"id": stored["id"]},
        ).scalar_one()
    assert users is None
    (row,) = memory("list", "--for-all", *ADA, "--json").json
    assert row["text"] == "The shop is closed on Mondays."
    assert len(memory("list", "--user", "mira", *ADA, "--json").json) == 2
    assert "closed on Mondays" in memory("recall", "When is the shop closed?", "--user", "mira", *ADA).out


@pytest.mark.parametrize(
    "arguments",
    [
        ("remember", "Mira likes pears.", "--for-all", "--user", "mira"),
        ("remember", "Mira likes pears.", "--for-all", "--session", "chat"),
        ("list", "--for-all", "--user", "mira"),
    ],
)
def test_for_all_and_for_one_person_is_refused(
    memory: Memory, tenant: int, owner: Engine, arguments: tuple[str, ...]
) -> None:
    refused = memory(*arguments, *ADA)

    assert (refused.status, "--for-all" in refused.err) == (2, True)
    with owner.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM memories")).scalar_one() == 0


def test_an_agent_is_made_and_replaced_as_a_whole(memory: Memory, tenant: int, tmp_path: Path) -> None:
    file = tmp_path / "memories.json"
    file.write_text(json.dumps(RULE))
    persona = '{"name": "Ada", "style": "casual"}'
    made = memory("agent", "ada", "--replace", "--persona", persona, "--default-memories", str(file), *ACME)
    assert (made.status, "default memory: Ada never gives medical advice." in made.out) == (0, True)

    replaced = memory("agent", "ada", "--replace", "--persona", '{"name": "Eva"}', *ACME, "--json").json
    assert (replaced["persona"]["name"], replaced["persona"]["style"] != "casual") == ("Eva", True)
    # What is not given stays, and null is the default.
    assert [row["text"] for row in replaced["default_memories"]] == [RULE[0]["text"]]
    bare = memory("agent", "ada", "--replace", "--default-memories", "null", *ACME, "--json").json
    assert (bare["default_memories"], bare["persona"]["name"]) == ([], "Eva")


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (("--replace",), 2, "--replace"),
        (("--default-memories", "[]"), 2, "--default-memories"),
        (("--replace", "--default-memories", "{}"), 1, "--default-memories"),
        (("--replace", "--default-memories", '[{"text": "Ada.", "size": 3}]'), 1, "default_memories[0].size"),
        (("--replace", "--default-memories", '[{"kind": "core"}]'), 1, "default_memories[0].text"),
        (("--replace", "--default-memories", '["Ada."]'), 1, "default_memories[0]: "),
        (
            ("--replace", "--default-memories", '[{"text": "Ada.", "tags": 3}]'),
            1,
            "default_memories[0].tags",
        ),
        (("--policy", "null"), 1, "--policy"),
    ],
)
def test_a_wrong_part_of_an_agent_is_named(
    memory: Memory, tenant: int, arguments: tuple[str, ...], status: int, told: str
) -> None:
    memory("agent", "ada", "--replace", "--policy", "{}", *ACME)

    refused = memory("agent", "ada", *arguments, *ACME)

    assert (refused.status, told in refused.err) == (status, True), refused
