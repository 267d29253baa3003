"""The agents' tools in process and over HTTP: what they answer, and that a wrong call is an answer too."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from free_ports import free_port
from pydantic import SecretStr
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app import MemoryApp, Scope
from memory_app.dispatch import finder
from memory_app.main.http import create_app
from memory_app.records.records import EmotionalState
from memory_app.runtime import Runtime, build
from memory_app.settings import Database, Settings
from memory_app.tenancy.rows import keys
from memory_app.tools.answers import ToolAnswer

CHAT = Scope("ada", "mira", "chat")
MIRA = Scope("ada", "mira")
TOOLS = "/v1/agents/ada/users/mira/tools"


@pytest.fixture
def memory_app(runtime: Runtime, tenant: int) -> MemoryApp:
    return MemoryApp(runtime, tenant_id=tenant)


def data_of(answer: ToolAnswer) -> Any:
    """The data of an answer that is no error, as it comes out of its JSON."""
    assert not answer.is_error, answer.text
    return json.loads(answer.content)


def test_a_search_answers_rows_counts_feelings_and_a_text(memory_app: MemoryApp) -> None:
    memory_app.remember(
        MIRA,
        "Mira has a dog called Bruno.",
        importance=8,
        tags=("pet",),
        emotional_state=EmotionalState("joy", 0.9),
    )
    memory_app.record(CHAT, "Bruno the dog chased a heron today.")

    answer = memory_app.call_tool(CHAT, "search_memory", '{"query": "Who is Bruno the dog?"}')

    data = data_of(answer)
    (row,) = [row for row in data["memories"] if row["tier"] == "facts"]
    assert (row["kind"], row["text"], row["tags"]) == ("fact", "Mira has a dog called Bruno.", ["pet"])
    assert row["emotional_state"]["valence"] == "joy"
    assert data["emotional_context"] == [
        {"valence": "joy", "intensity": 0.9, "user_impact": None, "memory_id": row["id"]}
    ]
    assert (data["recalled_count"], data["related_count"]) == (len(data["memories"]), 0)
    assert "Mira has a dog called Bruno." in answer.text
    assert "chased a heron" in answer.text
    assert "joy" in answer.text


def test_what_a_link_leads_to_counts_as_related(memory_app: MemoryApp, owner: Engine) -> None:
    first = memory_app.remember(MIRA, "Mira plays the cello.").id
    second = memory_app.remember(MIRA, "The concert hall stands by the river.", importance=4).id
    for place in ("market", "school", "bakery"):
        memory_app.remember(MIRA, f"The old {place} was painted yellow.", importance=6)
    link(owner, first, second)

    def search(**arguments: object) -> Any:
        call = {"query": "cello", "limit": 1, "kinds": ["fact"], **arguments}
        return data_of(memory_app.call_tool(CHAT, "search_memory", call))

    expanded = search(expand_graph=True)
    assert {row["text"]: row["related"] for row in expanded["memories"]} == {
        "Mira plays the cello.": False,
        "The concert hall stands by the river.": True,
    }
    assert (expanded["recalled_count"], expanded["related_count"]) == (1, 1)
    alone = search()
    assert (alone["recalled_count"], alone["related_count"]) == (1, 0)


def link(owner: Engine, source: object, target: object) -> None:
    with owner.begin() as connection:
        connection.execute(
            text(
                """INSERT INTO links (tenant_id, scope_id, source_id, target_id, type, weight)
                SELECT tenant_id, scope_id, id, :target, 'similar', 1 FROM memories WHERE id = :source"""
            ),
            {"source": source, "target": target},
        )


def test_the_users_message_helps_the_search(memory_app: MemoryApp) -> None:
    memory_app.remember(MIRA, "Mira has a dog called Bruno.")
    call = {"query": "pets", "user_message": "Do you remember Bruno?", "limit": 1}

    assert data_of(memory_app.call_tool(CHAT, "search_memory", call))["memories"]


def test_storing_answers_whether_it_became_one_with_what_was_known(
    memory_app: MemoryApp, owner: Engine
) -> None:
    call = {"text": "Mira prefers short answers.", "kind": "expression", "importance": 7, "tags": ["style"]}

    first = data_of(memory_app.call_tool(CHAT, "store_memory", {**call, "valence": "calm"}))
    again = data_of(memory_app.call_tool(CHAT, "store_memory", call))

    assert (first["merged"], first["merged_count"], first["outcome"]) == (False, 0, "inserted")
    assert (again["merged"], again["id"]) == (True, first["id"])
    with owner.connect() as connection:
        row = connection.execute(
            text(
                "SELECT kind, importance, tags, emotional_state->>'valence', session_id, origin FROM memories"
            )
        ).one()
    assert (row[0], row[1], sorted(row[2]), *row[3:]) == (
        "expression",
        7,
        ["explicit-store", "style"],
        "calm",
        None,
        "declared",
    )


def test_the_context_and_the_facts_are_read(memory_app: MemoryApp) -> None:
    memory_app.add_fact(MIRA, "Mira", "lives_in", "Lisbon")
    memory_app.remember(MIRA, "Mira prefers short answers.", kind="expression")

    context = data_of(memory_app.call_tool(CHAT, "get_context", {"query": "Where does Mira live?"}))
    facts = data_of(memory_app.call_tool(CHAT, "list_facts", {"subject": "Mira"}))

    assert "Mira prefers short answers." in context["display_text"]
    assert context["tokens"] <= 1_000
    assert [(fact["relation"], fact["object"]) for fact in facts["facts"]] == [("lives_in", "Lisbon")]
    assert "Lisbon" in facts["display_text"]


def test_turns_are_recorded_and_explain_a_memory(runtime: Runtime, memory_app: MemoryApp) -> None:
    messages = [{"role": "user", "content": "I have a dog called Bruno."}]
    recorded = data_of(memory_app.call_tool(CHAT, "record_turns", {"messages": messages}))
    finder.drain(runtime)
    (id,) = memory_app.ticket(recorded["tickets"][0]["id"]).memory_ids

    reason = data_of(memory_app.call_tool(CHAT, "why", {"memory_id": str(id)}))

    assert reason["evidence"][0]["content"] == "I have a dog called Bruno."
    assert "I have a dog called Bruno." in reason["display_text"]


def test_a_memory_is_forgotten_for_good(memory_app: MemoryApp) -> None:
    id = data_of(memory_app.call_tool(CHAT, "store_memory", {"text": "Mira likes olives."}))["id"]

    assert data_of(memory_app.call_tool(CHAT, "forget_memory", {"memory_id": id}))["forgotten"]

    assert data_of(memory_app.call_tool(CHAT, "search_memory", {"query": "olives"}))["memories"] == []


def test_nobody_reaches_the_memories_of_another_person(memory_app: MemoryApp, other_tenant: int) -> None:
    of_agent = memory_app.remember(Scope("ada"), "Ada never gives dosage advice.", kind="core").id
    of_eve = memory_app.remember(Scope("ada", "eve"), "Eve keeps a tarantula.").id
    memory_app.remember(MIRA, "Mira likes olives.")
    stranger = MemoryApp(memory_app.runtime, tenant_id=other_tenant)
    stranger.remember(MIRA, "Another Mira likes plums.")
    of_stranger = stranger.call_tool(CHAT, "search_memory", {"query": "plums"}).data["memories"][0]["id"]

    for name in ("why", "forget_memory"):
        for id in (of_eve, of_stranger, uuid4()):
            answer = memory_app.call_tool(CHAT, name, {"memory_id": str(id)})
            assert (answer.is_error, answer.data["error"]["type"]) == (True, "not_found"), name
    # What belongs to all users of the agent is seen by each, and forgotten by none of them.
    assert not memory_app.call_tool(CHAT, "why", {"memory_id": str(of_agent)}).is_error
    assert memory_app.call_tool(CHAT, "forget_memory", {"memory_id": str(of_agent)}).is_error


def test_before_anybody_has_spoken_nothing_is_remembered(memory_app: MemoryApp) -> None:
    for name, arguments in (("search_memory", {"query": "dog"}), ("list_facts", {}), ("get_context", {})):
        answer = memory_app.call_tool(CHAT, name, arguments)
        assert not answer.is_error, name
        assert answer.text


@pytest.mark.parametrize(
    ("name", "arguments", "field"),
    [
        ("search_memories", {"query": "dog"}, "name"),
        ("search_memory", None, "query"),
        ("search_memory", '{"query": ', "arguments"),
        ("search_memory", {"query": " "}, "query"),
        ("search_memory", {"query": "dog", "kinds": ["fakt"]}, "kinds"),
        ("search_memory", {"query": "dog", "limit": 51}, "limit"),
        ("store_memory", {"text": ""}, "text"),
        ("store_memory", {"text": "A dog.", "kind": "fakt"}, "kind"),
        ("store_memory", {"text": "A dog.", "valence": "meh"}, "emotional_state.valence"),
        ("forget_memory", {"memory_id": "the one about the dog"}, "memory_id"),
        ("why", {"memory_id": "01980000-0000-7000-8000-000000000000"}, "id"),
        ("list_facts", {"history": True}, "subject"),
        ("get_context", {"budget_tokens": 1}, "budget_tokens"),
        ("record_turns", {"messages": [{"role": "user", "content": "\x00"}]}, "turn.content"),
    ],
    ids=str,
)
def test_a_wrong_call_is_an_answer_that_names_the_argument(
    memory_app: MemoryApp, name: str, arguments: object, field: str
) -> None:
    memory_app.remember(MIRA, "Mira has a dog called Bruno.")

    answer = memory_app.call_tool(CHAT, name, arguments)

    assert answer.is_error
    assert answer.data["error"]["field"] == field
    assert answer.text == answer.data["error"]["message"]


def test_a_tool_needs_a_person_and_recording_a_session(memory_app: MemoryApp) -> None:
    messages = {"messages": [{"role": "user", "content": "Hello."}]}

    assert memory_app.call_tool(Scope("ada"), "list_facts", {}).data["error"]["field"] == "user"
    assert memory_app.call_tool(MIRA, "record_turns", messages).data["error"]["field"] == "session"


def test_when_the_database_is_away_the_model_is_told_to_go_on(settings: Settings, tenant: int) -> None:
    address = f"postgresql://nobody@127.0.0.1:{free_port()}/none"
    away = build(settings.model_copy(update={"database": Database(url=SecretStr(address))}))
    try:
        for name, arguments in (("search_memory", {"query": "dog"}), ("store_memory", {"text": "A dog."})):
            answer = MemoryApp(away, tenant_id=tenant).call_tool(CHAT, name, arguments)
            assert (answer.is_error, answer.data["error"]["type"]) == (True, "store_unavailable"), name
            assert "go on without it" in answer.text
    finally:
        away.close()


# --- over HTTP ------------------------------------------------------------------------------------------------


@pytest.fixture
def client(runtime: Runtime, api_key: str) -> TestClient:
    return TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})


def test_definitions_are_answered_in_both_forms(client: TestClient, memory_app: MemoryApp) -> None:
    for form in ("openai", "anthropic"):
        answer = client.get(f"/v1/tools?format={form}")
        assert answer.status_code == 200
        assert answer.json()["tools"] == memory_app.tools(form)
    assert client.get("/v1/tools").json()["tools"] == memory_app.tools()
    assert client.get("/v1/tools?format=other").status_code == 422


def test_a_call_over_http_answers_like_one_in_process(client: TestClient) -> None:
    stored = client.post(f"{TOOLS}/store_memory", json={"text": "Mira likes olives."}).json()
    assert (stored["is_error"], stored["data"]["outcome"]) == (False, "inserted")

    rows = client.post(f"{TOOLS}/search_memory", json={"query": "olives"}).json()
    assert "Mira likes olives." in rows["text"]

    wrong = client.post(f"{TOOLS}/search_memory", json={"querry": "olives"})
    assert (wrong.status_code, wrong.json()["is_error"]) == (200, True)
    assert wrong.json()["data"]["error"]["field"] == "querry"


def test_turns_are_recorded_in_the_session_that_is_named(client: TestClient) -> None:
    body = {"messages": [{"role": "user", "content": "Hello."}]}

    assert client.post(f"{TOOLS}/record_turns", json=body).json()["data"]["error"]["field"] == "session"
    assert not client.post(f"{TOOLS}/record_turns?session=chat", json=body).json()["is_error"]


def test_a_reader_may_search_and_not_store(client: TestClient, owner: Engine) -> None:
    with owner.begin() as connection:
        _, reader = keys.create(connection, "acme", rights=("read",))
    headers = {"Authorization": f"Bearer {reader}"}

    def status(name: str, arguments: object) -> int:
        return client.post(f"{TOOLS}/{name}", json=arguments, headers=headers).status_code

    assert status("search_memory", {"query": "dog"}) == 200
    assert status("store_memory", {"text": "A dog."}) == 403
    assert status("fly", {}) == 404
