"""A stage for cases with a provider: a database of its own, the stub provider, and real processes beside them.

Work is short: turns are due after one silent moment, leases and pauses take seconds instead of minutes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import all_shards
from redis import Redis
from sqlalchemy import Engine, text

from memory_app import queue
from memory_app.agents.agents import AgentChange, change_agent
from memory_app.dispatch import finder
from memory_app.hot import breaker
from memory_app.local import embedded
from memory_app.local.embedded import Servers
from memory_app.local.stack import commands
from memory_app.records.records import NewTurn, Role, Stage
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Settings
from memory_app.tenancy.rows import keys
from memory_app.testing import Rule, StubProcess
from memory_app.turns.record import record
from memory_app.turns.rows.stages import TicketRow
from memory_app.turns.tickets import ticket

TEMPLATE = "template_migrated"
PATIENCE_SECONDS = 200.0
QUICK = {
    "MEMORY_EXTRACT__IDLE_SECONDS": "0",
    "MEMORY_EXTRACT__MAX_AGE_SECONDS": "0",
    "MEMORY_EXTRACT__RETRY_BASE_SECONDS": "0.2",
    "MEMORY_FINDER__EVERY_SECONDS": "0.2",
}
STUB_EMBEDDER = {
    "MEMORY_EMBEDDING__PROVIDER": "compatible",
    "MEMORY_EMBEDDING__BASE_URL": "STUB",
    "MEMORY_EMBEDDING__MODEL": "stub-embedder",
    "MEMORY_EMBEDDING__DIMENSIONS": "256",
    "MEMORY_EMBEDDING__ASK_DIMENSIONS": "true",
}
LOCAL_EMBEDDER = {"MEMORY_EMBEDDING__PROVIDER": "hash", "MEMORY_EMBEDDING__DIMENSIONS": "256"}


@dataclass(frozen=True, slots=True)
class Started:
    """A process in a group of its own, and what it says."""

    running: subprocess.Popen[bytes]
    log: Path

    def signal(self, number: signal.Signals) -> None:
        """To the process and its children at the same moment."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.running.pid, number)

    def kill(self) -> None:
        """SIGKILL for the whole group, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        self.running.wait()


@dataclass(slots=True)
class ProviderStage:
    """``runtime`` is a producer's; processes get the same ``environment``. Everything started ends with the stage."""

    runtime: Runtime
    tenant: int
    owner: Engine
    stub: StubProcess
    environment: Mapping[str, str]
    folder: Path
    started: list[Started] = field(default_factory=list)

    def start(self, command: Sequence[str], **settings: str) -> Started:
        path = self.folder / f"{len(self.started)}.log"
        with path.open("wb") as log:
            running = subprocess.Popen(
                command,
                env={**self.environment, **settings},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.started.append(Started(running, path))
        return self.started[-1]

    def worker(self, **settings: str) -> Started:
        name = f"worker{len(self.started)}-{os.getpid()}"
        return self.start(commands.worker(queue.QUEUES, name=name, concurrency=2), **settings)

    def agent(self, mode: str) -> Scope:
        """A new person with a new agent whose turns are extracted by ``mode``."""
        scope = Scope(f"Nova {uuid4().hex[:6]}", "Mira")
        change = AgentChange(frozenset({"policy"}), policy={"extraction": mode})
        change_agent(self.runtime, self.tenant, Scope(scope.agent), change=change)
        return scope

    def tell(self, scope: Scope, *said: tuple[Role, str], session: str = "chat") -> tuple[UUID, ...]:
        """Record turns of one session in one call."""
        turns = [NewTurn(role, words) for role, words in said]
        place = Scope(scope.agent, scope.user, session)
        return tuple(one.id for one in record(self.runtime, self.tenant, place, turns))

    def ticket(self, turn_id: UUID) -> TicketRow:
        return ticket(self.runtime, self.tenant, turn_id)

    def settled(self, ids: Sequence[UUID], *, after_outage: bool = False) -> tuple[TicketRow, ...]:
        """The tickets, once all are extracted or failed; what is due is hinted at meanwhile.

        ``after_outage``: who met its end only now need not wait for long either.
        """

        def are_settled() -> bool:
            if after_outage:
                self.wait_no_longer()
            finder.find_due(self.runtime)
            return all(self.ticket(id).stage in (Stage.EXTRACTED, Stage.FAILED) for id in ids)

        wait_until(are_settled, "all turns are extracted or failed")
        return tuple(self.ticket(id) for id in ids)

    def wait_no_longer(self) -> None:
        """Time passes: every pause after a failure is over, and the circuits are closed again."""
        for name in ("chat", "embedding"):
            breaker.succeeded(self.runtime.hot, name)
        with self.owner.begin() as connection:
            connection.execute(text("UPDATE sessions SET due_at = now() WHERE due_at > now()"))
            connection.execute(
                text("UPDATE turns SET lease_until = NULL WHERE indexed_at IS NULL AND starts = 0")
            )

    def end_what_is_left(self) -> None:
        """No work of the test before asks a provider any more: all its turns are extracted or failed."""
        statement = text(
            """SELECT EXISTS (SELECT FROM turns WHERE indexed_at IS NULL AND failed_at IS NULL)
            OR EXISTS (SELECT FROM sessions WHERE due_at IS NOT NULL OR lease_until > now())"""
        )

        def is_over() -> bool:
            self.wait_no_longer()
            finder.find_due(self.runtime)
            with self.owner.connect() as connection:
                return not connection.execute(statement).scalar()

        wait_until(is_over, "what the test before left is done")

    def memories(self, scope: Scope) -> list[Any]:
        """Kind, text and origin of what the agent remembers; questions that were asked do not count."""
        statement = text(
            """SELECT m.kind, m.text, m.origin FROM memories m
            JOIN scopes s ON s.id = m.scope_id JOIN agents a ON a.id = s.agent_id
            WHERE a.name = :agent AND m.kind <> 'query' ORDER BY m.id"""
        )
        with self.owner.connect() as connection:
            return list(connection.execute(statement, {"agent": scope.agent}).all())


def wait_until(condition: Callable[[], object], description: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {description}"
        time.sleep(0.05)


def answers(schema: str, answer: object, **more: Any) -> Rule:
    """What the model says when it is asked for ``schema``."""
    return Rule(contains=f'"{schema}"', answer=answer, **more)


def claims(*facts: Mapping[str, object]) -> dict[str, object]:
    """An answer about turns that states these facts and nothing else."""
    return {"insights": [], "identity_notes": [], "topics": [], "tones": [], "facts": list(facts)}


def fact(said: str, *evidence: str, **more: object) -> dict[str, object]:
    """A fact that names the turns in which the words of ``evidence`` stand."""
    usual = {"subtype": "fact", "subject": None, "relation": None, "object": None, "when": None}
    rest = {"importance": 6, "confidence": 0.9, "entities": []}
    return {"text": said, "evidence": [f"@{words}" for words in evidence], **usual, **rest, **more}


@contextlib.contextmanager
def staged(servers: Servers, template: str, folder: Path, **settings: str) -> Iterator[ProviderStage]:
    """The stage without any process but the stub; ``settings`` are environment variables of all of them."""
    name = f"test_{uuid4().hex[:12]}"
    made = embedded.create_database(servers, name, template=template)
    owner = all_shards.owner_engine(made.owner_url)
    with StubProcess() as stub, contextlib.ExitStack() as ending:
        ending.callback(embedded.drop_database, servers, name)
        ending.callback(owner.dispose)
        environment = _environment(made, stub, settings)
        runtime = build(_settings_of(environment))
        ending.callback(runtime.close)
        ending.callback(_forget_keys, runtime)
        with owner.begin() as connection:
            tenant = keys.ensure_tenant(connection, "acme")
        stage = ProviderStage(runtime, tenant, owner, stub, environment, folder)
        ending.callback(_end, stage)
        yield stage


def _environment(made: Servers, stub: StubProcess, settings: Mapping[str, str]) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    return {
        **own,
        "MEMORY_DATABASE__URL": made.app_url,
        "MEMORY_DATABASE__OWNER_URL": made.owner_url,
        "MEMORY_REDIS__URL": made.redis_url,
        "MEMORY_REDIS__PREFIX": f"test-{uuid4().hex[:12]}:",
        "MEMORY_CHAT__BASE_URL": stub.base_url,
        "MEMORY_CHAT__MODEL": "small",
        "PYTHONUNBUFFERED": "1",
        **LOCAL_EMBEDDER,
        **QUICK,
        **{name: value.replace("STUB", stub.base_url) for name, value in settings.items()},
    }


def _settings_of(environment: Mapping[str, str]) -> Settings:
    """As a process reads them."""
    sections: dict[str, dict[str, str]] = {}
    for name, value in environment.items():
        section, _, key = name.removeprefix("MEMORY_").lower().partition("__")
        if name.startswith("MEMORY_") and key:
            sections.setdefault(section, {})[key] = value
    return Settings(_env_file=None, **sections)


def _end(stage: ProviderStage) -> None:
    for process in stage.started:
        process.kill()


def _forget_keys(runtime: Runtime) -> None:
    redis = runtime.settings.redis
    with Redis.from_url(redis.url.get_secret_value(), protocol=2) as client:
        for key in client.scan_iter(f"{redis.prefix}*"):
            client.delete(key)
