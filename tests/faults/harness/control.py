"""The negative control: one plain Celery task per turn with late acknowledgement, as many build it at first.

It writes one row per effect into a table of its own, so that the same storm can be counted in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import psycopg
from celery import Celery

from harness.ledger import Entry, Ledger
from harness.load import Receipt, Send
from harness.oracle import Verdict
from memory_app.records.records import NewTurn
from memory_app.records.scope import Scope

TABLE = """
    CREATE TABLE public.control_effects (place bigserial PRIMARY KEY, session text NOT NULL, number integer NOT NULL)"""

app = Celery("control")
app.conf.update(
    broker_url=os.environ.get("MEMORY_REDIS__URL"),
    broker_transport_options={
        "visibility_timeout": 5,
        "global_keyprefix": os.environ.get("MEMORY_REDIS__PREFIX", ""),
    },
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    task_default_queue="control",
    worker_prefetch_multiplier=4,
    broker_connection_retry_on_startup=True,
)


@app.task(name="control.remember", autoretry_for=(psycopg.Error,), retry_backoff=True)
def remember(session: str, number: int) -> None:
    """One effect, in a transaction."""
    with psycopg.connect(os.environ["CONTROL_DATABASE"]) as connection:
        connection.execute("SELECT pg_sleep(0.003)")
        connection.execute(
            "INSERT INTO public.control_effects (session, number) VALUES (%s, %s)", [session, number]
        )


def publishing(redis_url: str, prefix: str) -> Send:
    """Clients that take a published message for an accepted turn."""
    sender = Celery("control_sender", broker=redis_url, set_as_current=False)
    sender.conf.broker_transport_options = {"visibility_timeout": 5, "global_keyprefix": prefix}

    def send(scope: Scope, turns: Sequence[NewTurn]) -> Sequence[Receipt]:
        receipts = []
        for turn in turns:
            number = int((turn.idempotency_key or "").rpartition("-")[2])
            sender.send_task("control.remember", args=[scope.session, number], queue="control")
            receipts.append((str(number), number))
        return receipts

    return send


def judge(database_url: str, ledger: Ledger) -> Verdict:
    """The same questions as the oracle's: which effects are missing, there twice, or behind a later one."""
    entries: list[Entry] = list(ledger)
    with psycopg.connect(database_url) as connection:
        effects = connection.execute(
            "SELECT session, number FROM public.control_effects ORDER BY place"
        ).fetchall()
    counts: dict[int, int] = {}
    latest: dict[str, int] = {}
    disordered = 0
    for session, number in effects:
        counts[number] = counts.get(number, 0) + 1
        disordered += number < latest.get(session, 0)
        latest[session] = max(latest.get(session, 0), number)
    lost = sum(entry.number not in counts for entry in entries)
    doubled = sum(count - 1 for count in counts.values())
    return Verdict(len(entries), len(counts), lost, doubled, disordered, 0, ())


def effects(database_url: str) -> int:
    """How many effects there are by now."""
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT count(*) FROM public.control_effects").fetchone()
        return int(row[0]) if row else 0
