"""The periodic jobs: the product's own, or those of a file like ``celerybeat-schedule.example``.

Beat asks only "what is due?"; rows decide. Two Beats at once are harmless.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from celery.schedules import ParseException, crontab

from memory_app.errors import Misconfigured
from memory_app.queue import (
    FIND_DUE,
    FIND_IDLE,
    FIND_PERIODIC,
    INDEX_SCOPES,
    INDEX_TURNS,
    NOTE_RECALLS,
    REEMBED,
    ROUTES,
    TIDY,
)

DEFAULT: Mapping[str, Mapping[str, Any]] = {
    "find-due": {"task": FIND_DUE, "every_seconds": 5.0},
    "find-idle": {"task": FIND_IDLE, "every_seconds": 60.0},
    "find-periodic": {"task": FIND_PERIODIC, "every_seconds": 60.0},
    "index-scopes": {"task": INDEX_SCOPES, "every_seconds": 300.0},
    "note-recalls": {"task": NOTE_RECALLS, "every_seconds": 60.0},
    "reembed": {"task": REEMBED, "every_seconds": 300.0},
    "tidy": {"task": TIDY, "every_seconds": 300.0},
}
"""Used when no file is given."""

PERIODIC = (FIND_DUE, FIND_IDLE, FIND_PERIODIC, INDEX_SCOPES, INDEX_TURNS, NOTE_RECALLS, REEMBED, TIDY)
"""Tasks that look for themselves what is due. The others do one thing, which the message names; `FIND_PERIODIC` has
the periodic jobs of scopes done."""

CRONTAB_EXPIRES_SECONDS = 300.0

FIELDS = frozenset({"task", "every_seconds", "crontab"})


def beat_schedule(file: Path | None) -> dict[str, dict[str, Any]]:
    """Beat's own form of the schedule. Raises `Misconfigured` naming the job and what is wrong with it."""
    if file is None:
        return _entries(DEFAULT)
    try:
        jobs = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise Misconfigured(f"schedule file {file}: cannot be read; check MEMORY_SCHEDULE_FILE") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misconfigured(f"schedule file {file}: {error}") from error
    if not jobs:
        raise Misconfigured(
            f"schedule file {file}: names no job, so nothing would come round; see the example"
        )
    return _entries(jobs)


def _entries(jobs: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: _entry(name, job) for name, job in jobs.items()}


def _entry(name: str, job: Any) -> dict[str, Any]:
    if not isinstance(job, Mapping):
        raise Misconfigured(f"schedule: {name} is not a table; write [{name}] and its fields below")
    unknown = set(job) - FIELDS
    if unknown:
        raise Misconfigured(
            f"schedule: {name}: unknown field {sorted(unknown)[0]}; one of {', '.join(sorted(FIELDS))}"
        )
    task = job.get("task")
    if not isinstance(task, str) or task not in ROUTES:
        raise Misconfigured(f"schedule: {name}: unknown task {task!r}; one of {', '.join(PERIODIC)}")
    if task not in PERIODIC:
        raise Misconfigured(
            f"schedule: {name}: {task} does one thing that is asked for and cannot come round; "
            f"one of {', '.join(PERIODIC)}"
        )
    when = _when(name, job)
    # A message that a worker gets only after the next one was sent has nothing left to say.
    expires = when if isinstance(when, float) else CRONTAB_EXPIRES_SECONDS
    return {
        "task": task,
        "schedule": when,
        "options": {"queue": ROUTES[task], "expires": expires, "argsrepr": "()", "kwargsrepr": "{…}"},
    }


def _when(name: str, job: Mapping[str, Any]) -> float | crontab:
    if ("every_seconds" in job) == ("crontab" in job):
        raise Misconfigured(f"schedule: {name}: give either every_seconds or crontab")
    if "every_seconds" in job:
        every = job["every_seconds"]
        # In Python True is a number.
        if isinstance(every, bool) or not isinstance(every, int | float) or not 0 < every < math.inf:
            raise Misconfigured(f"schedule: {name}: every_seconds is a number above 0")
        return float(every)
    parts = str(job["crontab"]).split()
    if len(parts) != 5:
        raise Misconfigured(f"schedule: {name}: crontab has five parts: minute hour day month weekday (UTC)")
    minute, hour, day, month, weekday = parts
    try:
        return crontab(minute=minute, hour=hour, day_of_month=day, month_of_year=month, day_of_week=weekday)
    except (ParseException, ValueError) as error:
        raise Misconfigured(f"schedule: {name}: crontab {job['crontab']!r}: {error}") from error
