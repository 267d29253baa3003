"""The instructions of an agent: checked before they are stored, each part named in its error."""

from __future__ import annotations

import json

import pytest

from memory_app.errors import InvalidInput, TooLarge
from memory_app.records.instructions import Instructions
from memory_app.tenancy.policy import Policy, parse_policy

GIVEN = {
    "keep": ["doses and times  of medicines", "doses and times of medicines"],
    "never": ["salary, debts"],
    "entity_types": {"medicine": "thing", "clinic": "org"},
    "relations": ["takes_medicine"],
}


def test_instructions_survive_json():
    policy = parse_policy({"instructions": GIVEN})
    assert policy.instructions.keep == ("doses and times of medicines",)
    assert parse_policy(json.loads(json.dumps(policy.as_dict()))) == policy
    assert len({policy, parse_policy({"instructions": GIVEN})}) == 1


def test_null_means_no_instructions():
    assert parse_policy({"instructions": None}) == Policy()
    assert not Instructions()
    assert Instructions(relations=("owns",))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ("keep doses", "policy.instructions"),
        ({"keeps": []}, "policy.instructions.keeps"),
        ({"keep": "doses"}, "policy.instructions.keep"),
        ({"keep": [7]}, "policy.instructions.keep[0]"),
        ({"keep": ["doses", " \u200b "]}, "policy.instructions.keep[1]"),
        ({"never": ["x"] * 21}, "policy.instructions.never"),
        ({"never": ["my password is tulip"]}, "policy.instructions.never[0]"),
        ({"entity_types": ["medicine"]}, "policy.instructions.entity_types"),
        ({"entity_types": {"medicine": "drug"}}, "policy.instructions.entity_types.medicine"),
        ({"entity_types": {"x" * 41: "thing"}}, f"policy.instructions.entity_types.{'x' * 41}"),
        ({"relations": ["takes medicine"]}, "policy.instructions.relations[0]"),
        ({"keep": ["x" * 201]}, "policy.instructions.keep[0]"),
        ({"keep": [f"{number} {'x' * 190}" for number in range(11)]}, "policy.instructions"),
    ],
)
def test_what_is_wrong_with_instructions_is_named(given: object, field: str):
    with pytest.raises((InvalidInput, TooLarge)) as refused:
        parse_policy({"instructions": given})
    assert refused.value.field == field
