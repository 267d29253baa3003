"""``mcp``: the agents' tools for MCP clients, over stdio or streamable HTTP."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module, util
from typing import Annotated, Any

import anyio
import typer
import uvicorn

from memory_app import MemoryApp
from memory_app import runtime as wiring
from memory_app.console.connect import Tenant
from memory_app.console.settings import Data, find_settings
from memory_app.errors import Misconfigured
from memory_app.log import configure
from memory_app.ops import startup
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import keys
from memory_app.tenancy.rows.keys import Caller
from memory_app.tools.bounds import Bounds

app = typer.Typer()

SHUTDOWN_SECONDS = 25
"""Time for calls under way; as long as the API gives them."""


class Transport(StrEnum):
    """How a client reaches the server."""

    STDIO = "stdio"
    HTTP = "http"


@app.command()
def mcp(
    transport: Annotated[
        Transport, typer.Option(help="stdio: the client starts this command. http: it calls an address.")
    ] = Transport.STDIO,
    agent: Annotated[
        str | None, typer.Option("--agent", help="The agent that remembers; else each call names it.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="The person remembered; else each call names it.")
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", help="The conversation; else a call may name it.")
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Over stdio: only tools that change nothing.")
    ] = False,
    host: Annotated[str, typer.Option(help="Address to listen at, with http.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port, with http; 0 takes a free one.")] = 8322,
    tenant: Tenant = "default",
    data: Data = None,
) -> None:
    """Serve the agents' tools to MCP clients; over HTTP each request needs an API key."""
    server = _server_module()
    bounds = Bounds(agent, user, session)
    settings = find_settings(data)
    # To standard error: standard output belongs to the client.
    configure(level=settings.log.level, form=settings.log.form)
    if transport is Transport.HTTP:
        runtime = wiring.build(settings)
        try:
            startup.check_database(runtime.engine)
            _serve_http(server, runtime, bounds, host=host, port=port)
        finally:
            runtime.close()
        return
    with MemoryApp.connect(settings, tenant=tenant) as memory:
        rights = frozenset({"read"} if read_only else keys.USUAL_RIGHTS)
        caller = Caller(key_id=0, tenant_id=memory.tenant_id, tenant=tenant, rights=rights)
        handlers = server.McpHandlers(memory.runtime, bounds, server.stdio_caller(caller))
        anyio.run(server.serve_stdio, handlers)


def _server_module() -> Any:
    # Here and not above: the SDK comes with an extra, and everything else works without it.
    if util.find_spec("mcp") is None:
        raise Misconfigured("memory mcp needs the MCP SDK: install memory-app[mcp]")
    return import_module("memory_app.tools.mcp_server")


def _serve_http(server: Any, runtime: Runtime, bounds: Bounds, *, host: str, port: int) -> None:
    config = uvicorn.Config(
        server.http_app(runtime, bounds),
        host=host,
        port=port,
        ws="none",
        log_config=None,
        # An address may hold the names of people.
        access_log=False,
        server_header=False,
        proxy_headers=False,
        # A client may hold a stream open for ever.
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    uvicorn.Server(config).run()
