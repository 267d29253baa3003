"""A language model that fails, hangs, answers nonsense or death: order stays, nothing is lost, few calls are wasted.

The model is our own server over HTTP. It states one thing about each turn that it is asked about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from harness import load, oracle
from harness.model import CHAT, TO_BE_READ, answers_used, bad_answers, calls, with_model, workers
from harness.stage import Stage
from harness.turns import failed_texts, with_harm
from harness.waiting import wait_until
from queries import rows

from memory_app.testing import Mode, Rule, StubProcess

pytestmark = pytest.mark.faults

RIGGED = "harness.rigged"

PATIENT = {"MEMORY_CHAT__TOTAL_SECONDS": "20", "MEMORY_CHAT__QUESTION_SECONDS": "20"}
"""So that a call is not given up before the limit that is to be tested."""

PASSING = (
    Rule(Mode.RATE_LIMITED, retry_after="1"),
    Rule(Mode.SERVER_ERROR),
    Rule(Mode.CUT),
    Rule(Mode.BROKEN_BODY),
    Rule(Mode.HANG, seconds=15),
    Rule(Mode.DRIP, seconds=0.2),
    Rule(Mode.UNAUTHORIZED),
)
"""Failures of the server: whatever is asked meets them, so they set nothing aside, however often they come."""

UNUSABLE = (
    Rule(Mode.NOT_JSON),
    Rule(Mode.WRONG_SCHEMA),
    Rule(Mode.EMPTY),
    Rule(Mode.CUT_JSON),
    Rule(Mode.REFUSAL),
    Rule(Mode.HUGE),
    Rule(Mode.BAD_REQUEST),
    Rule(answer="[" * 200_000),
)
"""Answers to one request that are of no use. One costs a repair, or has the turns asked about one by one."""


DEADLY = {
    "huge": Rule(Mode.HUGE),
    "nested": Rule(answer="[" * 200_000),
    "refusal": Rule(Mode.REFUSAL),
}
"""What becomes of questions about turns that order it; other harm is done by whoever reads the answer."""


def of_harms(rules: Mapping[str, Rule]) -> list[Rule]:
    """Whenever a turn with that harm is among those to be read."""
    return [replace(rule, path=CHAT, matches=f"{TO_BE_READ}harm={harm}") for harm, rule in rules.items()]


def of_users(rules: tuple[Rule, ...], times: int) -> list[Rule]:
    """So often, and each for one of the users."""
    return [
        replace(rule, path=CHAT, contains=f"| run-user-{place}: ", times=times)
        for place, rule in enumerate(rules)
    ]


def assert_few_calls(stage: Stage, model: StubProcess, *, unread: int = 0) -> None:
    """Each call became memories, was answered badly, or is one of the ``unread``."""
    asked, most = calls(model)(), answers_used(stage.owner) + bad_answers(model) + unread
    assert asked <= most, f"{asked} calls, {most} at most"


@pytest.mark.parametrize("times", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_F23_a_model_that_fails(stage: Stage, times: int) -> None:
    with with_model(stage) as (stage, model), workers(stage):
        stage.fleet.finder()
        model.follow(*of_users(PASSING, times))
        under_way = stage.clients(turns=200, sessions=2 * len(PASSING), seconds=2)
        under_way.retries()
        stage.settle(under_way, model_calls=calls(model))
        assert bad_answers(model) == times * len(PASSING)
        assert_few_calls(stage, model)


@pytest.mark.slow
def test_F23_answers_of_no_use(stage: Stage) -> None:
    """Once for each user, which sets no turn aside."""
    nested = 1  # which our server takes for a good answer
    with with_model(stage) as (stage, model), workers(stage):
        stage.fleet.finder()
        model.follow(*of_users(UNUSABLE, 1))
        under_way = stage.clients(turns=200, sessions=2 * len(UNUSABLE), seconds=2)
        under_way.retries()
        stage.settle(under_way, model_calls=calls(model))
        assert_few_calls(stage, model, unread=nested)


@pytest.mark.slow
def test_F42_an_odd_item_in_every_list(stage: Stage) -> None:
    """The good ones are kept for one call each, and neither the prompt's words nor what nobody said is."""
    with with_model(stage) as (stage, model), workers(stage):
        stage.fleet.finder()
        model.follow(Rule(Mode.ODD_ITEMS, path=CHAT))
        under_way = stage.clients(turns=150, sessions=10, seconds=2)
        under_way.retries()
        stage.settle(under_way, model_calls=calls(model))
        assert calls(model)() == answers_used(stage.owner)
        odd = "SELECT text FROM memories WHERE text LIKE '%Ottilie%' OR text LIKE '%have things%'"
        assert rows(stage.owner, odd) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "harms", [("kill", "write-kill", "huge", "nested", "refusal"), ("loop",)], ids=["several", "loop"]
)
def test_F04_turns_whose_answer_is_deadly(stage: Stage, harms: tuple[str, ...]) -> None:
    # given a model whose answers to some turns are of no use, or kill or occupy whoever reads or writes them
    with (
        with_model(stage, MEMORY_EXTRACT__MODEL_LEASE_SECONDS="2", RIGGED_TASK_SECONDS="4") as (stage, model),
        workers(stage, app=RIGGED),
    ):
        stage.fleet.finder()
        model.follow(*of_harms(DEADLY))
        under_way = stage.clients(
            calls=with_harm(load.plan(seed=4, turns=150, sessions=10), harms), seconds=2
        )
        under_way.retries()
        # then those turns alone are set aside, and their sessions go on
        verdict = stage.settle(under_way, dead=len(harms), model_calls=calls(model))
        assert all("harm=" in said for said in failed_texts(stage.owner))
        assert verdict.applied == 150


