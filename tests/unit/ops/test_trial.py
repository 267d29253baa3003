"""The trial of a language model: a good one is told from one that invents, misses or does not answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from memory_app.ops.trial import Conversation, Trial, Verdict, load_conversation, try_model
from memory_app.ops.trial_command import app
from memory_app.testing import Mode, Rule, ScriptedModel, StubProvider

EMPTY: dict[str, Any] = {"insights": [], "identity_notes": [], "topics": [], "tones": [], "facts": []}
SESSION: dict[str, Any] = {"anchors": [], "summary": "Kit moved to Lisbon and works at the botanical garden."}


def fact(text: str, *evidence: str) -> dict[str, object]:
    return {"text": text, "evidence": list(evidence)}


GOOD = (
    EMPTY
    | {
        "facts": [
            fact("Kit moved to Lisbon in March.", "t1"),
            fact("Kit has a job at the botanical garden.", "t1"),
            fact("Kit is allergic to walnuts.", "t3"),
            fact("Kit's sister Lea visits on the first weekend of every month.", "t5"),
        ]
    },
    EMPTY
    | {
        "facts": [
            fact("Kit only drinks green tea now.", "t1"),
            fact("Kit's dog is called Pepper.", "t3"),
            fact("Kit has decided to join a choir in September.", "t5"),
            fact("Kit goes everywhere by bicycle.", "t6"),
        ]
    },
    EMPTY | SESSION,
)


@pytest.fixture(scope="module")
def conversation() -> Conversation:
    return load_conversation()


def tried(conversation: Conversation, *answers: object) -> Trial:
    model = ScriptedModel(*answers)
    return try_model(model, model, conversation=conversation, say=lambda step: None)


def test_a_good_model_is_good_enough(conversation: Conversation) -> None:
    trial = tried(conversation, *GOOD)
    assert trial.is_enough
    assert (trial.precision, trial.coverage, trial.missed, trial.wrong) == (1.0, 1.0, (), ())
    assert [item.kind for item in trial.kept] == ["fact"] * 8 + ["episode"]
    assert (trial.calls, trial.dropped, dict(trial.unreadable)) == (3, (), {})
    assert trial.tokens_in > 500


def test_what_is_missed_and_beside_the_point_counts(conversation: Conversation) -> None:
    few = EMPTY | {"facts": [fact("Kit moved to Lisbon.", "t1"), fact("Kit moved in March for a job.", "t1")]}
    trial = tried(conversation, few, EMPTY, EMPTY | SESSION)
    assert not trial.is_enough
    assert (trial.precision, trial.coverage) == (0.5, 0.125)
    assert trial.missed == ("work", "allergy", "sister", "drink", "dog", "choir", "bicycle")


def test_what_the_guards_drop_is_shown_with_its_reason(conversation: Conversation) -> None:
    invented = EMPTY | {
        "facts": [
            *GOOD[0]["facts"],
            fact("Kit won the lottery in Monaco.", "t1"),
            fact("Kit's wifi password is tulip-4711-garden.", "t6"),
            {"text": ""},
        ]
    }
    trial = tried(conversation, invented, *GOOD[1:])
    assert trial.is_enough, "what is dropped does no harm"
    assert [(item.text, item.reason) for item in trial.dropped] == [
        ("Kit won the lottery in Monaco.", "a name that nobody said"),
        ("Kit's wifi password is tulip-4711-garden.", "secret"),
    ]
    assert dict(trial.unreadable) == {"unreadable facts": 1}


def test_what_passes_and_is_wrong_makes_a_model_not_good_enough(conversation: Conversation) -> None:
    leak = EMPTY | {"facts": [*GOOD[1]["facts"], fact("Kit's dog Pepper is no dachshund.", "t3", "t4")]}
    trial = tried(conversation, GOOD[0], leak, GOOD[2])
    assert trial.wrong == ("a question of the assistant",)
    assert [item.verdict for item in trial.kept if "dachshund" in item.text] == [Verdict.WRONG]
    assert not trial.is_enough


def test_an_answer_of_no_use_is_part_of_the_result(conversation: Conversation) -> None:
    trial = tried(conversation, GOOD[0], "I see.", GOOD[2])
    assert list(trial.failed) == ["turns 2"]
    assert not trial.is_enough
    assert trial.calls == 3, "what was paid for is counted"


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubProvider]:
    with StubProvider() as stub:
        monkeypatch.setenv("MEMORY_CHAT__BASE_URL", stub.base_url)
        monkeypatch.setenv("MEMORY_CHAT__MODEL", "small")
        # Nothing listens there: neither Redis nor a database is needed.
        monkeypatch.setenv("MEMORY_REDIS__URL", "redis://127.0.0.1:1/0")
        yield stub


def test_the_command_asks_the_configured_model(stub: StubProvider) -> None:
    stub.follow(*(Rule(times=1, answer=answer) for answer in GOOD))
    done = CliRunner().invoke(app, ["model"])
    assert done.exit_code == 0, done.output
    assert "precision 1.00, coverage 1.00" in done.output
    assert "3 calls" in done.output
    assert "small is good enough" in done.output

    stub.follow(Rule(mode=Mode.NOT_JSON))
    shown = json.loads(CliRunner().invoke(app, ["model", "--json"]).stdout)
    assert (shown["is_enough"], shown["coverage"], len(shown["failed"])) == (False, 0.0, 3)
    # one repair each
    assert shown["calls"] == 6
