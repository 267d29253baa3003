"""Routes for operators: whether the process is alive, whether the pipe is whole, and metrics.

They take no key, so they name nobody and show no text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from memory_app.errors import Transient
from memory_app.hot import answer_drops
from memory_app.ops.answers import LiveAnswer, PartAnswer, PipelineAnswer, ReadyAnswer
from memory_app.ops.health import health, read_pipeline
from memory_app.ops.public_checks import Looks
from memory_app.runtime import Runtime
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["operations"])

_GAUGES = {
    "unindexed": "Accepted turns that are not indexed yet, counted up to 1,000.",
    "oldest_unindexed_seconds": "Age of the oldest of them.",
    "due_sessions": "Sessions that are due for extraction, counted up to 1,000.",
    "oldest_due_seconds": "How long the first of them has been due.",
    "failed": "Turns that were set aside and wait for a replay or a discard, counted up to 1,000.",
}


@router.get("/health/live")
async def live() -> LiveAnswer:
    """The process answers. For load balancers: turns are accepted as long as this and the database work."""
    return LiveAnswer(ok=True)


@router.get(
    "/health/ready", responses={503: {"model": ReadyAnswer, "description": "A part is away or stalled."}}
)
async def ready(request: Request, response: Response) -> ReadyAnswer:
    """The whole pipe: database, broker, and whether work that is due gets done."""
    looks: Looks = request.app.state.looks
    report = await looks.see("ready", partial(health, request.app.state.runtime))
    if not report.is_ok:
        response.status_code = 503
    return ReadyAnswer(
        ok=report.is_ok,
        parts={part.name: PartAnswer(ok=part.is_ok, reason=part.reason) for part in report.parts},
        pipeline=None if report.pipeline is None else PipelineAnswer.model_validate(report.pipeline),
    )


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """Prometheus metrics of this process and of the pipe."""
    looks: Looks = request.app.state.looks
    written = await looks.see("metrics", partial(generate_latest, request.app.state.registry))
    return Response(written, media_type=CONTENT_TYPE_LATEST)


class PipelineCollector(Collector):
    """Asks the database and the broker how the pipe is doing whenever the metrics are read."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def describe(self) -> Iterator[Metric]:
        # A registry may call collect() to learn the names, and would ask the database while the API starts.
        return iter(())

    def collect(self) -> Iterator[Metric]:
        pipeline, database = read_pipeline(self.runtime)
        yield GaugeMetricFamily(
            "memory_database_up", "1 when the database answers.", value=float(database.is_ok)
        )
        if pipeline is not None:
            for name, description in _GAUGES.items():
                yield GaugeMetricFamily(f"memory_{name}", description, value=float(getattr(pipeline, name)))
        yield from self._dropped_messages()
        yield from self._dropped_items()

    def _dropped_messages(self) -> Iterator[CounterMetricFamily]:
        # Without Redis the other metrics are still shown.
        with suppress(Transient):
            family = CounterMetricFamily(
                "memory_dropped_messages",
                "Messages in the queues that could not be handled; back to none after a day without.",
                labels=["reason"],
            )
            for reason, count in self.runtime.drops.read().counts.items():
                family.add_metric([reason], count)
            yield family

    def _dropped_items(self) -> Iterator[CounterMetricFamily]:
        with suppress(Transient):
            family = CounterMetricFamily(
                "memory_dropped_items",
                "Items of language models' answers that were not kept; back to none after a day without.",
                labels=["reason"],
            )
            for reason, count in answer_drops.read(self.runtime.hot).items():
                family.add_metric([reason], count)
            yield family


def pipeline_registry(runtime: Runtime) -> CollectorRegistry:
    """A registry of one application, so that several can live in a process."""
    registry = CollectorRegistry()
    registry.register(PipelineCollector(runtime))
    return registry
