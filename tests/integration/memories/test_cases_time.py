"""What others dated wrongly: each as a rule that holds here."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from sqlalchemy import Engine, text

from memory_app.db.db import transaction
from memory_app.memories.facts import FactQuery, find_facts
from memory_app.memories.remember import remember
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.turns.extract import extract_session
from memory_app.turns.record import record
from memory_app.turns.rows import sessions

SCOPE, SESSION = Scope("ada", "mira"), Scope("ada", "mira", "chat")
SEOUL = ZoneInfo("Asia/Seoul")
CITIES = ("Paris", "London", "Rome")


def year(n: int) -> datetime:
    return datetime(n, 1, 1, tzinfo=UTC)


def say(runtime: Runtime, tenant: int, said: str, at: datetime) -> None:
    record(runtime, tenant, SESSION, [NewTurn(Role.USER, said, at=at)])
    with transaction(runtime.engine, tenant) as connection:
        row = names.need_scope(connection, tenant, SESSION)
        session = sessions.find(connection, row.id, "chat")
    assert session is not None
    extract_session(runtime, session.id)


def memories(owner: Engine) -> list[Any]:
    with owner.connect() as connection:
        return list(connection.execute(text("SELECT * FROM memories ORDER BY id")).all())


def live(owner: Engine, zone: str) -> None:
    with owner.begin() as connection:
        connection.execute(text("UPDATE users SET time_zone = :zone"), {"zone": zone})


def home(
    runtime: Runtime, tenant: int, city: str, start: datetime, until: datetime | None = None, **kw: Any
) -> None:
    fields: dict[str, Any] = {"subject": "Mira", "relation": "lives_in", "object": city} | kw
    said = f"{fields['subject']} {fields['relation']} {city}."
    remember(
        runtime,
        tenant,
        SCOPE,
        statement=Statement("fact", said, valid_from=start, valid_until=until, **fields),
    )


def test_yesterday_evening_before_midnight_is_the_users_local_date(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    record(runtime, tenant, SESSION, [NewTurn(Role.USER, "Hello!")])
    live(owner, "Asia/Seoul")
    at = datetime(2026, 1, 10, 23, 30, tzinfo=SEOUL)
    say(runtime, tenant, "Yesterday evening I went bouldering with my sister Ana.", at)
    texts = [row.text for row in memories(owner) if "bouldering" in row.text]
    assert texts
    assert any("9 January 2026" in said or "2026-01-09" in said for said in texts), texts


def test_an_import_of_last_years_chats_carries_last_years_dates(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    said_at = datetime(2025, 3, 10, 12, tzinfo=UTC)
    say(runtime, tenant, "I live in Lisbon these days.", said_at)
    say(runtime, tenant, "I live in Porto these days.", datetime(2025, 9, 1, 12, tzinfo=UTC))
    held = [
        (row.object, row.valid_from, row.valid_until) for row in memories(owner) if row.relation == "lives_in"
    ]
    moved = datetime(2025, 9, 1, 12, tzinfo=UTC)
    assert held == [("Lisbon", said_at, moved), ("Porto", moved, None)]
    then = find_facts(
        runtime, tenant, SCOPE, query=FactQuery(relation="lives_in", as_of=datetime(2025, 5, 1, tzinfo=UTC))
    )
    assert [hit.memory.object for hit in then] == ["Lisbon"]


def test_an_update_closes_only_the_same_subject_and_relation(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    home(runtime, tenant, "Paris", year(2020))
    home(runtime, tenant, "Berlin", year(2020), subject="Eve")
    home(runtime, tenant, "Globex", year(2020), relation="works_at")
    home(runtime, tenant, "London", year(2024))
    closed = [(row.subject, row.relation, row.object) for row in memories(owner) if row.valid_until]
    assert closed == [("Mira", "lives_in", "Paris")]


def test_an_older_fact_that_arrives_late_gets_a_closed_interval(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    home(runtime, tenant, "London", year(2024))
    home(runtime, tenant, "Paris", year(2020))
    held = {row.object: (row.valid_from, row.valid_until) for row in memories(owner)}
    assert held == {"London": (year(2024), None), "Paris": (year(2020), year(2024))}


CLAIMS = st.lists(
    st.tuples(st.sampled_from(CITIES), st.integers(2000, 2012), st.integers(0, 4)), min_size=1, max_size=6
)


@pytest.mark.slow
@examples(
    max_examples=25,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(claims=CLAIMS)
def test_a_single_valued_relation_never_has_two_objects_at_once(
    runtime: Runtime, tenant: int, owner: Engine, claims: list[tuple[str, int, int]]
) -> None:
    with owner.begin() as connection:
        connection.execute(text("DELETE FROM scopes"))
    for city, start, length in claims:
        home(runtime, tenant, city, year(start), year(start + length) if length else None)
    rows = [row for row in memories(owner) if row.valid_until is None or row.valid_until > row.valid_from]
    for n in range(2000, 2020):
        at = datetime(n, 6, 1, tzinfo=UTC)
        holding = [r for r in rows if r.valid_from <= at and (r.valid_until is None or at < r.valid_until)]
        assert len({row.object for row in holding}) <= 1, (n, holding)
    starts = {start for _, start, _ in claims}
    first = min(starts)
    covered = find_facts(
        runtime, tenant, SCOPE, query=FactQuery(relation="lives_in", as_of=datetime(first, 6, 1, tzinfo=UTC))
    )
    assert len({hit.memory.object for hit in covered}) == 1, (
        "what was claimed first leaves no gap at its start"
    )
