"""Messages: public names with fixed queues, ids only, and a failure that costs nothing."""

from __future__ import annotations

import pytest
from free_ports import free_port

from memory_app import queue, redis_url
from memory_app.dispatch.job_table import JOBS
from memory_app.queue import QUEUES, ROUTES, Sender, broker_settings
from memory_app.runtime import hint_name
from memory_app.settings import Schedule


@pytest.fixture
def closed_port() -> int:
    return free_port()


def test_task_names_are_a_wire_format() -> None:
    assert {
        "memory.record_turn": "ingest",
        "memory.index_turns": "ingest",
        "memory.extract_session": "model",
        "memory.find_due": "ingest",
    }.items() <= ROUTES.items()
    assert set(ROUTES.values()) <= set(QUEUES)
    assert all(name.startswith("memory.") for name in ROUTES)


def test_every_task_name_of_the_module_has_a_queue() -> None:
    names = {value for name, value in vars(queue).items() if name.isupper() and isinstance(value, str)}
    assert names - set(QUEUES) == set(ROUTES)


def test_both_ends_agree_on_what_would_disturb_the_other() -> None:
    settings = broker_settings(redis_url.read("redis://localhost/0"), "memory:")
    assert settings["broker_transport_options"]["visibility_timeout"] == 3600
    assert settings["broker_transport_options"]["global_keyprefix"] == "memory:"
    assert (settings["task_serializer"], settings["accept_content"]) == ("json", ["json"])
    assert settings["task_ignore_result"] is True


def test_with_the_broker_away_sending_fails_and_raises_nothing(closed_port: int) -> None:
    sender = Sender(redis_url.read(f"redis://127.0.0.1:{closed_port}/0"), prefix="test:")
    assert sender.send(queue.INDEX_TURNS) is False
    sender.close()


def test_a_name_that_is_not_public_is_a_programming_error(closed_port: int) -> None:
    with pytest.raises(KeyError):
        Sender(redis_url.read(f"redis://127.0.0.1:{closed_port}/0"), prefix="test:").send("memory.unheard_of")


def test_hints_about_one_thing_have_one_name() -> None:
    assert hint_name("memory.index_turns") == "memory.index_turns"
    assert hint_name("memory.extract_session", session_id=7) == "memory.extract_session:7"
    assert hint_name("t", b=2, a=1) == hint_name("t", a=1, b=2)
    assert hint_name("t", a=1) != hint_name("t", a=2)


def test_every_periodic_job_is_in_the_job_table_with_a_task_of_a_queue() -> None:
    assert set(Schedule().intervals) <= set(JOBS)
    assert {job.task for job in JOBS.values()} <= set(ROUTES)
