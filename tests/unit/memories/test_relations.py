"""The table of relations: one value at a time, opposites, names in one spelling."""

from __future__ import annotations

import pytest

from memory_app.memories.relations import RELATIONS, normalise_relation, relation_of


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("resides in", "lives_in"),
        ("Lives-In", "lives_in"),
        ("works for", "works_at"),
        ("doesn't like", "dislikes"),
        ("favorite color", "favourite:color"),
        ("favourite:Ice Cream", "favourite:ice_cream"),
        ("wohnt in Straße", "wohnt_in_straße"),
        ("  ", ""),
    ],
)
def test_spellings_of_one_relation_are_united(text: str, name: str) -> None:
    assert normalise_relation(text) == name


def test_normalising_twice_changes_nothing() -> None:
    for name in RELATIONS:
        assert normalise_relation(name) == name


@pytest.mark.parametrize("name", ["lives_in", "works_at", "name", "birthday", "favourite:colour", "wife"])
def test_some_relations_hold_one_object_at_a_time(name: str) -> None:
    assert relation_of(name).single_valued


@pytest.mark.parametrize("name", ["likes", "has_pet", "visited", "speaks", "friend", "never heard of"])
def test_others_hold_many(name: str) -> None:
    assert not relation_of(name).single_valued


def test_opposites_end_each_other_both_ways() -> None:
    for row in RELATIONS.values():
        assert all(row.name in RELATIONS[other].opposes for other in row.opposes)
    assert "dislikes" in relation_of("likes").opposes
    assert "left" in relation_of("works_at").opposes
    for owned in ("has", "has_pet", "owns", "drives", "has_condition"):
        assert "no_longer_has" in relation_of(owned).opposes


def test_an_agent_declares_more_single_valued_relations() -> None:
    assert relation_of("mood", extra_single_valued=("Mood",)).single_valued
    assert not relation_of("mood").single_valued