@pytest.mark.slow
def test_F07_answers_that_take_longer_than_their_lease(stage: Stage) -> None:
    """The lease goes to another worker, and one of the two answers counts."""
    lease = {"MEMORY_EXTRACT__MODEL_LEASE_SECONDS": "2"}
    with with_model(stage, **lease, **PATIENT) as (stage, model), workers(stage) as said:
        stage.fleet.finder()
        # long enough for another worker to take over on a busy machine, too
        model.follow(Rule(path=CHAT, seconds=8, share=0.15))
        under_way = stage.clients(turns=300, seconds=6)
        under_way.retries()
        stage.settle(under_way, model_calls=calls(model))
        wait_until(
            lambda: "extraction_fenced" in said(), "the late answer arrives and is refused", seconds=30
        )


@pytest.mark.slow
def test_F07_answers_that_take_longer_than_the_time_limit(stage: Stage) -> None:
    """The worker gives up and is started again; what hung is tried in a process of its own, the others go on."""
    limits = {"MEMORY_EXTRACT__MODEL_LEASE_SECONDS": "5", "RIGGED_TASK_SECONDS": "2"}
    with with_model(stage, **limits, **PATIENT) as (stage, model), workers(stage, app=RIGGED) as said:
        stage.fleet.finder()
        model.follow(Rule(Mode.HANG, path=CHAT, seconds=15, contains="| run-user-0: ", times=2))
        under_way = stage.clients(turns=200, seconds=3)
        under_way.retries()
        stage.settle(under_way, model_calls=calls(model))
        assert "worker_gives_up" in said()
        assert_few_calls(stage, model)


def test_F24_the_model_is_away(stage: Stage) -> None:
    """For however long: nothing is set aside, and everything is applied in order when it is back."""
    with with_model(stage) as (stage, model), workers(stage):
        stage.fleet.finder()
        model.stop()
        under_way = stage.clients(turns=200, seconds=4)
        under_way.retries()
        assert oracle.applied(stage.owner) == 0
        model.start()
        stage.settle(under_way, model_calls=calls(model))
        assert_few_calls(stage, model)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_F24_the_model_fails_for_a_while_and_is_slow_afterwards(stage: Stage) -> None:
    """With the real circuit and back-off: five calls in vain, then one a minute, and the bound holds afterwards."""
    usual = {
        "MEMORY_EXTRACT__RETRY_MAX_SECONDS": "600",
        "MEMORY_EXTRACT__RETRY_BASE_SECONDS": "2",
        "MEMORY_CHAT__REST_SECONDS": "60",
    }
    with with_model(stage, **usual, **PATIENT) as (stage, model), workers(stage):
        stage.fleet.finder()
        model.follow(Rule(Mode.SERVER_ERROR, path=CHAT))
        under_way = stage.clients(turns=300, seconds=70)
        under_way.retries()
        in_vain = calls(model)()
        assert in_vain <= 5 + 7 + 1, "five open the circuit while seven more may be under way; one tries it"
        model.follow(Rule(path=CHAT, seconds=2))
        stage.settle(under_way, model_calls=calls(model))
        assert_few_calls(stage, model)
