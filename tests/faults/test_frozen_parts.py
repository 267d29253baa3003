"""F39: one kind of part is frozen alone. Readiness and doctor name it within a minute, and no longer afterwards."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
import pytest
from free_ports import free_port
from harness.api import call, is_live
from harness.fleet import Member
from harness.stage import Stage
from harness.waiting import wait_until

from memory_app.ops.check import State
from memory_app.ops.doctor import diagnose

pytestmark = [pytest.mark.faults, pytest.mark.slow]

NAMED_SECONDS = 60
"""The published bound."""

START_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Everything:
    """A whole set of parts, one process of each kind, and the API that tells about them."""

    stage: Stage
    port: int
    members: dict[str, Member]

    def ready(self) -> tuple[int, dict[str, dict[str, object]]]:
        status, body = call(self.port, "GET", "/health/ready")
        return status, body["parts"]

    def is_named(self, kind: str) -> bool:
        """Whether readiness says that this kind, and no other, is silent."""
        parts = self.ready()[1]
        silent = [name for name, part in parts.items() if "silent" in str(part["reason"])]
        return silent == [kind]

    def is_well(self) -> bool:
        status, parts = self.ready()
        return status == 200 and all(part["reason"] is None for part in parts.values())

    def doctor_names(self, check_name: str) -> bool:
        checks = diagnose(self.stage.runtime.settings)
        return any(
            check.name == check_name and check.state is not State.OK and "silent" in check.found
            for check in checks
        )


@pytest.fixture
def everything(stage: Stage) -> Everything:
    port = free_port()
    fleet = stage.fleet
    members = {
        "worker-ingest": fleet.worker(queues="ingest"),
        "worker-model": fleet.model_worker(),
        "worker-maintenance": fleet.worker(queues="maintenance", concurrency=1),
        "finder": fleet.finder(),
        "beat": fleet.beat(),
    }
    fleet.api(port)
    wait_until(lambda: is_live(port), "the API answers", seconds=START_SECONDS)
    whole = Everything(stage, port, members)
    wait_until(whole.is_well, "every part is heard", seconds=START_SECONDS)
    return whole


def seconds_until_named(whole: Everything, kind: str) -> float:
    return wait_until(lambda: whole.is_named(kind), f"readiness names {kind}", seconds=NAMED_SECONDS)


@contextmanager
def frozen_children(worker: Member) -> Iterator[None]:
    """The processes of the pool stand still, the main process goes on."""
    children = worker.children()
    assert children
    for child in children:
        child.suspend()
    try:
        yield
    finally:
        for child in children:
            child.resume()


@contextmanager
def frozen_group(member: Member) -> Iterator[None]:
    member.signal_group(signal.SIGSTOP)
    try:
        yield
    finally:
        member.signal_group(signal.SIGCONT)


@contextmanager
def frozen_main(member: Member) -> Iterator[None]:
    main = psutil.Process(member.pid)
    main.suspend()
    try:
        yield
    finally:
        main.resume()


CHECKS = {
    "worker-ingest": "queue ingest",
    "worker-model": "queue model",
    "worker-maintenance": "queue maintenance",
    "finder": "finder",
    "beat": "beat",
}


@pytest.mark.timeout(900)
def test_F39_each_kind_of_part_frozen_alone(
    everything: Everything, capsys: pytest.CaptureFixture[str]
) -> None:
    cases: list[tuple[str, Callable[[Member], object]]] = [
        *((kind, frozen_group) for kind in CHECKS),
        ("worker-ingest", frozen_main),
        ("worker-ingest", frozen_children),
    ]
    for kind, freeze in cases:
        member = everything.members[kind]
        with freeze(member):  # type: ignore[attr-defined]
            seconds = seconds_until_named(everything, kind)
            status, _ = everything.ready()
            assert everything.doctor_names(CHECKS[kind]), kind
        # The finder and Beat do the same work, so that one of them is no outage.
        assert status == (200 if kind in ("finder", "beat") else 503), kind
        began = time.monotonic()
        wait_until(everything.is_well, f"{kind} is well again", seconds=START_SECONDS)
        with capsys.disabled():
            how = freeze.__name__.replace("_", " ")
            print(
                f"\n{how} of {kind}: named after {seconds:.0f} s, well {time.monotonic() - began:.0f} s after"
            )
