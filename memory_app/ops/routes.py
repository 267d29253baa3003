"""Routes for operators: whether the process is alive, whether the pipe is whole, and metrics.

They take no key, so they name nobody and show no text.
"""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request, Response
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from memory_app.ops.answers import LiveAnswer, PartAnswer, PipelineAnswer, ReadyAnswer
from memory_app.ops.health import health
from memory_app.ops.public_checks import Looks
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["operations"])


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
    """Prometheus metrics of the requests to this process, of the pipe, and of all processes together."""
    looks: Looks = request.app.state.looks
    written = await looks.see("metrics", partial(generate_latest, request.app.state.registry))
    return Response(written, media_type=CONTENT_TYPE_LATEST)
