"""Dead letters: listed with a reason, replayed without disturbing the order, or given up."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine, text

from memory_app.agents.agents import AgentChange, change_agent
from memory_app.dispatch import finder
from memory_app.errors import Conflict, NotFound
from memory_app.records.records import NewTurn, Role, Stage
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns import failed
from memory_app.turns.record import record
from memory_app.turns.tickets import ticket

CHAT = Scope("ada", "mira", "chat")


def say(runtime: Runtime, tenant: int, *said: str) -> list[UUID]:
    return [t.id for t in record(runtime, tenant, CHAT, [NewTurn(Role.USER, one) for one in said])]


def break_turn(owner: Engine, turn_id: UUID) -> None:
    """As if its worker had died three times while extracting it: the next claim parks it."""
    with owner.begin() as connection:
        connection.execute(
            text(
                "UPDATE sessions SET starts = 3, extracted_seq = (SELECT seq - 1 FROM turns WHERE id = :id)"
            ),
            {"id": turn_id},
        )


def stage(runtime: Runtime, tenant: int, turn_id: UUID) -> Stage:
    return ticket(runtime, tenant, turn_id, wait_seconds=0).stage


def test_a_replayed_turn_takes_effect_late_and_leaves_the_others_alone(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    bad, good = say(runtime, tenant, "I have a dog called Bruno.", "I have a cat called Minka.")
    break_turn(owner, bad)
    finder.drain(runtime)
    finder.drain(runtime)
    assert [row.id for row in failed.failed(runtime, tenant)] == [bad]
    assert stage(runtime, tenant, good) is Stage.EXTRACTED

    failed.replay(runtime, tenant, bad)
    finder.drain(runtime)

    assert stage(runtime, tenant, bad) is Stage.EXTRACTED
    assert ticket(runtime, tenant, bad, wait_seconds=0).memory_ids != ()
    assert failed.failed(runtime, tenant) == ()
    assert finder.look(runtime).sessions == ()


def test_a_discarded_turn_stays_failed_and_is_listed_no_more(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (bad,) = say(runtime, tenant, "I have a dog called Bruno.")
    break_turn(owner, bad)
    finder.drain(runtime)

    failed.discard(runtime, tenant, bad)
    finder.drain(runtime)

    assert failed.failed(runtime, tenant) == ()
    assert stage(runtime, tenant, bad) is Stage.FAILED
    assert ticket(runtime, tenant, bad, wait_seconds=0).memory_ids == ()


@pytest.mark.parametrize("settle", [failed.replay, failed.discard])
def test_a_strict_session_waits_for_its_failed_turn_and_then_goes_on(
    runtime: Runtime, tenant: int, owner: Engine, settle: object
) -> None:
    change_agent(
        runtime, tenant, Scope("ada"), change=AgentChange(frozenset({"policy"}), policy={"strict": True})
    )
    bad, good = say(runtime, tenant, "I have a dog called Bruno.", "I have a cat called Minka.")
    break_turn(owner, bad)
    finder.drain(runtime)
    (later,) = say(runtime, tenant, "I have a hamster called Kiki.")
    finder.drain(runtime)
    assert stage(runtime, tenant, good) is Stage.INDEXED, "nothing overtakes the failed turn"

    settle(runtime, tenant, bad)  # type: ignore[operator]
    finder.drain(runtime)

    assert stage(runtime, tenant, good) is Stage.EXTRACTED
    assert stage(runtime, tenant, later) is Stage.EXTRACTED
    assert stage(runtime, tenant, bad) is (Stage.EXTRACTED if settle is failed.replay else Stage.FAILED)


def test_only_failed_turns_of_ones_own_can_be_settled(
    runtime: Runtime, tenant: int, other_tenant: int
) -> None:
    (fine,) = say(runtime, tenant, "I have a dog called Bruno.")
    with pytest.raises(Conflict):
        failed.replay(runtime, tenant, fine)
    with pytest.raises(NotFound):
        failed.replay(runtime, other_tenant, fine)
    with pytest.raises(NotFound):
        failed.discard(runtime, tenant, uuid4())
