"""Chat messages as they are, through each door that records turns: the same rows, and a ticket that says what came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app import MemoryApp, Scope
from memory_app.dispatch import finder
from memory_app.main.http import create_app
from memory_app.runtime import Runtime
from memory_app.turns.relay import relay

SCOPE = Scope("ada", "mira", "chat")
TURNS = "/v1/agents/ada/users/mira/sessions/chat/turns"
PIXEL = "data:image/png;base64,iVBORw0KGgo="

Message = dict[str, Any]
Record = Callable[[list[Message]], None]

OPENAI: list[Message] = [
    {"role": "developer", "content": "You are a weather assistant."},
    {
        "role": "user",
        "name": "Mira",
        "content": [
            {"type": "text", "text": "I live in Lisbon with my dog Bruno. Is this fog?"},
            {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
        ],
        "at": 1_767_225_600,
    },
    {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "annotations": [],
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city": "Lisbon"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "fog, 12 degrees"},
    {"role": "function", "name": "get_tides", "content": "high at noon"},
    {"role": "assistant", "content": "Yes, it is fog.", "refusal": None, "tool_calls": None},
    {"role": "user", "content": ""},
]

ANTHROPIC: list[Message] = [
    {"role": "user", "content": [{"type": "text", "text": "I live in Lisbon with my dog Bruno."}]},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [
            {"type": "thinking", "thinking": "The user asks for the weather.", "signature": "c2ln"},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Lisbon"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 5},
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "I live in Porto, says the page."}],
    },
]  # fmt: skip


def over_http(runtime: Runtime, tenant: int, key: str) -> Record:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {key}"})

    def record(messages: list[Message]) -> None:
        answer = client.post(TURNS, json={"messages": messages})
        assert answer.status_code == 202, answer.text

    return record


def in_python(runtime: Runtime, tenant: int, key: str) -> Record:
    memory = MemoryApp(runtime, tenant_id=tenant)
    return lambda messages: memory.record_all(SCOPE, messages) and None


def over_the_broker(runtime: Runtime, tenant: int, key: str) -> Record:
    address = {"api_key": key, "agent": SCOPE.agent, "user": SCOPE.user, "session": SCOPE.session}

    def record(messages: list[Message]) -> None:
        for number, message in enumerate(messages):
            relay(runtime, {**message, **address}, message_id=str(number))

    return record


DOORS = [over_http, in_python, over_the_broker]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_messages_of_openai_are_taken_as_they_are(
    runtime: Runtime, tenant: int, api_key: str, owner: Engine, door: Any
) -> None:
    door(runtime, tenant, api_key)(OPENAI)

    with owner.connect() as connection:
        rows = connection.execute(
            text(
                "SELECT role, speaker, text, tools_used, extract(epoch FROM at)::bigint FROM turns ORDER BY seq"
            )
        ).all()
        metadata = connection.execute(text("SELECT metadata FROM turns ORDER BY seq")).scalars().all()
    assert [tuple(row[:4]) for row in rows] == [
        ("system", "system", "You are a weather assistant.", []),
        ("user", "Mira", "I live in Lisbon with my dog Bruno. Is this fog?\n[image]", []),
        ("assistant", "ada", "[tool call: get_weather]", ["get_weather"]),
        ("tool", "tool", "fog, 12 degrees", []),
        ("tool", "get_tides", "high at noon", []),
        ("assistant", "ada", "Yes, it is fog.", []),
        ("user", "mira", "[empty message]", []),
    ]
    assert rows[1][4] == 1_767_225_600
    assert metadata[2]["message"]["tool_calls"][0]["arguments"] == '{"city": "Lisbon"}'
    assert metadata[3]["message"] == {"tool_call_id": "call_1"}
    assert "iVBORw0KGgo" not in str(metadata)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_messages_of_anthropic_are_taken_as_they_are(
    runtime: Runtime, tenant: int, api_key: str, owner: Engine, door: Any
) -> None:
    door(runtime, tenant, api_key)(ANTHROPIC)

    with owner.connect() as connection:
        rows = connection.execute(text("SELECT role, text, tools_used FROM turns ORDER BY seq")).all()
    assert [tuple(row) for row in rows] == [
        ("user", "I live in Lisbon with my dog Bruno.", []),
        ("assistant", "Let me look.\n[tool call: get_weather]", ["get_weather"]),
        ("tool", "I live in Porto, says the page.", []),
    ]


def test_only_words_of_the_user_become_their_facts(
    runtime: Runtime, tenant: int, memory_app: MemoryApp
) -> None:
    caption = {"type": "image_url", "image_url": {"url": PIXEL}, "caption": "I live in Rome"}
    memory_app.record_all(SCOPE, [*ANTHROPIC, {"role": "user", "content": [caption]}])
    finder.drain(runtime)

    places = [fact.memory.object for fact in memory_app.facts(SCOPE, relation="lives_in")]
    assert places == ["Lisbon"]


def test_a_message_with_nothing_to_remember_gets_a_ticket_that_says_so(
    runtime: Runtime, tenant: int, memory_app: MemoryApp
) -> None:
    picture = {"type": "image_url", "image_url": {"url": PIXEL}}
    messages = [
        {"role": "user", "content": ""},
        {"role": "user", "content": [picture]},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "clock"}}]},
        {"role": "assistant", "content": None},
    ]
    tickets = memory_app.record_all(SCOPE, messages)
    finder.drain(runtime)

    rows = [memory_app.ticket(ticket.id) for ticket in tickets]
    assert [(row.stage, row.reason) for row in rows] == [("extracted", "the message has no text")] * 4


@pytest.fixture
def memory_app(runtime: Runtime, tenant: int) -> MemoryApp:
    return MemoryApp(runtime, tenant_id=tenant)


# --- over HTTP ------------------------------------------------------------------------------------------------


@pytest.fixture
def client(runtime: Runtime, api_key: str) -> TestClient:
    return TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})


def test_a_listing_shows_what_came_with_a_turn(client: TestClient) -> None:
    sent = {
        "role": "user",
        "content": "I water the plants.",
        "idempotency_key": "m-1",
        "emotional_tone": "calm",
        "tools_used": ["clock"],
        "metadata": {"page": 1},
    }
    assert client.post(TURNS, json=sent).status_code == 202
    assert client.post(TURNS, json=OPENAI[2]).status_code == 202

    first, second = client.get(TURNS).json()["turns"]
    assert {name: first[name] for name in sent} == sent
    assert second["metadata"]["message"]["tool_calls"][0]["name"] == "get_weather"
    assert (second["idempotency_key"], second["emotional_tone"], second["tools_used"]) == (
        None,
        None,
        ["get_weather"],
    )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"messages": [{"role": "user", "content": "Hi."}, {"role": "user", "content": [{"type": "text"}]}]},
         "messages[1].content[0].text"),
        ({"messages": [{"role": "user", "content": "\x00"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "\x00"}]}, "messages[1].content"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": "a"}], "turns": []}, "messages"),
        ({"turns": [{"role": "assistant", "content": None, "tool_calls": [{}]}]}, "turns[0].tool_calls[0].name"),
        ({"role": "user", "content": [{"type": "text", "text": "a"}] * 10_000}, "content"),
        ({"role": "user", "content": "a", "at": 1e15}, "at"),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_one_bad_message_is_named_by_its_place_and_none_is_stored(
    client: TestClient, owner: Engine, body: Message, field: str
) -> None:
    answer = client.post(TURNS, json=body)

    assert (answer.status_code, answer.json()["error"]["field"]) == (422, field), answer.text
    with owner.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM turns")).scalar_one() == 0


def test_the_size_of_a_message_is_bounded(client: TestClient) -> None:
    url = "data:image/png;base64," + "A" * 3_000_000
    message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}

    answer = client.post(TURNS, json=message)

    assert (answer.status_code, answer.json()["error"]["type"]) == (413, "too_large")


def test_the_same_message_under_one_key_is_stored_once(client: TestClient) -> None:
    headers = {"Idempotency-Key": "m-1"}
    first, second = (client.post(TURNS, json=OPENAI[2], headers=headers).json() for _ in range(2))

    assert second["tickets"][0] == first["tickets"][0] | {"duplicate": True}
