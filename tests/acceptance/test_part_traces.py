"""A trace that a finder or Beat begins with its message, and that the worker goes on with, as a collector gets it."""

from __future__ import annotations

import pytest
from provider_stage import LOCAL_EMBEDDER, TEMPLATE, staged, wait_until
from trace_receiver import Receiver, Span, receiving

from memory_app.local.embedded import Servers
from memory_app.local.stack import commands
from memory_app.records.records import Role
from memory_app.records.scope import Scope

SETTINGS = {**LOCAL_EMBEDDER, "MEMORY_TRACING__RATIO": "1", "OTEL_BSP_SCHEDULE_DELAY": "100"}


def continued(receiver: Receiver, part: str) -> list[tuple[Span, Span]]:
    """Messages of this part with which a trace began, each with the worker's task that it brought."""
    spans = receiver.spans()
    sent = {s.span_id: s for s in spans if s.service == f"memory-{part}" and s.parent_id == ""}
    return [(sent[s.parent_id], s) for s in spans if s.parent_id in sent and s.service == "memory-worker"]


@pytest.mark.parametrize("part", ["finder", "beat"])
def test_a_task_goes_on_with_the_trace_of_the_message_that_asked_for_it(
    servers: Servers, template: Servers, tmp_path_factory: pytest.TempPathFactory, part: str
) -> None:
    folder = tmp_path_factory.mktemp(part)
    command = commands.finder() if part == "finder" else commands.beat(folder / "schedule")
    with receiving() as receiver:
        own = {"MEMORY_TRACING__ENDPOINT": receiver.address}
        with staged(servers, TEMPLATE, folder, **SETTINGS, **own) as stage:
            # Its hint is lost, so that somebody has to find it.
            stage.runtime.hot.outage.failed()
            stage.tell(Scope("ada", "mira"), (Role.USER, "I moved to Lisbon."))
            stage.runtime.hot.outage.answered()
            stage.worker()
            stage.start(command)
            wait_until(lambda: bool(continued(receiver, part)), f"a task arrives that {part} asked for")
        spans = receiver.spans()
        steps = continued(receiver, part)

    for message, task in steps:
        assert message.trace_id == task.trace_id
        assert message.name.removeprefix("send/") == task.name.removeprefix("run/")
    if part == "beat":
        assert {task.attributes["memory.task_id"] for message, task in steps} == {
            number for message, _ in steps for number in message.attributes["memory.tasks"]
        }
    # Looking for work, signs of life and the connection to the broker are no steps of its own.
    roots = {s.name for s in spans if s.service == f"memory-{part}" and s.parent_id == ""}
    assert {name.partition("/")[0] for name in roots} == {"send"}
