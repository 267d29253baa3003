"""The MCP server as its SDK's own client sees it: every tool, over standard input and output and over HTTP."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from free_ports import free_port
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult
from own_servers import wait_until
from sqlalchemy import Engine

from memory_app import MemoryApp, Scope
from memory_app.dispatch import finder
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import keys
from memory_app.tools.calls import TOOLS

ROOT = Path(__file__).parents[3]
MIRA = Scope("ada", "mira")
FIXED = ["--agent", "ada", "--user", "mira", "--session", "chat"]

Connect = Callable[..., AbstractAsyncContextManager[Client]]


def command(*arguments: str) -> list[str]:
    return ["-m", "memory_app", "mcp", "--tenant", "acme", *arguments]


@pytest.fixture
def memory_app(runtime: Runtime, tenant: int) -> MemoryApp:
    return MemoryApp(runtime, tenant_id=tenant)


@pytest.fixture
def child_environment(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "PYTHONPATH": str(ROOT), "MEMORY_LOG__LEVEL": "WARNING"}


@pytest.fixture
def over_stdio(child_environment: dict[str, str], tenant: int) -> Connect:
    """Connects to a server that the client starts."""

    @asynccontextmanager
    async def connect(*arguments: str, mode: str = "auto") -> AsyncIterator[Client]:
        server = StdioServerParameters(
            command=sys.executable, args=command(*arguments), env=child_environment, cwd=ROOT
        )
        async with Client(server, mode=mode) as client:
            yield client

    return connect


@pytest.fixture
def over_http(child_environment: dict[str, str], api_key: str) -> Connect:
    """Connects to a server that runs already, with the key of the fixture unless another is named."""

    @asynccontextmanager
    async def connect(*arguments: str, mode: str = "auto", key: str | None = None) -> AsyncIterator[Client]:
        with running(child_environment, *arguments) as address:
            async with client_at(address, key or api_key, mode=mode) as client:
                yield client

    return connect


@asynccontextmanager
async def client_at(address: str, key: str, *, mode: str = "auto") -> AsyncIterator[Client]:
    """The SDK's client at an address, with a key of ours."""
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode) as client,
    ):
        yield client


@contextmanager
def running(environment: dict[str, str], *arguments: str) -> Iterator[str]:
    """``memory mcp`` over HTTP, until the block ends; its address."""
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, *command("--transport", "http", "--port", str(port), *arguments)],
        env=environment,
        cwd=ROOT,
    )
    address = f"http://127.0.0.1:{port}/mcp"
    try:
        wait_until(lambda: answers(server, address), "the MCP server answers")
        yield address
    finally:
        server.terminate()
        server.wait(30)


def answers(server: subprocess.Popen[bytes], address: str) -> bool:
    assert server.poll() is None, "the server has ended"
    try:
        urllib.request.urlopen(address, timeout=5).close()
    except urllib.error.HTTPError as error:
        error.close()
    except OSError:
        return False
    return True


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def data_of(result: CallToolResult) -> Any:
    assert not result.is_error, result
    return result.structured_content


