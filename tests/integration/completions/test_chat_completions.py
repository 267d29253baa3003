"""A program that speaks the OpenAI API gets memory by another base URL: its own client, a real server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Any

import httpx
import openai
import pytest
from documentation import Block, blocks_run_by
from own_servers import wait_until
from sqlalchemy import Engine, make_url, text

from memory_app.agents.agents import AgentChange, change_agent
from memory_app.dispatch import finder
from memory_app.forget.forget import forget_turn
from memory_app.local import embedded
from memory_app.local.embedded import Servers
from memory_app.main.http import create_app
from memory_app.main.server import Server
from memory_app.recall.recall import RecallQuery, recall
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Completions, Http, Settings
from memory_app.tenancy.rows import keys
from memory_app.testing import Mode, Rule, StubProvider
from memory_app.turns.record import record
from memory_app.turns.stream import latest_turns
from memory_app.web import auth

Json = dict[str, Any]

REPLY = "That sounds lovely, I will keep it in mind."
CARD = "4111 1111 1111 1111"


@dataclass(slots=True)
class Door:
    """The served API, what stands behind it, and the clients of its callers, which end with it."""

    address: str
    runtime: Runtime
    stub: StubProvider
    tenant: int
    key: str
    ending: ExitStack

    def client(self, key: str | None = None) -> openai.OpenAI:
        client = openai.OpenAI(
            base_url=f"{self.address}/openai/v1", api_key=key or self.key, max_retries=0, timeout=60
        )
        return self.ending.enter_context(client)

    def said(self, session: str = "chat", *, agent: str = "assistant") -> list[tuple[str, str]]:
        """What is recorded of Mira's session, in order."""
        turns = latest_turns(self.runtime, self.tenant, Scope(agent, "mira", session), limit=100)
        assert [turn.seq for turn in turns] == list(range(1, len(turns) + 1))
        return [(turn.role.value, turn.text) for turn in turns]

    def sent_on(self) -> list[Json]:
        """The bodies that the model's server was sent."""
        return [request.body for request in self.stub.requests]


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider(Rule(answer=REPLY)) as stub:
        yield stub


@contextmanager
def served(settings: Settings) -> Iterator[tuple[str, Runtime]]:
    runtime = build(settings)
    server = Server(create_app(runtime), settings.http)
    thread = Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started, "the API listens", seconds=120)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}", runtime
    finally:
        server.should_exit = True
        thread.join()
        runtime.close()


@pytest.fixture
def door(
    runtime: Runtime, settings: Settings, stub: StubProvider, tenant: int, api_key: str
) -> Iterator[Door]:
    changed = settings.model_copy(
        update={
            "completions": Completions(base_url=stub.base_url, model="stub-small", memory_seconds=60),
            "http": Http(port=0),
        }
    )
    with served(changed) as (address, serving), ExitStack() as ending:
        yield Door(address, serving, stub, tenant, api_key, ending)


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def assistant(text: str) -> Json:
    return {"role": "assistant", "content": text}


def complete(client: openai.OpenAI, messages: Sequence[Json], *, stream: bool = False, **fields: Any) -> str:
    fields = {"model": "stub-small", "user": "mira"} | fields
    if not stream:
        answer = client.chat.completions.create(messages=messages, **fields)  # type: ignore[arg-type,call-overload]
        return str(answer.choices[0].message.content)
    chunks = client.chat.completions.create(messages=messages, stream=True, **fields)  # type: ignore[arg-type,call-overload]
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def systems(body: Json) -> list[str]:
    return [message["content"] for message in body["messages"] if message["role"] == "system"]


# --- memory ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_an_unchanged_client_remembers_across_sessions(door: Door, stream: bool) -> None:
    client = door.client()
    said = "I'm allergic to peanuts."
    assert complete(client, [user(said)], stream=stream) == REPLY
    finder.drain(door.runtime)
    rules = {"role": "system", "content": "You are a concierge."}
    other = {"X-Memory-Session": "evening"}
    question = user("Which restaurant shall I book tonight?")
    assert complete(client, [rules, question], stream=stream, extra_headers=other) == REPLY
    assert door.said() == [("user", said), ("assistant", REPLY)]
    assert door.said("evening") == [("user", question["content"]), ("assistant", REPLY)]
    first, second = door.sent_on()
    assert "peanuts" not in "".join(systems(first))
    own, window = systems(second)
    assert own == "You are a concierge." and "peanuts" in window
    assert second["messages"][-1] == question
    assert "user" not in second and "mira" not in str(second.get("metadata"))


