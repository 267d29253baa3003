"""One trace from a request over the broker into SQL and calls of a provider, as a collector receives it."""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from free_ports import free_port
from provider_stage import STUB_EMBEDDER, TEMPLATE, ProviderStage, staged, wait_until
from trace_receiver import Receiver, Span, receiving

from memory_app.local.embedded import Servers

CANARY = "kanarienvogel"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
TURNS = f"/v1/agents/{CANARY}-agent/users/{CANARY}-user/sessions/{CANARY}-session/turns"
TURNS_ROUTE = "/v1/agents/{agent}/users/{user}/sessions/{session}/turns"

SETTINGS = {
    **STUB_EMBEDDER,
    "MEMORY_TRACING__RATIO": "1",
    "OTEL_BSP_SCHEDULE_DELAY": "100",
    "MEMORY_HTTP__ALLOW_ANONYMOUS_TENANT": "acme",
    "MEMORY_LOG__FORM": "json",
}


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def stage(
    servers: Servers, template: Servers, receiver: Receiver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProviderStage]:
    """An API and a worker that send their traces to the receiver."""
    folder = tmp_path_factory.mktemp("traces")
    own = {"MEMORY_TRACING__ENDPOINT": receiver.address, "MEMORY_HTTP__PORT": str(free_port())}
    with staged(servers, TEMPLATE, folder, **SETTINGS, **own) as stage:
        stage.worker()
        stage.start([sys.executable, "-m", "memory_app", "serve"])
        wait_until(lambda: ask(stage, "GET", "/health/live")[0] == 200, "the API answers")
        yield stage


def ask(stage: ProviderStage, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{stage.environment['MEMORY_HTTP__PORT']}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **headers},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, None
    except OSError:
        return 0, None


@pytest.fixture(scope="module")
def turn(stage: ProviderStage) -> str:
    """A turn whose caller began the trace, and sent words along wherever there is room for some."""
    status, answer = ask(
        stage,
        "POST",
        f"{TURNS}?note={CANARY}",
        {"role": "user", "content": f"I have a dog called {CANARY} and I live in Lisbon."},
    )
    assert status == 422, "the parameter is unknown"
    status, answer = ask(
        stage,
        "POST",
        TURNS,
        {"role": "user", "content": f"I have a dog called {CANARY} and I live in Lisbon."},
        traceparent=f"00-{TRACE}-{PARENT}-01",
        tracestate=f"vendor={CANARY}",
        baggage=f"word={CANARY}",
    )
    assert status == 202
    turn_id: str = answer["tickets"][0]["id"]
    return turn_id


def spans_of(receiver: Receiver, trace: str) -> list[Span]:
    return [span for span in receiver.spans() if span.trace_id == trace]


@pytest.fixture(scope="module")
def trace(receiver: Receiver, turn: str) -> list[Span]:
    """All steps of that trace, once the turn was embedded."""

    def is_embedded() -> bool:
        spans = spans_of(receiver, TRACE)
        calls = [s for s in spans if s.attributes.get("http.request.method") == "POST"]
        tasks = [s for s in spans if s.name == "run/memory.index_turns"]
        return bool(tasks) and any(s.service == "memory-worker" for s in calls)

    wait_until(is_embedded, "the worker's call of the provider arrives")
    return spans_of(receiver, TRACE)


def test_a_request_its_task_sql_and_provider_are_one_trace(trace: list[Span], turn: str) -> None:
    by_id = {span.span_id: span for span in trace}
    (request,) = [span for span in trace if span.name == f"POST {TURNS_ROUTE}"]
    (task,) = [span for span in trace if span.name == "run/memory.index_turns"]

    assert (request.service, request.parent_id) == ("memory-api", PARENT)
    assert request.attributes["http.response.status_code"] == 202
    assert request.attributes["memory.turns"] == [turn]
    assert task.service == "memory-worker"
    assert task.attributes["memory.turns"] == [turn]
    assert task.attributes["memory.task_id"] in request.attributes["memory.tasks"]

    def is_under(span: Span, ancestor: Span) -> bool:
        while span.span_id != ancestor.span_id:
            if span.parent_id not in by_id:
                return False
            span = by_id[span.parent_id]
        return True

    assert is_under(task, request)
    below = {
        step.name: [span for span in trace if is_under(span, step) and span.service == step.service]
        for step in (request, task)
    }
    for spans in below.values():
        assert {"postgresql", "redis"} <= {system(span) for span in spans}
    assert any(
        "INSERT INTO turns" in span.attributes.get("db.query.text", "") for span in below[request.name]
    )
    calls = [
        s for s in below[task.name] if "http.request.method" in s.attributes and "server.port" in s.attributes
    ]
    # The extraction that follows stands below this task as well, and may have asked the provider meanwhile.
    assert {(s.name, s.attributes["http.response.status_code"]) for s in calls} == {("POST", 200)}


def system(span: Span) -> str | None:
    """The server that a step asked. Instruments of Redis use the older name of the attribute."""
    return span.attributes.get("db.system.name") or span.attributes.get("db.system")


def test_no_word_of_a_caller_is_in_a_trace(
    stage: ProviderStage, receiver: Receiver, trace: list[Span]
) -> None:
    person = f"/v1/agents/{CANARY}-agent/users/{CANARY}-user"
    assert ask(stage, "POST", f"{person}/recall", {"query": f"Who is {CANARY}?"})[0] == 200
    assert ask(stage, "POST", f"{person}/context", {"query": CANARY})[0] == 200
    assert ask(stage, "POST", f"{person}/recall", {CANARY: CANARY})[0] == 422
    assert ask(stage, CANARY.upper(), f"/{CANARY}?{CANARY}={CANARY}", Host=CANARY)[0] in (404, 405)
    assert ask(stage, "DELETE", f"/v1/users/{CANARY}-user")[0] == 202

    wait_until(
        lambda: any("DELETE /v1/users" in span.name for span in receiver.spans()), "the last one arrives"
    )
    names = {span.name for span in receiver.spans()}
    assert {
        "POST /v1/agents/{agent}/users/{user}/recall",
        "POST /v1/agents/{agent}/users/{user}/context",
    } <= names
    for body in receiver.bodies:
        assert CANARY.encode() not in body.lower()


def test_only_requests_and_tasks_begin_a_trace(receiver: Receiver, trace: list[Span]) -> None:
    """Looking for work, signs of life and waiting for messages do not, nor do probes."""
    beginnings = {span.name for span in receiver.spans() if span.parent_id == ""}

    assert all(re.match(r"run/memory\.|(GET|POST|PUT|DELETE|HTTP)( /v1/|$)", name) for name in beginnings)


def test_the_line_of_a_request_and_of_a_task_name_the_trace(stage: ProviderStage, trace: list[Span]) -> None:
    def lines() -> list[dict[str, Any]]:
        texts = [started.log.read_text(errors="replace") for started in stage.started]
        return [json.loads(line) for text in texts for line in text.splitlines() if line.startswith("{")]

    def events() -> set[str]:
        return {line["event"] for line in lines() if line.get("trace_id") == TRACE}

    wait_until(lambda: {"request", "task_done"} <= events(), "both lines are written")
