"""What a statement must be before the write path looks at it, and what is said about changes."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.errors import InvalidInput, TooLarge
from memory_app.memories.bodies import StatementBody
from memory_app.records.kinds import KINDS
from memory_app.records.records import VALENCES, EmotionalState, RelationalContext, Statement
from memory_app.records.statement import PART_LIMIT, TAG_LIMIT, TAGS_LIMIT, TEXT_LIMIT, checked_statement

NAIVE = datetime(2024, 1, 1)  # noqa: DTZ001
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def fact(words: str = "Bob likes tea.", **fields: Any) -> Statement:
    return Statement(**{"kind": "fact", "text": words} | fields)


def changed(**fields: Any) -> tuple[Statement, tuple[str, ...]]:
    return checked_statement(fact(**fields))


def test_an_ordinary_statement_is_left_as_it_is() -> None:
    statement = fact(
        subtype="preference",
        subject="Bob",
        relation="likes",
        object="tea",
        importance=7,
        confidence=0.9,
        tags=("drinks", "food"),
        emotional_state=EmotionalState("joy", 0.5, "validating"),
        relational_context=RelationalContext(0.4, shared_references=("the kettle",)),
        valid_from=NOON,
    )
    assert checked_statement(statement) == (statement, ())


def test_no_text_that_a_caller_may_give_keeps_what_cannot_be_stored() -> None:
    hints = get_type_hints(Statement)
    names = [
        name
        for name in StatementBody.model_fields
        if hints.get(name) == str | None and name not in {"subtype", "importance_scale"}
    ]
    assert {"subject", "relation", "object"} <= set(names)
    checked, _ = changed(**dict.fromkeys(names, " a\0b "))
    assert {getattr(checked, name) for name in names} == {"ab"}


def test_every_kind_of_the_table_can_be_stated() -> None:
    for kind in KINDS:
        checked_statement(Statement(kind, "Something."))


@pytest.mark.parametrize(
    ("statement", "error", "field"),
    [
        (Statement("mood", "Happy."), InvalidInput, "kind"),
        (fact(subtype="mood"), InvalidInput, "subtype"),
        (Statement("core", "Be kind.", subtype="fact"), InvalidInput, "subtype"),
        (fact(" \x00 "), InvalidInput, "text"),
        (fact("x" * (TEXT_LIMIT + 1)), TooLarge, "text"),
        (fact(subject="Bob"), InvalidInput, "relation"),
        (fact(relation="likes"), InvalidInput, "subject"),
        (fact(object="tea"), InvalidInput, "relation"),
        (fact(subject=" ", relation="likes"), InvalidInput, "subject"),
        (fact(subject="Bob", relation="\x00"), InvalidInput, "relation"),
        (fact(source="\x00"), InvalidInput, "source"),
        (fact(source="x" * 501), TooLarge, "source"),
        (fact(subject="x" * (PART_LIMIT + 1), relation="likes"), TooLarge, "subject"),
        (fact(tags=("",)), InvalidInput, "tags"),
        (fact(tags=("x" * (TAG_LIMIT + 1),)), InvalidInput, "tags"),
        (fact(tags=tuple(map(str, range(TAGS_LIMIT + 1)))), TooLarge, "tags"),
        (fact(valid_from=NAIVE), InvalidInput, "valid_from"),
        (fact(valid_until=NAIVE), InvalidInput, "valid_until"),
        (fact(valid_from=NOON, valid_until=NOON), InvalidInput, "valid_until"),
        (fact(emotional_state=EmotionalState("bored")), InvalidInput, "emotional_state.valence"),
        (fact(emotional_state=EmotionalState("joy", 0.5, " ")), InvalidInput, "emotional_state.user_impact"),
        (
            fact(relational_context=RelationalContext(user_values=(" ",))),
            InvalidInput,
            "relational_context.user_values",
        ),
    ],
)
def test_what_cannot_be_taken_names_its_field(
    statement: Statement, error: type[InvalidInput], field: str
) -> None:
    with pytest.raises(error) as refused:
        checked_statement(statement)
    assert refused.value.field == field


def test_limits_themselves_are_allowed() -> None:
    changed(words="x" * TEXT_LIMIT, tags=("x" * TAG_LIMIT,))
    changed(tags=tuple(map(str, range(TAGS_LIMIT))), subject="x" * PART_LIMIT, relation="likes")


def test_numbers_out_of_range_are_moved_and_it_is_said() -> None:
    for given_confidence, stored in ((1.5, 1.0), (-1.0, 0.0), (math.nan, 0.0), (math.inf, 1.0)):
        statement, notes = changed(confidence=given_confidence)
        assert statement.confidence == stored
        assert len(notes) == 1
        assert notes[0].startswith("confidence")
    statement, notes = changed(
        emotional_state=EmotionalState("joy", 3.0), relational_context=RelationalContext(bond_strength=-2)
    )
    assert statement.emotional_state == EmotionalState("joy", 1.0)
    assert statement.relational_context == RelationalContext(bond_strength=0.0)
    assert notes == (
        "emotional_state.intensity 3 stored as 1",
        "relational_context.bond_strength -2 stored as 0",
    )


def test_unstorable_characters_are_removed_and_reported_for_the_text() -> None:
    statement, notes = changed(
        words=" Bob\x00 likes tea. ",
        subject="Bob\x00",
        relation="likes",
        object=" tea ",
        tags=("drinks\x00", "drinks"),
    )
    assert (statement.text, statement.subject, statement.object) == ("Bob likes tea.", "Bob", "tea")
    assert statement.tags == ("drinks",), "a tag stands once"
    assert notes == ("text: characters that cannot be stored were removed",)


def test_every_valence_of_the_table_is_known() -> None:
    for valence in VALENCES:
        assert changed(emotional_state=EmotionalState(valence))[1] == ()


@given(st.text(), st.floats())
def test_what_was_checked_once_needs_no_more_change(words: str, confidence: float) -> None:
    try:
        statement, _ = checked_statement(fact(words, confidence=confidence))
    except InvalidInput as error:
        assert error.field == "text"
        return
    assert checked_statement(statement) == (statement, ())
    statement.text.encode("utf-8")
