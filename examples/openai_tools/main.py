"""A model that searches and stores memories itself, by the tools of the memory.

pip install ../.. -r requirements.txt
export OPENAI_API_KEY=… MEMORY_API_KEY="$(cat ../../.memory/api-key)"
python main.py monday "I have a dog called Bruno."
python main.py friday "What is my dog called?"
"""

from __future__ import annotations

import os
import sys
from typing import Any, cast

from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from memory_app.client import MemoryClient, Scope

MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
INSTRUCTIONS = "Search your memory before you answer. Store what will still matter in a month."
ROUNDS = 8
"""Most requests for one reply. Some models would call tools forever."""


def reply(openai: OpenAI, memory: MemoryClient, chat: Scope, text: str) -> str:
    tools = cast(list[ChatCompletionToolParam], memory.tools().tools)
    messages: list[Any] = [
        {"role": "system", "content": INSTRUCTIONS},
        {"role": "user", "content": text},
    ]
    for _ in range(ROUNDS):
        answer = openai.chat.completions.create(
            model=MODEL, messages=cast(list[ChatCompletionMessageParam], messages), tools=tools
        )
        message = answer.choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages.append(message)
        for call in message.tool_calls:
            if call.type == "function":
                # A wrong call is an answer, too, which tells the model how to mend it.
                called = memory.call_tool(chat, call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": called.content})
    return "I could not find that out."


def main(session: str, text: str) -> None:
    url = os.environ.get("MEMORY_URL", "http://127.0.0.1:8321")
    with OpenAI() as openai, MemoryClient(url, os.environ["MEMORY_API_KEY"]) as memory:
        print(reply(openai, memory, Scope("ada", "noa", session), text))


if __name__ == "__main__":
    main(*sys.argv[1:])
