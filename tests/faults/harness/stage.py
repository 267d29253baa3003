"""One test's world: the fleet, the clients, the rows and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pydantic import SecretStr
from redis import Redis
from sqlalchemy import Engine, create_engine
from sqlalchemy.pool import NullPool

from harness import load, oracle
from harness.fleet import Fleet, Member, is_ready
from harness.ledger import Ledger
from harness.load import Call, Load, Send
from harness.oracle import Verdict
from harness.waiting import wait_until
from memory_app.local.embedded import Servers
from memory_app.local.servers import embedded_settings
from memory_app.runtime import Runtime, build
from memory_app.tenancy import schema
from memory_app.tenancy.rows import keys

QUIET_SECONDS = 90
"""The published bound: this long after a fault has ended, everything accepted before has taken effect."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything a test needs; made by the fixture ``stage``."""

    fleet: Fleet
    runtime: Runtime
    tenant: int
    owner: Engine
    ledger: Ledger
    report: Callable[..., None]
    loads: list[Load] = field(default_factory=list)

    def worker(self, **settings: str) -> Member:
        """A worker that is ready for work."""
        worker = self.fleet.worker(**settings)
        self.wait_for(worker)
        return worker

    def wait_for(self, *workers: Member) -> None:
        for worker in workers:
            wait_until(lambda worker=worker: is_ready(worker), "the worker is ready", seconds=40)

    def clients(
        self,
        *,
        turns: int = 400,
        sessions: int = 16,
        seconds: float = 4,
        seed: int = 1,
        run: str = "run",
        send: Send | None = None,
        calls: Sequence[Sequence[Call]] | None = None,
        clients: int = 4,
        most_per_call: int = 4,
    ) -> Load:
        """Clients that record in the background."""
        if calls is None:
            calls = load.plan(seed=seed, turns=turns, sessions=sessions, run=run, most_per_call=most_per_call)
        send = send or load.in_process(self.runtime, self.tenant)
        under_way = load.play(calls, send, self.ledger, seconds=seconds, seed=seed, clients=clients)
        self.loads.append(under_way)
        return under_way

    @property
    def redis_url(self) -> str:
        return self.runtime.settings.redis.url.get_secret_value()

    @contextmanager
    def redis(self) -> Iterator[Redis]:
        with Redis.from_url(self.redis_url, protocol=2) as client:
            yield client

    def wait_for_progress(self, turns: int, *, seconds: float = 60) -> float:
        """Until so many more turns took effect, or all that the clients had to send."""
        goal = oracle.applied(self.owner) + turns

        def is_reached() -> bool:
            is_over = all(under_way.is_done() for under_way in self.loads) and not oracle.pending(self.owner)
            return is_over or oracle.applied(self.owner) >= goal

        return wait_until(is_reached, f"{turns} more turns", seconds=seconds)

    def settle(
        self,
        under_way: Load,
        *,
        seconds: float = QUIET_SECONDS,
        dead: int = 0,
        recovery: float | None = None,
        fault: str | None = None,
        ordered: bool = True,
        model_calls: Callable[[], int] | None = None,
    ) -> Verdict:
        """Wait until all took effect, judge, put the row into the table, and insist.

        The fault has ended now, and recovery is measured from here, unless the test measured it. ``model_calls()``
        is what a language model was asked until then.
        """
        waited = oracle.wait_for_accepted(self.owner, seconds=seconds)
        recovery = waited if recovery is None else recovery
        under_way.retries()
        oracle.wait_for_quiet(self.owner, seconds=seconds)
        verdict = oracle.judge(self.owner, self.ledger, ordered=ordered)
        calls = model_calls() if model_calls else None
        self.report(verdict, recovery, fault=fault, model_calls=calls)
        assert verdict.broken == (), verdict.broken
        assert (verdict.lost, verdict.doubled, verdict.disordered, verdict.dead) == (0, 0, 0, dead), verdict
        assert verdict.accepted > 0
        return verdict


@contextmanager
def seen_through(
    stage: Stage, *, redis_url: str | None = None, database_url: str | None = None, **settings: str
) -> Iterator[Stage]:
    """The same stage, whose clients and processes reach Redis or the database at other addresses."""
    environment = {**stage.fleet.environment, **settings}
    sections: dict[str, object] = {}
    if redis_url is not None:
        environment["MEMORY_REDIS__URL"] = redis_url
        sections["redis"] = stage.runtime.settings.redis.model_copy(update={"url": SecretStr(redis_url)})
    if database_url is not None:
        environment["MEMORY_DATABASE__URL"] = database_url
        sections["database"] = stage.runtime.settings.database.model_copy(
            update={"url": SecretStr(database_url)}
        )
    runtime = build(stage.runtime.settings.model_copy(update=sections))
    fleet = Fleet(environment, stage.fleet.folder, stage.fleet.members)
    try:
        yield replace(stage, runtime=runtime, fleet=fleet)
    finally:
        runtime.close()


@contextmanager
def own_database(stage: Stage, servers: Servers) -> Iterator[Stage]:
    """The same stage on another Postgres, which is migrated first."""
    schema.upgrade(embedded_settings(servers))
    owner = create_engine(servers.owner_url, poolclass=NullPool)
    with owner.begin() as connection:
        tenant = keys.ensure_tenant(connection, "acme")
    try:
        with seen_through(stage, database_url=servers.app_url) as seen:
            yield replace(seen, owner=owner, tenant=tenant)
    finally:
        owner.dispose()
