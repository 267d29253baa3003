"""Correcting a memory by hand: a new row with other words, and the old one, never true, as its predecessor."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from commands import Memory as Console
from fastapi.testclient import TestClient
from queries import rows
from sqlalchemy import Engine

from memory_app.app import MemoryApp
from memory_app.dispatch import finder
from memory_app.errors import Conflict, InvalidInput, NotFound
from memory_app.main.http import create_app
from memory_app.memories import lookup
from memory_app.memories.correct import correct
from memory_app.memories.facts import FactQuery, add_fact, find_facts
from memory_app.memories.remember import remember
from memory_app.records.records import Mention, NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import keys
from memory_app.tenancy.rows.keys import Caller
from memory_app.turns.record import record

SCOPE = Scope("nova", "Mira")
PAST = datetime.now(UTC) - timedelta(days=30)


def keep(runtime: Runtime, tenant: int, text: str, **fields: Any) -> UUID:
    return remember(
        runtime, tenant, SCOPE, statement=Statement(fields.pop("kind", "fact"), text, **fields)
    ).id


def current(owner: Engine) -> list[str]:
    return [
        row.text for row in rows(owner, "SELECT text FROM memories WHERE retired_at IS NULL ORDER BY text")
    ]


def test_the_new_row_keeps_all_but_the_words(runtime: Runtime, tenant: int, owner: Engine) -> None:
    mentions = (Mention("person", "Lea"), Mention("place", "Porto"))
    kept = {
        "importance": 8,
        "pinned": True,
        "tags": ("family",),
        "subtype": "relationship",
        "valid_from": PAST,
    }
    old = keep(runtime, tenant, "Mira's sister Lea lives in Porto.", mentions=mentions, **kept)
    corrected = correct(runtime, tenant, old, text="Mira's sister Lea lives in Lisbon.")
    assert corrected.outcome == "superseded"
    new = lookup.read_memory(runtime, tenant, corrected.id)
    assert new.text == "Mira's sister Lea lives in Lisbon."
    assert {name: getattr(new, name) for name in kept} == kept
    assert new.origin == "declared"
    gone = lookup.read_memory(runtime, tenant, old)
    assert (gone.retired_reason, gone.successor, gone.text) == (
        "superseded",
        new.id,
        "Mira's sister Lea lives in Porto.",
    )
    # it is about whom its words name
    named = rows(
        owner,
        "SELECT e.label FROM mentions n JOIN entities e ON e.id = n.entity_id WHERE n.memory_id = :id",
        id=new.id,
    )
    assert [row.label for row in named] == ["Lea"]
    assert [memory.id for memory in lookup.versions(runtime, tenant, new.id)] == [old, new.id]
    assert [parent.memory.id for parent in lookup.why(runtime, tenant, new.id).parents] == [old]


def test_the_turns_behind_it_stay_its_evidence(runtime: Runtime, tenant: int, owner: Engine) -> None:
    record(
        runtime, tenant, Scope("nova", "Mira", "s"), [NewTurn(Role.USER, "I live in Porto near the river.")]
    )
    finder.drain(runtime)
    (memory,) = rows(owner, "SELECT id FROM memories WHERE kind = 'fact' AND relation = 'lives_in'")
    corrected = correct(runtime, tenant, memory.id, text="Mira lives in Gaia, across the river from Porto.")
    (turn,) = lookup.why(runtime, tenant, corrected.id).evidence
    assert turn.text == "I live in Porto near the river."


def test_the_wrong_words_answer_no_question_about_any_date(runtime: Runtime, tenant: int) -> None:
    statement = Statement("fact", "", subject="Mira", relation="works_at", object="Acme", valid_from=PAST)
    old = add_fact(runtime, tenant, SCOPE, statement=statement).id
    correct(runtime, tenant, old, text="Mira works at Apex.", triple={"object": "Apex"})
    for as_of in (None, PAST + timedelta(days=1)):
        query = FactQuery(subject="Mira", relation="works_at", as_of=as_of)
        assert [hit.memory.object for hit in find_facts(runtime, tenant, SCOPE, query=query)] == ["Apex"]


def test_a_fact_that_the_new_words_do_not_state_goes(runtime: Runtime, tenant: int) -> None:
    fact = {"subject": "Mira", "relation": "lives_in", "object": "Porto"}
    first = keep(runtime, tenant, "Mira lives in Porto.", **fact)
    second = correct(runtime, tenant, first, text="Mira lives in Porto, close to the river.").id
    assert lookup.read_memory(runtime, tenant, second).object == "Porto"
    third = correct(runtime, tenant, second, text="Mira lives in Lisbon.").id
    assert lookup.read_memory(runtime, tenant, third).relation is None


def test_a_correction_to_words_that_are_known_leads_to_that_row(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    known = keep(runtime, tenant, "Mira plays the cello.")
    wrong = keep(runtime, tenant, "Mira repairs old bicycles on weekends.")
    assert correct(runtime, tenant, wrong, text="Mira plays the cello.").id == known
    assert current(owner) == ["Mira plays the cello."]


def test_the_case_of_a_letter_can_be_corrected(runtime: Runtime, tenant: int, owner: Engine) -> None:
    old = keep(runtime, tenant, "mira lives in porto.")
    correct(runtime, tenant, old, text="Mira lives in Porto.")
    assert current(owner) == ["Mira lives in Porto."]


@pytest.mark.parametrize("text", ["", "   ", "Mira plays the cello.", "x" * 8_001])
def test_words_that_cannot_stand_are_refused(runtime: Runtime, tenant: int, owner: Engine, text: str) -> None:
    old = keep(runtime, tenant, "Mira plays the cello.")
    with pytest.raises(InvalidInput) as raised:
        correct(runtime, tenant, old, text=text)
    assert raised.value.field == "text"
    assert current(owner) == ["Mira plays the cello."]


def test_only_what_is_current_is_corrected(runtime: Runtime, tenant: int) -> None:
    old = keep(runtime, tenant, "Mira plays the cello.")
    new = correct(runtime, tenant, old, text="Mira plays the viola.").id
    with pytest.raises(Conflict, match=f"correct {new}"):
        correct(runtime, tenant, old, text="Mira plays the violin.")
    with pytest.raises(NotFound):
        correct(runtime, tenant, uuid4(), text="Mira plays the violin.")


def test_of_two_corrections_at_once_one_stands(runtime: Runtime, tenant: int, owner: Engine) -> None:
    old = keep(runtime, tenant, "Mira plays the cello.")

    def attempt(instrument: str) -> bool:
        try:
            correct(runtime, tenant, old, text=f"Mira plays the {instrument}.")
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(attempt, ("viola", "violin", "harp", "flute")))
    assert outcomes.count(True) == 1
    assert len(current(owner)) == 1


FACT = ("--relation", "plays", "--object", "harp", "--tenant", "acme", "--json")


def test_over_http_from_python_and_on_the_command_line(
    runtime: Runtime, tenant: int, owner: Engine, memory: Console
) -> None:
    old = keep(runtime, tenant, "Mira plays the cello.")
    anyone = Caller(0, tenant, "default", frozenset(keys.RIGHTS))
    with TestClient(create_app(runtime, anonymous=anyone), base_url="http://127.0.0.1") as client:
        answer = client.post(f"/v1/memories/{old}/correct", json={"text": "Mira plays the viola."})
        assert (answer.status_code, answer.json()["outcome"]) == (201, "superseded")
        assert client.post(f"/v1/memories/{old}/correct", json={"text": "Mira sings."}).status_code == 409
        assert client.post(f"/v1/memories/{old}/correct", json={"words": "Mira sings."}).status_code == 422
    app = MemoryApp(runtime, tenant)
    second = app.correct(UUID(answer.json()["id"]), "Mira plays the violin.")
    with pytest.raises(InvalidInput, match="memory_id"):
        app.correct("the second", "Mira plays the harp.")
    done = memory("correct", str(second.id), "Mira plays the harp.", "--subject", "Mira", *FACT)
    assert done.json["outcome"] == "superseded"
    assert current(owner) == ["Mira plays the harp."]
    third = lookup.read_memory(runtime, tenant, UUID(done.json["id"]))
    assert (third.subject, third.relation, third.object) == ("Mira", "plays", "harp")
