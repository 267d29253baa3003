"""Things that go wrong in libraries and quote what they stumbled over. ``python -m harness.crashes form level``.

Each crash has the canary in a local variable, in its message or in what it worked on. The process itself ends with an
exception that nobody catches.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import socket
import sys
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx2
import openai
import structlog
import uvicorn
from celery import Celery
from kombu import serialization
from kombu.exceptions import DecodeError
from pydantic import BaseModel
from sqlalchemy import create_engine, text

from harness.canary import CANARY
from memory_app.log import configure

own = structlog.get_logger("memory_app.crashes")
foreign = logging.getLogger("somebody.else")


class Person(BaseModel):
    age: int


def own_logger() -> None:
    words = f"own {CANARY}"
    try:
        raise ZeroDivisionError(words)
    except ZeroDivisionError as error:
        own.error("own_event", exc_info=True)
        own.error("own_event_with_error", error=error)
        own.exception("own %s", words)


def foreign_logger() -> None:
    words = f"foreign {CANARY}"
    try:
        raise FloatingPointError(words)
    except FloatingPointError as error:
        foreign.exception("a constant text")
        foreign.error("failed with %r after %d of %s", error, 7, words)
        foreign.error("failed with %(error)s", {"error": words})
        foreign.error(f"put together at run time: {error}")
        foreign.error(f"put together at run time: {words} %s", 1)
        foreign.error(error)
        foreign.error("not a number: %d", words, stack_info=True)
        foreign.error("too few: %s %s", words)
        foreign.error(words.encode(), exc_info=error)


def deaf_logger() -> None:
    """A logger that passes nothing on and has nobody to listen, as billiard's."""
    deaf = logging.getLogger("deaf")
    deaf.propagate = False
    deaf.error("a deaf logger says %s", CANARY, exc_info=BufferError(CANARY))


def chained() -> None:
    try:
        try:
            json.loads('{"words": "' + CANARY)
        except json.JSONDecodeError as error:
            raise LookupError(CANARY) from error
    except LookupError:
        foreign.exception("a chain")
    try:
        Person.model_validate({"age": CANARY})
    except ValueError:
        foreign.exception("a validation")
    foreign.error("a group", exc_info=ExceptionGroup(CANARY, [RecursionError(CANARY)]))


def database() -> None:
    """Errors of a plain engine, which carry their parameters and the server's detail."""
    engine = create_engine(os.environ["MEMORY_DATABASE__URL"])
    statements = (
        "INSERT INTO crashes VALUES (:words), (:words)",
        "SELECT CAST(:words AS uuid)",
        f"SELECT {CANARY.replace('-', '_')} FROM crashes WHERE words = :words",
    )
    for statement in statements:
        try:
            with engine.begin() as connection:
                connection.execute(text("CREATE TEMPORARY TABLE crashes (words text PRIMARY KEY)"))
                connection.execute(text(statement), {"words": CANARY})
        except Exception as error:
            foreign.exception("a statement")
            foreign.error("a statement: %s", error)
            own.error("own_statement", exc_info=error)
    engine.dispose()


def broker() -> None:
    try:
        serialization.loads(CANARY.encode(), "application/json", "utf-8")
    except DecodeError as error:
        foreign.error("Can't decode message body: %r", error, exc_info=True)
    try:
        Celery(CANARY, broker=f"redis://:{CANARY}@127.0.0.1:1/0", set_as_current=False).connection().connect()
    except Exception as error:
        foreign.error("Cannot connect: %s", error, exc_info=True)


class Provider(BaseHTTPRequestHandler):
    """Answers every request with the canary."""

    def answer(self) -> None:
        self.send_response(400, CANARY)
        self.send_header("X-Words", CANARY)
        self.end_headers()
        self.wfile.write(json.dumps({"error": {"message": CANARY, "type": CANARY}}).encode())

    do_GET = do_POST = answer

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def provider() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def provider_answers() -> None:
    with provider() as address:
        try:
            httpx2.get(f"{address}/?words={CANARY}").raise_for_status()
        except httpx2.HTTPStatusError as error:
            foreign.exception("a provider")
            foreign.error("a provider: %s", error)
        client = openai.OpenAI(base_url=address, api_key=CANARY, max_retries=0)
        try:
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": CANARY}])
        except openai.APIStatusError:
            foreign.exception("a model")
        client.close()


def threads() -> None:
    def fall(words: str) -> None:
        raise InterruptedError(words)

    thread = threading.Thread(target=fall, args=(CANARY,))
    thread.start()
    thread.join()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).add_done_callback(lambda _: fall(CANARY))


def unraisable() -> None:
    class Falling:
        def __del__(self) -> None:
            raise ProcessLookupError(CANARY)

    Falling()
    gc.collect()


def warning() -> None:
    warnings.warn(f"careful with {CANARY}", UserWarning, stacklevel=1)
    logging.captureWarnings(True)  # As Celery does after our logging was set up.
    warnings.warn(f"careful again with {CANARY}", FutureWarning, stacklevel=1)


def event_loop() -> None:
    async def fall(words: str) -> None:
        raise BlockingIOError(words)

    def call(words: str) -> None:
        raise ConnectionAbortedError(words)

    async def main() -> None:
        task = asyncio.ensure_future(fall(CANARY))
        await asyncio.wait([task])
        asyncio.get_running_loop().call_soon(call, CANARY)
        await asyncio.sleep(0)

    asyncio.run(main())
    gc.collect()


async def falling_app(scope: Any, receive: Callable[[], Awaitable[Any]], send: Any) -> None:
    words = f"an application {CANARY}"
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.failed", "message": f"Traceback: {words}"})
        return
    raise NotADirectoryError(words)


async def falling_lifespan(scope: Any, receive: Any, send: Any) -> None:
    raise IsADirectoryError(CANARY)


async def refusing_lifespan(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "lifespan.startup.failed", "message": f"Traceback: {CANARY}"})


def server() -> None:
    for app in (falling_lifespan, refusing_lifespan):
        config = uvicorn.Config(app, port=0, log_config=None, lifespan="on")
        with suppress(SystemExit):
            asyncio.run(uvicorn.Server(config).serve())
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        running = uvicorn.Server(uvicorn.Config(falling_app, log_config=None))
        serving = threading.Thread(target=asyncio.run, args=(running.serve([listener]),))
        serving.start()
        for request in (f"GET /{CANARY} HTTP/1.1\r\nHost: x\r\n\r\n", f"{CANARY}\r\n\r\n"):
            while True:
                try:
                    with socket.create_connection(listener.getsockname(), timeout=10) as connection:
                        connection.sendall(request.encode())
                        connection.recv(1000)
                    break
                except ConnectionRefusedError:
                    continue
        running.should_exit = True
        serving.join()


CRASHES = (
    own_logger,
    foreign_logger,
    deaf_logger,
    chained,
    database,
    broker,
    provider_answers,
    threads,
    unraisable,
    warning,
    event_loop,
    server,
)


def main(form: Any, level: Any) -> None:
    configure(form=form, level=level)
    for crash in CRASHES:
        words = f"main {CANARY}"
        crash()
    raise ArithmeticError(words) from KeyError(CANARY)


if __name__ == "__main__":
    main(*sys.argv[1:])
