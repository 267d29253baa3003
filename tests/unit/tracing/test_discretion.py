"""What of a step of a trace may leave."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

from memory_app.tracing.discretion import Discreet

SECRET = "allergic to peanuts"


class Kept(SpanExporter):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans.extend(spans)
        return SpanExportResult.SUCCESS


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def provider(kept: Kept) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Discreet(kept)))
    return provider


def test_of_an_exception_only_its_class_leaves(provider: TracerProvider, kept: Kept) -> None:
    with (
        pytest.raises(ValueError),
        provider.get_tracer("test").start_as_current_span("step"),
    ):
        raise ValueError(SECRET)

    (span,) = kept.spans
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description is None
    (event,) = span.events
    assert event.name == "exception"
    assert dict(event.attributes or {}) == {"exception.type": "ValueError"}


def test_attributes_that_are_not_listed_stay_behind(provider: TracerProvider, kept: Kept) -> None:
    attributes = {
        "http.request.method": "POST",
        "url.path": f"/v1/users/{SECRET}",
        "url.query": SECRET,
        "messaging.message.id": SECRET,
        "server.address": SECRET,
        "memory.turns": ("id",),
    }
    tracer = provider.get_tracer("test")
    for kind in (SpanKind.SERVER, SpanKind.CLIENT):
        span = tracer.start_span("step", kind=kind, attributes=attributes)
        span.add_event("message", {"body": SECRET})
        span.end()

    served, called = kept.spans
    assert dict(served.attributes or {}) == {"http.request.method": "POST", "memory.turns": ("id",)}
    # Of a call it is the server of the settings; of a request, what the caller wrote into the header Host.
    assert dict(called.attributes or {}).keys() - dict(served.attributes or {}).keys() == {"server.address"}
    assert not served.events and not called.events


def test_the_state_of_a_caller_stays_behind(provider: TracerProvider, kept: Kept) -> None:
    parent = SpanContext(1, 2, True, TraceFlags(1), TraceState([("vendor", "peanuts")]))
    context = set_span_in_context(NonRecordingSpan(parent))
    provider.get_tracer("test").start_span("step", context=context).end()

    (span,) = kept.spans
    assert span.context is not None and span.parent is not None
    assert (span.context.trace_id, span.parent.span_id) == (1, 2)
    assert not span.context.trace_state and not span.parent.trace_state
