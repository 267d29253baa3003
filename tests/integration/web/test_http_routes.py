"""What each address answers when it is used rightly."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from threading import Thread
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.dispatch import finder
from memory_app.hot import life
from memory_app.hot.keys import LIFE
from memory_app.main.http import create_app
from memory_app.ops.health import WORK
from memory_app.runtime import Runtime, build
from memory_app.settings import Database, Redis, Settings
from memory_app.turns import tickets
from memory_app.web.auth import is_protected

SCOPE = "/v1/agents/ada/users/mira"
TURNS = f"{SCOPE}/sessions/chat/turns"
LISBON = "My name is Mira and I live in Lisbon."


@pytest.fixture
def client(runtime: Runtime, api_key: str) -> TestClient:
    return TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})


def said(content: str, **fields: object) -> dict[str, object]:
    return {"role": "user", "content": content, **fields}


def record(client: TestClient, *contents: str) -> list[dict[str, Any]]:
    answer = client.post(TURNS, json={"turns": [said(content) for content in contents]})
    assert answer.status_code == 202, answer.text
    return answer.json()["tickets"]


def remember(client: TestClient, statement: str, **fields: object) -> dict[str, Any]:
    answer = client.post(f"{SCOPE}/memories", json={"text": statement, **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()


def get(client: TestClient, path: str) -> Any:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


# --- turns --------------------------------------------------------------------------------------------------


def test_a_turn_is_answered_with_its_ticket(client: TestClient) -> None:
    answer = client.post(TURNS, json=said(LISBON, name="Mira", at="2026-01-31T09:00:00+01:00"))

    assert answer.status_code == 202
    (ticket,) = answer.json()["tickets"]
    assert ticket == {
        "id": ticket["id"],
        "seq": 1,
        "stage": "accepted",
        "duplicate": False,
        "cleaned": False,
        "redacted": {},
    }
    (turn,) = get(client, TURNS)["turns"]
    assert turn == {
        "id": ticket["id"],
        "session": "chat",
        "seq": 1,
        "role": "user",
        "name": "Mira",
        "content": LISBON,
        "at": "2026-01-31T08:00:00Z",
        "words_deleted_at": None,
        "idempotency_key": None,
        "emotional_tone": None,
        "tools_used": [],
        "metadata": {},
        "redacted": {},
    }


def test_a_batch_keeps_its_order(client: TestClient) -> None:
    assert [ticket["seq"] for ticket in record(client, "one", "two", "three")] == [1, 2, 3]

    turns = get(client, f"{TURNS}?limit=2")["turns"]
    assert [turn["content"] for turn in turns] == ["two", "three"]


def test_a_batch_with_one_wrong_turn_stores_none(client: TestClient) -> None:
    record(client, "first")

    assert client.post(TURNS, json={"turns": [said("second"), said("\x00")]}).status_code == 422

    assert [turn["content"] for turn in get(client, TURNS)["turns"]] == ["first"]


@pytest.mark.parametrize("in_header", [False, True])
def test_sending_a_turn_again_gives_the_first_ticket(client: TestClient, in_header: bool) -> None:
    body = said(LISBON) if in_header else said(LISBON, idempotency_key="message-1")
    headers = {"Idempotency-Key": "message-1"} if in_header else {}

    first, second = (client.post(TURNS, json=body, headers=headers).json()["tickets"][0] for _ in range(2))

    assert second == {**first, "duplicate": True}
    assert len(get(client, TURNS)["turns"]) == 1


def test_a_name_may_hold_a_slash_and_any_letters(client: TestClient) -> None:
    path = "/v1/agents/team%2Fada/users/%E7%BE%8E%E5%92%B2/sessions/a%252Fb/turns"

    assert client.post(path, json=said("Hello from here.")).status_code == 202

    assert get(client, path)["turns"][0]["session"] == "a%2Fb"
    assert get(client, "/v1/agents/team%2Fada")["agent"] == "team/ada"


# --- tickets ------------------------------------------------------------------------------------------------


def test_a_ticket_tells_what_came_of_a_turn(client: TestClient, runtime: Runtime) -> None:
    (ticket,) = record(client, LISBON)
    finder.drain(runtime)

    state = get(client, f"/v1/turns/{ticket['id']}")

    assert state["stage"] == "extracted"
    memories = [get(client, f"/v1/memories/{id}") for id in state["memory_ids"]]
    assert any("Lisbon" in memory["text"] for memory in memories)


def test_a_ticket_tells_why_nothing_came_of_a_turn(client: TestClient, runtime: Runtime) -> None:
    (ticket,) = record(client, "ok")
    finder.drain(runtime)

    state = get(client, f"/v1/turns/{ticket['id']}")

    assert (state["stage"], state["memory_ids"]) == ("extracted", [])
    assert state["reason"]


def test_waiting_ends_when_the_turn_has_arrived(client: TestClient, runtime: Runtime) -> None:
    (ticket,) = record(client, LISBON)
    worker = Thread(target=finder.drain, args=[runtime])
    worker.start()

    state = get(client, f"/v1/turns/{ticket['id']}?wait_seconds=30")

    worker.join()
    assert state["stage"] == "extracted"


def test_waiting_ends_with_the_time_given(client: TestClient) -> None:
    (ticket,) = record(client, LISBON)

    assert get(client, f"/v1/turns/{ticket['id']}?wait_seconds=0.1")["stage"] == "accepted"


def test_too_many_who_wait_are_told_to_come_back(client: TestClient, tenant: int, other_tenant: int) -> None:
    (ticket,) = record(client, LISBON)
    with ExitStack() as others:
        for _ in range(tickets.WAITERS_LIMIT):
            others.enter_context(tickets.waiting(tenant))
        others.enter_context(tickets.waiting(other_tenant))

        answer = client.get(f"/v1/turns/{ticket['id']}?wait_seconds=1")

        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
        assert answer.json()["error"]["type"] == "rate_limited"
        assert answer.json()["error"]["retry_after"] == 1
        assert get(client, f"/v1/turns/{ticket['id']}")["stage"] == "accepted"
    assert client.get(f"/v1/turns/{ticket['id']}?wait_seconds=0.01").status_code == 200


def test_a_failed_turn_is_listed_with_its_reason_and_without_its_text(
    client: TestClient, runtime: Runtime, owner: Engine
) -> None:
    first, second = record(client, LISBON, "I started bouldering last week.")
    with owner.begin() as connection:
        connection.execute(text("UPDATE turns SET failed_at = now(), failed_reason = 'three starts'"))

    page = get(client, "/v1/failed?limit=1")
    rest = get(client, f"/v1/failed?limit=1&cursor={page['cursor']}")

    assert [turn["id"] for turn in (*page["turns"], *rest["turns"])] == [second["id"], first["id"]]
    failed = page["turns"][0]
    assert (failed["agent"], failed["user"], failed["session"]) == ("ada", "mira", "chat")
    assert failed["reason"] == "three starts"
    assert "bouldering" not in str(page)
    assert get(client, f"/v1/turns/{second['id']}")["stage"] == "failed"


# --- sessions and counts ------------------------------------------------------------------------------------


def test_sessions_are_listed_by_their_latest_activity(client: TestClient) -> None:
    for session in ("one", "two", "one"):
        client.post(f"{SCOPE}/sessions/{session}/turns", json=said("Good morning to you."))

    sessions = get(client, f"{SCOPE}/sessions")["sessions"]

    assert [(session["session"], session["turns"]) for session in sessions] == [("one", 2), ("two", 1)]
    assert get(client, f"{SCOPE}/sessions?active=false") == {"sessions": []}
    assert len(get(client, f"{SCOPE}/sessions?active=true&limit=1")["sessions"]) == 1


def test_clearing_a_session_loses_no_turn(client: TestClient) -> None:
    record(client, "one", "two")

    assert client.delete(f"{SCOPE}/sessions/chat/hot").status_code == 204

    assert [turn["content"] for turn in get(client, TURNS)["turns"]] == ["one", "two"]


def test_statistics_count_what_is_there(client: TestClient, runtime: Runtime) -> None:
    record(client, LISBON)
    finder.drain(runtime)
    remember(client, "Ada is patient.", kind="core")
    client.put("/v1/agents/ada", json={"policy": {"max_memories": 1000}})

    stats = get(client, f"{SCOPE}/stats")

    assert (stats["turns"], stats["sessions"], stats["failed_turns"]) == (1, 1, 0)
    assert stats["memories"]["core"] == 1
    assert stats["memories"]["fact"] >= 1
    assert stats["entities"] == len(get(client, f"{SCOPE}/entities")["entities"]) > 0
    assert stats["capacity"] == {"max_memories": 1000, "max_links": 100_000}


def test_entities_are_listed_with_their_keys(client: TestClient, runtime: Runtime) -> None:
    record(client, LISBON)
    finder.drain(runtime)

    entities = {entity["key"]: entity for entity in get(client, f"{SCOPE}/entities")["entities"]}

    assert entities["place:lisbon"]["label"] == "Lisbon"


# --- recall and context -------------------------------------------------------------------------------------


def test_a_turn_is_recalled_before_it_is_indexed_and_says_so(client: TestClient) -> None:
    record(client, LISBON)

    answer = client.post(f"{SCOPE}/recall", json={"query": "Lisbon"}).json()

    assert answer["memories"][0]["text"] == LISBON
    assert answer["memories"][0]["indexed"] is False
    assert answer["memories"][0]["tier"] == "daily-logs"


def test_recall_takes_every_filter(client: TestClient) -> None:
    remember(client, "Mira lives in Lisbon.", tags=["home"], importance=8)
    remember(client, "Mira likes green tea.", tags=["taste"], importance=4)
    query = {
        "query": "Lisbon tea",
        "limit": 5,
        "kinds": ["fact"],
        "tiers": ["facts"],
        "tags": ["home"],
        "min_importance": 5,
        "as_of": "2100-01-01T00:00:00Z",
        "preset": "hybrid",
        "weights": {"keyword": 0.5},
        "min_score": 0.1,
        "threshold": 0.01,
        "expand_graph": True,
        "depth": 2,
        "explain": True,
    }

    answer = client.post(f"{SCOPE}/recall", json=query)

    assert answer.status_code == 200, answer.text
    assert [memory["text"] for memory in answer.json()["memories"]] == ["Mira lives in Lisbon."]
    assert answer.json()["memories"][0]["explain"]["signals"]


@pytest.mark.parametrize("form", ["text", "json", "messages"])
def test_the_context_window_comes_in_three_forms(client: TestClient, form: str) -> None:
    record(client, "Good morning to you.")
    remember(client, "Mira lives in Lisbon.")
    request = {"query": "Where does Mira live?", "session": "chat", "budget_tokens": 500, "format": form}
    request |= {"turns": 5, "topic_limit": 5, "anchor_limit": 3, "anchor_importance": 7}
    request |= {"expand_graph": False, "depth": 2, "preset": "balanced"}

    answer = client.post(f"{SCOPE}/context", json=request).json()

    assert "Mira lives in Lisbon." in answer["text"]
    assert 0 < answer["tokens"] <= 500
    assert answer["degraded"] == []
    # What stands on the card is no row again.
    assert {section["name"] for section in answer["sections"]} >= {"entities", "session"}
    if form == "messages":
        assert answer["messages"][-1] == {"role": "user", "content": "Good morning to you."}
    else:
        assert answer["messages"] is None


def test_a_context_of_somebody_new_has_the_persona(client: TestClient) -> None:
    client.put("/v1/agents/ada", json={"persona": {"name": "Captain Ada"}})

    answer = client.post("/v1/agents/ada/users/stranger/context", json={})

    assert "Captain Ada" in answer.json()["text"]


# --- memories -----------------------------------------------------------------------------------------------


def test_remembering_says_what_was_done_and_what_was_changed(client: TestClient) -> None:
    first = remember(client, "Mira likes green tea.", importance=3, importance_scale="0-3")
    again = remember(client, "mira likes green tea")

    assert (first["outcome"], first["merged_count"]) == ("inserted", 0)
    assert first["notes"] == ["importance 3 of 0-3 stored as 9"]
    assert (again["id"], again["outcome"]) == (first["id"], "reinforced")


def test_a_statement_is_kept_with_all_its_fields(client: TestClient) -> None:
    given = {
        "kind": "fact",
        "subtype": "preference",
        "importance": 7,
        "tags": ["drinks"],
        "emotional_state": {"valence": "joy", "intensity": 0.5, "user_impact": "validating"},
        "relational_context": {
            "bond_strength": 0.5,
            "communication_style": ["dry"],
            "shared_references": ["the pot"],
            "user_values": ["calm"],
            "user_struggles": ["sleep"],
        },
        "subject": "Mira",
        "relation": "likes",
        "object": "green tea",
        "valid_from": "2025-01-01T00:00:00Z",
        "pinned": True,
    }

    stored = get(client, f"/v1/memories/{remember(client, 'Mira likes green tea.', **given)['id']}")

    assert {name: stored[name] for name in given} == given
    assert stored["origin"] == "declared"


def test_no_deduplication_on_request(client: TestClient) -> None:
    first, second = (remember(client, f"The reading was {n} degrees.", deduplicate=False) for n in (20, 21))

    assert first["id"] != second["id"]


def test_memories_are_listed_in_pages(client: TestClient) -> None:
    ids = [
        remember(client, statement)["id"] for statement in ("Tea is warm.", "Snow is cold.", "Bread smells.")
    ]
    remember(client, "Ada is patient.", kind="core", tags=["self"])

    first = get(client, f"{SCOPE}/memories?kind=fact&limit=2")
    second = get(client, f"{SCOPE}/memories?kind=fact&limit=2&cursor={first['cursor']}")

    assert [memory["id"] for memory in (*first["memories"], *second["memories"])] == ids[::-1]
    assert second["cursor"] is None
    assert [memory["text"] for memory in get(client, f"{SCOPE}/memories?tag=self")["memories"]] == [
        "Ada is patient."
    ]


def test_pinning_and_unpinning(client: TestClient) -> None:
    memory = f"/v1/memories/{remember(client, 'Mira lives in Lisbon.')['id']}"

    assert client.post(f"{memory}/pin").json()["pinned"] is True
    assert get(client, f"{memory}/why")["strength"] == 1
    assert get(client, f"{memory}/why")["fades_at"] is None
    assert client.post(f"{memory}/unpin").json()["pinned"] is False


def test_an_invalidated_memory_stays_as_history(client: TestClient) -> None:
    memory = f"/v1/memories/{remember(client, 'Mira lives in Lisbon.')['id']}"

    closed = client.post(f"{memory}/invalidate").json()

    assert closed["valid_until"] is not None
    assert closed["retired_reason"] == "invalidated"
    assert client.post(f"{memory}/invalidate").json() == closed
    assert get(client, memory) == closed
    assert get(client, f"{SCOPE}/memories")["memories"] == []
    assert client.post(f"{SCOPE}/recall", json={"query": "Lisbon"}).json()["memories"] == []


def test_a_retired_memory_cannot_be_pinned(client: TestClient) -> None:
    memory = f"/v1/memories/{remember(client, 'Mira lives in Lisbon.')['id']}"
    client.post(f"{memory}/invalidate")

    answer = client.post(f"{memory}/pin")

    assert (answer.status_code, answer.json()["error"]["type"]) == (409, "conflict")


def test_a_superseded_memory_has_a_successor_and_cannot_be_invalidated(client: TestClient) -> None:
    fact = {"subject": "Mira", "relation": "lives_in"}
    old = remember(client, "Mira lives in Porto.", object="Porto", **fact)
    new = remember(client, "Mira lives in Lisbon.", object="Lisbon", **fact)
    assert new["outcome"] == "superseded"

    why_old, why_new = (get(client, f"/v1/memories/{memory['id']}/why") for memory in (old, new))

    assert why_old["successor"]["id"] == new["id"]
    assert [(parent["memory"]["id"], parent["how"]) for parent in why_new["parents"]] == [
        (old["id"], "superseded")
    ]


def test_why_names_the_turns_and_the_job_behind_a_memory(client: TestClient, runtime: Runtime) -> None:
    (ticket,) = record(client, LISBON)
    finder.drain(runtime)
    memory_id = get(client, f"/v1/turns/{ticket['id']}")["memory_ids"][0]

    why = get(client, f"/v1/memories/{memory_id}/why")

    assert [turn["content"] for turn in why["evidence"]] == [LISBON]
    assert [(run["name"], run["state"]) for run in why["runs"]] == [("extract", "done")]
    assert 0 < why["strength"] < 1
    assert why["fades_at"] is None
    assert "never expire" in why["fate"]


# --- deleting -----------------------------------------------------------------------------------------------


def test_a_deleted_memory_is_in_no_table_and_no_answer(client: TestClient, owner: Engine) -> None:
    memory = f"/v1/memories/{remember(client, 'Mira keeps the key under the blue pot.')['id']}"
    client.post(f"{SCOPE}/context", json={"query": "blue pot"})

    assert client.delete(memory).status_code == 204

    assert client.get(memory).status_code == 404
    assert client.delete(memory).status_code == 404
    assert client.post(f"{SCOPE}/recall", json={"query": "blue pot"}).json()["memories"] == []
    assert "blue pot" not in client.post(f"{SCOPE}/context", json={"query": "blue pot"}).text
    assert places_of(owner, "blue pot") == []


def test_deleting_a_merged_memory_takes_those_that_were_merged_into_it(
    client: TestClient, owner: Engine
) -> None:
    sentence = "Mira told me that she really likes to drink green tea with lemon in the blue kitchen"
    remember(client, sentence)
    merged = remember(client, sentence.replace("likes", "loves"))
    assert merged["outcome"] == "merged"

    client.delete(f"/v1/memories/{merged['id']}")

    assert places_of(owner, "blue kitchen") == []
    with owner.begin() as connection:
        assert connection.execute(text("SELECT sum(row_count) FROM terms")).scalar() == 0


def places_of(owner: Engine, words: str) -> list[str]:
    """Tables in which the words stand, whatever the column."""
    with owner.begin() as connection:
        tables = connection.execute(
            text("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        ).scalars()
        return [
            table
            for table in tables
            if connection.execute(
                text(f'SELECT count(*) FROM "{table}" t WHERE t::text LIKE :words'), {"words": f"%{words}%"}
            ).scalar()
        ]


# --- agents -------------------------------------------------------------------------------------------------


def test_an_agent_is_made_by_its_first_change_with_defaults_filled_in(client: TestClient) -> None:
    changed = client.put("/v1/agents/grace", json={"policy": {"extraction": "off"}}).json()

    assert changed["policy"]["extraction"] == "off"
    assert changed["policy"]["memory"] is True
    assert changed["persona"]["name"]
    assert get(client, "/v1/agents/grace") == changed


def test_a_part_that_is_absent_stays_and_null_puts_back_the_default(client: TestClient) -> None:
    client.put("/v1/agents/ada", json={"persona": {"name": "Captain"}, "policy": {"strict": True}})

    kept = client.put("/v1/agents/ada", json={"default_memories": [{"text": "Ada is kind."}]}).json()
    back = client.put("/v1/agents/ada", json={"persona": None}).json()

    assert (kept["persona"]["name"], kept["policy"]["strict"]) == ("Captain", True)
    assert back["persona"]["name"] != "Captain"
    assert back["policy"]["strict"] is True
    assert [memory["text"] for memory in back["default_memories"]] == ["Ada is kind."]


DEFAULT = {"text": "Ada never lies.", "importance": 2, "importance_scale": "0-3"}


def test_a_new_user_begins_with_the_default_memories(client: TestClient) -> None:
    client.put("/v1/agents/ada", json={"default_memories": [DEFAULT]})

    remember(client, "Mira lives in Lisbon.")

    core = get(client, f"{SCOPE}/memories?kind=core")["memories"]
    assert [(memory["text"], memory["importance"]) for memory in core] == [("Ada never lies.", 7)]


# --- what a turn waits for -----------------------------------------------------------------------------------


def waits_for(client: TestClient, ticket: dict[str, Any]) -> str | None:
    sentence: str | None = get(client, f"/v1/turns/{ticket['id']}")["waiting_for"]
    return sentence


def test_a_ticket_says_what_it_waits_for_until_it_is_through(client: TestClient, runtime: Runtime) -> None:
    first, second = record(client, LISBON, "I have a cat.")
    assert waits_for(client, first) == "a worker of queue ingest; none has been heard"

    life.note(runtime.hot, ["worker-ingest"], "host:1")
    assert waits_for(client, first) == "a worker of queue ingest; it is next"
    assert waits_for(client, second) == "the backlog: 1 turn before it"

    finder.drain(runtime)
    assert waits_for(client, first) is None


def test_a_ticket_of_an_agent_with_a_model_says_that_none_is_set(
    client: TestClient, runtime: Runtime
) -> None:
    client.put("/v1/agents/ada", json={"policy": {"extraction": "llm"}})
    (ticket,) = record(client, LISBON)
    finder.drain(runtime)

    assert "MEMORY_CHAT__BASE_URL" in str(waits_for(client, ticket))


# --- operations ---------------------------------------------------------------------------------------------


def test_health_tells_each_part(client: TestClient, runtime: Runtime) -> None:
    record(client, LISBON)

    assert get(client, "/health/live") == {"ok": True}
    ready = get(client, "/health/ready")
    well, absent = {"ok": True, "reason": None}, {"ok": True, "reason": "none has been heard"}
    assert ready["parts"] == {
        "database": well,
        "broker": well,
        **dict.fromkeys(WORK, well),
        **dict.fromkeys(("worker-ingest", "worker-model", "worker-maintenance", "finder", "beat"), absent),
    }
    assert ready["pipeline"]["unindexed"] == 1
    life.note(runtime.hot, ["worker-ingest", "beat"], "host:1")
    parts = get(client, "/health/ready")["parts"]
    assert parts["worker-ingest"] == parts["beat"] == well
    assert parts["finder"] == well, "Beat does the same"


def test_a_kind_of_part_that_fell_silent_is_named(client: TestClient, runtime: Runtime) -> None:
    life.note(runtime.hot, ["beat"], "host:1")
    fall_silent(runtime, "finder")
    finder_part = get(client, "/health/ready")["parts"]["finder"]
    assert (finder_part["ok"], finder_part["reason"][:10]) == (True, "silent for")

    fall_silent(runtime, "worker-model")

    answer = client.get("/health/ready")
    assert answer.status_code == 503
    part = answer.json()["parts"]["worker-model"]
    assert (part["ok"], part["reason"][:10]) == (False, "silent for")

    life.note(runtime.hot, ["worker-model"], "host:2")
    assert client.get("/health/ready").status_code == 200


def test_without_finder_and_beat_nobody_looks_for_due_work(client: TestClient, runtime: Runtime) -> None:
    fall_silent(runtime, "finder")

    answer = client.get("/health/ready")

    assert answer.status_code == 503
    assert answer.json()["parts"]["finder"]["ok"] is False


def fall_silent(runtime: Runtime, kind: str) -> None:
    """A process of this kind said something 40 s ago, and nothing since."""
    with runtime.hot.calling() as redis:
        now, _ = redis.time()
        key = runtime.hot.named_key(LIFE, kind)
        redis.hset(key, "host:9", f"{(now - 40) * 1000} 0")
        redis.expire(key, 60)


LATE = {
    "turns": "UPDATE turns SET accepted_at = now() - interval '2 minutes'",
    "sessions": "UPDATE sessions SET due_at = now() - interval '2 minutes'",
    "runs": """INSERT INTO runs (tenant_id, scope_id, name, state, due_at)
        SELECT tenant_id, id, 'decay', 'queued', now() - interval '2 minutes' FROM scopes WHERE user_id IS NOT NULL""",
    "periodic jobs": """INSERT INTO schedules (tenant_id, scope_id, job, due_at)
        SELECT tenant_id, id, 'decay', now() - interval '2 minutes' FROM scopes WHERE user_id IS NOT NULL
        ON CONFLICT (scope_id, job) DO UPDATE SET due_at = excluded.due_at""",
}
"""Makes one kind of work late."""


@pytest.mark.one_shard
@pytest.mark.parametrize("kind", WORK)
def test_work_that_nobody_does_is_told(
    client: TestClient, owner: Engine, runtime: Runtime, kind: str
) -> None:
    life.note(runtime.hot, ["finder"], "host:1")
    record(client, LISBON)
    with owner.begin() as connection:
        connection.execute(text(LATE[kind]))

    answer = client.get("/health/ready")

    assert answer.status_code == 503
    parts = answer.json()["parts"]
    assert {name for name in WORK if not parts[name]["ok"]} == {kind}
    assert "nobody is at it" in parts[kind]["reason"]
    assert client.get("/health/live").status_code == 200


@pytest.mark.one_shard
@pytest.mark.parametrize("kind", ["turns", "sessions", "runs"])
def test_a_backlog_that_somebody_works_on_is_told_and_is_no_failure(
    client: TestClient, owner: Engine, kind: str
) -> None:
    record(client, LISBON, "I have a cat.")
    client.post(TURNS.replace("/chat/", "/other/"), json=said(LISBON))
    with owner.begin() as connection:
        connection.execute(text(LATE[kind]))
        if kind == "runs":
            connection.execute(text(LATE[kind]))
        connection.execute(
            text(
                f"""UPDATE {kind} SET starts = 1, lease_until = now() + interval '1 minute'
                WHERE ctid = (SELECT min(ctid) FROM {kind})"""
            )
        )

    answer = client.get("/health/ready")

    assert answer.status_code == 200
    part = answer.json()["parts"][kind]
    assert (part["ok"], "there is a backlog" in part["reason"]) == (True, True)


def test_a_turn_that_is_replayed_days_later_is_not_late(client: TestClient, owner: Engine) -> None:
    (ticket,) = record(client, LISBON)
    with owner.begin() as connection:
        connection.execute(
            text(
                """UPDATE turns SET accepted_at = now() - interval '3 days', failed_at = now(),
                failed_reason = 'x'"""
            )
        )
    assert client.post(f"/v1/failed/{ticket['id']}/replay").status_code == 202

    ready = get(client, "/health/ready")

    assert ready["parts"]["turns"] == {"ok": True, "reason": None}


def test_metrics_name_routes_and_nobody(client: TestClient) -> None:
    record(client, LISBON)
    client.get("/v1/agents/somebody-secret")

    metrics = client.get("/metrics").text

    assert 'route="/v1/agents/{agent}"' in metrics
    assert "memory_unindexed 1.0" in metrics
    for word in ("mira", "ada", "somebody-secret", "acme", "Lisbon"):
        assert re.search(rf"\b{word}\b", metrics) is None


def test_no_log_line_holds_what_was_said_or_who(
    client: TestClient, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    record(client, LISBON)
    client.post(TURNS, json=said(LISBON, role="narrator"))
    client.post(f"{SCOPE}/recall", json={"query": "Where is Lisbon?"})

    ours = [entry for entry in caplog.records if not entry.name.startswith("httpx")]
    written = " ".join(entry.getMessage() for entry in ours) + "".join(capsys.readouterr())
    assert "route" in written
    assert "Lisbon" not in written
    assert "mira" not in written


@pytest.mark.one_shard
def test_an_internal_error_has_the_usual_shape_and_logs_no_message(
    client: TestClient,
    owner: Engine,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    record(client, LISBON)
    with owner.begin() as connection:
        connection.execute(text("ALTER TABLE turns ADD CHECK (text <> 'The words of a person.')"))

    answer = client.post(TURNS, json=said("The words of a person."))

    assert answer.status_code == 500
    assert answer.json()["error"]["type"] == "internal_error"
    # Where a test before this one has set up the logs of a process, the line goes through the standard library.
    written = "".join(capsys.readouterr()) + caplog.text
    assert "request_broke" in written
    assert "words of a person" not in written + answer.text


def test_the_description_is_complete_and_takes_keys(client: TestClient) -> None:
    description = get(client, "/openapi.json")

    assert client.get("/docs").status_code == 200
    for path, methods in description["paths"].items():
        for operation in methods.values():
            assert operation["description"], path
            assert (operation.get("security") is not None) == is_protected(path), path


# --- when something is away ---------------------------------------------------------------------------------


@pytest.fixture
def without(settings: Settings, api_key: str) -> Iterator[Callable[[str], TestClient]]:
    """Makes a client of an API for which ``redis`` or ``database`` does not answer."""
    runtimes = []

    def make(part: str) -> TestClient:
        away = {
            "redis": Redis(url=SecretStr("redis://127.0.0.1:1/0"), prefix="away:"),
            "database": Database(url=SecretStr("postgresql+psycopg://memory_app@127.0.0.1:1/away")),
        }
        runtimes.append(build(settings.model_copy(update={part: away[part]})))
        return TestClient(create_app(runtimes[-1]), headers={"Authorization": f"Bearer {api_key}"})

    yield make
    for runtime in runtimes:
        runtime.close()


def test_without_redis_turns_are_taken_and_the_window_is_given(without: Callable[[str], TestClient]) -> None:
    client = without("redis")

    record(client, LISBON)

    window = client.post(f"{SCOPE}/context", json={"query": "Lisbon", "session": "chat"})
    assert LISBON in window.json()["text"]
    assert client.delete(f"{SCOPE}/sessions/chat/hot").status_code == 204
    ready = client.get("/health/ready")
    assert ready.status_code == 503
    assert {name: part["ok"] for name, part in ready.json()["parts"].items()} == {
        "database": True,
        "broker": False,
        **dict.fromkeys(WORK, True),
        **dict.fromkeys(("worker-ingest", "worker-model", "worker-maintenance", "finder", "beat"), True),
    }


def test_without_the_database_callers_are_told_to_come_back(without: Callable[[str], TestClient]) -> None:
    client = without("database")

    answer = client.post(TURNS, json=said(LISBON))

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.json()["error"]["type"] == "store_unavailable"
    assert answer.json()["error"]["retry_after"] == 1
    assert client.get("/health/live").status_code == 200
    assert client.get("/health/ready").json()["parts"]["database"]["ok"] is False
    assert "memory_database_up 0.0" in client.get("/metrics").text