def run_example(door: Door, block: Block) -> None:
    assert "http://127.0.0.1:8321" in block.code and '"mem_…"' in block.code
    code = block.code.replace("http://127.0.0.1:8321", door.address).replace("mem_…", door.key)
    exec(compile(code, "docs/completions.md", "exec"), {})


def test_the_examples_of_the_page_work_as_they_stand(door: Door) -> None:
    first, edits = blocks_run_by("docs/completions.md", __file__)
    run_example(door, first)
    assert door.said() == [("user", "Which restaurant shall I book?"), ("assistant", REPLY)]
    run_example(door, edits)
    assert shown(door, "chat-7") == ["Hello.", REPLY, "I like coffee.", REPLY]


def test_names_come_from_metadata_and_headers(door: Door) -> None:
    client = door.client()
    complete(client, [user("Hello.")], metadata={"agent": "ada", "session": "Küche", "shop": "7"})
    complete(
        client,
        [user("Good evening.")],
        extra_headers={"X-Memory-Agent": "ada", "X-Memory-Session": "K%C3%BCche"},
    )
    assert [text for _, text in door.said("Küche", agent="ada")] == ["Hello.", REPLY, "Good evening.", REPLY]
    assert [body.get("metadata") for body in door.sent_on()] == [{"shop": "7"}, None]


def test_the_latest_turns_are_shown_to_a_client_that_sends_no_history(door: Door) -> None:
    client = door.client()
    complete(client, [user("My train leaves from platform nine.")])
    complete(client, [user("Where was that again?")])
    complete(client, [user("Thanks."), assistant("Sure."), user("And when?")])
    windows = ["".join(systems(body)) for body in door.sent_on()]
    assert "platform nine" in windows[1]
    assert "Where was that again?" not in windows[1]


# --- histories ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("window", [100, 3])
def test_a_history_that_is_sent_again_is_recorded_once(door: Door, stream: bool, window: int) -> None:
    """The whole of it, or the end."""
    client = door.client()
    history: list[Json] = []
    for number in range(6):
        door.stub.follow(Rule(answer=f"Reply {number}."))
        # Twice the same words, in another place.
        history.append(user("ok" if number in (2, 4) else f"Message {number}."))
        history.append(assistant(complete(client, history[-window:], stream=stream)))
    expected = [(message["role"], message["content"]) for message in history]
    assert door.said() == expected


def test_the_same_call_at_the_same_moment_is_recorded_once(door: Door) -> None:
    client = door.client()
    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda _: complete(client, [user("I moved to Lisbon.")]), range(6)))
    assert replies == [REPLY] * 6
    assert door.said() == [("user", "I moved to Lisbon."), ("assistant", REPLY)]


