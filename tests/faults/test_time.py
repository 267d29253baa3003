"""Clocks that change: Beat's jobs are in UTC, so no day has an hour twice or none, wherever the machine stands."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine

from workers.app import app
from workers.schedule import beat_schedule

pytestmark = pytest.mark.faults


@pytest.fixture(params=["Europe/Berlin", "America/New_York", "UTC"])
def local_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The machine's zone for the length of a test."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    "day",
    [
        datetime(2026, 3, 29, tzinfo=UTC),
        datetime(2026, 10, 25, tzinfo=UTC),
        datetime(2026, 11, 1, tzinfo=UTC),
        datetime(2028, 2, 29, tzinfo=UTC),
    ],
    ids=["an hour is left out", "an hour comes twice", "an hour comes twice in New York", "leap day"],
)
def test_F19_a_nightly_job_is_due_once_a_day(tmp_path: Path, local_zone: str, day: datetime) -> None:
    file = tmp_path / "schedule.toml"
    file.write_text('[nightly]\ntask = "memory.find_due"\ncrontab = "30 2 * * *"\n', encoding="utf-8")
    schedule = beat_schedule(file)["nightly"]["schedule"]
    schedule.app = app
    last, ran = day - timedelta(hours=12), []
    for minutes in range(-12 * 60, 60 * 60, 5):
        now = day + timedelta(minutes=minutes)
        with time_machine.travel(now, tick=False):
            if schedule.is_due(last).is_due:
                last = now
                ran.append(now)
    assert ran == [day + timedelta(days=days, hours=2, minutes=30) for days in range(3)], local_zone
