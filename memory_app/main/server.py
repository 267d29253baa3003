"""Serve the API in one process; refuse an address that would be open without a key.

Keys are always checked. Without one only a loopback address may be served, and only where the operator named the
tenant; an address that others reach is refused as long as there is no key at all.
"""

from __future__ import annotations

import gc
import socket
from functools import partial
from typing import Any

import structlog
import uvicorn
from fastapi import FastAPI

from memory_app import blas_threads, tracing
from memory_app import runtime as wiring
from memory_app.errors import Misconfigured
from memory_app.events.stream import Streams
from memory_app.log import configure
from memory_app.main.http import create_app
from memory_app.ops import startup
from memory_app.runtime import Runtime
from memory_app.settings import Http, Settings
from memory_app.tenancy import access
from memory_app.tenancy.rows.keys import Caller
from memory_app.web.arrival import Arrivals
from memory_app.web.auth import is_loopback
from memory_app.web.connections import Connection, Connections

log = structlog.get_logger(__name__)

KEEP_ALIVE_SECONDS = 30
SHUTDOWN_SECONDS = 25
"""Time for requests under way; as long as workers get."""


def serve(settings: Settings) -> None:
    """Serve until stopped. Before anything listens, raises `Misconfigured` for an address that would stand open, and
    `StoreRefused` for a database that waiting does not open."""
    configure(level=settings.log.level, form=settings.log.form)
    tracing.start("api", endpoint=settings.tracing.endpoint, ratio=settings.tracing.ratio)
    runtime = wiring.build(settings)
    blas_threads.take_one()
    try:
        startup.check_database(runtime.engine)
        anonymous = check_door(runtime)
        # What stands for good is not looked through again: a full collection would hold a request up for 100 ms.
        gc.collect()
        gc.freeze()
        Server(create_app(runtime, anonymous=anonymous), settings.http).run()
    finally:
        runtime.close()
        tracing.stop()


class Server(uvicorn.Server):
    """uvicorn, whose connections have deadlines."""

    def __init__(self, app: FastAPI, settings: Http) -> None:
        self.connections = Connections(settings)
        connection: Any = partial(Connection, connections=self.connections)
        super().__init__(
            uvicorn.Config(
                app,
                http=connection,
                # No route takes a WebSocket, so none is accepted.
                ws="none",
                host=settings.host,
                port=settings.port,
                log_config=None,
                # An address holds the names of people.
                access_log=False,
                server_header=False,
                # Anybody can send such a header, and connections are limited by address.
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            )
        )
        self.arrivals: Arrivals = app.state.arrivals
        self.streams: Streams = app.state.streams

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for server in self.servers if self.started else ():
            for listener in server.sockets:
                # The port is another than the setting's where that is 0. IPv6 gives two values more.
                host, port = listener.getsockname()[:2]
                log.info("listening", host=host, port=port)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Connections that only wait are closed; a body that is arriving gets a little time, an answer gets more."""
        # Before uvicorn waits for what is under way: a body that never ends would take all of that time.
        self.connections.is_stopping = True
        self.arrivals.stop()
        # Streams of events would have no end.
        self.streams.stop()
        await super().shutdown(sockets)


def check_door(runtime: Runtime) -> Caller | None:
    """Who may ask without a key, or None. Raises `Misconfigured` where the door would stand open or lead nowhere."""
    http = runtime.settings.http
    if http.allow_anonymous_tenant is not None:
        if not is_loopback(http.host):
            raise Misconfigured(
                f"http.allow_anonymous_tenant needs a loopback http.host, not {http.host}; use keys instead",
                field="http.allow_anonymous_tenant",
            )
        return access.anonymous_caller(runtime.settings, http.allow_anonymous_tenant)
    if not is_loopback(http.host) and not access.has_live_key(runtime):
        raise Misconfigured(
            f"http.host {http.host} can be reached by others and there is no API key yet; "
            "make one with `memory keys create`",
            field="http.host",
        )
    return None
