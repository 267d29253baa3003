"""The ids of pieces of work: their form, what is noted under them, and which ids of a caller are taken."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
import structlog

from memory_app import correlation
from memory_app.correlation import HIDDEN, shown

FIXED = "8e0f3c52-5d0b-4f7c-9a37-6f1c0a4d2b11"


def test_an_id_is_of_version_7_and_sorts_by_its_time() -> None:
    ids = [correlation.new_id() for _ in range(100)]

    assert {(id.version, id.variant) for id in ids} == {(7, "specified in RFC 4122")}
    assert len(set(ids)) == 100
    milliseconds = [id.int >> 80 for id in ids]
    assert milliseconds == sorted(milliseconds)


@pytest.mark.parametrize(
    "text", [None, "", "mira was here", "{" + FIXED + "}", FIXED.replace("-", ""), "١" * 36, "g" * 36]
)
def test_only_a_uuid_of_a_caller_is_taken(text: str | None) -> None:
    assert correlation.parse_id(text) is None


def test_a_uuid_of_a_caller_is_taken_as_it_is() -> None:
    given = uuid4()

    assert correlation.parse_id(str(given)) == given


def test_ids_stand_in_every_line_of_a_piece_of_work_and_in_none_after_it() -> None:
    request_id = correlation.new_id()
    with correlation.request(request_id):
        assert structlog.contextvars.get_contextvars() == {"request_id": str(request_id)}
        assert correlation.request_id() == request_id

    assert structlog.contextvars.get_contextvars() == {}
    assert correlation.request_id() is None
    correlation.note(correlation.TURNS, [uuid4()])  # Outside of any work: nothing happens.


def test_a_request_that_a_task_does_belongs_to_both() -> None:
    with correlation.task(None, "memory.record_turn") as outer, correlation.request(uuid4()):
        assert correlation.task_id() == outer.task_id
        correlation.note(correlation.TURNS, ["t"])

    assert outer.summary() == {"turns": ["t"]}
    assert outer.has_effect


def test_a_line_holds_so_many_ids_and_then_their_number() -> None:
    with correlation.task(None, "any") as work:
        correlation.note(correlation.TURNS, range(correlation.IDS_LIMIT))
        correlation.note(correlation.TURNS, range(correlation.IDS_LIMIT + 5))

    summary = work.summary()
    assert summary["turns_count"] == correlation.IDS_LIMIT + 5
    assert len(summary["turns"]) == correlation.IDS_LIMIT  # type: ignore[arg-type]


def test_sending_tasks_alone_is_no_effect() -> None:
    with correlation.task(None, "memory.find_due") as work:
        correlation.note(correlation.TASKS, ["1"])

    assert not work.has_effect


def test_of_arguments_only_ids_are_shown() -> None:
    run = str(uuid4())

    assert shown({"session_id": 7, "shard": 1}) == "session_id=7, shard=1"
    assert shown({"run_id": run}) == f"run_id={run}"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"session_id": "mira"},
        {"run_id": "mira"},
        {"run_id": UUID(int=0)},
        {"session_id": True},
        {"session_id": 2**63},
        {"shard": -1},
        {"content": "I live in Lisbon.", "mira": 1},
        {"session_id": [1]},
    ],
)
def test_whatever_else_a_sender_puts_there_is_not_shown(arguments: dict[str, object]) -> None:
    assert shown(arguments) == HIDDEN