def test_an_edited_message_is_recorded_behind_what_was_said(door: Door) -> None:
    client = door.client()
    begin = [user("Hello."), assistant(complete(client, [user("Hello.")]))]
    complete(client, [*begin, user("I like tea.")])
    door.stub.follow(Rule(answer="Noted."))
    complete(client, [*begin, user("I like coffee.")])
    assert [text for _, text in door.said()] == [
        "Hello.",
        REPLY,
        "I like tea.",
        REPLY,
        "I like coffee.",
        "Noted.",
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_that_was_forgotten_stays_so_and_the_chat_is_recorded(door: Door, stream: bool) -> None:
    history = talked(door, "Hello.", "My sister is Lena.", "And now?", metadata=TALK)
    scope = Scope("assistant", "mira", "talk")
    turns = latest_turns(door.runtime, door.tenant, scope, limit=100)
    forget_turn(door.runtime, door.tenant, turns[2].id)
    finder.drain(door.runtime)
    # The client knows nothing of it, and sends it with each call.
    door.stub.follow(Rule(answer="Noted."))
    for words in ("Good night.", "Good morning."):
        history.append(user(words))
        history.append(assistant(complete(door.client(), history, stream=stream, metadata=TALK)))
    kept = [turn.text for turn in turns if turn.id != turns[2].id]
    assert shown(door) == [*kept, "Good night.", "Noted.", "Good morning.", "Noted."]


# --- whole histories ------------------------------------------------------------------------------------------

TALK = {"session": "talk"}
WHOLE = {"session": "talk", "history": "whole"}


def shown(door: Door, session: str = "talk") -> list[str]:
    """What is shown of the session, in order; what was replaced is not."""
    scope = Scope("assistant", "mira", session)
    return [turn.text for turn in latest_turns(door.runtime, door.tenant, scope, limit=100)]


def talked(door: Door, *texts: str, **fields: Any) -> list[Json]:
    """A conversation of these messages, each with the reply `Re: …`, sent whole with each call."""
    history: list[Json] = []
    for words in texts:
        door.stub.follow(Rule(answer=f"Re: {words}"))
        history.append(user(words))
        reply = complete(door.client(), history, **{"metadata": WHOLE, **fields})
        history.append(assistant(reply))
    return history


@pytest.mark.parametrize("stream", [False, True])
def test_an_edit_replaces_what_stood_there_in_a_whole_history(door: Door, stream: bool) -> None:
    history = talked(door, "Hello.", "I have a dog called Bruno.", "And?", "Thanks.", stream=stream)
    finder.drain(door.runtime)
    door.stub.follow(Rule(answer="Noted."))
    edited = [*history[:2], user("I have a cat called Mia.")]
    complete(door.client(), edited, stream=stream, metadata=WHOLE)
    # Message and reply take their places. What stood behind them goes when the conversation goes on.
    assert shown(door) == [
        "Hello.", "Re: Hello.", "I have a cat called Mia.", "Noted.", "And?", "Re: And?", "Thanks.", "Re: Thanks.",
    ]  # fmt: skip
    edited += [assistant("Noted."), user("Good night.")]
    complete(door.client(), edited, stream=stream, metadata=WHOLE)
    assert shown(door)[2:] == [
        "I have a cat called Mia.", "Noted.", "Good night.", "Noted.", "Thanks.", "Re: Thanks.",
    ]  # fmt: skip
    # And what was learned of it alone is forgotten.
    finder.drain(door.runtime)
    known = str(
        recall(door.runtime, door.tenant, Scope("assistant", "mira"), query=RecallQuery("dog or cat"))
    )
    assert "Mia" in known and "Bruno" not in known


def test_an_edit_may_be_taken_back(door: Door) -> None:
    history = talked(door, "Hello.", "I like tea.")
    for words in ("I like coffee.", "I like tea."):
        door.stub.follow(Rule(answer=f"Re: {words}"))
        complete(door.client(), [*history[:2], user(words)], metadata=WHOLE)
    assert shown(door) == ["Hello.", "Re: Hello.", "I like tea.", "Re: I like tea."]


def test_the_same_edit_at_the_same_moment_is_one(door: Door) -> None:
    history = talked(door, "Hello.", "I like tea.")
    edited = [*history[:2], user("I like coffee.")]
    door.stub.follow(Rule(answer="Noted."))
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda _: complete(door.client(), edited, metadata=WHOLE), range(4)))
    assert replies == ["Noted."] * 4
    assert shown(door) == ["Hello.", "Re: Hello.", "I like coffee.", "Noted."]


def test_a_reply_made_again_replaces_the_former(door: Door) -> None:
    history = talked(door, "Hello.", "Tell me a joke.")
    door.stub.follow(Rule(answer="Another one."))
    headers = {"X-Memory-Session": "talk", "X-Memory-History": "whole"}
    complete(door.client(), history[:-1], extra_headers=headers)
    assert shown(door) == ["Hello.", "Re: Hello.", "Tell me a joke.", "Another one."]
    # One that is broken off takes nobody's place: the client may go on with the former.
    door.stub.follow(Rule(Mode.CUT, answer="A third one, which is longer."))
    with pytest.raises(openai.APIError):
        complete(door.client(), history[:-1], stream=True, extra_headers=headers)
    assert shown(door)[:4] == ["Hello.", "Re: Hello.", "Tell me a joke.", "Another one."]


