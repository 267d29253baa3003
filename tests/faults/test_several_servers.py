"""Three PostgreSQL servers and four shards: servers die and come back, shards move between them, workers are killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

import all_shards
import pytest
from databases import settings_for
from harness import oracle
from harness.fleet import Member, kept_running
from harness.oracle import Verdict
from harness.stage import Stage
from harness.waiting import wait_until
from own_servers import PostgresServer, postgres_server
from pydantic import SecretStr
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from memory_app.errors import MemoryAppError
from memory_app.local.embedded import Servers
from memory_app.settings import Server, Settings
from memory_app.tenancy import schema

pytestmark = [
    pytest.mark.faults,
    pytest.mark.one_shard,
]

NAMES = ("home", "east", "west")
SHARDS = ("public", "shard_0001", "shard_0002", "shard_0003")
AWAY_SECONDS = 3.0
TURNS = int(os.environ.get("SERVERS_TURNS", "20000"))
SECONDS = TURNS / 100


@pytest.fixture
def places() -> Iterator[dict[str, PostgresServer]]:
    """The servers by name, each with a database."""
    with ExitStack() as running:
        found = {}
        for name in NAMES:
            found[name] = running.enter_context(postgres_server(settings=all_shards.TWO_PHASES))
            found[name].create_database("memory")
        yield found


@pytest.fixture
def settings(places: dict[str, PostgresServer], servers: Servers) -> Settings:
    """Settings that name all of them: shards 1 and 2 are in the east, 3 is in the west."""
    home = settings_for(places["home"], servers)
    others = {
        name: Server(
            url=SecretStr(places[name].url("memory", user="memory_app", password="of the application there")),
            owner_url=SecretStr(places[name].url("memory")),
        )
        for name in NAMES[1:]
    }
    database = home.database.model_copy(update={"servers": others, "connect_timeout_seconds": 2})
    made = home.model_copy(update={"database": database})
    schema.upgrade(made)
    assert schema.add_shards(made, 2, server="east") == (1, 2)
    assert schema.add_shards(made, 1, server="west") == (3,)
    return made


@pytest.fixture
def owner(settings: Settings, places: dict[str, PostgresServer]) -> Iterator[Engine]:
    """The home shard as its owner sees it. New users come to any shard."""
    engine = create_engine(places["home"].url("memory"), poolclass=NullPool)
    yield engine
    engine.dispose()


@dataclass(slots=True)
class World:
    """The stage over three servers."""

    stage: Stage
    places: dict[str, PostgresServer]

    def engines(self) -> list[Engine]:
        """One for each shard, as the owner of its tables, on the server where it is now."""
        with self.stage.owner.connect() as connection:
            listed = connection.execute(
                text("SELECT id, coalesce(server, 'home') AS name FROM public.shards")
            )
            where = {row.id: row.name for row in listed}
        return [
            create_engine(
                self.places[where.get(shard, "home")].url("memory"),
                poolclass=NullPool,
                connect_args={"options": f"-c search_path={name},public"},
            )
            for shard, name in enumerate(SHARDS)
        ]

    def applied(self) -> int:
        return sum(oracle.applied(engine) for engine in self.engines())

    def wait_for_progress(self, turns: int) -> None:
        goal = self.applied() + turns
        under_way = self.stage.loads
        wait_until(
            lambda: self.applied() >= goal or all(load.is_done() for load in under_way),
            f"{turns} more turns",
            seconds=120,
        )

    def crash(self, name: str, *, seconds: float = AWAY_SECONDS) -> None:
        """Kill a server as a power cut would, and start it again."""
        server = self.places[name]
        process = server.process
        assert process is not None
        process.send_signal(signal.SIGQUIT)
        process.wait()
        time.sleep(seconds)
        server.start(all_shards.TWO_PHASES)

    def judge(self, *, seconds: float) -> Verdict:
        """Wait until all took effect, and judge shard by shard."""
        engines = self.engines()
        wait_until(
            lambda: sum(oracle.pending(engine) for engine in engines) == 0,
            "everything accepted is applied",
            seconds=seconds,
        )
        verdicts = []
        entries = list(self.stage.ledger)
        for engine in engines:
            with engine.connect() as connection:
                here = set(connection.execute(text("SELECT name FROM sessions")).scalars())
            mine = [entry for entry in entries if entry.session in here]
            entries = [entry for entry in entries if entry.session not in here]
            verdicts.append(oracle.judge(engine, mine))
        assert entries == [], "sessions that no shard has"
        return Verdict(
            *(sum(getattr(verdict, name) for verdict in verdicts) for name in COUNTS),
            broken=tuple(words for verdict in verdicts for words in verdict.broken),
        )


COUNTS = ("accepted", "applied", "lost", "doubled", "disordered", "dead")


@pytest.fixture
def world(stage: Stage, places: dict[str, PostgresServer]) -> World:
    return World(stage, places)


def move(world: World, shard: int, to: str) -> float | None:
    """Move a shard, and begin again whenever a server is away; for how many seconds nobody could write."""
    deadline = time.monotonic() + 600
    while True:
        try:
            moved = schema.move_shard(world.stage.runtime.settings, shard, to=to)
            break
        except (MemoryAppError, OSError) as error:
            assert time.monotonic() < deadline, error
            if "already" in str(error):
                return None
            time.sleep(1)
    with suppress(MemoryAppError):
        schema.drop_moved(world.stage.runtime.settings, shard)
    return moved.pause_seconds


def finish(world: World, *, turns: int, pauses: Sequence[float | None], name: str, seconds: float) -> None:
    (under_way,) = world.stage.loads
    under_way.retries()
    verdict = world.judge(seconds=seconds)
    told = [f"{pause:.2f} s" for pause in pauses if pause is not None]
    world.stage.report(verdict, 0.0, fault=f"{name}; writers held up for {', '.join(told)}")
    assert verdict.broken == (), verdict.broken
    assert (verdict.lost, verdict.doubled, verdict.disordered, verdict.dead) == (0, 0, 0, 0), verdict
    assert verdict.accepted == turns


def test_F45_a_shard_moves_and_a_server_dies(world: World) -> None:
    """The short form: a move under load, and the server that it went to is killed after it."""
    stage = world.stage
    stage.fleet.finder()
    stage.worker()
    stage.clients(turns=1_200, sessions=40, seconds=12)
    world.wait_for_progress(50)
    pause = move(world, 1, "west")
    world.crash("west")
    finish(world, turns=1_200, pauses=[pause], name="F45 a move, a server killed", seconds=90)


@pytest.mark.slow
@pytest.mark.timeout(int(SECONDS * 12 + 900))
def test_F45_everything_at_once(world: World) -> None:
    """A server dies while a shard moves, the directory's server dies, workers and finders are killed."""
    stage = world.stage
    pauses: list[float | None] = []
    with ExitStack() as running:
        workers = [running.enter_context(kept_running(stage.fleet.worker)) for _ in range(2)]
        finders = [running.enter_context(kept_running(stage.fleet.finder))]
        running.enter_context(kept_running(stage.fleet.beat))
        stage.wait_for(*(generations[0] for generations in workers))
        under_way = stage.clients(turns=TURNS, sessions=80, seconds=SECONDS, most_per_call=8)
        over = threading.Event()

        def strike() -> None:
            """Kill one member of the fleet after the other."""
            turn = 0
            while not over.wait(5):
                generations: list[Member] = [*workers, *finders][turn % 3]
                generations[-1].kill()
                turn += 1

        striking = threading.Thread(target=strike, name="strike", daemon=True)
        striking.start()
        targets = {1: ("west", "home", "east"), 3: ("east", "home", "west")}
        rounds = 0
        while not under_way.is_done():
            shard = (1, 3)[rounds % 2]
            to = targets[shard][rounds // 2 % 3]
            moving = threading.Thread(target=lambda shard=shard, to=to: pauses.append(move(world, shard, to)))
            moving.start()
            time.sleep(0.5)
            world.crash(NAMES[rounds % 3])
            moving.join()
            world.wait_for_progress(100)
            rounds += 1
        over.set()
        striking.join()
        finish(
            world,
            turns=TURNS,
            pauses=pauses,
            name=f"F45 {rounds} moves and servers killed",
            seconds=300,
        )
    assert rounds > 2


def test_F45_a_move_is_short(world: World) -> None:
    """Nothing dies: how long writers are held up."""
    stage = world.stage
    stage.fleet.finder()
    stage.worker()
    stage.clients(turns=600, sessions=40, seconds=6)
    world.wait_for_progress(50)
    pauses = [move(world, 1, "west"), move(world, 3, "home")]
    assert all(pause is not None for pause in pauses)
    finish(world, turns=600, pauses=pauses, name="F45 two moves", seconds=90)
