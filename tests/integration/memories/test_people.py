"""Who is who: the user by one id whatever their name, others by their full name, each tied to what is told of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import all_shards
import pytest
from queries import rows
from sqlalchemy import Engine

from memory_app.agents.rows import agents
from memory_app.app import MemoryApp
from memory_app.dispatch import finder
from memory_app.memories.entities import Card
from memory_app.records.records import Mention
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime

SCOPE, CHAT = Scope("ada", "u-7"), Scope("ada", "u-7", "chat")
START = datetime(2026, 9, 1, 9, tzinfo=UTC)
PETRA = "person:petra_novak"


@pytest.fixture
def memory_app(runtime: Runtime, tenant: int) -> MemoryApp:
    return MemoryApp(runtime, tenant_id=tenant)


def say(memory: MemoryApp, scope: Scope, *turns: tuple[str | None, str]) -> None:
    """Turns of the user, a day apart, each with the name that signs it."""
    for day, (name, words) in enumerate(turns):
        at = (START + timedelta(days=day)).isoformat()
        signed = {} if name is None else {"name": name}
        memory.record(scope, words, at=at, **signed)
    finder.drain(memory.runtime)


def homes(memory: MemoryApp, scope: Scope, subject: str) -> list[tuple[str | None, bool]]:
    hits = memory.facts(scope, subject=subject, relation="lives_in", history=True)
    return [(hit.memory.object, hit.memory.valid_until is None) for hit in hits]


def petra(memory: MemoryApp) -> Card:
    return memory.entity(SCOPE, PETRA)


def know_petra(memory: MemoryApp) -> int:
    memory.remember(SCOPE, "Petra Novak plays the oboe.", mentions=(Mention("person", "Petra Novak"),))
    return petra(memory).entity.mention_count


THREE_NAMES = (
    ("Mira", "I live in Bonn with my cat."),
    ("Mirabel", "I moved to Trier for good."),
    (None, "I live in Kassel these days."),
)


@pytest.mark.parametrize("user", ["u-7", "mira", "Mirabel", "mira@example.com"])
def test_one_user_under_three_names_has_three_homes_in_time(
    memory_app: MemoryApp, owner: Engine, user: str
) -> None:
    scope = Scope("ada", user)
    say(memory_app, Scope("ada", user, "chat"), *THREE_NAMES)

    in_time = [("Bonn", False), ("Trier", False), ("Kassel", True)]
    for name in (user, "Mira", "Mirabel"):
        assert homes(memory_app, scope, name) == in_time, name
    assert len({row.subject_key for row in rows(owner, "SELECT subject_key FROM memories")}) == 1
    (entity,) = rows(owner, "SELECT * FROM entities WHERE merged_into IS NULL AND type = 'person'")
    assert {"Mira", "Mirabel"} <= {entity.label.capitalize(), *entity.aliases, user.capitalize()}


def test_a_fact_added_under_a_display_name_is_the_users(memory_app: MemoryApp) -> None:
    say(memory_app, CHAT, *THREE_NAMES)
    memory_app.add_fact(SCOPE, "Mirabel", "lives_in", "Mainz")

    assert homes(memory_app, SCOPE, "u-7")[-1] == ("Mainz", True)


def test_in_a_group_each_name_is_a_person(memory_app: MemoryApp, owner: Engine, tenant: int) -> None:
    with owner.begin() as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"policy": {"group": True}},
            copies=all_shards.copies(connection),
        )
    room = Scope("ada", "room", "chat")
    say(memory_app, room, ("Mira", "I live in Bonn with my cat."), ("Tom", "I live in Trier with my dog."))

    assert homes(memory_app, Scope("ada", "room"), "Mira") == [("Bonn", True)]
    assert homes(memory_app, Scope("ada", "room"), "Tom") == [("Trier", True)]


@pytest.mark.parametrize(("user", "name"), [("anna", None), ("anna", "Anna"), ("u-7", "Anna")])
def test_a_friend_of_the_same_name_is_somebody_else(
    memory_app: MemoryApp, owner: Engine, user: str, name: str | None
) -> None:
    chat = Scope("ada", user, "chat")
    say(
        memory_app,
        chat,
        (name, "My friend Anna lives in Rome."),
        (name, "I live in Oslo, near the harbour."),
    )

    current = rows(owner, "SELECT * FROM memories WHERE relation = 'lives_in' AND valid_until IS NULL")
    assert {row.object for row in current} == {"Rome", "Oslo"}
    assert homes(memory_app, Scope("ada", user), user) == [("Oslo", True)]
    card = memory_app.entity(Scope("ada", user), "person:anna")
    assert all("Rome" not in fact.text for fact in card.facts)


def test_a_statement_that_names_a_known_entity_stands_on_its_card(memory_app: MemoryApp) -> None:
    mentions = know_petra(memory_app)

    memory_app.remember(SCOPE, "Petra Novak is afraid of geese.")
    memory_app.remember(SCOPE, "Yesterday Petra's brother came by.")
    memory_app.remember(SCOPE, "Petra Lind is afraid of ducks.")

    card = petra(memory_app)
    assert {fact.text for fact in card.facts} == {
        "Petra Novak plays the oboe.",
        "Petra Novak is afraid of geese.",
        "Yesterday Petra's brother came by.",
    }
    assert card.entity.mention_count == mentions + 2


def by_tool(memory: MemoryApp) -> None:
    memory.call_tool(SCOPE, "store_memory", {"text": "Petra Novak is afraid of geese."})


def by_fact(memory: MemoryApp) -> None:
    memory.add_fact(SCOPE, "Petra Novak", "fears", "geese")


def by_turn(memory: MemoryApp) -> None:
    say(memory, CHAT, (None, "Oh, and Petra Novak is afraid of geese."))


def by_turn_with_a_fact(memory: MemoryApp) -> None:
    say(memory, CHAT, (None, "I live in Oslo. Petra was loud today."))


@pytest.mark.parametrize("door", [by_tool, by_fact, by_turn, by_turn_with_a_fact])
def test_every_door_counts_a_mention_of_who_is_known(memory_app: MemoryApp, door: Any) -> None:
    mentions = know_petra(memory_app)

    door(memory_app)

    assert petra(memory_app).entity.mention_count == mentions + 1


def test_an_agent_without_entities_keeps_none(memory_app: MemoryApp, owner: Engine, tenant: int) -> None:
    with owner.begin() as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"policy": {"entity_extraction": False}},
            copies=all_shards.copies(connection),
        )
    say(memory_app, CHAT, ("Mira", "I live in Bonn with my friend Petra Novak."))
    memory_app.remember(SCOPE, "Petra Novak plays.", mentions=(Mention("person", "Petra Novak"),))

    assert rows(owner, "SELECT * FROM entities") == []
    assert rows(owner, "SELECT * FROM memories WHERE relation = 'lives_in'") != []