@pytest.mark.parametrize(
    ("sent", "metadata"),
    [
        # Nobody says what of the conversation is sent.
        ([0, 1, "x"], {"session": "talk"}),
        # A greeting alone begins other conversations, too.
        (["x"], WHOLE),
        ([0, "x"], WHOLE),
        # The end of the conversation.
        ([2, 3, "x"], WHOLE),
        # Somebody else's turn stands there.
        ([0, 1, 2, 3, "x"], WHOLE),
    ],
)
def test_nothing_is_replaced_where_it_is_not_certain(
    door: Door, sent: list[int | str], metadata: dict[str, str]
) -> None:
    history = talked(door, "Hello.", "I like tea.")
    scope = Scope("assistant", "mira", "talk")
    record(door.runtime, door.tenant, scope, [NewTurn(Role.USER, "From another door.")])
    door.stub.follow(Rule(answer="Noted."))
    before = shown(door)
    messages = [user("I like coffee.") if item == "x" else history[int(item)] for item in sent]
    complete(door.client(), messages, metadata=metadata)
    assert shown(door)[: len(before)] == before
    assert shown(door)[-1] == "Noted."


def test_a_key_without_the_right_to_erase_replaces_nothing(door: Door, owner: Engine) -> None:
    history = talked(door, "Hello.", "I like tea.")
    key = key_of(owner, rights=frozenset({"read", "record"}))
    before = shown(door)
    complete(door.client(key), [*history[:2], user("I like coffee.")], metadata=WHOLE)
    assert shown(door)[: len(before)] == before and "I like coffee." in shown(door)


def test_another_conversation_of_many_messages_replaces_nothing(door: Door) -> None:
    lines = [
        user(f"Line {number}.") if number % 2 else assistant(f"Line {number}.") for number in range(1, 30)
    ]
    complete(door.client(), lines, metadata=WHOLE)
    others = [dict(line, content=f"Other {line['content']}") for line in lines[2:]]
    before = shown(door)
    complete(door.client(), [*lines[:2], *others], metadata=WHOLE)
    assert shown(door)[: len(before)] == before


