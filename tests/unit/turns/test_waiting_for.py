"""What a turn waits for: the nearest cause, in one sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory_app.hot.life import Sign
from memory_app.jobs.life import WORKERS, Heard
from memory_app.turns.rows.progress import COUNT_LIMIT, Progress
from memory_app.turns.waiting_for import Surroundings, explain

LIVING = Heard((Sign("host:1", 1.0, 0),), ())
SILENT = Heard((), (Sign("host:1", 70.0, 0),))
WELL = Surroundings(dict.fromkeys(WORKERS, LIVING), 0.0, 0.0, has_model=True)
LLM = {"extraction": "llm"}

ACCEPTED = Progress(
    is_indexed=False,
    is_started=False,
    failures=0,
    lease_seconds=None,
    turns_before=0,
    parked_reason=None,
    waits_for_cap=False,
    session_failures=0,
    is_session_started=False,
    session_due_seconds=-1.0,
    session_lease_seconds=None,
    sessions_before=0,
    policy={},
)
INDEXED = replace(ACCEPTED, is_indexed=True)


def without(queue: str, heard: Heard) -> Surroundings:
    return replace(WELL, heard={**dict.fromkeys(WORKERS, LIVING), f"worker-{queue}": heard})


@pytest.mark.parametrize(
    ("state", "around", "sentence"),
    [
        (ACCEPTED, WELL, "a worker of queue ingest; it is next"),
        (ACCEPTED, without("ingest", SILENT), "a worker of queue ingest; none has been heard for 70 s"),
        (ACCEPTED, without("ingest", Heard()), "a worker of queue ingest; none has been heard"),
        (ACCEPTED, without("model", SILENT), "a worker of queue ingest; it is next"),
        (replace(ACCEPTED, turns_before=1_234), WELL, "the backlog: 1,234 turns before it"),
        (
            replace(ACCEPTED, turns_before=COUNT_LIMIT),
            WELL,
            "the backlog: 10,000 or more turns before it",
        ),
        (replace(ACCEPTED, is_started=True, lease_seconds=40.0), WELL, "the worker that is indexing it"),
        (replace(ACCEPTED, failures=2, lease_seconds=8.0), WELL, "its next try in 8 s, after 2 that failed"),
        (
            replace(ACCEPTED, failures=2, lease_seconds=8.0),
            replace(WELL, embedder_rest_seconds=41.0),
            "the embedder, which failed too often: the circuit is open for 41 s",
        ),
        (ACCEPTED, replace(WELL, heard=None), "Redis, which is away; a finder does the work meanwhile"),
        (INDEXED, WELL, "a worker of queue ingest; it is next"),
        (replace(INDEXED, policy=LLM), WELL, "a worker of queue model; it is next"),
        (
            replace(INDEXED, policy=LLM),
            without("model", SILENT),
            "a worker of queue model; none has been heard for 70 s",
        ),
        (
            replace(INDEXED, policy=LLM, is_session_started=True),
            without("maintenance", Heard()),
            "a worker of queue maintenance; none has been heard",
        ),
        (replace(INDEXED, sessions_before=3), WELL, "the backlog: 3 sessions before it"),
        (replace(INDEXED, session_lease_seconds=9.0), WELL, "the worker that is extracting its session"),
        (
            replace(INDEXED, policy=LLM),
            replace(WELL, model_rest_seconds=55.0),
            "the language model, which failed too often: the circuit is open for 55 s",
        ),
        (replace(INDEXED), replace(WELL, model_rest_seconds=55.0), "a worker of queue ingest; it is next"),
        (
            replace(INDEXED, policy=LLM),
            replace(WELL, has_model=False),
            "a language model: the agent's policy asks one and none is set (MEMORY_CHAT__BASE_URL)",
        ),
        (
            replace(INDEXED, policy=LLM, session_due_seconds=12.0),
            WELL,
            "its session to fall silent or to grow, for 12 s at most",
        ),
        (
            replace(INDEXED, policy=LLM, session_due_seconds=12.0, session_failures=1),
            WELL,
            "its next try in 12 s, after 1 that failed",
        ),
        (
            replace(INDEXED, policy={"extraction": "off"}, session_due_seconds=None),
            WELL,
            "nothing: the agent's policy says that it is not extracted",
        ),
        (
            replace(INDEXED, parked_reason="turn 3 failed"),
            WELL,
            "a replay or a discard of the turn that stopped its session (GET /v1/failed): turn 3 failed",
        ),
    ],
)
def test_the_nearest_cause_is_told(state: Progress, around: Surroundings, sentence: str) -> None:
    assert explain(state, around) == sentence
