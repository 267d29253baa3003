"""The HTTP application: routes, the layers before them, and how errors are answered.

Layers from the outside in: the address is read, the request is measured, the key is checked, the body is limited. Only
then a route sees it, which translates and calls one service.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from memory_app.http import (
    agents,
    entities,
    errors,
    export,
    facts,
    feedback,
    forget,
    health,
    memories,
    pages,
    recall,
    runs,
    sleep,
    synthesis,
    transfer,
    turns,
)
from memory_app.http.auth import Callers, KeyCheck, is_protected
from memory_app.http.edge import Addresses, Bodies
from memory_app.http.life import lifespan
from memory_app.http.observe import Observation, request_metrics
from memory_app.runtime import Runtime
from memory_app.store.keys import Caller

DESCRIPTION = """
Long-term memory for chat apps and AI agents. **Record** turns, **recall** what they add up to, or ask for the whole
**context** window before each reply.

Send `Authorization: Bearer <key>`; the tenant comes from the key, agents, users and sessions are names inside it
(a slash in a name is written `%2F`). Times are RFC 3339 with a zone. Unknown fields and parameters are errors. Every
error has the body `{"error": {"type", "message", "field", "retry_after"}}`.
"""

BEARER = {"type": "http", "scheme": "bearer", "description": "A key made with `memory keys create`."}


def create_app(runtime: Runtime, *, anonymous: Caller | None = None) -> FastAPI:
    """The application around live parts. ``anonymous`` is who asks without a key; only for a loopback address."""
    app = Api(
        title="memory",
        version="1",
        description=DESCRIPTION,
        redirect_slashes=False,
        docs_url=None,  # FastAPI's own page fetches its scripts from the Internet; ours is in `pages`.
        redoc_url=None,
        lifespan=lifespan(runtime),
    )
    app.state.runtime = runtime
    app.state.registry = health.pipeline_registry(runtime)
    for part in (
        turns,
        recall,
        memories,
        facts,
        entities,
        feedback,
        runs,
        sleep,
        synthesis,
        transfer,
        export,
        forget,
        agents,
        health,
        pages,
    ):
        app.include_router(part.router)
    errors.install(app)
    # The last one added stands outermost.
    limits = runtime.settings.http
    app.add_middleware(
        Bodies,
        limit_bytes=limits.body_limit_bytes,
        import_limit_bytes=limits.import_limit_bytes,
        import_path=transfer.IMPORT,
    )
    app.add_middleware(KeyCheck, callers=Callers(runtime), anonymous=anonymous)
    app.add_middleware(Observation, metrics=request_metrics(app.state.registry))
    app.add_middleware(Addresses, prefix=limits.root_path)
    return app


class Api(FastAPI):
    """The application, whose description says that every address under ``/v1`` takes a key."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            description = super().openapi()
            description.setdefault("components", {})["securitySchemes"] = {"key": BEARER}
            for path, methods in description["paths"].items():
                for operation in methods.values() if is_protected(path) else ():
                    operation["security"] = [{"key": []}]
        return super().openapi()