def test_a_history_from_before_is_taken_over_with_calls_of_tools(door: Door) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"in": "Lisbon"}'}}
    history: list[Json] = [
        {"role": "developer", "content": "Be brief."},
        user("How is the weather in Lisbon?"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Sunny, 24 degrees."},
        # A field that only this client knows.
        {"role": "user", "content": [{"type": "text", "text": "And here?"}, IMAGE], "sent_from": "phone"},
    ]
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    client = door.client()
    complete(client, history, tools=tools)
    complete(client, [*history, assistant(REPLY), user("Thanks.")], tools=tools)
    roles = [role for role, _ in door.said()]
    assert roles == ["user", "assistant", "tool", "user", "assistant", "user", "assistant"]
    body = door.sent_on()[0]
    assert body["tools"] == tools
    assert [message for message in body["messages"] if message["role"] != "system"] == history


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


# --- what fails ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "status", "words"),
    [
        (Rule(Mode.SERVER_ERROR), 503, "the language model failed (500)"),
        (Rule(Mode.UNAUTHORIZED), 503, "refused the key"),
        (Rule(Mode.REDIRECT), 503, "does not know this address"),
        (Rule(Mode.RATE_LIMITED, retry_after="7"), 429, "allows no more requests"),
        (Rule(Mode.BAD_REQUEST), 400, "this request is not possible"),
        (Rule(Mode.CUT, answer=REPLY), 503, "broke off its answer"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_fails_is_told_and_what_was_said_is_kept(
    door: Door, rule: Rule, status: int, words: str, stream: bool
) -> None:
    door.stub.follow(rule)
    with pytest.raises(openai.APIError) as raised:
        complete(door.client(), [user("I moved to Lisbon.")], stream=stream)
    assert words in str(raised.value)
    if not (stream and rule.mode is Mode.CUT):
        assert isinstance(raised.value, openai.APIStatusError)
        assert raised.value.status_code == status
        assert "sk-echoed" not in str(raised.value) or status == 400
        if status == 429:
            assert raised.value.response.headers["retry-after"] == "7"
    assert door.said()[0] == ("user", "I moved to Lisbon.")
    # And the next try is one message with its reply, not two.
    door.stub.follow(Rule(answer=REPLY))
    complete(door.client(), [user("I moved to Lisbon.")], stream=stream)
    assert door.said()[-1] == ("assistant", REPLY)
    assert [role for role, _ in door.said()].count("user") == 1


def test_a_model_that_is_not_there_is_told_from_memory(door: Door) -> None:
    door.stub.close()
    with pytest.raises(openai.InternalServerError) as raised:
        complete(door.client(), [user("Hello.")])
    assert raised.value.status_code == 503
    assert raised.value.body["type"] == "provider_unavailable"  # type: ignore[index]
    assert door.said() == [("user", "Hello.")]


def test_a_key_that_was_revoked_before_the_database_went_away_is_none(
    door: Door, owner: Engine, servers: Servers, database: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "REMEMBERED_SECONDS", 0.0)
    client = door.client(key_of(owner, rights=keys.RIGHTS))
    assert complete(client, [user("Hello.")]) == REPLY
    with owner.begin() as connection:
        connection.execute(text("UPDATE api_keys SET revoked_at = now()"))
    with pytest.raises(openai.AuthenticationError):
        complete(client, [user("Hello.")])
    take_away(servers, database)
    with pytest.raises(openai.InternalServerError):
        complete(client, [user("Hello.")])
    assert len(door.sent_on()) == 1


def take_away(servers: Servers, database: Servers) -> None:
    name = make_url(database.app_url).database
    assert name is not None
    embedded.drop_database(servers, name)


def test_the_chat_goes_on_while_memory_is_away(
    door: Door, servers: Servers, database: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "REMEMBERED_SECONDS", 0.0)
    assert complete(door.client(), [user("Hello.")]) == REPLY
    take_away(servers, database)
    raw = door.client().chat.completions.with_raw_response.create(
        model="stub-small", user="mira", messages=[{"role": "user", "content": "Are you there?"}]
    )
    assert raw.headers["x-memory-degraded"] == "memory"
    assert raw.parse().choices[0].message.content == REPLY
    assert door.sent_on()[-1]["messages"] == [user("Are you there?")]
    # Nobody knows whether another key is one.
    with pytest.raises(openai.InternalServerError) as raised:
        complete(door.client(keys.new_key()), [user("Hello.")])
    assert raised.value.body["type"] in ("store_unavailable", "store_refused")  # type: ignore[index]
    # And everything else needs the database.
    listed = httpx.get(
        f"{door.address}/v1/agents", headers={"Authorization": f"Bearer {door.key}"}, timeout=60
    )
    assert listed.status_code == 503


def test_what_a_client_heard_before_it_hung_up_is_recorded(door: Door) -> None:
    door.stub.follow(Rule(Mode.DRIP, answer=REPLY * 200, seconds=0.05))
    request = {"model": "stub-small", "user": "mira", "stream": True, "messages": [user("Tell me a story.")]}
    headers = {"Authorization": f"Bearer {door.key}"}
    with (
        httpx.Client(timeout=60) as client,
        client.stream(
            "POST", f"{door.address}/openai/v1/chat/completions", json=request, headers=headers
        ) as answer,
    ):
        for line in answer.iter_lines():
            if "lovely" in line or "sounds" in line:
                break
    wait_until(lambda: len(door.said()) == 2, "the reply is recorded", seconds=120)
    role, text = door.said()[1]
    assert role == "assistant" and text and (REPLY * 200).startswith(text) and len(text) < len(REPLY * 200)


# --- rights and privacy ---------------------------------------------------------------------------------------


def key_of(owner: Engine, tenant: str = "acme", **fields: Any) -> str:
    with owner.begin() as connection:
        return keys.create(connection, tenant, **fields)[1]


def test_the_person_comes_from_the_key_or_the_request(door: Door, owner: Engine) -> None:
    bound = door.client(key_of(owner, rights=keys.RIGHTS, user="mira"))
    complete(bound, [user("Hello.")], user=openai.omit)
    assert door.said() == [("user", "Hello."), ("assistant", REPLY)]
    with pytest.raises(openai.PermissionDeniedError):
        complete(bound, [user("Hello.")], user="bob")
    with pytest.raises(openai.BadRequestError) as raised:
        complete(door.client(), [user("Hello.")], user=openai.omit)
    assert "user: name the person" in str(raised.value)
    assert len(door.sent_on()) == 1
    assert [model.id for model in bound.models.list()] == ["stub-small", "stub-large"]


@pytest.mark.parametrize("rights", [("read",), ("record",)])
def test_a_chat_needs_the_rights_to_read_and_to_record(
    door: Door, owner: Engine, rights: tuple[str, ...]
) -> None:
    with pytest.raises(openai.PermissionDeniedError):
        complete(door.client(key_of(owner, rights=rights)), [user("Hello.")])
    with pytest.raises(openai.AuthenticationError):
        complete(door.client("sk-something"), [user("Hello.")])
    assert door.sent_on() == []


def changed(**policy: object) -> AgentChange:
    return AgentChange(policy=policy, named=frozenset({"policy"}))


def test_nothing_of_another_tenant_is_shown(door: Door, owner: Engine, other_tenant: int) -> None:
    complete(door.client(), [user("I'm allergic to peanuts.")])
    finder.drain(door.runtime)
    foreign = door.client(key_of(owner, "globex", rights=keys.RIGHTS))
    complete(foreign, [user("What am I allergic to, peanuts or what?")])
    assert "allergic to peanuts" not in "".join(systems(door.sent_on()[-1])).lower()


def test_private_parts_are_neither_sent_on_nor_stored(door: Door) -> None:
    change_agent(door.runtime, door.tenant, Scope("assistant"), change=changed(redaction="mask"))
    client = door.client()
    call = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": f'{{"card": "{CARD}"}}'}}
    history: list[Json] = [
        user(f"My card is {CARD}."),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": f"{CARD} was charged."},
    ]
    history.append(assistant(complete(client, history)))
    complete(client, [*history, user("Did you get it?")])
    assert CARD not in str(door.sent_on()) and CARD not in str(door.said())
    roles = ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert [role for role, _ in door.said()] == roles


def test_an_agent_whose_memory_is_off_only_chats(door: Door) -> None:
    change_agent(door.runtime, door.tenant, Scope("assistant"), change=changed(memory=False))
    assert complete(door.client(), [user("Hello.")]) == REPLY
    assert door.sent_on()[0]["messages"] == [user("Hello.")]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": "Hello."}, "messages"),
        ({"messages": [3]}, "messages[0]"),
        ({"messages": None}, "messages"),
        ({"user": 3}, "user"),
        ({"user": ""}, "user"),
        ({"user": "a\x00b"}, "user"),
        ({"metadata": 3}, "metadata"),
        ({"metadata": {"session": 4}}, "metadata.session"),
        ({"metadata": {"agent": "x" * 1_000}}, "agent"),
        ({"metadata": {"session": "talk", "history": "all"}}, "metadata.history"),
        ({"metadata": {"history": "whole"}}, "metadata.session"),
        ({"model": 3}, "model"),
    ],
)
def test_a_request_that_cannot_be_read_names_the_field(door: Door, change: Json, field: str) -> None:
    body = {"model": "stub-small", "user": "mira", "messages": [user("Hello.")]} | change
    answer = httpx.post(
        f"{door.address}/openai/v1/chat/completions",
        json=body,
        headers={"Authorization": f"Bearer {door.key}"},
        timeout=60,
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == field
    assert door.sent_on() == []


def test_without_a_model_the_answer_says_what_to_set(settings: Settings, tenant: int, api_key: str) -> None:
    with served(settings.model_copy(update={"http": Http(port=0)})) as (address, _):
        client = openai.OpenAI(base_url=f"{address}/openai/v1", api_key=api_key, max_retries=0)
        with pytest.raises(openai.ConflictError, match="MEMORY_COMPLETIONS__BASE_URL"):
            complete(client, [user("Hello.")])
