"""The instruments of OpenTelemetry, set up in one process. Imported by `start` alone, and only where traces are on.

Redis and HTTP clients are watched for the whole process, engines one by one. A step is noted only
inside a request or a task, or with what a finder or Beat does about work that is due: looking for work, signs of life
and waiting for messages are none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

# OpenTelemetry's switch for its stable names of attributes, read when the instruments are set up.
os.environ.setdefault("OTEL_SEMCONV_STABILITY_OPT_IN", "http,database")

from fastapi.telemetry import TelemetryConfig
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.celery import CeleryInstrumentor
from opentelemetry.instrumentation.httpx import HTTPX2ClientInstrumentor
from opentelemetry.instrumentation.redis import RedisInstrumentor
from opentelemetry.instrumentation.sqlalchemy.engine import EngineTracer
from opentelemetry.metrics import NoOpMeter
from opentelemetry.propagate import inject, set_global_textmap
from opentelemetry.propagators.textmap import DefaultGetter, Getter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_NAMESPACE, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import Decision, ParentBased, Sampler, SamplingResult, TraceIdRatioBased
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from sqlalchemy import Engine

from memory_app.tracing.discretion import OWN, Discreet

PRODUCT = "memory"

PATH = "/v1/traces"
"""Of OTLP over HTTP, behind the receiver's address."""

PROBES = frozenset({"/health/live", "/health/ready", "/metrics"})
"""Asked every few seconds by machines."""

BEGINNINGS = frozenset({SpanKind.SERVER, SpanKind.PRODUCER, SpanKind.CONSUMER})
"""Steps with which a trace may begin."""


class InsideOnly(Sampler):
    """What comes from no request, no task and no message is left out; all else is up to ``sampler``."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        *arguments: Any,
        **options: Any,
    ) -> SamplingResult:
        parent = trace.get_current_span(parent_context).get_span_context()
        if kind not in BEGINNINGS and not parent.is_valid:
            return SamplingResult(Decision.DROP)
        return self._sampler.should_sample(parent_context, trace_id, name, kind, *arguments, **options)

    def get_description(self) -> str:
        return f"InsideOnly({self._sampler.get_description()})"


_GETTER: Getter[Any] = DefaultGetter()


class ParentOnly(TraceContextTextMapPropagator):
    """Takes from a caller which trace this belongs to, and nothing else: not its state, which may be any text and would
    be sent on to providers, and no baggage."""

    def extract(self, carrier: Any, context: Context | None = None, getter: Getter[Any] = _GETTER) -> Context:
        extracted = super().extract(carrier, context, getter)
        parent = trace.get_current_span(extracted).get_span_context()
        if not parent.trace_state:
            return extracted
        plain = SpanContext(parent.trace_id, parent.span_id, parent.is_remote, parent.trace_flags)
        return trace.set_span_in_context(NonRecordingSpan(plain), extracted)


class Live:
    """The instruments of this process. Safe to share between threads, never across a fork."""

    def __init__(self, part: str, exporter: SpanExporter, ratio: float) -> None:
        resource = Resource.create({SERVICE_NAME: f"{PRODUCT}-{part}", SERVICE_NAMESPACE: PRODUCT})
        sampler = InsideOnly(ParentBased(TraceIdRatioBased(ratio)))
        self._provider = TracerProvider(sampler=sampler, resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(Discreet(exporter)))
        self._tracer = self._provider.get_tracer(PRODUCT)
        self._clients: list[Any] = [RedisInstrumentor(), HTTPX2ClientInstrumentor()]
        self._tasks = CeleryInstrumentor()  # type: ignore[no-untyped-call]  # it has no types
        for client in self._clients:
            client.instrument(tracer_provider=self._provider)

    @property
    def telemetry(self) -> TelemetryConfig:
        """For FastAPI, which names the step by the template of its route."""
        return TelemetryConfig(
            tracing=True, tracer_provider=self._provider, exclude=lambda scope: scope["path"] in PROBES
        )

    def watch_engine(self, engine: Engine) -> None:
        # Not by its instrumentor, which claims SQLAlchemy below 2.1 and loads the asyncio side of it. This part listens
        # to the events of an engine, which are the same in both.
        usage = NoOpMeter(PRODUCT).create_up_down_counter("connections")
        EngineTracer(self._tracer, engine, usage)  # type: ignore[no-untyped-call]  # it has no types

    def watch_tasks(self) -> None:
        """Make each task a step; what `carrier` wrote into its message is what it goes on with."""
        self._tasks.instrument(tracer_provider=self._provider)

    def sending(self, task: str) -> AbstractContextManager[object]:
        # Where tasks are watched, that instrument makes a step of each message.
        if self._tasks.is_instrumented_by_opentelemetry:
            return nullcontext()
        return self._tracer.start_as_current_span(f"send/{task}", kind=SpanKind.PRODUCER)

    def working(self, name: str) -> AbstractContextManager[object]:
        return self._tracer.start_as_current_span(f"work/{name}", kind=SpanKind.CONSUMER)

    def carrier(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        inject(headers)
        return headers

    def describe(self, facts: Mapping[str, Any]) -> None:
        span = trace.get_current_span()
        for key, value in facts.items() if span.is_recording() else ():
            if value is not None:
                span.set_attribute(OWN + key, value)

    def fields(self) -> dict[str, str]:
        context = trace.get_current_span().get_span_context()
        return {"trace_id": trace.format_trace_id(context.trace_id)} if context.is_valid else {}

    def end(self) -> None:
        for instrument in (*self._clients, self._tasks):
            if instrument.is_instrumented_by_opentelemetry:
                instrument.uninstrument()
        EngineTracer.remove_all_event_listeners()  # type: ignore[no-untyped-call]  # nor this
        self._provider.shutdown()


def begin(part: str, *, endpoint: str, ratio: float) -> Live:
    """Set up the instruments of this process. ``endpoint`` is the receiver's address, with or without `PATH`."""
    address = re.sub(rf"(?:{PATH})?/*$", PATH, endpoint)
    set_global_textmap(ParentOnly())
    return Live(part, OTLPSpanExporter(endpoint=address), ratio)
