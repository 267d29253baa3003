"""What a message must look like before Celery sees it."""

from __future__ import annotations

import json

import garbage
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.broker.message import MESSAGE_LIMIT_BYTES, DropReason, command_fault, report_fault, task_fault
from memory_app.queue import ROUTES
from workers.app import app

PIECES = garbage.dropped()

EXPECTED = {
    "null": DropReason.MALFORMED,
    "deep": DropReason.NOT_JSON,
    "typed value": DropReason.NOT_JSON,
    "null properties": DropReason.MALFORMED,
    "list delivery info": DropReason.MALFORMED,
    "unknown task": DropReason.UNKNOWN_TASK,
    "built-in chord": DropReason.UNKNOWN_TASK,
    "due in the year 9999": DropReason.UNSUPPORTED,
    "limits of its own": DropReason.UNSUPPORTED,
    "callbacks": DropReason.UNSUPPORTED,
    "text as shadow": DropReason.UNSUPPORTED,
    "pickle": DropReason.CONTENT_TYPE,
    "compressed": DropReason.CONTENT_TYPE,
    "body that is no base64": DropReason.BODY,
    "text as arguments": DropReason.BODY,
    "old protocol": DropReason.MALFORMED,
}


def test_a_message_of_ours_is_let_through() -> None:
    assert task_fault(garbage.envelope(), ROUTES) is None
    assert task_fault(garbage.envelope(headers={"expires": "2030-01-01T00:00:00+00:00"}), ROUTES) is None


def test_what_beat_sends_for_each_periodic_job_is_let_through() -> None:
    """Beat sends the limits of a task along, which the senders of hints do not know."""
    app.loader.import_default_modules()
    tasks = [task for name, task in app.tasks.items() if name in ROUTES]
    assert any(task.time_limit for task in tasks)
    for task in tasks:
        limits = [task.time_limit, task.soft_time_limit]
        assert task_fault(garbage.envelope(headers={"timelimit": limits}), ROUTES) is None, task.name


@pytest.mark.parametrize("name", PIECES)
def test_each_piece_of_garbage_is_told_apart(name: str) -> None:
    fault = task_fault(PIECES[name], ROUTES)
    assert fault is not None
    assert fault is EXPECTED.get(name, fault)


def test_a_large_message_is_not_even_read() -> None:
    assert task_fault(b"[" * (MESSAGE_LIMIT_BYTES + 1), ROUTES) is DropReason.TOO_LARGE


@pytest.mark.parametrize(
    "name", ["null", "list", "bytes", "null properties", "number as body", "text headers"]
)
def test_commands_answers_and_events_are_looked_at_in_the_same_way(name: str) -> None:
    assert command_fault(PIECES[name]) is not None
    assert report_fault(PIECES[name]) is not None


def test_commands_of_celery_are_let_through_and_others_not() -> None:
    for body in (
        {"method": "ping", "arguments": {}},
        {"method": "ping", "destination": ["a@b"], "ticket": "t"},
    ):
        assert command_fault(garbage.envelope(body=body, headers={"clock": 3})) is None
    assert [command for command in garbage.commands() if command_fault(command) is None] == []


def test_answers_and_events_are_let_through() -> None:
    for body in ({"worker@host": {"ok": "pong"}}, [{"type": "task-sent"}]):
        assert report_fault(garbage.envelope(body=body)) is None
    assert report_fault(garbage.envelope(body=["text"])) is DropReason.BODY


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
FIELDS = ("body", "content-type", "content-encoding", "headers", "properties")


@given(st.binary())
def test_any_bytes_are_judged(value: bytes) -> None:
    assert task_fault(value, ROUTES) is not None
    assert command_fault(value) is not None
    assert report_fault(value) is not None


@given(st.sampled_from(FIELDS), JSON)
def test_any_value_in_any_field_is_judged(name: str, value: object) -> None:
    message = json.dumps(json.loads(garbage.envelope()) | {name: value}).encode()
    assert task_fault(message, ROUTES) in (None, *DropReason)
    assert command_fault(message) in (None, *DropReason)
    assert report_fault(message) in (None, *DropReason)


@given(st.sampled_from(sorted(json.loads(garbage.envelope())["headers"])), JSON)
def test_any_value_in_any_header_is_judged(name: str, value: object) -> None:
    assert task_fault(garbage.envelope(headers={name: value}), ROUTES) in (None, *DropReason)
    assert command_fault(garbage.envelope(headers={name: value})) in (None, *DropReason)


@given(st.sampled_from(sorted(json.loads(garbage.envelope())["properties"])), JSON)
def test_any_value_in_any_property_is_judged(name: str, value: object) -> None:
    assert task_fault(garbage.envelope(properties={name: value}), ROUTES) in (None, *DropReason)
