"""A chat app: one route that streams the model's reply, with memory around the model.

    pip install ../.. -r requirements.txt
    export OPENAI_API_KEY=… MEMORY_API_KEY="$(cat ../../.memory/api-key)"
    uvicorn main:app --port 8000
    curl -N localhost:8000/chat -H 'Content-Type: application/json' \
        -d '{"user": "noa", "session": "monday", "text": "I have a dog called Bruno."}'

A real app takes the user from its own login, never from the request.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from openai import AsyncOpenAI
from pydantic import BaseModel

from memory_app.client import AsyncMemoryClient, Scope, wrap_async_openai

MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
TURNS = 20
"""Latest turns of the session that the model is shown. The browser sends the newest message alone."""


class ChatMessage(BaseModel):
    user: str
    session: str
    text: str


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
    url = os.environ.get("MEMORY_URL", "http://127.0.0.1:8321")
    async with AsyncOpenAI() as openai, AsyncMemoryClient(url, os.environ["MEMORY_API_KEY"]) as memory:
        yield {"openai": openai, "memory": memory}


app = FastAPI(lifespan=lifespan)


@app.post("/chat")
async def chat(message: ChatMessage, request: Request) -> StreamingResponse:
    scope = Scope("ada", message.user, message.session)
    model = wrap_async_openai(request.state.openai, request.state.memory, scope, turns=TURNS)
    stream = await model.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": message.text}], stream=True
    )
    return StreamingResponse(words(stream), media_type="text/plain; charset=utf-8")


async def words(stream: Any) -> AsyncIterator[str]:
    """The text of the reply, piece by piece. Both turns are recorded at the end of the stream."""
    async for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            yield chunk.choices[0].delta.content
