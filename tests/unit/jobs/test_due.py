"""Late work: a stand-still where nobody is at it, a backlog where somebody is, and one look is not enough to tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from memory_app.hot.life import Sign
from memory_app.jobs.life import Heard
from memory_app.jobs.rows.health import DueWork
from memory_app.ops import due
from memory_app.ops.due import LATE_AFTER_SECONDS, lateness

NOBODY: Mapping[str, Heard] = {}
LATE = LATE_AFTER_SECONDS + 10


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due, "PAUSE_SECONDS", 0.0)


def heard(*, tasks: int = 0, **parts: bool) -> dict[str, Heard]:
    sign = Sign("host:1", 1.0, tasks)
    return {name.replace("_", "-"): Heard((sign,) if lives else (), ()) for name, lives in parts.items()}


def kinds(works: Sequence[DueWork], parts: Mapping[str, Heard] = NOBODY) -> dict[str, bool]:
    return {one.kind: one.is_stalled for one in lateness(lambda: works, parts)}


def test_work_that_came_lately_is_not_late() -> None:
    assert kinds([DueWork("turns", LATE_AFTER_SECONDS - 1, is_held=False)]) == {}


def test_late_work_in_nobodys_hands_is_a_stand_still() -> None:
    assert kinds([DueWork("turns", LATE, is_held=False), DueWork("sessions", 0, is_held=False)]) == {
        "turns": True
    }


def test_late_work_beside_some_in_hand_is_a_backlog() -> None:
    assert kinds([DueWork("sessions", LATE, is_held=True)]) == {"sessions": False}


def test_a_moment_between_two_pieces_of_work_is_no_stand_still() -> None:
    looks: Iterator[bool] = iter([False, True])

    (one,) = lateness(lambda: [DueWork("turns", LATE, is_held=next(looks))], NOBODY)

    assert not one.is_stalled


def test_runs_may_wait_for_a_worker_that_builds_an_index() -> None:
    runs = [DueWork("runs", LATE, is_held=False)]

    assert kinds(runs, heard(worker_maintenance=True, tasks=1)) == {"runs": False}
    assert kinds(runs, heard(worker_maintenance=True)) == {"runs": True}
    assert kinds(runs, heard(worker_ingest=True, tasks=1)) == {"runs": True}


def test_periodic_jobs_may_wait_for_the_night_where_beat_alone_looks() -> None:
    jobs = [DueWork("periodic jobs", LATE, is_held=False)]

    assert kinds(jobs, heard(beat=True)) == {"periodic jobs": False}
    assert kinds(jobs, heard(beat=True, finder=True)) == {"periodic jobs": True}


def test_the_reason_says_for_how_long_and_whether_anybody_is_at_it() -> None:
    (one,) = lateness(lambda: [DueWork("turns", 95.4, is_held=False)], NOBODY)

    assert one.reason == "the oldest has been due for 95 s; nobody is at it"
