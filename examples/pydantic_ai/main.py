"""An agent of Pydantic AI: instructions with the context window, and a tool that stores what the model finds worth it.

pip install ../.. -r requirements.txt
export OPENAI_API_KEY=… MEMORY_API_KEY="$(cat ../../.memory/api-key)"
python main.py monday "I have a dog called Bruno."
python main.py friday "What is my dog called?"
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass

from pydantic_ai import Agent, RunContext

from memory_app.client import AsyncMemoryClient, Scope

MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")


@dataclass(frozen=True, slots=True)
class Chat:
    """What the agent depends on: whose memory it is."""

    memory: AsyncMemoryClient
    conversation: Scope
    question: str


agent = Agent(
    f"openai:{MODEL}",
    deps_type=Chat,
    instructions="You are Ada, a friendly companion.",
    defer_model_check=True,
)


@agent.instructions
async def remembered(run: RunContext[Chat]) -> str:
    window = await run.deps.memory.context(run.deps.conversation, run.deps.question)
    return window.text


@agent.tool
async def store_memory(run: RunContext[Chat], text: str, importance: int = 5) -> str:
    """Store a statement about the user that will still matter in a month.

    Args:
        text: One sentence that names who it is about.
        importance: From 1 to 10.
    """
    # Of the person, since the first turn of the conversation is not recorded yet.
    person = Scope(run.deps.conversation.agent, run.deps.conversation.user)
    stored = await run.deps.memory.remember(person, text, importance=importance)
    return stored.outcome


async def main(session: str, text: str) -> None:
    url = os.environ.get("MEMORY_URL", "http://127.0.0.1:8321")
    async with AsyncMemoryClient(url, os.environ["MEMORY_API_KEY"]) as memory:
        conversation = Scope("ada", "noa", session)
        result = await agent.run(text, deps=Chat(memory, conversation, text))
        await memory.record_all(
            conversation,
            [{"role": "user", "content": text}, {"role": "assistant", "content": result.output}],
        )
        print(result.output)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
