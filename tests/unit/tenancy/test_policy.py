from __future__ import annotations

import json
from dataclasses import fields

import pytest

from memory_app.errors import InvalidInput
from memory_app.tenancy.policy import ExtractionMode, Policy, parse_policy


def test_an_empty_policy_is_the_default():
    policy = parse_policy({})
    assert policy == Policy()
    assert policy.extraction is ExtractionMode.RULES
    assert policy.memory
    assert policy.daily_logs
    assert policy.entity_extraction
    assert policy.fact_curation
    assert policy.query_graph
    assert not policy.strict


def test_a_policy_survives_json():
    given = {
        "extraction": "llm",
        "daily_logs": False,
        "strict": True,
        "preset": "hybrid",
        "weights": {"recency": 0.2, "feedback": None},
        "single_valued_relations": ["plan", "favourite:colour"],
        "after_turns": 3,
        "idle_seconds": 1.5,
        "max_age_seconds": 10,
        "max_memories": 500,
        "max_links": 0,
    }
    policy = parse_policy(given)
    assert parse_policy(json.loads(json.dumps(policy.as_dict()))) == policy
    assert policy.weights == {"recency": 0.2}
    assert policy.single_valued_relations == ("plan", "favourite:colour")


def test_every_field_can_be_given():
    assert parse_policy(Policy().as_dict()) == Policy()
    assert set(Policy().as_dict()) == {field.name for field in fields(Policy)}


def test_a_policy_can_be_a_key():
    assert len({parse_policy({}), Policy()}) == 1


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"extracton": "off"}, "policy.extracton"),
        ({"extraction": "sometimes"}, "policy.extraction"),
        ({"extraction": ["off"]}, "policy.extraction"),
        ({"memory": 1}, "policy.memory"),
        ({"daily_logs": "false"}, "policy.daily_logs"),
        ({"strict": None}, "policy.strict"),
        ({"preset": "best"}, "policy.preset"),
        ({"preset": ["hybrid"]}, "policy.preset"),
        ({"weights": [1]}, "policy.weights"),
        ({"weights": {"luck": 1}}, "policy.weights.luck"),
        ({"weights": {"recency": "much"}}, "policy.weights.recency"),
        ({"weights": {"recency": float("nan")}}, "policy.weights.recency"),
        ({"weights": {"recency": -101}}, "policy.weights.recency"),
        ({"weights": {"recency": 10**400}}, "policy.weights.recency"),
        ({"single_valued_relations": "plan"}, "policy.single_valued_relations"),
        ({"single_valued_relations": ["plan", "two words"]}, "policy.single_valued_relations[1]"),
        ({"after_turns": 0}, "policy.after_turns"),
        ({"after_turns": True}, "policy.after_turns"),
        ({"after_turns": 2.5}, "policy.after_turns"),
        ({"idle_seconds": -1}, "policy.idle_seconds"),
        ({"max_age_seconds": float("inf")}, "policy.max_age_seconds"),
        ({"max_memories": 0}, "policy.max_memories"),
        ({"max_links": -1}, "policy.max_links"),
        ([], "policy"),
        (None, "policy"),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_the_field(given, field):
    with pytest.raises(InvalidInput) as refused:
        parse_policy(given)
    assert refused.value.field == field
    assert refused.value.message.startswith(field)
