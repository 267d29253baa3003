"""The periodic jobs: what a schedule file may say, and errors that name the job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from celery.schedules import crontab

from memory_app.errors import Misconfigured
from memory_app.queue import FIND_DUE, ROUTES
from workers.schedule import PERIODIC, beat_schedule

EXAMPLE = Path(__file__).parents[3] / "celerybeat-schedule.example"
JOB = '[nightly]\ntask = "memory.find_due"\n'


def parsed(folder: Path, words: str) -> dict[str, dict[str, Any]]:
    file = folder / "schedule.toml"
    file.write_text(words, encoding="utf-8")
    return beat_schedule(file)


def test_without_a_file_due_work_is_looked_for_every_few_seconds() -> None:
    jobs = beat_schedule(None)
    assert {"task": FIND_DUE, "schedule": 5.0}.items() <= jobs["find-due"].items()


def test_the_example_file_parses_and_names_only_tasks_that_there_are() -> None:
    jobs = beat_schedule(EXAMPLE)
    assert FIND_DUE in {job["task"] for job in jobs.values()}
    assert {job["task"] for job in jobs.values()} <= set(ROUTES)


def test_a_job_goes_to_the_queue_of_its_task_and_shows_no_arguments(tmp_path: Path) -> None:
    for job in (*beat_schedule(None).values(), *parsed(tmp_path, JOB + 'crontab = "0 3 * * *"').values()):
        options = job["options"]
        assert options["queue"] == ROUTES[job["task"]]
        assert (options["argsrepr"], options["kwargsrepr"]) == ("()", "{…}")


def test_a_message_of_a_period_expires_when_the_next_one_is_sent(tmp_path: Path) -> None:
    jobs = parsed(tmp_path, JOB + "every_seconds = 30")
    assert jobs["nightly"]["options"]["expires"] == 30


def test_a_crontab_has_its_five_parts_in_the_usual_order(tmp_path: Path) -> None:
    jobs = parsed(tmp_path, JOB + 'crontab = "15 3 1 6 mon"')
    assert jobs["nightly"]["schedule"] == crontab(
        minute="15", hour="3", day_of_month="1", month_of_year="6", day_of_week="mon"
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("nightly = 3", "nightly is not a table"),
        ('[nightly]\ntask = "memory.unheard_of"\nevery_seconds = 5', "unknown task 'memory.unheard_of'"),
        ("[nightly]\nevery_seconds = 5", "unknown task None"),
        ("[nightly]\ntask = 3\nevery_seconds = 5", "unknown task 3"),
        (JOB, "either every_seconds or crontab"),
        (JOB + 'every_seconds = 5\ncrontab = "0 3 * * *"', "either every_seconds or crontab"),
        (JOB + "every_seconds = 0", "a number above 0"),
        (JOB + "every_seconds = -5", "a number above 0"),
        (JOB + "every_seconds = true", "a number above 0"),
        (JOB + 'every_seconds = "5"', "a number above 0"),
        (JOB + 'every_seconds = "often"', "a number above 0"),
        (JOB + "every_seconds = nan", "a number above 0"),
        (JOB + "every_seconds = inf", "a number above 0"),
        (JOB + "every_seconds = []", "a number above 0"),
        (JOB + 'crontab = "0 3 * *"', "five parts"),
        (JOB + 'crontab = "61 3 * * *"', "crontab '61 3 * * *'"),
        (JOB + 'crontab = "a b c d e"', "crontab 'a b c d e'"),
        (JOB + 'crontab = "*/0 3 * * *"', "crontab"),
        (JOB + "crontab = 3", "five parts"),
        (JOB + 'crontab = "0 0 31 2 *"', "never occurs"),
        ('[nightly]\ntask = "memory.sleep"\nevery_seconds = 5', "memory.sleep does one thing"),
        (JOB + "every_seconds = 5\npriority = 3", "unknown field priority"),
    ],
)
def test_a_job_that_cannot_be_read_is_named_with_what_is_wrong(
    tmp_path: Path, words: str, complaint: str
) -> None:
    with pytest.raises(Misconfigured) as refused:
        parsed(tmp_path, words)
    assert "nightly" in refused.value.message
    assert complaint in refused.value.message


def test_a_file_that_is_not_there_or_not_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"nowhere\.toml"):
        beat_schedule(tmp_path / "nowhere.toml")
    with pytest.raises(Misconfigured, match=r"schedule\.toml"):
        parsed(tmp_path, "[nightly")


def test_a_file_without_a_job_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="names no job"):
        parsed(tmp_path, "# nothing yet\n")


def test_a_job_may_be_any_that_finds_its_own_work(tmp_path: Path) -> None:
    for task in PERIODIC:
        assert parsed(tmp_path, f'[one]\ntask = "{task}"\ncrontab = "0 0 29 2 *"')["one"]["task"] == task


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "schedule.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(Misconfigured, match=r"schedule\.toml"):
        beat_schedule(file)
