"""A worker that is killed while a receiver answers loses no event, and repeats its message under the same id."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Event

import pytest
from harness import load, oracle
from harness.fleet import Fleet, is_ready
from harness.ledger import Ledger
from harness.waiting import wait_until
from receiver import Reply, receiving
from sqlalchemy import Engine, text

from memory_app.client import verify_webhook
from memory_app.events.webhooks import webhooks
from memory_app.runtime import Runtime
from memory_app.settings import Erasure, Webhooks

pytestmark = pytest.mark.faults

TURNS = 60
SECRET = "a secret of the server that is long enough"
HOOKS = {
    "MEMORY_ERASURE__SECRET": SECRET,
    "MEMORY_WEBHOOKS__ALLOW_PRIVATE": "true",
    "MEMORY_WEBHOOKS__ALLOW_HTTP": "true",
    "MEMORY_WEBHOOKS__PORTS": "[]",
    "MEMORY_WEBHOOKS__BATCH": "10",
    "MEMORY_WEBHOOKS__TOTAL_SECONDS": "3",
}


@pytest.mark.timeout(600)
def test_a_worker_killed_while_it_delivers_loses_nothing(
    fleet: Fleet,
    runtime: Runtime,
    tenant: int,
    owner: Engine,
    ledger: Ledger,
    report: Callable[..., None],
) -> None:
    # given a worker, and a receiver that does not answer the first message
    hooked = replace(
        runtime,
        settings=runtime.settings.model_copy(
            update={
                "webhooks": Webhooks(allow_private=True, allow_http=True, ports=frozenset()),
                "erasure": Erasure.model_validate({"secret": SECRET}),
            }
        ),
    )
    worker = fleet.worker(**HOOKS)
    fleet.finder(**HOOKS)
    wait_until(lambda: is_ready(worker), "the worker is ready", seconds=60)
    with receiving(Reply(until=Event()), Reply()) as receiver:
        new = webhooks.make_webhook(hooked, tenant, url=receiver.url, types=["turn.accepted"])
        calls = load.plan(seed=1, turns=TURNS, sessions=4)
        under_way = load.play(calls, load.in_process(runtime, tenant), ledger, seconds=1, seed=1)
        wait_until(lambda: bool(receiver.messages), "a message is under way", seconds=60)

        # when the worker is killed in the middle of it
        worker.kill()
        fleet.worker(**HOOKS)
        under_way.retries()

        # then each turn is heard of, in order, and the message that was cut comes again as it was
        with owner.connect() as connection:
            turns = {str(id) for id in connection.execute(text("SELECT id FROM turns")).scalars()}
        wait_until(lambda: turns <= set(receiver.targets()), "all were delivered", seconds=180)
        recovery = oracle.wait_for_quiet(owner, seconds=120)
        report(oracle.judge(owner, ledger), recovery)
        first, again = receiver.messages[:2]
        assert first.id == again.id
        assert first.events == again.events
        ids = [event["id"] for message in receiver.messages[1:] for event in message.events]
        assert ids == sorted(set(ids))
        for message in receiver.messages:
            # Their timestamps are those of their tries.
            assert verify_webhook(message.headers, message.body, new.secret, tolerance=600)
    assert len(turns) == TURNS
