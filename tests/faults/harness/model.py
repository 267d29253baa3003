"""A language model for the fleet: the stub provider as a process, and an agent whose turns it is asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from sqlalchemy import Engine, text

from harness.fleet import BESIDE_MODEL, kept_running
from harness.load import AGENT
from harness.stage import Stage, seen_through
from memory_app.agents.agents import AgentChange, change_agent
from memory_app.records.scope import Scope
from memory_app.testing import Mode, StubProcess

CHAT = "/chat/completions"
"""End of the path of a question."""

ASK_SOON = {"extraction": "llm", "after_turns": 4, "idle_seconds": 0.2, "max_age_seconds": 1.0}
"""A policy. In service a model is asked after 8 turns or 20 s."""

TO_BE_READ = r"\[t\d+\][^\[]*"
"""Before a turn's words: it is among those asked about, not among the earlier ones that are shown with them."""

_DONE = text("SELECT count(*) FROM runs WHERE name = 'extract' AND state = 'done'")


@contextmanager
def with_model(stage: Stage, **settings: str) -> Iterator[tuple[Stage, StubProcess]]:
    """The same stage, whose workers ask a stub. Times are short in the proportions of the real ones."""
    with StubProcess() as model:
        environment = {
            "MEMORY_CHAT__BASE_URL": model.base_url,
            "MEMORY_CHAT__MODEL": "small",
            # A good answer is in time on a slow machine, too.
            "MEMORY_CHAT__TOTAL_SECONDS": "10",
            "MEMORY_CHAT__QUESTION_SECONDS": "13",
            "MEMORY_CHAT__REST_SECONDS": "2",
            "MEMORY_EXTRACT__MODEL_LEASE_SECONDS": "40",
            "MEMORY_EXTRACT__RETRY_MAX_SECONDS": "2",
            **settings,
        }
        change = AgentChange(frozenset({"policy"}), policy=dict(ASK_SOON))
        change_agent(stage.runtime, stage.tenant, Scope(AGENT), change=change)
        with seen_through(stage, **environment) as asking:
            yield asking, model


@contextmanager
def workers(stage: Stage, *, app: str = "workers.app") -> Iterator[Callable[[], str]]:
    """One of processes for what computes and one of threads that ask, each started again when it has ended.

    Gives a function that tells what all of them have logged.
    """
    processes = partial(stage.fleet.worker, app=app, queues=BESIDE_MODEL)
    threads = partial(stage.fleet.model_worker, app=app)
    with kept_running(processes) as these, kept_running(threads) as those:
        stage.wait_for(these[0], those[0])
        yield lambda: "".join(worker.said() for worker in (*these, *those))


def calls(model: StubProcess) -> Callable[[], int]:
    """How often the model was asked, when called."""
    return lambda: int(model.stats()["calls"].get("/v1/chat/completions", 0))  # type: ignore[attr-defined]


def bad_answers(model: StubProcess) -> int:
    """Calls that were not answered well."""
    modes = model.stats()["modes"]
    assert isinstance(modes, dict)
    return sum(count for mode, count in modes.items() if mode != Mode.GOOD)


def answers_used(owner: Engine) -> int:
    """Runs whose answer became memories."""
    with owner.connect() as connection:
        return int(connection.execute(_DONE).scalar_one())
