"""The API's sign of life: from its event loop, through the threads that serve the calls."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from memory_app.hot.life import EVERY_SECONDS
from memory_app.jobs.life import API, Life
from memory_app.runtime import Runtime

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def lifespan(runtime: Runtime) -> Lifespan:
    """What stands around the application from its start to its end."""

    @contextlib.asynccontextmanager
    async def live(app: FastAPI) -> AsyncIterator[None]:
        life = Life(runtime.hot, [API], runtime.settings.life_folder)
        task = asyncio.create_task(_go_on(life))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            # Only when no note is under way any more, which would put the sign back.
            life.end()
            await app.state.model_server.close()

    return live


async def _go_on(life: Life) -> None:
    while True:
        # Through a thread of the pool that serves calls: an API whose threads all hang falls silent.
        await run_in_threadpool(life.note)
        await asyncio.sleep(EVERY_SECONDS)
