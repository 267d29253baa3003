"""A model's answers in every form they come in, what is seen of a turn that failed, turns that stay below the
threshold, and an API that does not wait for any model.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import pytest
from free_ports import free_port
from provider_stage import STUB_EMBEDDER, TEMPLATE, ProviderStage, Started, claims, fact, staged, wait_until
from sqlalchemy import Connection, Engine, event, text

from memory_app.agents.agents import AgentChange, change_agent
from memory_app.local.embedded import Servers
from memory_app.local.stack import commands
from memory_app.local.stack.api import Api, calling
from memory_app.records.records import NewTurn, Role, Stage
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import keys
from memory_app.testing import Mode, Rule
from memory_app.turns.record import record

MOST_CALLS = 2
"""A question and its repair."""
SETTINGS = {**STUB_EMBEDDER, "MEMORY_CHAT__RESPONSE_LIMIT_BYTES": "100000"}


@dataclass(frozen=True, slots=True)
class Fleet:
    """A worker, a finder and the API."""

    stage: ProviderStage
    worker: Started
    address: str
    key: str

    def api(self) -> Any:
        return calling(self.address, self.key)


@pytest.fixture(scope="module")
def fleet(servers: Servers, template: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with staged(servers, TEMPLATE, tmp_path_factory.mktemp("stage"), **SETTINGS) as stage:
        with stage.owner.begin() as connection:
            _, key = keys.create(connection, "acme", rights=keys.RIGHTS)
        port = str(free_port())
        stage.start(commands.serve(), MEMORY_HTTP__PORT=port)
        stage.start(commands.finder())
        fleet = Fleet(stage, stage.worker(), f"http://127.0.0.1:{port}", key)
        wait_until(lambda: answers_http(fleet.address), "the API answers")
        # The worker has started once it is through with a turn.
        stage.settled(stage.tell(stage.agent("llm"), (Role.USER, "I have a cat called Tom.")))
        yield fleet


@pytest.fixture(autouse=True)
def _well(request: pytest.FixtureRequest) -> None:
    """Nothing is left of the test before."""
    if "fleet" in request.fixturenames:
        stage = request.getfixturevalue("fleet").stage
        stage.stub.follow()
        stage.end_what_is_left()
        stage.stub.reset()


def answers_http(address: str) -> bool:
    try:
        return bool(urllib.request.urlopen(f"{address}/health/live", timeout=2).status == 200)
    except OSError:
        return False


def one_fact(mode: Mode) -> dict[str, object]:
    """A fact whose text stands last and is so long that an answer cut at two thirds ends in it."""
    told = fact("", mode)
    del told["text"]
    return {**told, "text": f"Mira likes the {mode} most of all" + ", as she said" * 12 + "."}


def said_well(mode: Mode) -> Rule:
    """The model states a fact about the turn that names ``mode``."""
    return Rule(contains=('"synthesize_turn"', f"like the {mode} "), answer=claims(one_fact(mode)))


def said_badly(mode: Mode, *, times: int | None) -> Rule:
    """The same in the form of ``mode``."""
    return replace(said_well(mode), mode=mode, times=times, size_bytes=200_000)


def turns_of(stage: ProviderStage, scope: Scope, modes: tuple[Mode, ...]) -> tuple[UUID, ...]:
    """A session for each mode, so that one does not wait for the other."""
    return tuple(
        stage.tell(scope, (Role.USER, f"I like the {mode} most of all."), session=mode)[0] for mode in modes
    )


def calls(stage: ProviderStage, mode: Mode) -> int:
    """How often the model was asked about the turn of ``mode``."""
    asked = [json.dumps(seen["body"]) for seen in stage.stub.requests() if "chat" in str(seen["path"])]
    return sum(f"like the {mode} " in body for body in asked)


UNDERSTOOD = (Mode.FENCE, Mode.PREAMBLE, Mode.THINKING, Mode.RENAMED_KEYS, Mode.UNCLOSED)
REPAIRED = (
    *(Mode.BARE_LIST, Mode.ECHOED_SCHEMA, Mode.CUT_JSON, Mode.EMPTY, Mode.NOT_JSON, Mode.WRONG_SCHEMA),
    *(Mode.LENGTH, Mode.REFUSAL_TEXT),
)
NEVER = (*REPAIRED, Mode.REFUSAL, Mode.HUGE)


def test_an_odd_answer_is_read_or_asked_for_once_more(fleet: Fleet) -> None:
    stage, modes = fleet.stage, (*UNDERSTOOD, *REPAIRED)
    stage.stub.follow(*(said_badly(mode, times=1) for mode in modes), *map(said_well, modes))
    scope = stage.agent("llm")

    done = stage.settled(turns_of(stage, scope, modes))

    assert [one.stage for one in done] == [Stage.EXTRACTED] * len(modes)
    assert [len(one.memory_ids) for one in done] == [1] * len(modes)
    asked = {mode: calls(stage, mode) for mode in modes}
    assert asked == {**dict.fromkeys(UNDERSTOOD, 1), **dict.fromkeys(REPAIRED, 2)}


def test_after_a_bad_answer_and_a_bad_repair_the_turn_is_parked_with_why(
    fleet: Fleet,
) -> None:
    stage = fleet.stage
    stage.stub.follow(*(said_badly(mode, times=None) for mode in NEVER))
    scope = stage.agent("llm")

    done = dict(zip(NEVER, stage.settled(turns_of(stage, scope, NEVER)), strict=True))

    assert {one.stage for one in done.values()} == {Stage.FAILED}
    assert all(one.reason and not one.memory_ids for one in done.values())
    assert "refused" in str(done[Mode.REFUSAL].reason)
    for mode in NEVER:
        assert 1 <= calls(stage, mode) <= MOST_CALLS, mode
    assert stage.memories(scope) == []


def test_an_accepted_turn_that_failed_says_so_and_why_everywhere(fleet: Fleet) -> None:
    stage = fleet.stage
    stage.stub.follow(said_badly(Mode.REFUSAL, times=None), said_well(Mode.GOOD))
    scope = stage.agent("llm")
    (turn,) = turns_of(stage, scope, (Mode.REFUSAL,))
    stage.settled([turn])
    (after,) = stage.tell(scope, (Role.USER, f"I like the {Mode.GOOD} most of all."), session=Mode.REFUSAL)
    stage.settled([after])
    with fleet.api() as api:
        told = api.call("GET", f"/v1/turns/{turn}")
        assert told["stage"] == "failed"
        assert "the model refused" in told["reason"]
        assert str(turn) in {row["id"] for row in api.call("GET", "/v1/failed")["turns"]}
        # and the session went on
        assert api.call("GET", f"/v1/turns/{after}")["stage"] == "extracted"
    listed = json.loads(memory(stage, "failed", "--json"))
    assert {row["reason"] for row in listed if row["id"] == str(turn)} == {told["reason"]}
    assert metric(fleet, "memory_failed") == len(listed) > 0


def memory(stage: ProviderStage, *command: str) -> str:
    """What the command line says about the tenant of the stage."""
    done = subprocess.run(
        [sys.executable, "-m", "memory_app", *command, "--tenant", "acme"],
        env=stage.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


def metric(fleet: Fleet, name: str) -> float:
    said = urllib.request.urlopen(f"{fleet.address}/metrics", timeout=10).read().decode()
    return next(float(line.split()[1]) for line in said.splitlines() if line.startswith(f"{name} "))


def patient(stage: ProviderStage, **policy: float) -> Scope:
    """An agent that waits for several turns before its model is asked."""
    scope = stage.agent("llm")
    change = AgentChange(frozenset({"policy"}), policy={"extraction": "llm", "after_turns": 50, **policy})
    change_agent(stage.runtime, stage.tenant, Scope(scope.agent), change=change)
    return scope


def questions(stage: ProviderStage) -> int:
    return sum("chat" in str(seen["path"]) for seen in stage.stub.requests())


def test_turns_below_the_threshold_are_read_together_after_silence(fleet: Fleet) -> None:
    stage = fleet.stage
    scope = patient(stage, idle_seconds=600, max_age_seconds=600)
    ids = stage.tell(scope, (Role.USER, "I have a cat called Tom."), (Role.USER, "My sister lives in Faro."))
    wait_until(lambda: all(stage.ticket(id).stage is Stage.INDEXED for id in ids), "they are indexed")
    assert questions(stage) == 0, "more might come"
    # nobody says or asks anything for ten minutes
    stage.wait_no_longer()
    wait_until(lambda: all(stage.ticket(id).stage is Stage.EXTRACTED for id in ids), "they are read")
    assert questions(stage) == 1


def test_somebody_who_never_falls_silent_is_read_all_the_same(fleet: Fleet) -> None:
    stage = fleet.stage
    scope = patient(stage, idle_seconds=600, max_age_seconds=600)
    ids = [*stage.tell(scope, (Role.USER, "I have a cat called Tom."))]
    ids += stage.tell(scope, (Role.USER, "And another thing: it rains."))
    wait_until(lambda: all(stage.ticket(id).stage is Stage.INDEXED for id in ids), "they are indexed")
    assert questions(stage) == 0, "none of them is old"
    # the first has waited for ten minutes when yet another comes
    with stage.owner.begin() as connection:
        connection.execute(text("UPDATE sessions SET pending_since = pending_since - interval '10 minutes'"))
    ids += stage.tell(scope, (Role.USER, "And another thing: it thunders."))
    wait_until(lambda: all(stage.ticket(id).stage is Stage.EXTRACTED for id in ids), "they are read")
    assert questions(stage) == 1


def test_a_turn_is_accepted_without_a_provider_while_all_of_them_hang(fleet: Fleet) -> None:
    stage, scope = fleet.stage, fleet.stage.agent("llm")
    path = f"/v1/agents/{scope.agent.replace(' ', '%20')}/users/Mira/sessions/chat/turns"
    stage.stub.follow(Rule(Mode.HANG))

    def accepted(api: Api, words: str) -> UUID:
        answer = api.call("POST", path, {"role": "user", "content": words})
        return UUID(answer["tickets"][0]["id"])

    with fleet.api() as api:
        # with the worker frozen nobody but the API could ask
        fleet.worker.signal(signal.SIGSTOP)
        ids = [accepted(api, "I live in Lisbon.")]
        assert stage.stub.stats()["calls"] == {}
        # with the worker at work, its question hangs
        fleet.worker.signal(signal.SIGCONT)
        wait_until(lambda: stage.stub.stats()["in_flight"], "a provider is asked")
        ids += [accepted(api, f"I have {n} cats.") for n in range(20)]
        assert stage.stub.stats()["in_flight"], "all were accepted while it hung"
    # A stub that stops lets go of what hangs.
    stage.stub.stop()
    stage.stub.start()
    assert {one.stage for one in stage.settled(ids, after_outage=True)} == {Stage.EXTRACTED}


@dataclass(slots=True)
class Cost:
    """Statements sent, and rows that they read by scans and by indexes, foreign keys included."""

    statements: int = 0
    rows: int = 0


@contextmanager
def counted(engine: Engine) -> Iterator[Cost]:
    """What the block costs the database."""
    cost = Cost()

    def rows_read(connection: Connection) -> int:
        # Of this backend, since it last reported; it does not within a transaction.
        cursor = connection.connection.cursor()
        cursor.execute("SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables")
        return int((cursor.fetchone() or [0])[0] or 0)

    def begin(connection: Connection, *_: Any) -> None:
        cost.statements += 1
        cost.rows -= rows_read(connection)

    def end(connection: Connection, *_: Any) -> None:
        cost.rows += rows_read(connection)

    event.listen(engine, "before_cursor_execute", begin)
    event.listen(engine, "after_cursor_execute", end)
    try:
        yield cost
    finally:
        event.remove(engine, "before_cursor_execute", begin)
        event.remove(engine, "after_cursor_execute", end)


def count_of(owner: Engine) -> int:
    with owner.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM turns")).scalar_one())


def settle(owner: Engine) -> None:
    """As if all turns had been indexed and extracted."""
    with owner.begin() as connection:
        connection.execute(text("UPDATE turns SET indexed_at = now(), extracted_at = now()"))
        done = "UPDATE sessions SET extracted_seq = next_seq - 1, due_at = NULL, pending_since = NULL"
        connection.execute(text(done))
        connection.execute(text("ANALYZE turns, sessions"))


@pytest.mark.parametrize("mode", ["llm", "rules"])
def test_accepting_costs_the_same_however_much_is_stored(
    runtime: Runtime, tenant: int, owner: Engine, mode: str
) -> None:
    scope = Scope("ada", "Mira", "chat")
    change_agent(
        runtime, tenant, Scope("ada"), change=AgentChange(frozenset({"policy"}), policy={"extraction": mode})
    )
    record(runtime, tenant, scope, [NewTurn(Role.USER, "The first makes the scope and the session.")])

    def cost_of_one() -> Cost:
        turn = NewTurn(Role.USER, "I live in Lisbon.", idempotency_key=f"key-{count_of(owner)}")
        runtime.backlog.admit(runtime.engine, tenant)  # counted every two seconds, and up to a limit
        with counted(runtime.engine) as cost:
            record(runtime, tenant, scope, [turn])
        return cost

    # given turns that were done long ago
    settle(owner)
    before = cost_of_one()
    for _ in range(10):
        record(runtime, tenant, scope, [NewTurn(Role.USER, f"I have {n} cats.") for n in range(500)])
    settle(owner)
    # then the next one costs what it did before
    after = cost_of_one()
    assert count_of(owner) > 5_000
    assert after.statements == before.statements > 0
    assert 0 < after.rows <= before.rows
