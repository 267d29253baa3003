"""The newest word of a person about now wins, whatever date it names and in whatever order it arrives."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from queries import rows
from sqlalchemy import Engine

from memory_app.db.db import transaction
from memory_app.memories.facts import FactQuery, find_facts
from memory_app.memories.remember import remember
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.turns.extract import extract_session
from memory_app.turns.record import record
from memory_app.turns.rows import sessions

SCOPE = Scope("ada", "mira")
FIRST, LATER = datetime(2026, 11, 18, 9, tzinfo=UTC), datetime(2026, 11, 28, 9, tzinfo=UTC)


def say(runtime: Runtime, tenant: int, words: str, at: datetime, *, session: str = "chat") -> None:
    scope = Scope("ada", "mira", session)
    record(runtime, tenant, scope, [NewTurn(Role.USER, words, at=at)])
    with transaction(runtime.engine, tenant) as connection:
        row = names.need_scope(connection, tenant, scope)
        found = sessions.find(connection, row.id, session)
    assert found is not None
    extract_session(runtime, found.id)


def facts_now(runtime: Runtime, tenant: int, relation: str, **query: Any) -> list[str | None]:
    hits = find_facts(runtime, tenant, SCOPE, query=FactQuery(relation=relation, **query))
    return sorted(str(hit.memory.object) for hit in hits)


@pytest.mark.parametrize(
    ("relation", "first", "later", "old", "new"),
    [
        ("lives_in", "I live in Porto near the river.", "I moved to Lisbon last month.", "Porto", "Lisbon"),
        ("lives_in", "I live in Porto near the river.", "I moved to Lisbon yesterday.", "Porto", "Lisbon"),
        ("lives_in", "I live in Porto these days.", "I have lived in Lisbon since March.", "Porto", "Lisbon"),
        (
            "works_at",
            "I work at the city library.",
            "I started working at the harbour museum two weeks ago.",
            "city library",
            "harbour museum",
        ),
    ],
)
def test_a_dated_word_about_now_ends_what_was_said_before_it(
    runtime: Runtime, tenant: int, owner: Engine, relation: str, first: str, later: str, old: str, new: str
) -> None:
    say(runtime, tenant, first, FIRST)
    say(runtime, tenant, later, LATER)

    assert facts_now(runtime, tenant, relation) == [new]
    (ended,) = rows(owner, "SELECT * FROM memories WHERE object = :object", object=old)
    assert FIRST < ended.valid_until <= LATER
    assert ended.retired_reason == "superseded"


def test_the_same_correction_minutes_later_wins_as_well(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "I live in Porto near the river.", FIRST)
    say(runtime, tenant, "Actually, I moved to Lisbon last month.", FIRST + timedelta(minutes=3))

    assert facts_now(runtime, tenant, "lives_in") == ["Lisbon"]


def test_for_the_time_that_both_claim_both_are_shown_as_overlapping(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "I live in Porto near the river.", FIRST)
    say(runtime, tenant, "I moved to Lisbon last month.", LATER)

    both = find_facts(
        runtime, tenant, SCOPE, query=FactQuery(relation="lives_in", as_of=FIRST + timedelta(days=1))
    )
    now = find_facts(runtime, tenant, SCOPE, query=FactQuery(relation="lives_in"))

    assert sorted((hit.memory.object, hit.overlapping) for hit in both) == [("Lisbon", True), ("Porto", True)]
    assert [(hit.memory.object, hit.overlapping) for hit in now] == [("Lisbon", False)]


def test_a_pet_of_an_earlier_session_is_known_by_its_name(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "I have a dog called Biscuit. My cat is called Olive.", FIRST, session="spring")
    say(runtime, tenant, "Biscuit died last night.", LATER, session="autumn")

    assert facts_now(runtime, tenant, "has_pet") == ["Olive"]
    assert facts_now(runtime, tenant, "no_longer_has") == ["Biscuit"]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_old_talk_that_is_imported_later_does_not_change_what_is_current(
    runtime: Runtime, tenant: int, order: tuple[int, ...]
) -> None:
    talk = [
        ("I live in Porto near the river.", FIRST),
        ("I moved to Lisbon last month.", LATER),
        ("I live in Braga these days.", FIRST + timedelta(days=3)),
    ]
    for number in order:
        words, at = talk[number]
        say(runtime, tenant, words, at, session=f"chat-{number}")

    assert facts_now(runtime, tenant, "lives_in") == ["Lisbon"]
    at = FIRST + timedelta(days=1)
    assert facts_now(runtime, tenant, "lives_in", as_of=at) == ["Lisbon", "Porto"]


def test_a_clock_that_is_ahead_does_not_have_the_last_word(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    say(runtime, tenant, "I live in Oslo, near the harbour.", datetime.now(UTC) + timedelta(days=400))
    say(runtime, tenant, "I moved to Bergen for good.", datetime.now(UTC))

    assert facts_now(runtime, tenant, "lives_in") == ["Bergen"]
    assert rows(owner, "SELECT FROM turns WHERE at > now()") == []


def test_a_clock_that_is_a_little_ahead_is_believed(runtime: Runtime, tenant: int, owner: Engine) -> None:
    at = datetime.now(UTC) + timedelta(minutes=2)
    say(runtime, tenant, "I live in Oslo, near the harbour.", at)

    assert [row.at for row in rows(owner, "SELECT at FROM turns")] == [at]


def test_a_caller_may_say_when_a_statement_was_said(runtime: Runtime, tenant: int) -> None:
    def home(city: str, start: datetime, said_at: datetime | None = None) -> None:
        statement = Statement(
            "fact",
            f"Mira lives in {city}.",
            subject="Mira",
            relation="lives_in",
            object=city,
            valid_from=start,
            said_at=said_at,
        )
        remember(runtime, tenant, SCOPE, statement=statement)

    home("Porto", FIRST)
    home("Lisbon", FIRST - timedelta(days=20), LATER)
    # Without it a date tells when it was said, so that a history may be told in any order.
    home("Braga", FIRST - timedelta(days=400))
    home("Faro", FIRST - timedelta(days=20), datetime.now(UTC) + timedelta(days=900))

    assert facts_now(runtime, tenant, "lives_in") == ["Faro"]
    home("Coimbra", datetime.now(UTC), datetime.now(UTC) + timedelta(seconds=1))
    assert facts_now(runtime, tenant, "lives_in") == ["Coimbra"]
