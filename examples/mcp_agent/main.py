"""A model that uses the memory through MCP, by the official SDK. Only the tools' names are the memory's own.

pip install "../..[embedded,mcp]" -r requirements.txt
export OPENAI_API_KEY=… MEMORY_MCP="memory mcp --data ../../.memory"
python main.py monday "I have a dog called Bruno."
python main.py friday "What is my dog called?"

The client starts that command and speaks with it over standard input and output. Or start it yourself, with
`--transport http`, and name its address and a key:

export MEMORY_MCP=http://127.0.0.1:8322/mcp MEMORY_API_KEY="$(cat ../../.memory/api-key)"
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent, Tool
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
INSTRUCTIONS = "Search your memory before you answer. Store what will still matter in a month."
ROUNDS = 8
"""Most requests for one reply. Some models would call tools forever."""

RECORD = "record_turns"
"""The program calls it: what was said is recorded whether the model thinks of it or not."""


@asynccontextmanager
async def connected(server: str) -> AsyncIterator[Client]:
    """A client of the server at an address, or of one that the client starts by this command."""
    if not server.startswith(("http://", "https://")):
        command, *arguments = shlex.split(server)
        async with Client(
            StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
        ) as client:
            yield client
        return
    headers = {"Authorization": f"Bearer {os.environ['MEMORY_API_KEY']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(server, http_client=http)) as client,
    ):
        yield client


@dataclass(frozen=True, slots=True)
class Memory:
    """The tools of the server. ``scope`` says whose memory they use, so that the model need not, and cannot."""

    client: Client
    tools: Mapping[str, Tool]
    scope: Mapping[str, str]

    def definitions(self) -> list[ChatCompletionToolParam]:
        """The tools as chat completions take them, without the names that the program fills in."""
        return [self._definition(tool) for name, tool in self.tools.items() if name != RECORD]

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """What the tool answers. What is wrong with a call is an answer, too, which tells how to mend it."""
        open_names = self._open_names(name)
        scope = {part: value for part, value in self.scope.items() if part in open_names}
        result = await self.client.call_tool(name, {**arguments, **scope})
        return "\n".join(block.text for block in result.content if isinstance(block, TextContent))

    def _definition(self, tool: Tool) -> ChatCompletionToolParam:
        schema = dict(tool.input_schema)
        schema["properties"] = {
            name: value for name, value in schema["properties"].items() if name not in self.scope
        }
        schema["required"] = [name for name in schema["required"] if name not in self.scope]
        function = {"name": tool.name, "description": tool.description or "", "parameters": schema}
        return cast(ChatCompletionToolParam, {"type": "function", "function": function})

    def _open_names(self, name: str) -> Mapping[str, Any]:
        """The arguments of a tool. `--agent`, `--user` and `--session` of `memory mcp` take theirs away."""
        tool = self.tools.get(name)
        return {} if tool is None else cast(Mapping[str, Any], tool.input_schema["properties"])


async def reply(openai: AsyncOpenAI, memory: Memory, text: str) -> str:
    """The model's answer, after as many calls of tools as it wants."""
    messages: list[Any] = [
        {"role": "system", "content": INSTRUCTIONS},
        {"role": "user", "content": text},
    ]
    for _ in range(ROUNDS):
        answer = await openai.chat.completions.create(
            model=MODEL,
            messages=cast(list[ChatCompletionMessageParam], messages),
            tools=memory.definitions(),
        )
        message = answer.choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages.append(message)
        for call in message.tool_calls:
            if call.type == "function":
                content = await called(memory, call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
    return "I could not find that out."


async def called(memory: Memory, name: str, written: str) -> str:
    """The answer to a call whose arguments the model wrote, which need not be JSON."""
    try:
        arguments = json.loads(written or "{}")
    except ValueError as error:
        return f"The arguments are not JSON: {error}"
    if not isinstance(arguments, dict):
        return "The arguments must be a JSON object."
    return await memory.call(name, arguments)


async def main(session: str, text: str) -> None:
    server = os.environ.get("MEMORY_MCP", "memory mcp")
    scope = {"agent": "ada", "user": "noa", "session": session}
    async with AsyncOpenAI() as openai, connected(server) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        memory = Memory(client, tools, scope)
        answer = await reply(openai, memory, text)
        print(answer)
        turns = [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]
        await memory.call(RECORD, {"messages": turns})


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
