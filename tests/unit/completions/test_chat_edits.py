"""Which recorded turns give way to the messages of an edited conversation."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from memory_app.completions.edits import Former, former_turns
from memory_app.completions.history import KEY_PREFIX, Known, known_messages
from memory_app.records.records import ListedTurn, NewTurn, Role

AT = datetime(2026, 1, 1, tzinfo=UTC)


def role_of(letter: str) -> Role:
    """Vowels are spoken by the user."""
    return Role.USER if letter.lower() in "aeiou" else Role.ASSISTANT


def turns(letters: str) -> list[ListedTurn]:
    """A turn for each letter. Of another door where it is a capital; "." is the number of one that is missing."""
    return [
        ListedTurn(
            id=UUID(int=number),
            session="chat",
            seq=number,
            role=role_of(letter),
            speaker="",
            text=letter,
            at=AT,
            idempotency_key=None if letter.isupper() else f"{KEY_PREFIX}{number}",
        )
        for number, letter in enumerate(letters, 1)
        if letter != "."
    ]


def former(sent: str, recorded: str) -> tuple[str, str]:
    """The letters of the turns that give way, and of the one in the place of the reply."""
    listed = turns(recorded)
    known = known_messages(sent, [turn.text for turn in listed], is_whole=True)
    result = former_turns([NewTurn(role_of(letter), letter) for letter in sent], listed, known)
    return "".join(turn.text for turn in result.turns), "" if result.reply is None else result.reply.text


@pytest.mark.parametrize(
    ("sent", "recorded", "expected"),
    [
        # The next message.
        ("aba", "ab", ("", "")),
        # An edited message, and its reply.
        ("abe", "abac", ("a", "c")),
        ("abe", "abacidod", ("a", "c")),
        ("abe", "aba", ("a", "")),
        # A conversation that goes on behind an edit.
        ("abecu", "abecidod", ("i", "d")),
        # A reply that is made again.
        ("aba", "abac", ("", "c")),
        # The same call again, before there was a reply.
        ("aba", "aba", ("", "")),
        # A reply is never asked for behind another.
        ("aba", "abacc", ("", "c")),
        # An exchange that the client took out: what follows moves up.
        ("abidu", "abacid", ("aci", "d")),
        # No more than the greeting is the same.
        ("e", "ab", ("", "")),
        ("ae", "ab", ("", "")),
        # Another role stands there.
        ("abe", "abcd", ("", "")),
        # Another door recorded it.
        ("abe", "abAc", ("", "")),
        ("abe", "abaC", ("a", "")),
        # A turn was forgotten by itself.
        ("abacu", "ab..id", ("", "")),
        ("abe", "ab.c", ("", "")),
        # Only the end is sent.
        ("ide", "abacidod", ("", "")),
    ],
)
def test_a_turn_gives_way_only_where_that_is_certain(
    sent: str, recorded: str, expected: tuple[str, str]
) -> None:
    assert former(sent, recorded) == expected


def test_a_turn_that_took_a_place_may_give_way_again() -> None:
    first, second, third = turns("abe")
    edited = replace(third, seq=9, place=3)
    sent = [NewTurn(Role.USER, "a"), NewTurn(Role.ASSISTANT, "b"), NewTurn(Role.USER, "i")]
    assert former_turns(sent, [first, second, edited], Known(2, 1)) == Former((edited,))
