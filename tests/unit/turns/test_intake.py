"""What a turn must be before it is accepted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.errors import InvalidInput, TooLarge
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import NAME_LIMIT, Scope
from memory_app.turns.intake import (
    KEY_LIMIT,
    METADATA_DEPTH,
    TOOLS_LIMIT,
    Limits,
    checked_batch,
    checked_metadata,
    checked_turn,
    request_hash,
)

LIMITS = Limits(text_chars=100, metadata_bytes=100, batch=3)
SCOPE = Scope("ada", "bob", "s1")
NAIVE = datetime(2024, 1, 1)  # noqa: DTZ001


def said(words: str = "I like tea.", **fields: Any) -> NewTurn:
    return NewTurn(**{"role": Role.USER, "text": words} | fields)


def nested(depth: int) -> Mapping[str, object]:
    inner: object = 1
    for _ in range(depth):
        inner = {"a": inner}
    assert isinstance(inner, dict)
    return inner


def test_an_ordinary_turn_is_left_as_it_is() -> None:
    turn = said(
        "Je préfère le thé. 👨‍👩‍👧",
        speaker="Bob",
        at=datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=9))),
        idempotency_key="k-1",
        emotional_tone="warm",
        tools_used=("search",),
        metadata={"page": [1, 2.5, None, True, {"a": "b"}]},
    )
    assert checked_turn(turn, LIMITS) == (turn, False)


def test_nul_and_lone_surrogates_are_taken_out_and_it_is_said() -> None:
    assert checked_turn(said("a\x00b\ud800c\ttab\nline"), LIMITS) == (said("abc\ttab\nline"), True)
    kept, _ = checked_turn(said(emotional_tone="\x00 warm ", metadata={"k\x00": ["v\ud800"]}), LIMITS)
    assert (kept.emotional_tone, kept.metadata) == ("warm", {"k": ["v"]})


@pytest.mark.parametrize(
    ("turn", "error", "field"),
    [
        (said(""), InvalidInput, "content"),
        (said(" \n "), InvalidInput, "content"),
        (said("\x00\ud800"), InvalidInput, "content"),
        (said("x" * 101), TooLarge, "content"),
        (said(role="bot"), InvalidInput, "role"),
        (said(role="user"), InvalidInput, "role"),
        (said(speaker=""), InvalidInput, "name"),
        (said(speaker="a\x00b"), InvalidInput, "name"),
        (said(speaker="x" * (NAME_LIMIT + 1)), InvalidInput, "name"),
        (said(at=NAIVE), InvalidInput, "at"),
        (said(at=datetime(1899, 12, 31, tzinfo=UTC)), InvalidInput, "at"),
        (said(at=datetime(2201, 1, 1, tzinfo=UTC)), InvalidInput, "at"),
        (said(idempotency_key=""), InvalidInput, "idempotency_key"),
        (said(idempotency_key="a\nb"), InvalidInput, "idempotency_key"),
        (said(idempotency_key="x" * (KEY_LIMIT + 1)), InvalidInput, "idempotency_key"),
        (said(emotional_tone="x" * 101), InvalidInput, "emotional_tone"),
        (said(tools_used=("",)), InvalidInput, "tools_used"),
        (said(tools_used=("t",) * (TOOLS_LIMIT + 1)), InvalidInput, "tools_used"),
        (said(metadata={"a": "x" * 100}), TooLarge, "metadata"),
        (said(metadata={"a": math.nan}), InvalidInput, "metadata"),
        (said(metadata={"a": [math.inf]}), InvalidInput, "metadata"),
        (said(metadata={"a": object()}), InvalidInput, "metadata"),
        (said(metadata=nested(METADATA_DEPTH + 1)), InvalidInput, "metadata"),
    ],
)
def test_what_cannot_be_taken_names_its_field_and_quotes_nothing(
    turn: NewTurn, error: type[InvalidInput], field: str
) -> None:
    with pytest.raises(error) as refused:
        checked_turn(turn, LIMITS, field="turns[1]")
    assert refused.value.field == f"turns[1].{field}"
    assert "xxx" not in refused.value.message


def test_limits_themselves_are_allowed() -> None:
    checked_turn(said("x" * 100, idempotency_key="x" * KEY_LIMIT, tools_used=("t",) * TOOLS_LIMIT), LIMITS)
    checked_turn(said(metadata={"a": "x" * 91}), LIMITS)
    checked_turn(said(metadata=nested(METADATA_DEPTH)), LIMITS)
    for year in (1900, 2200):
        checked_turn(said(at=datetime(year, 6, 1, tzinfo=UTC)), LIMITS)


def test_metadata_counts_in_bytes_not_in_characters() -> None:
    checked_metadata({"a": "é" * 45}, 100, field="metadata")
    with pytest.raises(TooLarge):
        checked_metadata({"a": "é" * 46}, 100, field="metadata")


def test_a_call_names_the_place_of_the_wrong_turn() -> None:
    for turns, field in (
        ([said(" ")], "turn.content"),
        ([said(), said(" ")], "turns[1].content"),
        ([], "turns"),
        ([said()] * 4, "turns"),
    ):
        with pytest.raises(InvalidInput) as refused:
            checked_batch(turns, LIMITS)
        assert refused.value.field == field
    assert len(checked_batch([said()] * 3, LIMITS)) == 3


def test_one_hash_stands_for_one_turn_in_one_place() -> None:
    turn, at = said(), datetime(2024, 1, 1, tzinfo=UTC)
    variants = [
        request_hash(SCOPE, turn, "bob"),
        request_hash(Scope("max", "bob", "s1"), turn, "bob"),
        request_hash(Scope("ada", "eve", "s1"), turn, "bob"),
        request_hash(Scope("ada", "bob", "s2"), turn, "bob"),
        request_hash(SCOPE, turn, "Bob"),
        request_hash(SCOPE, said("I like tea"), "bob"),
        request_hash(SCOPE, said(role=Role.ASSISTANT), "bob"),
        request_hash(SCOPE, said(at=at), "bob"),
        request_hash(SCOPE, said(emotional_tone="warm"), "bob"),
        request_hash(SCOPE, said(tools_used=("a",)), "bob"),
        request_hash(SCOPE, said(metadata={"a": 1}), "bob"),
    ]
    assert len(set(variants)) == len(variants)


def test_the_key_and_the_order_of_metadata_are_not_part_of_the_content() -> None:
    one = said(idempotency_key="k1", metadata={"a": 1, "b": 2})
    other = said(idempotency_key="k2", metadata={"b": 2, "a": 1})
    assert request_hash(SCOPE, one, "bob") == request_hash(SCOPE, other, "bob")


@dataclass(frozen=True, slots=True)
class LaterTurn(NewTurn):
    """A turn of a release that knows one more field."""

    channel: str | None = None


def test_a_new_field_changes_a_hash_only_where_it_is_set() -> None:
    fields: dict[str, Any] = {
        "speaker": "Bob",
        "at": datetime(2024, 1, 1, tzinfo=UTC),
        "idempotency_key": "k1",
        "emotional_tone": "warm",
        "tools_used": ("clock",),
        "metadata": {"a": 1},
    }
    first = request_hash(SCOPE, said(**fields), "Bob")
    assert first.hex() == "a76b58d9ff69fdd6431fd71c96e0b8aab55cc582655a93e3d1b2f75efb4a7566"
    assert request_hash(SCOPE, LaterTurn(Role.USER, "I like tea.", **fields), "Bob") == first
    phone = LaterTurn(Role.USER, "I like tea.", **fields, channel="phone")
    assert request_hash(SCOPE, phone, "Bob") != first


@given(st.text())
def test_whatever_is_sent_is_stored_clean_or_refused(words: str) -> None:
    try:
        turn, changed = checked_turn(said(words), LIMITS)
    except InvalidInput as error:
        assert error.field == "turn.content"
        return
    turn.text.encode("utf-8")
    assert "\x00" not in turn.text
    assert changed == (turn.text != normalize("NFC", words)), "changed means that something was removed"
    assert checked_turn(turn, LIMITS) == (turn, False)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_metadata_once_checked_stays_as_it_is(metadata: dict[str, Any]) -> None:
    once = checked_metadata(metadata, 10_000, field="metadata")
    assert checked_metadata(once, 10_000, field="metadata") == once
