"""Say in one sentence what a turn that is neither extracted nor failed waits for.

The nearest cause counts: a worker has it in hand, a provider's circuit is open, the tenant's cap is reached, its time
has not come, no worker is there, other turns are before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from memory_app import queue
from memory_app.db.db import transaction
from memory_app.errors import MemoryAppError, NotFound
from memory_app.hot import breaker
from memory_app.jobs import life
from memory_app.jobs.life import Heard, worker_of
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import ExtractionMode, parse_policy
from memory_app.tenancy.shards import where_stored
from memory_app.turns.routing import queue_of
from memory_app.turns.rows import progress
from memory_app.turns.rows.progress import COUNT_LIMIT, Progress

_CAP = "the tenant's cap for a day (MEMORY_CHAT__TOKENS_PER_DAY, MEMORY_CHAT__DOLLARS_PER_DAY)"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the work depends on. ``heard`` is None while Redis is away; the rests are seconds, 0 for none."""

    heard: Mapping[str, Heard] | None
    embedder_rest_seconds: float
    model_rest_seconds: float
    has_model: bool


@where_stored
def waiting_for(runtime: Runtime, tenant_id: int, turn_id: UUID) -> str:
    """The sentence for a turn that is neither extracted nor failed; `NotFound` when it is gone."""
    with transaction(runtime.engine, tenant_id) as connection:
        state = progress.read(connection, turn_id)
    if state is None:
        raise NotFound(f"no turn {turn_id}", field="id")
    return explain(state, _surroundings(runtime))


def explain(state: Progress, around: Surroundings) -> str:
    """The nearest cause."""
    return _extraction(state, around) if state.is_indexed else _indexing(state, around)


def _indexing(state: Progress, around: Surroundings) -> str:
    lease_seconds = state.lease_seconds or 0
    # A lease with a start is a worker's; one without is the pause after a failure.
    if lease_seconds > 0 and state.is_started:
        return "the worker that is indexing it"
    if around.embedder_rest_seconds > 0:
        return _rests("the embedder", around.embedder_rest_seconds)
    if lease_seconds > 0:
        return _next_try(lease_seconds, state.failures)
    return _worker(queue.INGEST, around, before=state.turns_before, noun="turn")


def _extraction(state: Progress, around: Surroundings) -> str:
    policy = parse_policy(state.policy)
    if state.parked_reason is not None:
        return f"a replay or a discard of the turn that stopped its session (GET /v1/failed): {state.parked_reason}"
    if (state.session_lease_seconds or 0) > 0:
        return "the worker that is extracting its session"
    if policy.extraction is ExtractionMode.OFF or not policy.memory:
        return "nothing: the agent's policy says that it is not extracted"
    asks_model = policy.extraction is ExtractionMode.LLM
    if asks_model:
        obstacle = _model_obstacle(around)
        if obstacle is not None:
            return obstacle
    seconds = state.session_due_seconds or 0
    if seconds > 0 and state.waits_for_cap:
        return f"{_CAP}: to be raised, or for {seconds:.0f} s until a new day begins"
    if seconds > 0 and state.session_failures:
        return _next_try(seconds, state.session_failures)
    if seconds > 0:
        return f"its session to fall silent or to grow, for {seconds:.0f} s at most"
    name = queue_of(asks_model=asks_model, is_suspect=state.is_session_started)
    return _worker(name, around, before=state.sessions_before, noun="session")


def _model_obstacle(around: Surroundings) -> str | None:
    if not around.has_model:
        return "a language model: the agent's policy asks one and none is set (MEMORY_CHAT__BASE_URL)"
    if around.model_rest_seconds > 0:
        return _rests("the language model", around.model_rest_seconds)
    return None


def _rests(provider: str, seconds: float) -> str:
    return f"{provider}, which failed too often: the circuit is open for {seconds:.0f} s"


def _next_try(seconds: float, failures: int) -> str:
    return f"its next try in {seconds:.0f} s, after {failures} that failed"


def _worker(name: str, around: Surroundings, *, before: int, noun: str) -> str:
    if around.heard is None:
        return "Redis, which is away; a finder does the work meanwhile"
    workers = around.heard[worker_of(name)]
    if not workers.living:
        silence = f" for {workers.silent[0].age_seconds:.0f} s" if workers.silent else ""
        return f"a worker of queue {name}; none has been heard{silence}"
    if before == 1:
        return f"the backlog: 1 {noun} before it"
    if before:
        # Counting stops at the limit, so that a long backlog costs no more than a short one.
        count = f"{before:,}" if before < COUNT_LIMIT else f"{COUNT_LIMIT:,} or more"
        return f"the backlog: {count} {noun}s before it"
    return f"a worker of queue {name}; it is next"


def _surroundings(runtime: Runtime) -> Surroundings:
    hot = runtime.hot
    has_model = runtime.chat is not None
    try:
        return Surroundings(
            heard=life.listen(hot),
            embedder_rest_seconds=breaker.rest_left(hot, "embedding"),
            model_rest_seconds=breaker.rest_left(hot, "chat"),
            has_model=has_model,
        )
    except MemoryAppError:
        return Surroundings(
            heard=None, embedder_rest_seconds=0.0, model_rest_seconds=0.0, has_model=has_model
        )
