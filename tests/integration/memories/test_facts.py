"""Facts in time against the real store: what holds, what held, what was known, and how they are found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.errors import Conflict, InvalidInput, NotFound
from memory_app.main.http import create_app
from memory_app.memories.facts import FactQuery, Match, add_fact, find_facts
from memory_app.memories.lookup import invalidate
from memory_app.memories.remember import remember
from memory_app.records.records import Outcome, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime

SCOPE = Scope("ada", "bob")
FACTS = "/v1/agents/ada/users/bob/facts"


def year(n: int) -> datetime:
    return datetime(n, 1, 1, tzinfo=UTC)


def add(runtime: Runtime, tenant: int, subject: str, relation: str, obj: str, **fields: Any) -> UUID:
    types = {name: fields.pop(name) for name in ("subject_type", "object_type") if name in fields}
    said = fields.pop("text", "")
    statement = Statement("fact", said, subject=subject, relation=relation, object=obj, **fields)
    return add_fact(runtime, tenant, SCOPE, statement=statement, **types).id


def objects(runtime: Runtime, tenant: int, **query: Any) -> list[str | None]:
    return [hit.memory.object for hit in find_facts(runtime, tenant, SCOPE, query=FactQuery(**query))]


def keys(owner: Engine) -> list[str]:
    with owner.connect() as connection:
        return list(connection.execute(text("SELECT key FROM entities ORDER BY key")).scalars())


def now(owner: Engine) -> datetime:
    with owner.connect() as connection:
        return connection.execute(text("SELECT clock_timestamp()")).scalar_one()  # type: ignore[no-any-return]


def test_a_fact_without_a_text_gets_one_and_both_ends_become_entities(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    add(runtime, tenant, "Mira", "lives in", "Lisbon")
    (hit,) = find_facts(runtime, tenant, SCOPE, query=FactQuery())
    assert (hit.memory.text, hit.memory.relation) == ("Mira lives in Lisbon.", "lives_in")
    assert keys(owner) == ["person:mira", "place:lisbon"]


def test_a_known_entity_keeps_its_type_and_a_plain_value_is_no_entity(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    add(runtime, tenant, "Rex", "age", "4", subject_type="thing")
    add(runtime, tenant, "Rex", "likes", "Bones", object_type="concept")
    add(runtime, tenant, "Bones", "made_of", "calcium")
    assert keys(owner) == ["concept:bones", "thing:calcium", "thing:rex"]


def test_only_what_holds_now_is_shown_unless_another_time_is_named(runtime: Runtime, tenant: int) -> None:
    add(runtime, tenant, "Mira", "lives_in", "Porto", valid_from=year(2018))
    add(runtime, tenant, "Mira", "lives_in", "Lisbon", valid_from=year(2022))
    add(runtime, tenant, "Mira", "visited", "Rome", valid_from=year(2019), valid_until=year(2020))
    add(runtime, tenant, "Mira", "works_at", "Globex", valid_from=year(2190))
    assert objects(runtime, tenant) == ["Lisbon"]
    assert set(objects(runtime, tenant, as_of=year(2019))) == {"Porto", "Rome"}
    assert objects(runtime, tenant, as_of=year(2020)) == ["Porto"], "the end is not inside"
    assert objects(runtime, tenant, as_of=year(2022), relation="Lives-in") == ["Lisbon"], "the start is"
    assert objects(runtime, tenant, as_of=year(2010)) == []


def test_what_was_known_at_a_date_does_not_know_what_was_told_later(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    before = now(owner)
    add(runtime, tenant, "Mira", "lives_in", "Porto", valid_from=year(2018))
    between = now(owner)
    add(runtime, tenant, "Mira", "lives_in", "Lisbon", valid_from=year(2022))
    assert objects(runtime, tenant, known_at=before) == []
    (then,) = find_facts(runtime, tenant, SCOPE, query=FactQuery(known_at=between))
    assert (then.memory.object, then.memory.valid_until) == ("Porto", None), "it was open as far as we knew"
    assert objects(runtime, tenant, known_at=now(owner)) == ["Lisbon"]


def test_both_times_at_once_ask_what_was_then_believed_about_a_date(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    add(runtime, tenant, "Mira", "lives_in", "Porto", valid_from=year(2018))
    between = now(owner)
    add(runtime, tenant, "Mira", "lives_in", "Lisbon", valid_from=year(2020))
    assert objects(runtime, tenant, as_of=year(2021)) == ["Lisbon"]
    assert objects(runtime, tenant, as_of=year(2021), known_at=between) == ["Porto"]


def test_what_was_merged_later_counts_as_it_stood_at_the_date(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    short = "Bob enjoys quiet evening walks along the river with his old dog."
    long = "Bob really enjoys quiet evening walks along the river with his old dog."
    remember(runtime, tenant, SCOPE, statement=Statement("fact", short))
    between = now(owner)
    remembered = remember(runtime, tenant, SCOPE, statement=Statement("fact", long))
    assert remembered.outcome is Outcome.MERGED
    then = find_facts(runtime, tenant, SCOPE, query=FactQuery(known_at=between))
    today = find_facts(runtime, tenant, SCOPE, query=FactQuery(known_at=now(owner)))
    assert ([hit.memory.text for hit in then], [hit.memory.text for hit in today]) == ([short], [long])


def test_the_history_of_a_subject_shows_every_interval_in_time_order(runtime: Runtime, tenant: int) -> None:
    add(runtime, tenant, "Mira", "lives_in", "Lisbon", valid_from=year(2022))
    add(runtime, tenant, "Mira", "lives_in", "Porto", valid_from=year(2018))
    job = add(runtime, tenant, "Mira", "works_at", "Globex", valid_from=year(2020))
    add(runtime, tenant, "Eve", "lives_in", "Oslo", valid_from=year(2020))
    invalidate(runtime, tenant, job)
    history = find_facts(runtime, tenant, SCOPE, query=FactQuery(subject="MIRA", history=True))
    told = [(hit.memory.object, hit.memory.valid_from.year, hit.memory.retired_reason) for hit in history]
    assert told == [("Porto", 2018, None), ("Lisbon", 2022, None), ("Globex", 2020, "invalidated")]


def test_an_invalidated_fact_is_history_and_a_superseded_one_is_refused(
    runtime: Runtime, tenant: int
) -> None:
    old = add(runtime, tenant, "Mira", "lives_in", "Porto", valid_from=year(2018))
    new = add(runtime, tenant, "Mira", "lives_in", "Lisbon", valid_from=year(2022))
    with pytest.raises(Conflict, match=str(new)):
        invalidate(runtime, tenant, old)
    assert invalidate(runtime, tenant, new).retired_reason == "invalidated"
    assert objects(runtime, tenant) == []
    assert objects(runtime, tenant, as_of=year(2023)) == ["Lisbon"]


def test_facts_are_found_by_keywords_and_by_similarity_above_a_floor(runtime: Runtime, tenant: int) -> None:
    add(runtime, tenant, "Mira", "likes", "olives", text="Mira likes green olives.")
    add(runtime, tenant, "Mira", "plays", "cello", text="Mira plays the cello on Sundays.")
    found = find_facts(runtime, tenant, SCOPE, query=FactQuery(text="olive", match=Match.KEYWORD))
    assert [hit.memory.object for hit in found] == ["olives"]
    near = find_facts(runtime, tenant, SCOPE, query=FactQuery(text="Mira likes green olives"))
    assert [hit.memory.object for hit in near] == ["olives", "cello"]
    floor = runtime.embedder.thresholds.fact_floor
    firm = find_facts(runtime, tenant, SCOPE, query=FactQuery(text="Mira likes green olives", floor=True))
    assert floor == pytest.approx(0.7)
    assert [hit.memory.object for hit in firm] == ["olives"]
    assert all((hit.score or 0) >= floor for hit in firm)


def test_pages_of_facts_hold_each_fact_once(runtime: Runtime, tenant: int) -> None:
    for place in ("Rome", "Oslo", "Bern", "Cork", "Lviv"):
        add(runtime, tenant, "Mira", "visited", place)
    seen: list[str | None] = []
    before = None
    while page := find_facts(runtime, tenant, SCOPE, query=FactQuery(limit=2, before=before)):
        seen += [hit.memory.object for hit in page]
        before = page[-1].memory.id
    assert sorted(map(str, seen)) == ["Bern", "Cork", "Lviv", "Oslo", "Rome"]


def test_facts_of_others_are_never_shown(runtime: Runtime, tenant: int, other_tenant: int) -> None:
    add(runtime, tenant, "Mira", "lives_in", "Lisbon")
    remember(runtime, tenant, Scope("ada", "eve"), statement=Statement("fact", "Eve keeps bees."))
    remember(runtime, other_tenant, SCOPE, statement=Statement("fact", "Bob keeps bees."))
    assert objects(runtime, tenant) == ["Lisbon"]
    with pytest.raises(NotFound):
        find_facts(runtime, tenant, Scope("ada", "nobody"), query=FactQuery())


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"subject": None}, "subject"),
        ({"relation": None}, "relation"),
        ({"object": None}, "object"),
        ({"object": " \x00"}, "object"),
        ({"subject": "?!"}, "subject"),
        ({"relation": "--"}, "relation"),
        ({"subtype": "mood"}, "subtype"),
        ({"valid_from": year(2022), "valid_until": year(2020)}, "valid_until"),
        ({"valid_from": datetime(2022, 1, 1)}, "valid_from"),  # noqa: DTZ001
    ],
)
def test_a_fact_that_cannot_be_taken_names_what_is_wrong(
    runtime: Runtime, tenant: int, owner: Engine, fields: dict[str, Any], named: str
) -> None:
    parts = {"subject": "Mira", "relation": "lives_in", "object": "Lisbon"} | fields
    with pytest.raises(InvalidInput) as refused:
        add_fact(runtime, tenant, SCOPE, statement=Statement("fact", "", **parts))
    assert refused.value.field == named
    assert keys(owner) == []


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"as_of": datetime(2022, 1, 1)}, "as_of"),  # noqa: DTZ001
        ({"known_at": datetime(2022, 1, 1)}, "known_at"),  # noqa: DTZ001
        ({"history": True}, "subject"),
        ({"history": True, "subject": "Mira", "as_of": year(2020)}, "as_of"),
        ({"text": "  "}, "query"),
        ({"floor": True}, "floor"),
        ({"subject": "??"}, "subject"),
        ({"relation": ""}, "relation"),
        ({"limit": 0}, "limit"),
    ],
)
def test_a_question_that_contradicts_itself_is_never_everything(
    runtime: Runtime, tenant: int, query: dict[str, Any], named: str
) -> None:
    add(runtime, tenant, "Mira", "lives_in", "Lisbon")
    with pytest.raises(InvalidInput) as refused:
        find_facts(runtime, tenant, SCOPE, query=FactQuery(**query))
    assert refused.value.field == named


def test_values_out_of_range_are_brought_into_it_and_said(runtime: Runtime, tenant: int) -> None:
    statement = Statement(
        "fact", "", subject="Mira", relation="likes", object="tea", importance=99, confidence=7.0
    )
    remembered = add_fact(runtime, tenant, SCOPE, statement=statement)
    assert remembered.notes == ("confidence 7 stored as 1", "importance 99 stored as 10")


def test_over_http_a_fact_is_added_and_asked_for_in_time(runtime: Runtime, api_key: str) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    body = {
        "subject": "Mira",
        "relation": "lives_in",
        "object": "Porto",
        "valid_from": "2018-01-01T00:00:00Z",
    }
    assert client.post(FACTS, json=body).status_code == 201
    moved = client.post(FACTS, json=body | {"object": "Lisbon", "valid_from": "2022-01-01T00:00:00Z"})
    assert moved.json()["outcome"] == "superseded"
    today = client.get(FACTS, params={"subject": "mira"}).json()["facts"]
    then = client.get(FACTS, params={"as_of": "2020-06-01T00:00:00Z"}).json()["facts"]
    history = client.get(FACTS, params={"subject": "mira", "history": "true"}).json()["facts"]
    assert [fact["object"] for fact in today] == ["Lisbon"]
    assert [fact["object"] for fact in then] == ["Porto"]
    assert [fact["object"] for fact in history] == ["Porto", "Lisbon"]
    wrong = client.get(FACTS, params={"as_of": "2020-06-01"})
    assert (wrong.status_code, wrong.json()["error"]["field"]) == (422, "as_of")
    assert client.get(FACTS, params={"subjekt": "mira"}).status_code == 422


def test_an_instant_just_before_and_after_a_change_see_one_fact_each(runtime: Runtime, tenant: int) -> None:
    add(runtime, tenant, "Mira", "lives_in", "Porto", valid_from=year(2018))
    add(runtime, tenant, "Mira", "lives_in", "Lisbon", valid_from=year(2022))
    step = timedelta(microseconds=1)
    assert objects(runtime, tenant, as_of=year(2022) - step) == ["Porto"]
    assert objects(runtime, tenant, as_of=year(2022)) == ["Lisbon"]
