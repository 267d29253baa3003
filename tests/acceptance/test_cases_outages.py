"""Providers that are away, refuse the key, hang or want fewer calls, and workers that die: what was accepted waits
and is done afterwards.

Minutes of an outage are made short by ending every pause, as if its time had passed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import pytest
from free_ports import free_port
from provider_stage import STUB_EMBEDDER, TEMPLATE, ProviderStage, answers, claims, fact, staged, wait_until
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

from memory_app.dispatch import finder
from memory_app.errors import MemoryAppError
from memory_app.hot import breaker
from memory_app.hot.breaker import Circuit
from memory_app.local import embedded
from memory_app.local.embedded import Servers
from memory_app.local.servers import embedded_settings
from memory_app.local.stack import commands
from memory_app.local.stack.api import Api, calling
from memory_app.ops.check import Check, State
from memory_app.ops.doctor import diagnose
from memory_app.recall.recall import RecallQuery, recall
from memory_app.records.records import Role, Stage
from memory_app.tenancy import schema
from memory_app.tenancy.rows import keys
from memory_app.testing import Mode, Rule

SETTINGS = {
    **STUB_EMBEDDER,
    "MEMORY_EMBEDDING__TOTAL_SECONDS": "0.5",
    "MEMORY_CHAT__TOTAL_SECONDS": "0.5",
}
SAID = "I moved to Lisbon and I have a dog called Bruno."
COUNTER = count(1)
LIVES = fact("Mira lives in Lisbon.", "moved to Lisbon", subject="Mira", relation="lives_in", object="Lisbon")
ANSWER = answers("synthesize_turn", claims(LIVES))


@pytest.fixture(scope="module")
def stage(
    servers: Servers, template: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProviderStage]:
    with staged(servers, TEMPLATE, tmp_path_factory.mktemp("stage"), **SETTINGS) as stage:
        stage.worker()
        yield stage


@pytest.fixture(autouse=True)
def _well(stage: ProviderStage) -> None:
    """No outage is left from the test before."""
    stage.stub.start()
    stage.stub.follow(ANSWER)
    stage.end_what_is_left()
    stage.stub.reset()


def something_new() -> str:
    """Words that no process has a vector of yet."""
    return f"{SAID} He weighs {next(COUNTER)} kilos."


def pause_of(stage: ProviderStage, turn_id: UUID) -> float:
    """Seconds until a turn that could not be indexed is tried again; 0 while a worker holds it."""
    statement = text(
        """SELECT extract(epoch FROM lease_until - now()) FROM turns
        WHERE id = :id AND starts = 0 AND lease_until > now()"""
    )
    with stage.owner.connect() as connection:
        return float(connection.execute(statement, {"id": turn_id}).scalar() or 0)


def calls(stage: ProviderStage, mode: Mode) -> int:
    modes = stage.stub.stats()["modes"]
    assert isinstance(modes, dict)
    return int(modes.get(mode, 0))


def test_a_rate_limited_embedder_delays_a_turn_and_never_ends_it_empty(
    stage: ProviderStage,
) -> None:
    # given an embedding service that answers 429 to everything
    stage.stub.follow(Rule(Mode.RATE_LIMITED, path="/embeddings"), ANSWER)
    (turn,) = stage.tell(stage.agent("rules"), (Role.USER, something_new()))

    def is_tried_again(times: int) -> bool:
        finder.find_due(stage.runtime)
        return calls(stage, Mode.RATE_LIMITED) >= times

    # then it is tried again, ever more rarely: soon a pause is long
    wait_until(lambda: is_tried_again(3), "it is tried again")
    wait_until(lambda: is_tried_again(3) and pause_of(stage, turn) > 10, "the pauses become long")
    # and however often that time passes, it stays pending
    for _ in range(10):
        before = calls(stage, Mode.RATE_LIMITED)
        stage.wait_no_longer()
        wait_until(lambda n=before: is_tried_again(n + 1), "it is tried after the pause")  # type: ignore[misc]
        found = stage.ticket(turn)
        assert (found.stage, found.reason) == (Stage.ACCEPTED, None)
    # and when the service answers, it is stored
    stage.stub.follow(ANSWER)
    (done,) = stage.settled([turn], after_outage=True)
    assert done.stage is Stage.EXTRACTED
    assert done.memory_ids


def test_an_embedder_that_names_a_time_is_not_asked_before(stage: ProviderStage) -> None:
    words = something_new()
    stage.stub.follow(Rule(Mode.RATE_LIMITED, path="/embeddings", retry_after="3600"), ANSWER)

    def is_given_back(turn: UUID) -> bool:
        finder.find_due(stage.runtime)
        return pause_of(stage, turn) > 600

    def asked_times() -> int:
        return sum(words in json.dumps(seen["body"]) for seen in stage.stub.requests())

    (turn,) = stage.tell(stage.agent("rules"), (Role.USER, words))
    wait_until(lambda: is_given_back(turn), "the turn is given back for as long as was asked")
    before = asked_times()
    assert before
    # a worker that takes what is due takes another turn, and not this one
    (other,) = stage.tell(stage.agent("rules"), (Role.USER, something_new()))
    wait_until(lambda: is_given_back(other), "the other turn is given back as well")
    assert asked_times() == before
    stage.stub.follow(ANSWER)
    assert stage.settled([turn, other], after_outage=True)[0].memory_ids


def test_doctor_names_the_providers_that_rest(stage: ProviderStage) -> None:
    names = ("embedder", "language model")

    def found() -> dict[str, Check]:
        return {check.name: check for check in diagnose(stage.runtime.settings) if check.name in names}

    for name in ("embedding", "chat"):
        for _ in range(Circuit().failures):
            breaker.failed(stage.runtime.hot, name)
    assert [found()[name].state for name in names] == [State.WARN, State.WARN]
    stage.wait_no_longer()
    assert [found()[name].state for name in names] == [State.OK, State.OK]


OUTAGES = {
    "unreachable": None,
    "the key was rotated": Mode.UNAUTHORIZED,
    "no answer in time": Mode.HANG,
    "failing": Mode.SERVER_ERROR,
}


@pytest.mark.parametrize("path", ["/embeddings", "/chat/completions"])
@pytest.mark.parametrize("outage", OUTAGES)
def test_every_turn_survives_an_outage_and_is_done_afterwards(
    stage: ProviderStage, outage: str, path: str
) -> None:
    mode = OUTAGES[outage]
    scope = stage.agent("llm")
    # given a provider that is away while turns of several sessions come in
    if mode is None:
        stage.stub.stop()
    else:
        stage.stub.follow(Rule(mode, path=path), ANSWER)
    sessions = ("morning", "noon", "evening")
    turns = [id for name in sessions for id in stage.tell(scope, (Role.USER, something_new()), session=name)]

    def are_tried() -> bool:
        finder.find_due(stage.runtime)
        return all(stage.ticket(id).attempts >= 2 for id in turns)

    for _ in range(3):
        wait_until(are_tried, "each turn was tried")
        stage.wait_no_longer()
    # then all of them wait, and can be found meanwhile
    assert {stage.ticket(id).stage for id in turns} <= {Stage.ACCEPTED, Stage.INDEXED}
    if mode is not None:
        stage.stub.follow(ANSWER, *([] if path == "/embeddings" else [Rule(mode, path=path)]))
    found = recall(stage.runtime, stage.tenant, scope, query=RecallQuery("What is the dog called?"))
    assert any(hit.text.startswith(SAID) for hit in found.memories)
    # and when it is back, all of them are done
    stage.stub.start()
    stage.stub.follow(ANSWER)
    done = stage.settled(turns, after_outage=True)
    assert {one.stage for one in done} == {Stage.EXTRACTED}
    assert all(one.memory_ids for one in done)
    assert len(stage.memories(scope)) == 1, "three times the same is one memory"


def test_a_killed_workers_turn_is_taken_over_and_the_ticket_says_so(
    servers: Servers, template: Servers, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("killed")
    with staged(servers, TEMPLATE, folder) as stage:
        # given a worker that waits for a model
        stage.stub.follow(Rule(Mode.HANG))
        first = stage.worker()
        (turn,) = stage.tell(stage.agent("llm"), (Role.USER, SAID))
        wait_until(lambda: stage.stub.stats()["in_flight"] == 1, "the model is asked")
        tried = stage.ticket(turn).attempts
        # when it is killed
        stage.worker()
        first.kill()
        # and its lease has ended
        with stage.owner.begin() as connection:
            connection.execute(text("UPDATE sessions SET lease_until = now()"))

        def is_taken_over() -> bool:
            finder.find_due(stage.runtime)
            return stage.ticket(turn).attempts == tried + 1

        # then another begins, which the ticket shows, and ends the work once the model answers
        wait_until(is_taken_over, "another worker has begun")
        assert stage.ticket(turn).stage is Stage.INDEXED
        stage.stub.stop()
        stage.stub.start()
        stage.stub.follow(ANSWER)
        (done,) = stage.settled([turn], after_outage=True)
        assert done.stage is Stage.EXTRACTED
        assert len(done.memory_ids) == 1


TURN = {"role": "user", "content": SAID, "idempotency_key": "once"}


def is_accepted(api: Api) -> bool:
    """Whether the API takes a turn; the key makes asking again harmless."""
    try:
        api.call("POST", "/v1/agents/ada/users/Mira/sessions/chat/turns", TURN)
    except MemoryAppError:
        return False
    return True


def ticket_of(api: Api, turn: Mapping[str, Any]) -> Any:
    return api.call("GET", f"/v1/turns/{turn['id']}")


def renamed(url: str, name: str) -> str:
    """The address of another database of the same server."""
    return make_url(url).set(database=name).render_as_string(hide_password=False)


def test_services_that_start_in_the_wrong_order_wait_for_each_other(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory, template: Servers
) -> None:
    """The worker, the finder and the API are there first; then the tables, and last the embedder."""
    name, port = f"late_{uuid4().hex[:12]}", str(free_port())
    late = replace(
        servers, owner_url=renamed(template.owner_url, name), app_url=renamed(template.app_url, name)
    )
    urls = {"MEMORY_DATABASE__URL": late.app_url, "MEMORY_DATABASE__OWNER_URL": late.owner_url}
    with staged(servers, TEMPLATE, tmp_path_factory.mktemp("late"), **SETTINGS) as stage:
        # given parts that find neither tables nor a provider
        embedded.create_database(servers, name)
        stage.stub.stop()
        parts = [
            stage.start(commands.serve(), MEMORY_HTTP__PORT=port, **urls),
            stage.start(commands.finder(), **urls),
            stage.worker(**urls),
        ]
        for part in parts:
            wait_until(
                lambda log=part.log: b"has not been migrated yet" in log.read_bytes(), "the part waits"
            )  # type: ignore[misc]
        # when the tables come, and the first key
        schema.upgrade(embedded_settings(late))
        owner = create_engine(late.owner_url, poolclass=NullPool)
        with owner.begin() as connection:
            keys.ensure_tenant(connection, "acme")
            _, key = keys.create(connection, "acme", rights=keys.RIGHTS)
        # then turns are accepted, and wait for the embedder
        with calling(f"http://127.0.0.1:{port}", key) as api:
            wait_until(lambda: is_accepted(api), "a turn is accepted")
            (turn,) = api.call("POST", "/v1/agents/ada/users/Mira/sessions/chat/turns", TURN)["tickets"]
            assert turn["stage"] == "accepted"
            # and when it comes as well, the work is done; nobody had to be started again
            stage.stub.start()
            there = replace(stage, owner=owner)

            def is_extracted() -> bool:
                there.wait_no_longer()
                return bool(ticket_of(api, turn)["stage"] == "extracted")

            wait_until(is_extracted, "the turn is extracted")
            assert ticket_of(api, turn)["memory_ids"]
            assert api.call("GET", "/v1/failed")["turns"] == []
        assert [part.running.poll() for part in parts] == [None, None, None]
        embedded.drop_database(servers, name)
