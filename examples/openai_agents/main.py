"""An agent of the OpenAI Agents SDK: its session is one of the memory, and its instructions know the other sessions.

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
from typing import Any, cast

from agents import Agent, RunContextWrapper, Runner, SessionSettings, TResponseInputItem

from memory_app.client import AsyncMemoryClient, Scope
from memory_app.errors import NotFound
from memory_app.turns.answers import ListedTurnAnswer

MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
TURNS_LIMIT = 100
"""Latest turns that a session gives the model where nobody names a number."""


class MemorySession:
    """The SDK's session protocol over one conversation.

    It keeps messages. Calls of tools and thoughts stay within their run: the next one is shown what was said.
    """

    def __init__(self, memory: AsyncMemoryClient, conversation: Scope) -> None:
        self.memory = memory
        self.conversation = conversation
        self.session_id = conversation.session or ""
        self.session_settings: SessionSettings | None = None

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The latest messages, oldest first."""
        return [message(turn.role, turn.content) for turn in await self._latest(limit or TURNS_LIMIT)]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Record messages in their order. What the model remembers is made of them."""
        fields = [cast(dict[str, Any], item) for item in items]
        messages = [{"role": item["role"], "content": item["content"]} for item in fields if "role" in item]
        if messages:
            await self.memory.record_all(self.conversation, messages)

    async def pop_item(self) -> TResponseInputItem | None:
        """Forget the latest message, and what was learned of it alone."""
        for turn in await self._latest(1):
            erasure = await self.memory.forget_turn(turn.id)
            await self.memory.run(erasure.id, wait_seconds=30)
            return message(turn.role, turn.content)
        return None

    async def clear_session(self) -> None:
        """Forget the conversation, and what was learned of it alone."""
        erasure = await self.memory.forget_session(self.conversation)
        await self.memory.run(erasure.id, wait_seconds=30)

    async def _latest(self, limit: int) -> list[ListedTurnAnswer]:
        try:
            return (await self.memory.turns(self.conversation, limit=limit)).turns
        except NotFound:  # nothing was recorded of this person yet
            return []


def message(role: str, content: str) -> TResponseInputItem:
    return cast(TResponseInputItem, {"role": role, "content": content})


@dataclass(frozen=True, slots=True)
class Chat:
    """What the instructions need."""

    memory: AsyncMemoryClient
    conversation: Scope
    question: str


async def instructions(run: RunContextWrapper[Chat], agent: Agent[Chat]) -> str:
    """Who the agent is, and what it remembers. The session has the turns, so the context window needs none."""
    chat = run.context
    window = await chat.memory.context(chat.conversation, chat.question, turns=0)
    return f"You are Ada, a friendly companion.\n\n{window.text}"


async def main(session: str, text: str) -> None:
    url = os.environ.get("MEMORY_URL", "http://127.0.0.1:8321")
    async with AsyncMemoryClient(url, os.environ["MEMORY_API_KEY"]) as memory:
        conversation = Scope("ada", "noa", session)
        agent = Agent[Chat](name="Ada", instructions=instructions, model=MODEL)
        result = await Runner.run(
            agent,
            text,
            context=Chat(memory, conversation, text),
            session=MemorySession(memory, conversation),
        )
        print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
