"""What goes with what is forgotten, what stays because others support it, and what is only retired."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.forget.rules import Fate, Kin, carries, fates, names
from memory_app.records.records import Origin

A, B, C = UUID(int=1), UUID(int=2), UUID(int=3)


def kin(id: UUID, text: str, origin: Origin = Origin.EXTRACTED, **fields: Any) -> Kin:
    given: dict[str, Any] = {
        "is_merged": False,
        "is_touched": False,
        "parents": frozenset(),
        "evidence": (),
        "has_own_evidence": bool(fields.get("evidence")),
    }
    return Kin(id, text, origin, **(given | fields))


def fate(*some: Kin, gone: tuple[UUID, ...] = (), said: str = "", by_turn: bool = True) -> dict[UUID, Fate]:
    return fates({one.id: one for one in some}, gone=gone, erased_text=said, by_turn=by_turn)


def test_a_memory_without_a_source_left_goes() -> None:
    assert fate(kin(A, "Mira likes tea.", is_touched=True), said="I like tea.")[A] is Fate.GONE


def test_a_memory_that_another_turn_supports_stays() -> None:
    one = kin(A, "Mira likes tea.", is_touched=True, evidence=("Tea is what I like.",))
    assert fate(one, said="I like tea.")[A] is Fate.KEPT


@pytest.mark.parametrize("only_there", ["Lisbon", "1984", "リスボン"])
def test_a_name_or_number_only_in_the_forgotten_part_deletes_the_memory(only_there: str) -> None:
    text = f"Mira moved to {only_there}."
    one = kin(A, text, Origin.SYNTHESIZED, is_touched=True, evidence=("She moved.",))
    assert fate(one, said=f"I moved to {only_there}.")[A] is Fate.GONE


def test_what_was_declared_or_imported_stays() -> None:
    for origin in (Origin.DECLARED, Origin.IMPORTED):
        assert fate(kin(A, "Mira likes tea.", origin, is_touched=True), said="I like tea.")[A] is Fate.KEPT


def test_a_conclusion_without_parents_is_retired_unless_it_repeats_them() -> None:
    parent = kin(A, "Mira fears vuvuzelas.", Origin.DECLARED)
    silent = kin(B, "Evenings are hard.", Origin.SYNTHESIZED, parents=frozenset({A}))
    repeating = kin(C, "Avoid vuvuzelas.", Origin.SYNTHESIZED, parents=frozenset({A}))
    found = fate(parent, silent, repeating, gone=(A,), by_turn=False)
    assert (found[B], found[C]) == (Fate.UNSUPPORTED, Fate.GONE)


def test_a_merged_row_goes_only_with_the_part_whose_words_it_has() -> None:
    parts = (kin(A, "Mira likes tea a lot."), kin(B, "Mira likes tea."))
    for text, expected in (("Mira likes tea a lot.", Fate.GONE), ("Mira likes tea.", Fate.KEPT)):
        whole = kin(C, text, is_merged=True, parents=frozenset({A, B}))
        assert fate(*parts, whole, gone=(A,))[C] is expected


def test_a_circle_of_links_ends() -> None:
    some = [
        kin(id, "Round and round.", Origin.SYNTHESIZED, parents=frozenset({A, B, C} - {id}))
        for id in (A, B, C)
    ]
    assert set(fate(*some, gone=(A,))) == {A, B, C}


@given(text=st.text(max_size=60), forgotten=st.text(max_size=60))
def test_nothing_gives_away_what_its_sources_say_too(text: str, forgotten: str) -> None:
    assert not carries(text, [forgotten], [text])
    assert not names(text, [forgotten], [text])
