"""What stands at the ends of a fact, and the sentence made of it."""

from __future__ import annotations

import pytest

from memory_app.memories.fact_ends import object_type, sentence
from memory_app.memories.relations import RELATIONS
from memory_app.records.records import ENTITY_TYPES


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        ("lives_in", "place"),
        ("works_at", "org"),
        ("sister", "person"),
        ("age", None),
        ("birthday", None),
        ("favourite:colour", "concept"),
        ("never_heard_of", "thing"),
    ],
)
def test_a_relation_says_what_it_leads_to(relation: str, expected: str | None) -> None:
    assert object_type(relation) == expected


def test_every_known_relation_leads_to_a_known_type_or_a_plain_value() -> None:
    assert {object_type(name) for name in RELATIONS} <= {*ENTITY_TYPES, None}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (("Mira", "lives_in", "Lisbon"), "Mira lives in Lisbon."),
        (("Mira", "favourite:colour", "green!"), "Mira favourite colour green!"),
        (("ミラ", "好き", "お茶。"), "ミラ 好き お茶。"),
    ],
)
def test_a_fact_without_a_text_is_given_one(parts: tuple[str, str, str], said: str) -> None:
    assert sentence(*parts) == said
