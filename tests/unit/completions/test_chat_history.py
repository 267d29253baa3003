"""Which messages of a conversation are new, whatever part of it a client sends."""

from __future__ import annotations

import pytest

from memory_app.completions.history import digest, key_after, known_messages
from memory_app.tenancy.policy import Policy, parse_policy


@pytest.mark.parametrize(
    ("sent", "recorded", "count"),
    [
        ("a", "", 0),
        ("abc", "ab", 2),
        ("abcde", "abc", 3),
        # The same call again.
        ("ab", "ab", 2),
        # Only the end of the conversation is sent.
        ("defg", "abcdef", 3),
        # Only the new message is sent, also where it was said before.
        ("e", "abcd", 0),
        ("b", "abcd", 0),
        ("d", "abcd", 0),
        # The first message again, to have another reply.
        ("a", "ab", 1),
        # A reply is asked for again, or a message was edited.
        ("abc", "abcd", 3),
        ("abx", "abcd", 2),
        # Memory was away at the beginning.
        ("abcdef", "cde", 5),
        ("abcdef", "c", 0),
        # Something is said twice: the place counts.
        ("abab", "ab", 2),
        ("ababc", "abab", 4),
        # Another program recorded something between.
        ("abcd", "abXcd", 2),
        ("abcdef", "Xabcde", 5),
        # A long run stands in the same place, whatever a client left out before it.
        ("zcdefg", "abcdef", 5),
        ("zdef", "abcdef", 0),
    ],
)
def test_the_new_messages_begin_after_what_is_recorded(sent: str, recorded: str, count: int) -> None:
    known = known_messages(sent, recorded, is_whole=True)
    assert known.count == count
    assert (known.place is None) == (count == 0)
    if known.place is not None:
        assert recorded[known.place] == sent[count - 1]


def test_a_first_message_is_known_only_where_the_session_began_with_it() -> None:
    assert known_messages("a", "ab", is_whole=False).count == 0


def test_deleted_turns_stand_where_they_stood() -> None:
    recorded = [None, None, "c", "d"]
    assert known_messages("abcde", recorded, is_whole=True).count == 4
    assert known_messages("cde", recorded, is_whole=True).count == 2


def test_a_deleted_turn_proves_nothing() -> None:
    assert known_messages("xc", [None, "c"], is_whole=False).count == 0
    assert known_messages("ab", [None, None], is_whole=True).count == 0


def test_the_latest_of_several_places_is_taken() -> None:
    assert known_messages("xyq", "xyaxyb", is_whole=False).place == 4


def test_what_is_redacted_is_known_by_what_is_stored() -> None:
    rules = parse_policy({"redaction": "mask"}).redaction_rules
    said = "My card is 4111 1111 1111 1111."
    other = "My card is 5555 5555 5555 4444."
    assert digest("user", said, (), rules) == digest("user", other, (), rules)
    off = Policy().redaction_rules
    assert digest("user", said, (), off) != digest("user", other, (), off)


def test_a_digest_tells_who_said_what_with_which_tools() -> None:
    rules = Policy().redaction_rules
    said = {
        digest("user", "Hello", (), rules),
        digest("assistant", "Hello", (), rules),
        digest("assistant", "Hello", ("search",), rules),
        digest("assistant", "Hellosearch", (), rules),
    }
    assert len(said) == 4
    assert digest("user", "Hello \x00", (), rules) == digest("user", "Hello", (), rules)


def test_the_same_message_has_another_key_in_another_place() -> None:
    assert key_after("first", "said") == key_after("first", "said") != key_after("second", "said")
