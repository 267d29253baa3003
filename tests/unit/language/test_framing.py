"""What frames a statement says nothing; what could change its meaning is no frame."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.language.framing import unframed
from memory_app.memories.guards import conflicting

PLAIN = "Mira ran 5 km along the river."


@pytest.mark.parametrize(
    "framed",
    [
        "By the way, Mira ran 5 km along the river.",
        "As I said, Mira ran 5 km along the river.",
        "AS I TOLD YOU BEFORE: Mira ran 5 km along the river.",
        "Honestly — Mira ran 5 km along the river, you know.",
        "Oh, by the way, as I said, Mira ran 5 km along the river.",
        "Mira ran 5 km along the river, as always.",
    ],
)
def test_a_frame_does_not_make_two_statements_of_one(framed: str) -> None:
    assert unframed(framed) == PLAIN
    assert conflicting(framed, PLAIN) is None


@pytest.mark.parametrize(
    "said",
    [
        "Actually, Mira ran 5 km.",
        "Maybe, Mira ran 5 km.",
        "No, Mira ran 5 km.",
        "I think Mira ran 5 km.",
        "Again and again Mira ran 5 km.",
        "Well water is what Mira drinks.",
        "Mira ran 5 km, not 7.",
        "By the way,",
        "",
    ],
)
def test_what_may_carry_meaning_stays(said: str) -> None:
    assert unframed(said) == said


@given(st.text(max_size=200))
def test_taking_frames_off_never_fails_and_never_leaves_nothing(said: str) -> None:
    left = unframed(said)
    assert len(left) <= len(said)
    assert any(c.isalnum() for c in left) == any(c.isalnum() for c in said)
