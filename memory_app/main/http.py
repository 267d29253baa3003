"""The HTTP application: routes, the layers before them, and how errors are answered.

Layers from the outside in: the address is read, the request is measured, the key is checked (on the page: the session)
and the tenant's requests are counted. Then a route checks the right, reads the body, takes a place among the calls, and
calls one service.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from memory_app import tracing
from memory_app.agents import grant_routes, routes, user_routes
from memory_app.ask import routes as ask
from memory_app.completions import routes as completions
from memory_app.completions.conversation import LastPolicies
from memory_app.completions.model_server import ModelServer
from memory_app.events import routes as events
from memory_app.events import webhook_routes
from memory_app.events.stream import Streams
from memory_app.extraction import routes as extraction
from memory_app.forget import routes as forget
from memory_app.main import audit_routes, key_routes, limit_routes
from memory_app.main.life import lifespan
from memory_app.memories import entity_routes, fact_routes, feedback_routes, link_routes
from memory_app.memories import routes as memories
from memory_app.ops import routes as health
from memory_app.ops import trace_routes
from memory_app.ops.metrics import pipeline_registry
from memory_app.ops.public_checks import LOOKS, Looks
from memory_app.page import views
from memory_app.recall import routes as recall
from memory_app.runtime import Runtime
from memory_app.sleep import routes as sleep
from memory_app.sleep import run_routes, synthesis_routes
from memory_app.tenancy.rows.keys import Caller
from memory_app.tools import routes as tools
from memory_app.transfer import export_routes, import_routes, person_routes
from memory_app.transfer import routes as transfer
from memory_app.turns import routes as turns
from memory_app.web import errors, pages
from memory_app.web.arrival import Arrivals
from memory_app.web.auth import LOOK_UPS, Callers, KeyCheck, is_protected
from memory_app.web.edge import Addresses
from memory_app.web.observe import Observation, request_metrics
from memory_app.web.places import InFlight, Places

PARTS = (
    turns,
    recall,
    ask,
    completions,
    extraction,
    memories,
    fact_routes,
    entity_routes,
    link_routes,
    feedback_routes,
    run_routes,
    sleep,
    synthesis_routes,
    tools,
    transfer,
    import_routes,
    export_routes,
    person_routes,
    forget,
    events,
    webhook_routes,
    key_routes,
    limit_routes,
    audit_routes,
    routes,
    user_routes,
    grant_routes,
    health,
    trace_routes,
    pages,
)
"""Modules with routes, in the order in which the description lists them."""

DESCRIPTION = """
Long-term memory for chat apps and AI agents. **Record** turns, **recall** what they add up to, or ask for the whole
**context** window before each reply.

Send `Authorization: Bearer <key>`; the tenant comes from the key, agents, users and sessions are names inside it
(a slash in a name is written `%2F`). Times are RFC 3339 with a zone. Unknown fields and parameters are errors. Every
error has the body `{"error": {"type", "message", "field", "retry_after", "request_id"}}`; every answer has the header
`X-Request-Id`, and a UUID that is sent in it is kept.
"""

THREADS = 40
"""Of the pool in which routes run."""

KEPT_CONNECTIONS = LOOK_UPS + LOOKS
"""Of the pool of connections, for looking up keys and for health, which answer whatever calls there are."""

BEARER = {"type": "http", "scheme": "bearer", "description": "A key made with `memory keys create`."}


def create_app(runtime: Runtime, *, anonymous: Caller | None = None) -> FastAPI:
    """The application around live parts. ``anonymous`` is who asks without a key; only for a loopback address."""
    app = Api(
        title="memory",
        version="1",
        description=DESCRIPTION,
        redirect_slashes=False,
        # FastAPI's own page fetches its scripts from the Internet; ours is in `pages`.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan(runtime),
        # Names of functions in generated clients: `operation_id` of a route where a service has that name already.
        generate_unique_id_function=lambda route: route.name,
        telemetry=tracing.telemetry(),
    )
    app.state.runtime = runtime
    app.state.registry = pipeline_registry(runtime)
    limits = runtime.settings.http
    app.state.model_server = ModelServer(runtime.settings)
    app.state.last_policies = LastPolicies()
    app.state.looks = Looks()
    app.state.streams = Streams(runtime.settings.events)
    app.state.arrivals = Arrivals(limits)
    app.state.places = Places(_calls(runtime), patience_seconds=limits.wait_seconds)
    for part in PARTS:
        app.include_router(part.router)
    errors.install(app)
    callers, in_flight = Callers(runtime), InFlight(limits.tenant_requests)
    views.install(app, runtime, callers=callers, in_flight=in_flight, anonymous=anonymous)
    # The last one added stands outermost.
    app.add_middleware(KeyCheck, callers=callers, in_flight=in_flight, anonymous=anonymous)
    app.add_middleware(Observation, metrics=request_metrics(app.state.registry))
    app.add_middleware(Addresses, prefix=limits.root_path)
    return app


def _calls(runtime: Runtime) -> int:
    """Calls at work at the same time: each has a thread and, mostly, a connection; some of both are kept free."""
    database = runtime.settings.database
    connections = database.pool_size + database.pool_overflow
    # At least one, where the settings leave no connection over.
    return max(1, min(THREADS, connections - KEPT_CONNECTIONS))


class Api(FastAPI):
    """The application, whose description says that every address under ``/v1`` takes a key."""

    def openapi(self) -> dict[str, Any]:
        # FastAPI keeps the description that it made, and answers this very one afterwards.
        if self.openapi_schema is None:
            description = super().openapi()
            description.setdefault("components", {})["securitySchemes"] = {"key": BEARER}
            for path, methods in description["paths"].items():
                for operation in methods.values() if is_protected(path) else ():
                    operation["security"] = [{"key": []}]
        return super().openapi()
