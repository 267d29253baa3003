"""The values that the database admits are those of the enums."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from memory_app.db.catalog import EXPECTED
from memory_app.records.records import ENTITY_TYPES, Label, Origin, Retirement, Role
from memory_app.records.run import Change, RunState

ADMITTED: dict[str, Iterable[str]] = {
    "entities.entities_type_check": ENTITY_TYPES,
    "feedback.feedback_label_check": Label,
    "images.images_change_check": Change,
    "memories.memories_origin_check": Origin,
    "memories.memories_retired_reason_check": Retirement,
    "runs.runs_state_check": RunState,
    "turns.turns_role_check": Role,
}


@pytest.mark.parametrize("constraint", ADMITTED)
def test_a_check_admits_the_values_of_its_enum(constraint: str) -> None:
    lines = EXPECTED.read_text(encoding="utf-8").splitlines()
    (definition,) = [line for line in lines if line.startswith(f"constraint {constraint}\t")]
    assert sorted(re.findall(r"'(\w+)'::text", definition)) == sorted(ADMITTED[constraint])
