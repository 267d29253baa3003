"""``memory serve`` without counting anything: what the API costs without its metrics. Only for `overhead`."""

from __future__ import annotations

from typing import Any

from prometheus_client import Counter, Histogram
from prometheus_client.metrics import MetricWrapperBase

from memory_app.main.server import serve
from memory_app.settings import Settings


def _itself(metric: MetricWrapperBase, *_: Any, **__: Any) -> MetricWrapperBase:
    return metric


def _nothing(*_: Any, **__: Any) -> None:
    return None


if __name__ == "__main__":
    for kind, name, stand_in in (
        (MetricWrapperBase, "labels", _itself),
        (Counter, "inc", _nothing),
        (Histogram, "observe", _nothing),
    ):
        setattr(kind, name, stand_in)
    serve(Settings())
