"""What of a trace may leave: names and values that are ours. Instruments write down far more.

They note addresses with their queries, headers, the words of exceptions and states that callers send along. None of
that is taken out by name: what is not listed here stays behind, also what a new release of an instrument adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Link, SpanContext, SpanKind, Status
from opentelemetry.util.types import Attributes, AttributeValue

OWN = "memory."
"""What the product itself says about a step."""

ALWAYS = frozenset(
    {
        "http.request.method",
        "http.response.status_code",
        "http.route",
        "error.type",
        "exception.type",
        "celery.action",
        "celery.task_name",
        "celery.state",
        "messaging.destination",
    }
)

OUTBOUND = frozenset(
    {
        # Servers that the settings name. Of a request they would be what the caller wrote into the header Host.
        "server.address",
        "server.port",
        "db.system.name",
        "db.system",
        "db.namespace",
        "db.operation.name",
        # Statements as they are written in the code, parameters by name; Redis's with a "?" for every argument.
        "db.query.text",
        "db.redis.args_length",
        "db.redis.pipeline_length",
    }
)


class Discreet(SpanExporter):
    """Hands on to another exporter what may leave."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._exporter.export([discreet(span) for span in spans])

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def discreet(span: ReadableSpan) -> ReadableSpan:
    """The same step with listed attributes only, of exceptions their class, and of a failure that it was one."""
    names = ALWAYS | OUTBOUND if span.kind is SpanKind.CLIENT else ALWAYS
    return ReadableSpan(
        name=span.name,
        context=_anonymous(span.context),
        parent=None if span.parent is None else _anonymous(span.parent),
        resource=span.resource,
        attributes=_listed(span.attributes, names),
        events=[
            Event("exception", _listed(event.attributes, names), event.timestamp)
            for event in span.events
            if event.name == "exception"
        ],
        links=[Link(_anonymous(link.context)) for link in span.links],
        kind=span.kind,
        # Its words are those of an exception, which may quote a row.
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _listed(attributes: Attributes, names: frozenset[str]) -> Mapping[str, AttributeValue]:
    return {key: value for key, value in (attributes or {}).items() if key in names or key.startswith(OWN)}


def _anonymous(context: SpanContext | None) -> SpanContext:
    """Without the state that a caller sent along, which may be any text."""
    assert context is not None  # A step that has ended has one.
    return SpanContext(context.trace_id, context.span_id, context.is_remote, context.trace_flags)
