"""F41: a person is erased while messages of theirs wait in the broker, imports run and a provider answers late.

Nothing of them comes back, and the receipt counts what the ledger of the test says was stored.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any
from uuid import UUID

import pytest
from celery import Celery
from harness import oracle
from harness.fleet import Member
from harness.stage import Stage
from harness.waiting import wait_until
from queries import rows, tables_with

from memory_app.errors import Erased
from memory_app.forget.forget import forget_user
from memory_app.queue import INGEST, RECORD_TURN, broker_settings
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.tenancy.rows import keys
from memory_app.transfer import snapshots
from memory_app.turns.erased import list_refused
from memory_app.turns.record import record

pytestmark = pytest.mark.faults

WORD = "quokka"
"""Stands in every turn of the person, and in nothing else."""

STORED, LATE, WAITING = 24, 8, 12
"""Turns that are applied, that wait for an answer which comes late, and that wait in the broker."""

IMPORTS, FIRST_IMPORTS, LAST_IMPORTS, IMPORTED = 12, 3, 2, 5
"""Imports, how many of them are over before the erasure and begin after it, and turns of each."""


def test_F41_an_erased_person_does_not_come_back(stage: Stage, api_key: str, tmp_path: Path) -> None:
    late = tmp_path / "late"
    documents = snapshots_of_another_tenant(stage)
    stage.fleet.finder()
    worker = stage.worker(app="harness.rigged", RIGGED_OUTAGE=str(late))
    say(stage, stage.tenant, "mira", STORED)
    oracle.wait_for_quiet(stage.owner, seconds=60)
    # given a worker that has words of the person in hand and asks a provider, and messages that wait meanwhile
    late.write_text("late", encoding="utf-8")
    say(stage, stage.tenant, "mira", LATE)
    wait_until(lambda: is_lent(stage), "a worker has them in hand", seconds=60)
    worker.signal_group(signal.SIGSTOP)
    send(stage, api_key, WAITING)

    # when the person is erased between imports
    begun, is_erased = Event(), Event()
    with ThreadPoolExecutor(1) as pool:
        importing = pool.submit(import_all, stage, documents, begun, is_erased)
        assert begun.wait(120)
        run = forget_user(stage.runtime, stage.tenant, "mira")
        go_on(worker, late)
        counts = counts_of(stage, run.id)
        is_erased.set()
        stored_imports = importing.result(120)

    # then every message and every later import is refused, the late answer is for nobody, and the receipt is right
    wait_until(lambda: len(list_refused(stage.runtime, stage.tenant)) == WAITING, "all refused", seconds=60)
    assert FIRST_IMPORTS <= stored_imports <= IMPORTS - LAST_IMPORTS
    assert counts["turns"] == STORED + LATE + stored_imports * IMPORTED
    assert (counts["users"], counts["scopes"]) == (1, 1 + stored_imports)
    # what was in hand comes to its end
    worker.stop()
    stage.worker()
    oracle.wait_for_quiet(stage.owner, seconds=60)
    assert tables_with(stage.owner, WORD) == []
    assert rows(stage.owner, "SELECT name FROM users") == []
    assert keys_with_word(stage) == []


def say(stage: Stage, tenant: int, user: str, turns: int) -> None:
    record(
        stage.runtime,
        tenant,
        Scope("ada", user, "chat"),
        [NewTurn(Role.USER, f"I have a {WORD} called Rex {number}.") for number in range(turns)],
    )


def snapshots_of_another_tenant(stage: Stage) -> list[dict[str, Any]]:
    """Of people with the same words, who are erased then: ids of one tenant cannot be imported into it again."""
    with stage.owner.begin() as connection:
        tenant = keys.ensure_tenant(connection, "globex")
    documents = []
    for number in range(IMPORTS):
        say(stage, tenant, f"copy-{number}", IMPORTED)
        documents.append(snapshots.export(stage.runtime, tenant, Scope("ada", f"copy-{number}")))
        forget_user(stage.runtime, tenant, f"copy-{number}")
    return documents


def import_all(stage: Stage, documents: Sequence[dict[str, Any]], begun: Event, is_erased: Event) -> int:
    """Import one after the other, each for another agent of the same person; how many were stored."""
    stored = 0
    for number, document in enumerate(documents):
        if number == FIRST_IMPORTS:
            begun.set()
        if number == IMPORTS - LAST_IMPORTS:
            assert is_erased.wait(120)
        try:
            snapshots.load(stage.runtime, stage.tenant, Scope(f"eva-{number}", "mira"), document)
        except Erased:
            continue
        stored += 1
    return stored


def is_lent(stage: Stage) -> bool:
    (row,) = rows(stage.owner, "SELECT count(*) FROM turns WHERE lease_until > now() AND indexed_at IS NULL")
    return int(row[0]) == LATE


def send(stage: Stage, api_key: str, messages: int) -> None:
    """Turns of the person over the broker, where nobody takes them now."""
    settings = stage.runtime.settings
    producer = Celery("producer", set_as_current=False)
    producer.conf.update(broker_settings(settings.broker_address, settings.redis.prefix))
    for number in range(messages):
        fields = {
            "api_key": api_key,
            "agent": "ada",
            "user": "mira",
            "session": "chat",
            "role": "user",
            "content": f"My {WORD} likes jazz, part {number}.",
            "sent_at": datetime.now(UTC).isoformat(),
        }
        producer.send_task(RECORD_TURN, kwargs=fields, queue=INGEST)
    producer.close()


def go_on(worker: Member, late: Path) -> None:
    worker.signal_group(signal.SIGCONT)
    late.unlink()


def counts_of(stage: Stage, run_id: UUID) -> dict[str, int]:
    """What the receipt of the erasure counts, once it was done."""

    def done() -> list[Any]:
        statement = "SELECT report -> 'counts' FROM runs WHERE id = :run AND state = 'done'"
        return rows(stage.owner, statement, run=run_id)

    wait_until(done, "the erasure is done", seconds=60)
    counts: dict[str, int] = done()[0][0]
    return counts


def keys_with_word(stage: Stage) -> list[bytes]:
    """Keys of Redis that hold the word in any form that it is kept in."""
    with stage.redis() as redis:
        return [key for key in redis.scan_iter("*") if WORD.encode() in (redis.dump(key) or b"")]
