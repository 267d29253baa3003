"""A statement that is said again: nothing that the caller sent is lost, from any door."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from embedders import at_angles
from queries import rows
from sqlalchemy import Engine

from memory_app.app import MemoryApp
from memory_app.db.tables.memories import memories as memories_table
from memory_app.errors import InvalidInput
from memory_app.memories.facts import add_fact
from memory_app.memories.remember import remember
from memory_app.memories.rows.memory_rows import INSERTED_COLUMNS, KEPT_ON_REPETITION, REPEATED_COLUMNS
from memory_app.records.records import (
    EmotionalState,
    Mention,
    NewTurn,
    Origin,
    Outcome,
    RelationalContext,
    Role,
    Statement,
)
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.record import record

SCOPE, SESSION = Scope("ada", "bob"), Scope("ada", "bob", "s1")
TEXT = "Priya is allergic to walnuts."
LAST_YEAR, IN_A_YEAR = datetime(2025, 5, 1, tzinfo=UTC), datetime.now(UTC) + timedelta(days=365)

CALM, AFRAID = EmotionalState("calm", 0.2), EmotionalState("concern", 0.9, "supporting")
BOND = RelationalContext(0.3, communication_style=("short",), user_values=("health",))
CLOSER = RelationalContext(0.7, communication_style=("warm",), user_struggles=("food",))

# For each field of a statement: what is stored first, what is said again, and columns of the row that is then there.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "kind": ({}, {}, {"kind": "fact"}),
    "text": ({}, {"text": "PRIYA is allergic to walnuts"}, {"text": TEXT}),
    "subtype": ({}, {"subtype": "preference"}, {"subtype": "preference"}),
    "subject": (
        {"subject": "Priya", "relation": "allergic_to"},
        {"subject": "Priya", "relation": "allergic_to"},
        {"subject": "Priya", "subject_key": "priya"},
    ),
    "relation": (
        {"subject": "Priya", "relation": "allergic_to", "object": "walnuts"},
        {"subject": "Priya", "relation": "allergic", "object": "walnuts"},
        {"relation": "allergic_to"},
    ),
    "object": (
        {"subject": "Priya", "relation": "allergic_to"},
        {"subject": "Priya", "relation": "allergic_to", "object": "walnuts"},
        {"object": "walnuts", "object_key": "walnuts"},
    ),
    "confidence": ({"confidence": 0.5}, {"confidence": 0.9}, {"confidence": pytest.approx(0.9)}),
    "tags": ({"tags": ("food",)}, {"tags": ("health", "food")}, {"tags": ["food", "health"]}),
    "pinned": ({}, {"pinned": True}, {"pinned": True}),
    "origin": ({"origin": Origin.IMPORTED}, {"origin": Origin.SYNTHESIZED}, {"origin": "imported"}),
    "emotional_state": (
        {"emotional_state": CALM},
        {"emotional_state": AFRAID},
        {"emotional_state": {"valence": "concern", "intensity": 0.9, "user_impact": "supporting"}},
    ),
    "relational_context": (
        {"relational_context": BOND},
        {"relational_context": CLOSER},
        {
            "relational_context": {
                "bond_strength": 0.7,
                "communication_style": ["short", "warm"],
                "shared_references": [],
                "user_values": ["health"],
                "user_struggles": ["food"],
            }
        },
    ),
    "valid_until": (
        {"subject": "Priya", "relation": "allergic_to", "object": "walnuts"},
        {"subject": "Priya", "relation": "allergic_to", "object": "walnuts", "valid_until": IN_A_YEAR},
        {"valid_until": IN_A_YEAR},
    ),
    "synthesis_type": ({}, {"synthesis_type": "pattern"}, {"synthesis_type": "pattern"}),
    "importance": ({"importance": 4}, {"importance": 10}, {"importance": 10}),
    "importance_scale": (
        {"importance": 4},
        {"importance": 3, "importance_scale": "0-3"},
        {"importance": 9},
    ),
    "valid_from": ({}, {"valid_from": LAST_YEAR}, {"valid_from": LAST_YEAR}),
    "said_at": (
        {"valid_from": LAST_YEAR},
        {"valid_from": LAST_YEAR, "said_at": LAST_YEAR + timedelta(days=9)},
        {"confirmed_at": LAST_YEAR + timedelta(days=9), "first_confirmed_at": LAST_YEAR},
    ),
    "source": ({"source": "user:bob"}, {"source": "user:eve"}, {"sources": ["user:bob", "user:eve"]}),
    # What else was said in error changes nothing of what was right before.
    "corrects": (
        {"subject": "Priya", "relation": "allergic_to", "object": "walnuts"},
        {"subject": "Priya", "relation": "allergic_to", "object": "walnuts", "corrects": "wasps"},
        {"object": "walnuts", "object_key": "walnuts"},
    ),
    "is_beside": (
        {"subject": "Priya", "relation": "allergic_to", "object": "walnuts"},
        {"subject": "Priya", "relation": "allergic_to", "object": "walnuts", "is_beside": True},
        {"single_valued": False},
    ),
    # In tables of their own: the tests below.
    "mentions": ({}, {}, {}),
    "evidence": ({}, {}, {}),
    "parents": ({}, {}, {}),
}


@pytest.fixture
def memory_app(runtime: Runtime, tenant: int) -> MemoryApp:
    return MemoryApp(runtime, tenant_id=tenant)


def only_row(owner: Engine) -> Any:
    (row,) = rows(owner, "SELECT * FROM memories WHERE retired_at IS NULL")
    return row


def say(runtime: Runtime, tenant: int, **fields_said: Any) -> Any:
    statement = Statement(**{"kind": "fact", "text": TEXT} | fields_said)
    return remember(runtime, tenant, SCOPE, statement=statement)


def test_every_field_of_a_statement_has_a_case() -> None:
    assert CASES.keys() == {field.name for field in fields(Statement)}


def test_every_column_is_either_united_or_kept_on_purpose() -> None:
    managed = {"id", "tenant_id", "scope_id", "stored_at", "successor", "retired_at", "retired_reason"}
    # By triggers, for the order of events.
    managed |= {"stored_xact", "altered_xact"}
    united = {column.name for column in REPEATED_COLUMNS}
    columns = {column.name for column in memories_table.columns}

    assert columns == managed | united | KEPT_ON_REPETITION
    assert not united & KEPT_ON_REPETITION
    assert columns - managed == {column.name for column in INSERTED_COLUMNS}


@pytest.mark.parametrize("field", CASES)
def test_saying_it_again_unites_what_was_sent(
    runtime: Runtime, tenant: int, owner: Engine, field: str
) -> None:
    first, again, stored = CASES[field]
    say(runtime, tenant, **first)

    assert say(runtime, tenant, **again).outcome is Outcome.REINFORCED

    row = only_row(owner)
    assert {name: getattr(row, name) for name in stored} == stored
    assert row.repeat_count == 2


@pytest.mark.parametrize(
    ("field", "first", "again", "stored"),
    [
        ("importance", 8, None, 8),
        ("importance", 3, None, 3),
        ("importance", 9, 2, 9),
        ("pinned", True, False, True),
        ("subtype", "habit", None, "habit"),
        ("tags", ("food",), (), ["food"]),
        ("confidence", 0.9, 0.4, pytest.approx(0.9)),
    ],
)
def test_saying_it_again_with_less_takes_nothing_away(
    runtime: Runtime, tenant: int, owner: Engine, field: str, first: Any, again: Any, stored: Any
) -> None:
    say(runtime, tenant, **{field: first})
    say(runtime, tenant, **{field: again})

    assert getattr(only_row(owner), field) == stored


def test_counters_that_reading_moves_are_left_alone(runtime: Runtime, tenant: int, owner: Engine) -> None:
    say(runtime, tenant)
    with owner.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE memories SET recall_count = 7, last_recalled = now(), feedback_score = 0.5"
        )
    before = only_row(owner)
    say(runtime, tenant, importance=10)

    row = only_row(owner)
    for name in KEPT_ON_REPETITION:
        assert str(getattr(row, name)) == str(getattr(before, name)), name


def test_evidence_entities_and_parents_of_a_repetition_are_added(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (ticket,) = record(runtime, tenant, SESSION, [NewTurn(Role.USER, "Priya cannot have walnuts, I said.")])
    parent = say(runtime, tenant, text="Priya was in hospital after a cake.").id
    target = say(runtime, tenant, origin=Origin.SYNTHESIZED, evidence=(ticket.id,)).id
    again = {"mentions": (Mention("person", "Priya"),), "evidence": (ticket.id,), "parents": (parent, target)}

    assert say(runtime, tenant, origin=Origin.SYNTHESIZED, **again).id == target

    links = rows(owner, "SELECT source_id, target_id FROM links WHERE type = 'derived_from'")
    assert [(link.source_id, link.target_id) for link in links] == [(target, parent)]
    assert [row.turn_id for row in rows(owner, "SELECT turn_id FROM evidence")] == [ticket.id]
    assert len(rows(owner, "SELECT FROM mentions")) == 1


def test_nearly_the_same_words_unite_as_the_same_words_do(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    longer, shorter = "Priya is badly allergic to all walnuts.", "Priya is badly allergic to walnuts."
    placed = replace(runtime, embedder=at_angles({longer: 0.0, shorter: 5.0}))
    say(placed, tenant, text=longer, importance=4, tags=("food",))

    said = say(placed, tenant, text=shorter, importance=10, pinned=True, subtype="fact", tags=("health",))

    row = only_row(owner)
    assert said.outcome is Outcome.REINFORCED
    assert (row.text, row.importance, row.pinned, row.subtype) == (longer, 10, True, "fact")
    assert row.tags == ["food", "health"]


def test_a_fact_added_by_hand_again_unites_too(runtime: Runtime, tenant: int, owner: Engine) -> None:
    def add(**more: Any) -> UUID:
        statement = Statement("fact", "", subject="Priya", relation="lives_in", object="Pune", **more)
        return add_fact(runtime, tenant, SCOPE, statement=statement).id

    add(importance=4)
    add(importance=9, pinned=True, tags=("home",), confidence=0.95)

    row = only_row(owner)
    assert (row.importance, row.pinned, row.tags) == (9, True, ["home"])
    assert row.confidence == pytest.approx(0.95)


def test_a_strengthened_anchor_gets_the_greater_importance(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    anchor = {"kind": "anchor", "text": "They talk about the sea.", "origin": Origin.SYNTHESIZED}
    (ticket,) = record(runtime, tenant, SESSION, [NewTurn(Role.USER, "The sea again, and I love it.")])
    say(runtime, tenant, importance=8, evidence=(ticket.id,), emotional_state=CALM, **anchor)
    say(runtime, tenant, importance=9, evidence=(ticket.id,), emotional_state=AFRAID, **anchor)

    row = only_row(owner)
    assert (row.importance, row.emotional_state["valence"]) == (9, "concern")


@pytest.mark.parametrize("importance", [1, 2, 3])
def test_a_low_importance_is_stored_as_given(
    runtime: Runtime, tenant: int, owner: Engine, importance: int
) -> None:
    assert say(runtime, tenant, importance=importance).notes == ()
    assert only_row(owner).importance == importance


@pytest.mark.parametrize("kind", ["fact", "anchor", "expression", "artifact", "episode"])
def test_what_is_about_a_person_needs_a_user(memory_app: MemoryApp, owner: Engine, kind: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        memory_app.remember(Scope("solo"), "Bob likes tea.", kind=kind)

    assert refused.value.field == "user"
    assert rows(owner, "SELECT * FROM memories") == []


@pytest.mark.parametrize("kind", ["core", "capability", "value", "identity"])
def test_what_is_about_the_agent_needs_no_user(memory_app: MemoryApp, owner: Engine, kind: str) -> None:
    memory_app.remember(Scope("solo"), "Solo speaks plainly.", kind=kind)
    assert only_row(owner).kind == kind


def test_an_explicit_word_shares_a_fact_with_all_users(memory_app: MemoryApp, owner: Engine) -> None:
    memory_app.remember(Scope("solo"), "The museum is closed on Mondays.", shared=True)
    memory_app.add_fact(Scope("solo"), "The museum", "located_in", "Lyon", shared=True)

    assert len(rows(owner, "SELECT * FROM memories")) == 2
