"""Whose "yesterday": the zone that is set for a user, else the offset of the times that they send."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from queries import rows
from sqlalchemy import Engine
from starlette.testclient import TestClient

from memory_app.app import MemoryApp
from memory_app.dispatch import finder
from memory_app.errors import InvalidInput, NotFound
from memory_app.language.zones import find_zone, offset_of, told_zone, zone_of
from memory_app.main.http import create_app
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime

CHAT = Scope("ada", "mira", "chat")
USER = "/v1/users/mira"
MORNING = "2026-03-10T08:30:00+09:00"


@pytest.fixture
def memory_app(runtime: Runtime, tenant: int) -> MemoryApp:
    return MemoryApp(runtime, tenant_id=tenant)


@pytest.fixture
def client(runtime: Runtime, api_key: str) -> TestClient:
    return TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})


def bought(memory: MemoryApp, owner: Engine, at: str, thing: str = "piano") -> str:
    memory.record(CHAT, f"Yesterday I bought a {thing}.", at=at)
    finder.drain(memory.runtime)
    (row,) = rows(owner, "SELECT text FROM memories WHERE text LIKE :text", text=f"%{thing}%")
    return str(row.text)


def test_the_offset_of_a_time_is_the_zone_of_who_has_set_none(memory_app: MemoryApp, owner: Engine) -> None:
    assert "2026-03-09" in bought(memory_app, owner, MORNING)

    window = memory_app.context(CHAT, "What did I buy?")
    assert "2026-03-10 08:30" in window.text
    assert "23:30" not in window.text


@pytest.mark.parametrize("at", ["2026-03-10T18:30:00-07:30", "2026-03-10T08:00:00+05:45"])
def test_offsets_of_every_kind_are_read(memory_app: MemoryApp, owner: Engine, at: str) -> None:
    assert "2026-03-09" in bought(memory_app, owner, at)


def test_a_zone_that_is_set_wins_over_the_offset(memory_app: MemoryApp, owner: Engine) -> None:
    memory_app.change_user("mira", time_zone="America/New_York")

    # 08:30 in Seoul is the evening of the ninth in New York.
    assert "2026-03-08" in bought(memory_app, owner, MORNING)
    memory_app.change_user("mira", time_zone=None)
    assert "2026-03-09" in bought(memory_app, owner, MORNING, "drum")


def test_utc_may_be_set_on_purpose(memory_app: MemoryApp, owner: Engine) -> None:
    memory_app.change_user("mira", time_zone="UTC")
    assert "2026-03-08" in bought(memory_app, owner, MORNING)


def test_the_times_of_assistants_and_tools_say_nothing_of_the_user(memory_app: MemoryApp) -> None:
    memory_app.record(CHAT, "Good morning!", role="assistant", at=MORNING)
    assert memory_app.user("mira").time_zone == "UTC"


def test_a_zone_is_set_and_read_over_http(client: TestClient) -> None:
    assert client.get(USER).status_code == 404

    answer = client.patch(USER, json={"time_zone": "Asia/Seoul"})
    assert (answer.status_code, answer.json()["time_zone"]) == (200, "Asia/Seoul")
    assert client.get(USER).json()["zone_is_set"] is True
    assert client.patch(USER, json={"time_zone": None}).json()["time_zone"] == "UTC"


@pytest.mark.parametrize("zone", ["Mars/Base", "America", "", "../etc/passwd", "+25:00", "GMT+99", "\0"])
def test_a_zone_that_does_not_exist_is_refused(client: TestClient, memory_app: MemoryApp, zone: str) -> None:
    answer = client.patch(USER, json={"time_zone": zone})

    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "time_zone")
    with pytest.raises(InvalidInput, match="time_zone"):
        memory_app.change_user("mira", time_zone=zone)
    with pytest.raises(NotFound):
        memory_app.user("mira")


@pytest.mark.parametrize(("offset", "hour"), [("+09:00", 21), ("-03:30", 8), ("+05:45", 17), ("+00:00", 12)])
def test_an_offset_is_a_zone_without_summer_time(offset: str, hour: int) -> None:
    for month in (1, 7):
        at = datetime(2026, month, 1, 12, tzinfo=UTC).astimezone(zone_of(offset))
        assert (at.hour, offset_of(at)) == (hour, offset)


@pytest.mark.parametrize(
    "at",
    [datetime.fromisoformat("2026-01-01T00:00:00"), datetime(1850, 1, 1, tzinfo=ZoneInfo("Europe/Paris"))],
)
def test_a_time_without_an_offset_of_minutes_has_none(at: Any) -> None:
    assert offset_of(at) is None
    assert find_zone("nonsense") is None


@pytest.mark.parametrize(
    ("told", "zone"),
    [
        ("My time zone is Asia/Tokyo by the way", "Asia/Tokyo"),
        ("Meine Zeitzone ist Europe/Berlin.", "Europe/Berlin"),
        ("My time zone is UTC+9", "+09:00"),
    ],
)
def test_a_zone_that_the_user_tells_counts_from_then_on(
    memory_app: MemoryApp, owner: Engine, told: str, zone: str
) -> None:
    memory_app.record(CHAT, told)
    finder.drain(memory_app.runtime)
    assert memory_app.user("mira").time_zone == zone
    if zone != "Europe/Berlin":
        assert "2026-03-10" in bought(memory_app, owner, "2026-03-10T20:00:00Z")


def test_a_zone_that_is_told_does_not_displace_one_that_is_set(memory_app: MemoryApp) -> None:
    memory_app.change_user("mira", time_zone="Europe/Lisbon")
    memory_app.record(CHAT, "My time zone is Asia/Tokyo.")
    finder.drain(memory_app.runtime)
    assert memory_app.user("mira").time_zone == "Europe/Lisbon"


@pytest.mark.parametrize(
    "told", ["My time zone is Mars/Olympus.", "My sister's time zone is Asia/Tokyo.", "I live in Tokyo."]
)
def test_what_tells_no_zone_of_the_user_sets_none(memory_app: MemoryApp, told: str) -> None:
    memory_app.record(CHAT, told)
    finder.drain(memory_app.runtime)
    assert memory_app.user("mira").time_zone == "UTC"


def test_an_assistant_tells_no_zone_of_the_user(memory_app: MemoryApp) -> None:
    memory_app.record(CHAT, "My time zone is Asia/Tokyo.", role="assistant")
    finder.drain(memory_app.runtime)
    assert memory_app.user("mira").time_zone == "UTC"


@pytest.mark.parametrize(
    ("words", "zone"),
    [
        ("Asia/Tokyo", "Asia/Tokyo"),
        ("UTC+2", "+02:00"),
        ("gmt −5:30", "-05:30"),
        ("UTC+0530", "+05:30"),
        ("UTC+25", None),
        ("Tokyo", None),
        ("../etc/passwd", None),
        ("", None),
    ],
)
def test_zones_are_read_as_people_say_them(words: str, zone: str | None) -> None:
    assert told_zone(words) == zone
