"""An agent of LlamaIndex whose memory is this one, instead of a buffer in the process.

pip install ../.. -r requirements.txt
export OPENAI_API_KEY=… MEMORY_API_KEY="$(cat ../../.memory/api-key)"
python main.py monday "I have a dog called Bruno."
python main.py friday "What is my dog called?"
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemory
from llama_index.llms.openai import OpenAI

from memory_app.client import MemoryClient, Scope

MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
TURNS_LIMIT = 50
"""Latest turns that the model is shown."""


class LongTermMemory(BaseMemory):
    """LlamaIndex's memory interface over one conversation.

    What the agent puts is recorded. What it gets are the context window for its question and the latest turns. Messages
    of tools stay within their run: handed out without the call before them, they would be refused by the model.
    """

    _memory: MemoryClient = PrivateAttr()
    _conversation: Scope = PrivateAttr()

    def __init__(self, memory: MemoryClient, conversation: Scope) -> None:
        super().__init__()
        self._memory = memory
        self._conversation = conversation

    @classmethod
    def from_defaults(cls, **kwargs: Any) -> LongTermMemory:
        return cls(**kwargs)

    def get(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:
        """The context window, and the latest turns. An agent puts the question first and gets without ``input``."""
        messages = self.get_all()
        question = input or next((m.content for m in reversed(messages) if m.role == MessageRole.USER), None)
        window = self._memory.context(self._conversation, question, turns=0)
        return [ChatMessage(role=MessageRole.SYSTEM, content=window.text), *messages]

    def get_all(self) -> list[ChatMessage]:
        turns = self._memory.turns(self._conversation, limit=TURNS_LIMIT).turns
        spoken = (MessageRole.USER, MessageRole.ASSISTANT)
        return [ChatMessage(role=turn.role, content=turn.content) for turn in turns if turn.role in spoken]

    def put(self, message: ChatMessage) -> None:
        if message.content:
            self._memory.record(self._conversation, message.content, role=message.role.value)

    def set(self, messages: list[ChatMessage]) -> None:
        """Not for a history of its own: what was recorded is forgotten on demand, never replaced."""
        raise NotImplementedError("set: do not give the agent a chat_history; this memory has it")

    def reset(self) -> None:
        """Begin afresh. What was learned stays; `MemoryClient.forget_session` forgets it."""
        self._memory.clear_session(self._conversation)


async def main(session: str, text: str) -> None:
    url = os.environ.get("MEMORY_URL", "http://127.0.0.1:8321")
    with MemoryClient(url, os.environ["MEMORY_API_KEY"]) as memory:
        agent = FunctionAgent(llm=OpenAI(model=MODEL), system_prompt="You are Ada, a friendly companion.")
        conversation = Scope("ada", "noa", session)
        print(await agent.run(text, memory=LongTermMemory(memory, conversation)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