@pytest.mark.parametrize("transport", ["over_stdio", "over_http"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_is_listed_and_called(
    request: pytest.FixtureRequest, runtime: Runtime, memory_app: MemoryApp, transport: str, mode: str
) -> None:
    connect: Connect = request.getfixturevalue(transport)
    memory_app.add_fact(MIRA, "Mira", "lives_in", "Lisbon")

    async def test() -> None:
        async with connect(*FIXED, mode=mode) as client:
            listed = (await client.list_tools()).tools
            assert [tool.name for tool in listed] == list(TOOLS)
            assert all("agent" not in tool.input_schema["properties"] for tool in listed)

            turns = [{"role": "user", "content": "I have a dog called Bruno."}]
            recorded = data_of(await client.call_tool("record_turns", {"messages": turns}))
            assert recorded["tickets"][0]["seq"] == 1
            stored = await client.call_tool("store_memory", {"text": "Mira prefers short answers."})
            assert data_of(stored)["merged"] is False
            await asyncio.to_thread(finder.drain, runtime)

            search = await client.call_tool("search_memory", {"query": "What is the dog called?"})
            rows = data_of(search)["memories"]
            assert any("Bruno" in row["text"] for row in rows)
            assert "Bruno" in search.content[0].text  # type: ignore[union-attr]
            dog = next(row["id"] for row in rows if row["tier"] == "facts" and "Bruno" in row["text"])
            why = data_of(await client.call_tool("why", {"memory_id": dog}))
            assert why["evidence"][0]["content"] == "I have a dog called Bruno."
            context = data_of(await client.call_tool("get_context", {"query": "Any plans?"}))
            assert "Bruno" in context["display_text"]
            facts = data_of(await client.call_tool("list_facts", {"relation": "lives_in"}))
            assert facts["facts"][0]["object"] == "Lisbon"
            forgotten = await client.call_tool("forget_memory", {"memory_id": data_of(stored)["id"]})
            assert data_of(forgotten)["forgotten"] is True

    run(test)


@pytest.mark.parametrize("transport", ["over_stdio", "over_http"])
def test_a_wrong_call_is_a_result_that_the_model_can_mend(
    request: pytest.FixtureRequest, memory_app: MemoryApp, transport: str
) -> None:
    connect: Connect = request.getfixturevalue(transport)
    memory_app.remember(Scope("ada", "eve"), "Eve keeps a tarantula.")

    async def test() -> None:
        async with connect(*FIXED) as client:
            for name, arguments, field in (
                ("search_memory", {}, "query"),
                ("search_memory", {"query": "dog", "limit": "many"}, "limit"),
                ("search_memory", {"query": "tarantula", "user": "eve"}, "user"),
                ("store_memory", {"text": "A dog.", "agent": "max"}, "agent"),
            ):
                result = await client.call_tool(name, arguments)
                assert result.is_error, name
                assert result.structured_content["error"]["field"] == field
                assert "tarantula" not in result.model_dump_json()

    run(test)


def test_without_bounds_each_call_names_the_person(over_stdio: Connect, memory_app: MemoryApp) -> None:
    memory_app.remember(MIRA, "Mira likes olives.")

    async def test() -> None:
        async with over_stdio() as client:
            (search, *_) = (await client.list_tools()).tools
            assert search.input_schema["required"] == ["agent", "user", "query"]
            found = await client.call_tool(
                "search_memory", {"agent": "ada", "user": "mira", "query": "olives"}
            )
            assert "olives" in found.content[0].text  # type: ignore[union-attr]
            assert (await client.call_tool("search_memory", {"query": "olives"})).is_error

    run(test)


def test_who_may_only_read_is_offered_and_given_nothing_else(over_stdio: Connect) -> None:
    async def test() -> None:
        async with over_stdio(*FIXED, "--read-only") as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == [name for name, tool in TOOLS.items() if tool.right == "read"]
            assert (await client.call_tool("store_memory", {"text": "A dog."})).is_error

    run(test)


def test_the_cards_of_entities_are_resources(over_stdio: Connect, memory_app: MemoryApp) -> None:
    memory_app.add_fact(MIRA, "Mira", "lives_in", "Lisbon")

    async def test() -> None:
        async with over_stdio(*FIXED) as client:
            cards = {card.name: card.uri for card in (await client.list_resources()).resources}
            (content,) = (await client.read_resource(str(cards["Mira"]))).contents
            assert "Lisbon" in json.loads(content.text)["facts"][0]  # type: ignore[union-attr]
            template = (await client.list_resource_templates()).resource_templates[0]
            assert "{key}" in template.uri_template
            for uri in (str(cards["Mira"]).replace("/users/mira", "/users/eve"), "memory://agents/ada"):
                with pytest.raises(MCPError):
                    await client.read_resource(uri)

    run(test)


def test_over_http_the_key_says_whose_memory_it_is(
    child_environment: dict[str, str], memory_app: MemoryApp, owner: Engine, other_tenant: int, api_key: str
) -> None:
    memory_app.remember(MIRA, "Mira likes olives.")
    with owner.begin() as connection:
        _, stranger = keys.create(connection, "globex")
        _, reader = keys.create(connection, "acme", rights=("read",))

    async def call(address: str, key: str, name: str, arguments: dict[str, str]) -> CallToolResult:
        async with client_at(address, key) as client:
            return await client.call_tool(name, arguments)

    async def test() -> None:
        with running(child_environment, *FIXED) as address:
            search = ("search_memory", {"query": "olives"})
            assert data_of(await call(address, api_key, *search))["memories"]
            assert data_of(await call(address, stranger, *search))["memories"] == []
            stored = await call(address, reader, "store_memory", {"text": "A dog."})
            assert stored.structured_content["error"]["type"] == "forbidden"
            assert status_without_key(address) == 401

    run(test)


def status_without_key(address: str) -> int:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=30)
    with refused.value as answer:
        return answer.code


def test_what_cannot_start_says_why_in_one_line(child_environment: dict[str, str], tenant: int) -> None:
    for arguments, said in ((["--user", "a\nb"], "user: a name"), (["--transport", "smoke"], "smoke")):
        done = subprocess.run(
            [sys.executable, *command(*arguments)],
            env=child_environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (1, 2)
        assert said in done.stderr
        assert "Traceback" not in done.stderr
