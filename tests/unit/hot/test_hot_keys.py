"""Keys: one table, no text in a key, no way into another key."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.hot.keys import HINT, KEYS, LIMIT, STREAM, milliseconds, named_key, scope_key


def test_every_key_has_a_life_a_type_and_a_meaning() -> None:
    for key in KEYS:
        assert timedelta(0) < key.life <= timedelta(days=30)
        assert key.type in {"string", "list", "hash"}
        assert key.meaning
    assert len({key.name for key in KEYS}) == len(KEYS)


def test_keys_of_one_scope_stay_together_in_a_cluster() -> None:
    assert {scope_key("memory:", key, 7).split("}")[0] for key in KEYS if key.per_scope} == {
        "memory:scope:{7"
    }


def test_scopes_never_share_a_key() -> None:
    made = {scope_key("m:", key, scope) for key in KEYS for scope in (1, 11, 111)}
    assert len(made) == 3 * len(KEYS)


def test_a_plain_name_stays_readable() -> None:
    assert named_key("m:", HINT, "memory.extract_session:12") == "m:hint:memory.extract_session:12"


@pytest.mark.parametrize("name", ["", "a b", "ключ", "x" * 101, "a\n", "\ud800", "{1}", "*"])
def test_any_other_name_becomes_a_digest(name: str) -> None:
    key = named_key("m:", LIMIT, name)
    assert key.startswith("m:limit:digest:")
    assert key.isascii()
    assert len(key) < 60


@given(st.text(), st.text())
def test_different_names_have_different_keys(a: str, b: str) -> None:
    assert (named_key("m:", LIMIT, a) == named_key("m:", LIMIT, b)) == (a == b)


def test_lives_are_whole_milliseconds_and_never_zero() -> None:
    assert milliseconds(STREAM.life) == 604_800_000
    assert milliseconds(timedelta(0)) == 1
