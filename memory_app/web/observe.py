"""Measure and log requests, give each an id, and answer when the program itself failed.

A request's id stands in the header `X-Request-Id` of its answer, in the bodies of errors, in its log lines and in the
rows that it writes. A caller may send its own, which must be a UUID. Routes are named by their template and callers not
at all, since an address holds the names of people.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import structlog
from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memory_app import correlation, tracing
from memory_app.correlation import Work
from memory_app.log_redaction import kinds, places
from memory_app.web.errors import answer

log = structlog.get_logger(__name__)

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Seconds; 5 ms and 50 ms are the targets for accepting a turn and for a context window."""

NO_ROUTE = "none"

REQUEST_ID = "X-Request-Id"

PROBES = frozenset({"/health/live", "/health/ready", "/metrics"})
"""Asked every few seconds by machines: logged only where they fail."""

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class RequestMetrics:
    """Counts and times of requests by route template."""

    requests: Counter
    seconds: Histogram


def request_metrics(registry: CollectorRegistry) -> RequestMetrics:
    labels = ["method", "route", "status"]
    return RequestMetrics(
        Counter("memory_http_requests", "Requests answered.", labels, registry=registry),
        Histogram(
            "memory_http_request_seconds",
            "Time to answer, by route.",
            ["method", "route"],
            buckets=BUCKETS,
            registry=registry,
        ),
    )


class Observation:
    """Around every request: measures it, and turns an unexpected exception into a 500 in our shape."""

    def __init__(self, app: ASGIApp, *, metrics: RequestMetrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = correlation.parse_id(Headers(scope=scope).get(REQUEST_ID)) or correlation.new_id()
        with correlation.request(request_id) as work:
            await self._observe(scope, receive, send, work=work)

    async def _observe(self, scope: Scope, receive: Receive, send: Send, *, work: Work) -> None:
        started, status = time.perf_counter(), 0

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID] = str(work.request_id)
                # Now: the step of the trace ends with the last byte of the answer.
                tracing.describe(request_id=str(work.request_id), **work.summary())
            await send(message)

        try:
            await self.app(scope, receive, note_status)
        except Exception as error:
            # By types and places only: the message of an exception may quote a row.
            log.error("request_broke", error=kinds(error), at=places(error))
            # Once the head of an answer was sent, there is no way to say that it failed.
            if status == 0:
                message = "something is wrong here, not with the request; the log says what"
                await answer(500, "internal_error", message)(scope, receive, note_status)
        self._note(scope, status, time.perf_counter() - started, work=work)

    def _note(self, scope: Scope, status: int, seconds: float, *, work: Work) -> None:
        route = getattr(scope.get("route"), "path_format", None) or NO_ROUTE
        # Anybody may invent methods; each would be a time series of its own.
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.metrics.requests.labels(method, route, str(status)).inc()
        self.metrics.seconds.labels(method, route).observe(seconds)
        say = log.debug if route in PROBES and status < 500 else log.info
        say(
            "request",
            method=method,
            route=route,
            status=status,
            ms=round(seconds * 1000, 1),
            **({} if work.error is None else {"error": work.error}),
            **work.summary(),
            **tracing.fields(),
        )
