"""An OpenAI client with memory around it: the SDK against our provider, memory against a real server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import openai
import pytest
from api_server import serving
from free_ports import free_port

from memory_app import MemoryApp
from memory_app.client import AsyncMemoryClient, MemoryClient, Scope, wrap_async_openai, wrap_openai
from memory_app.errors import InvalidInput, NotSent
from memory_app.runtime import Runtime
from memory_app.testing.script import Mode, Rule
from memory_app.testing.server import StubProvider

CHAT = Scope("ada", "noa", "chat-1")
BEES = {"role": "user", "content": "What do I keep?"}
RULES = {"role": "system", "content": "You are brief."}

Ask = Callable[..., Any]


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider(Rule(answer="You keep bees, as you told me in spring.")) as provider:
        yield provider


@pytest.fixture
def url(runtime: Runtime) -> Iterator[str]:
    with serving(runtime) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def memory(url: str, api_key: str) -> Iterator[MemoryClient]:
    with MemoryClient(url, api_key) as client:
        client.remember(CHAT_OF_NOA, "Noa keeps bees.")
        yield client


CHAT_OF_NOA = Scope("ada", "noa")


def sdk_options(stub: StubProvider) -> dict[str, Any]:
    return {"base_url": stub.base_url, "api_key": "none", "max_retries": 0}


@pytest.fixture(params=["sync", "async"])
def ask(
    request: pytest.FixtureRequest, stub: StubProvider, url: str, api_key: str, memory: MemoryClient
) -> Iterator[Ask]:
    """Asks for a completion; the answer, or the chunks of a stream."""
    if request.param == "sync":
        with openai.OpenAI(**sdk_options(stub)) as sdk:
            chat = wrap_openai(sdk, memory, CHAT, budget_tokens=400)

            def create(*messages: Any, **options: Any) -> Any:
                answer = chat.chat.completions.create(model="m", messages=messages, **options)
                return list(answer) if options.get("stream") else answer

            yield create
        return
    with asyncio.Runner() as runner:
        slow, sdk = AsyncMemoryClient(url, api_key), openai.AsyncOpenAI(**sdk_options(stub))
        wrapped = wrap_async_openai(sdk, slow, CHAT, budget_tokens=400)

        async def create_async(*messages: Any, **options: Any) -> Any:
            answer = await wrapped.chat.completions.create(model="m", messages=messages, **options)
            return [chunk async for chunk in answer] if options.get("stream") else answer

        yield lambda *messages, **options: runner.run(create_async(*messages, **options))
        runner.run(sdk.close())
        runner.run(slow.close())


def said(memory: MemoryClient) -> list[tuple[str, str]]:
    return [(turn.role, turn.content) for turn in memory.turns(CHAT).turns]


REPLY = "You keep bees, as you told me in spring."


def test_the_window_comes_before_and_the_turns_after(
    ask: Ask, memory: MemoryClient, stub: StubProvider
) -> None:
    answer = ask(RULES, BEES)
    assert answer.choices[0].message.content == REPLY
    rules, window, question = stub.requests[-1].body["messages"]
    assert (rules, question) == (RULES, BEES)
    assert window["role"] == "system"
    assert "Noa keeps bees." in window["content"]
    assert said(memory) == [("user", "What do I keep?"), ("assistant", REPLY)]


def test_a_stream_comes_through_and_is_recorded_as_one_turn(ask: Ask, memory: MemoryClient) -> None:
    chunks = ask(BEES, stream=True)
    assert len(chunks) > 1
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == REPLY
    assert said(memory) == [("user", "What do I keep?"), ("assistant", REPLY)]


def test_a_history_that_is_sent_along_is_recorded_once(ask: Ask, memory: MemoryClient) -> None:
    history = [RULES, BEES]
    history.append(ask(*history).choices[0].message)
    history.append({"role": "user", "content": "How many hives?"})
    ask(*history)
    # Asked for another answer: the question is known, the answer is new.
    ask(*history)
    assert said(memory) == [
        ("user", "What do I keep?"),
        ("assistant", REPLY),
        ("user", "How many hives?"),
        ("assistant", REPLY),
        ("assistant", REPLY),
    ]


def test_sessions_that_begin_with_the_same_words_are_recorded_each(
    stub: StubProvider, memory: MemoryClient
) -> None:
    history = [BEES, {"role": "assistant", "content": REPLY}, {"role": "user", "content": "How many?"}]
    with openai.OpenAI(**sdk_options(stub)) as sdk:
        for session in ("monday", "friday"):
            scope = replace(CHAT, session=session)
            chat = wrap_openai(sdk, memory, scope)
            chat.chat.completions.create(model="m", messages=history)
            assert chat.memory_error is None
            turns = memory.turns(scope).turns
            assert [turn.content for turn in turns] == ["How many?", REPLY]


def test_calls_of_tools_and_their_results_are_passed_and_recorded(
    ask: Ask, memory: MemoryClient, stub: StubProvider
) -> None:
    tools = [{"type": "function", "function": {"name": "answer", "parameters": {"type": "object"}}}]
    stub.follow(Rule(mode=Mode.DUPLICATE_TOOL_CALLS, times=1), Rule(answer=REPLY))
    called = ask(BEES, tools=tools).choices[0].message
    assert stub.requests[-1].body["tools"] == tools
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": "three hives"} for call in called.tool_calls
    ]
    ask(BEES, called, *results, tools=tools)
    turns = memory.turns(CHAT).turns
    assert [turn.role for turn in turns] == ["user", "assistant", "tool", "tool", "assistant"]
    assert turns[1].tools_used == ["answer"]


def test_a_provider_that_fails_fails_as_without_memory(
    ask: Ask, memory: MemoryClient, stub: StubProvider
) -> None:
    stub.follow(Rule(mode=Mode.SERVER_ERROR))
    with pytest.raises(openai.InternalServerError):
        ask(BEES)
    assert memory.sessions(CHAT_OF_NOA).sessions == []


def test_a_chat_goes_on_without_memory_and_its_turns_come_later(
    stub: StubProvider, runtime: Runtime, api_key: str, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    with (
        MemoryClient(f"http://127.0.0.1:{port}", api_key) as memory,
        openai.OpenAI(**sdk_options(stub)) as sdk,
    ):
        chat = wrap_openai(sdk, memory, CHAT)
        with caplog.at_level(logging.WARNING, "memory_app.client"):
            answer = chat.chat.completions.create(model="m", messages=[BEES])
        assert answer.choices[0].message.content == REPLY
        assert isinstance(chat.memory_error, NotSent)
        assert "not_sent" in caplog.text
        assert "keep" not in caplog.text
        assert stub.requests[-1].body["messages"] == [BEES]
        with serving(runtime, port=port):
            chat.chat.completions.create(model="m", messages=[{"role": "user", "content": "And now?"}])
            assert chat.memory_error is None
            assert said(memory) == [
                ("user", "What do I keep?"),
                ("assistant", REPLY),
                ("user", "And now?"),
                ("assistant", REPLY),
            ]


def test_a_stream_that_nobody_reads_to_the_end_is_recorded_so_far(
    stub: StubProvider, memory: MemoryClient
) -> None:
    with openai.OpenAI(**sdk_options(stub)) as sdk:
        chat = wrap_openai(sdk, memory, CHAT)
        with chat.chat.completions.create(model="m", messages=[BEES], stream=True) as stream:
            # Before the first words there is a piece that only says who speaks.
            next(stream)
            first = next(stream).choices[0].delta.content
    assert said(memory) == [("user", "What do I keep?"), ("assistant", first)]
    assert chat.memory_error is None


def test_in_the_same_process_the_facade_does_it(stub: StubProvider, runtime: Runtime, tenant: int) -> None:
    facade = MemoryApp(runtime, tenant)
    facade.remember(CHAT_OF_NOA, "Noa keeps bees.")
    with openai.OpenAI(**sdk_options(stub)) as sdk:
        chat = wrap_openai(sdk, facade, CHAT).with_options(timeout=30)
        chat.chat.completions.create(model="m", messages=[BEES])
        assert chat.models is sdk.models or chat.models is not None
    assert "Noa keeps bees." in str(stub.requests[-1].body["messages"][0])
    assert [turn.role for turn in facade.turns(CHAT)] == ["user", "assistant"]


def test_a_conversation_must_be_named(stub: StubProvider, memory: MemoryClient) -> None:
    with openai.OpenAI(**sdk_options(stub)) as sdk, pytest.raises(InvalidInput, match="session"):
        wrap_openai(sdk, memory, CHAT_OF_NOA)
