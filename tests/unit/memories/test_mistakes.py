"""What a correction does to the claim that it takes back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ladder_shelf import Shelf, day, judged, said, stored

from memory_app.memories.ladder import Candidate, Reinforce, Supersede, Trust


def works_at(place: str, *, at: int, corrects: str | None = None, trust: Trust = Trust.USER) -> Candidate:
    claim = said(f"Mira works at {place}.", ("Mira", "works_at", place), at=at, confirmed=at, trust=trust)
    return replace(claim, corrected_key=corrects)


def test_the_right_claim_holds_since_the_wrong_one_was_made() -> None:
    shelf = Shelf()
    shelf.remember(works_at("Acme", at=0))
    shelf.remember(works_at("Acme", at=2))
    shelf.remember(works_at("Apex", at=5, corrects="acme"))

    assert {(row.memory.object, row.memory.valid_from, row.memory.valid_until) for row in shelf.live} == {
        ("Acme", day(0), day(0)),
        ("Apex", day(0), None),
    }


def test_a_correction_of_one_of_many_leaves_the_others() -> None:
    elin = stored(said("Mira's daughter is Elin.", ("Mira", "daughter", "Elin")), 1)
    tom = stored(said("Mira's daughter is Toma.", ("Mira", "daughter", "Toma")), 2)
    right = replace(
        said("Mira's daughter is Elina.", ("Mira", "daughter", "Elina"), at=3), corrected_key="elin"
    )

    decision = judged(right, elin, tom)

    assert isinstance(decision, Supersede)
    assert [cut.target for cut in decision.cuts] == [elin.memory.id]
    assert decision.holds[0].start == day(0)


def test_a_correction_to_what_is_known_already_only_takes_back() -> None:
    elin = stored(said("Mira's daughter is Elin.", ("Mira", "daughter", "Elin"), at=1), 1)
    elina = said("Mira's daughter is Elina.", ("Mira", "daughter", "Elina"), at=2)

    decision = judged(replace(elina, corrected_key="elin"), elin, stored(elina, 2))

    assert isinstance(decision, Reinforce)
    assert [cut.target for cut in decision.cuts] == [elin.memory.id]


@pytest.mark.parametrize("wrong", ["globex", "apex", None])
def test_nothing_is_taken_back_that_was_not_claimed(wrong: str | None) -> None:
    acme = stored(works_at("Acme", at=0), 1)

    decision = judged(works_at("Apex", at=5, corrects=wrong), acme)

    # A change of work, as without a correction.
    assert isinstance(decision, Supersede)
    assert [(cut.target, cut.at) for cut in decision.cuts] == [(acme.memory.id, day(5))]


def test_who_is_trusted_less_takes_nothing_back() -> None:
    acme = stored(works_at("Acme", at=0), 1)

    decision = judged(works_at("Apex", at=5, corrects="acme", trust=Trust.ASSISTANT), acme)

    assert not isinstance(decision, Supersede)
