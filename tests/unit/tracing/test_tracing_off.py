"""Where no receiver is named, tracing loads nothing and does nothing."""

from __future__ import annotations

import subprocess
import sys

LOADED = """
import sys
import memory_app.main.http, memory_app.main.server, memory_app.dispatch.finder
import workers.app, workers.parts, workers.signals, workers.task
from memory_app import tracing

tracing.start("api", endpoint=None, ratio=1.0)
tracing.start_tasks()
tracing.describe(request_id="1")
with tracing.sending("memory.index_turns"), tracing.working("index_turns"):
    assert tracing.fields() == {}
assert tracing.carrier() == {} and tracing.fields() == {}
assert not any(tracing.telemetry().values())
tracing.stop()
# FastAPI and Redis's client load the interface, and what they find of it, by themselves.
OURS = ("opentelemetry.instrumentation", "opentelemetry.exporter", "opentelemetry.sdk.trace", "memory_app.tracing.")
print([name for name in sys.modules if name.startswith(OURS)])
"""

MISSING = """
import sys
sys.modules["opentelemetry.instrumentation.celery"] = None
from memory_app import tracing
from memory_app.errors import Misconfigured

try:
    tracing.start("api", endpoint="http://127.0.0.1:4318", ratio=1.0)
except Misconfigured as error:
    print(error.field, error.message)
"""


def output_of(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_without_a_receiver_no_instrument_is_loaded() -> None:
    assert output_of(LOADED) == "[]"


def test_a_receiver_without_the_extra_is_an_error_that_names_both() -> None:
    assert output_of(MISSING) == (
        "tracing.endpoint MEMORY_TRACING__ENDPOINT is set, but OpenTelemetry is not installed; "
        "install memory-app[otel]"
    )
