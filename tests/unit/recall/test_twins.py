"""Near twins of a ranking: what repeats a better row, and what only looks like it."""

from __future__ import annotations

import numpy as np
import pytest

from memory_app.recall.near_duplicates import Ranked, Repeat, Vector, near_duplicates

SAME = 0.96


def at(cosine: float) -> Vector:
    """A vector with this cosine to (1, 0)."""
    return np.array([cosine, (1 - cosine**2) ** 0.5], dtype=np.float32)


def test_the_better_of_two_equal_texts_is_kept() -> None:
    ranked = [Ranked("a", "tea"), Ranked("b", "coffee"), Ranked("c", "tea")]
    assert near_duplicates(ranked, same=SAME) == {"c": Repeat("a")}


def test_a_repeat_of_a_repeat_names_what_was_kept() -> None:
    ranked = [Ranked("a", "tea"), Ranked("b", "tea"), Ranked("c", "tea")]
    assert near_duplicates(ranked, same=SAME) == {"b": Repeat("a"), "c": Repeat("a")}


def test_a_cosine_from_the_limit_on_is_a_repeat() -> None:
    ranked = [
        Ranked("a", "1", "Ann likes green tea", at(1)),
        Ranked("b", "2", "Ann likes green tea very much", at(0.97)),
        Ranked("c", "3", "Ann drinks tea", at(0.9)),
        Ranked("d", "4", "Ann likes green tea too"),
    ]
    repeats = near_duplicates(ranked, same=SAME)
    assert set(repeats) == {"b"} and repeats["b"].of == "a"
    assert repeats["b"].cosine == pytest.approx(0.97)


def test_what_is_near_only_to_a_repeat_is_kept() -> None:
    between = Ranked("b", "2", "Ann likes green tea very much", at(0.97))
    far = Ranked("c", "3", "Ann likes green tea so much", at(0.9))
    assert near_duplicates(
        [Ranked("a", "1", "Ann likes green tea", at(1)), between, far], same=SAME
    ).keys() == {"b"}
    assert near_duplicates([between, far], same=SAME).keys() == {"c"}


@pytest.mark.parametrize(
    ("said", "other"),
    [
        ("Ann takes 20 mg of it", "Ann takes 200 mg of it"),
        ("Ann likes green tea", "Ann does not like green tea"),
        ("Ann flies on 3 May 2026", "Ann flies on 4 May 2026"),
    ],
)
def test_a_number_a_date_or_a_negation_keeps_rows_apart(said: str, other: str) -> None:
    assert (
        near_duplicates([Ranked("a", "1", said, at(1)), Ranked("b", "2", other, at(0.999))], same=SAME) == {}
    )
