"""Traces for OpenTelemetry: one from a request over the broker into SQL, Redis and calls of providers.

Off unless the settings name a receiver. Until `start` was called nothing of OpenTelemetry is imported, and every
function here does nothing; so whoever calls them need not ask whether traces are on. What may leave is in `discretion`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from memory_app.errors import Misconfigured

if TYPE_CHECKING:
    from fastapi.telemetry import TelemetryConfig

    from memory_app.tracing.live import Live

MISSING = "MEMORY_TRACING__ENDPOINT is set, but OpenTelemetry is not installed; install memory-app[otel]"

Value = str | int | Sequence[str]

_live: Live | None = None
"""Of this process; made after a fork, as it has a thread that sends."""


def start(part: str, *, endpoint: str | None, ratio: float) -> None:
    """Send traces of this process, the ``part``, to the OTLP receiver at ``endpoint``; None leaves them off.

    ``ratio`` of the traces that begin here are sent, 0 to 1; one that a caller began goes on as the caller decided.
    Raises `Misconfigured` where the extra `otel` is not installed. A second call changes nothing.
    """
    global _live
    if endpoint is None or _live is not None:
        return
    try:
        live = import_module("memory_app.tracing.live")
    except ImportError as error:
        raise Misconfigured(MISSING, field="tracing.endpoint") from error
    _live = live.begin(part, endpoint=endpoint, ratio=ratio)


def start_tasks() -> None:
    """Continue in this worker the traces that messages name."""
    if _live is not None:
        _live.watch_tasks()


def stop() -> None:
    """Send what is left and take all instruments away; harmless when nothing was started."""
    global _live
    if _live is not None:
        _live.end()
        _live = None


def telemetry() -> TelemetryConfig:
    """What FastAPI is to do: begin a trace for a request, or continue the caller's, and nothing else.

    Left alone, it would hand addresses with their queries and the words of exceptions to whatever collects telemetry in
    this process.
    """
    nothing: TelemetryConfig = {
        "tracing": False,
        "metrics": False,
        "logs": False,
        "operation_spans": False,
        "auto_configure": False,
    }
    return nothing if _live is None else {**nothing, **_live.telemetry}


def watch_engine(engine: Engine) -> None:
    """Make each statement of the engine a step of the trace, without its parameters."""
    if _live is not None:
        _live.watch_engine(engine)


def sending(task: str) -> AbstractContextManager[object]:
    """Everything inside sends a message for the ``task``: a step of the trace under way, or the first of a new one."""
    return nullcontext() if _live is None else _live.sending(task)


def working(name: str) -> AbstractContextManager[object]:
    """Everything inside is work that no message brought: the first step of a trace where none is under way."""
    return nullcontext() if _live is None else _live.working(name)


def carrier() -> dict[str, str]:
    """What a message carries along, so that the task goes on with the trace."""
    return {} if _live is None else _live.carrier()


def describe(**facts: Value | None) -> None:
    """Note facts about the step under way: ids and counts, never what somebody sent."""
    if _live is not None:
        _live.describe(facts)


def fields() -> dict[str, str]:
    """The id of the trace under way, as a field for a log line."""
    return {} if _live is None else _live.fields()
