"""The erasure of a person with much in memory while everything that works on them goes on.

Producers send messages, workers index and extract, a sleep cycle and syntheses run, snapshots are imported, and rows
are embedded again. Afterwards the receipt is compared with a ledger that triggers kept, and all columns and keys are
searched, also some time later: a worker or message that comes late must bring nothing back.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count, islice
from threading import Event, Lock
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Engine

from memory_app import MemoryApp, Scope, queue
from memory_app.bench.plain_rows import fill
from memory_app.bench.prose import messages
from memory_app.bench.rows import ledger
from memory_app.bench.stage import Say
from memory_app.db.db import transaction
from memory_app.dispatch import finder
from memory_app.dispatch.job_table import JOBS
from memory_app.errors import MemoryAppError, Misconfigured
from memory_app.forget import forget
from memory_app.hot.keys import KEYS
from memory_app.jobs import jobs
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run
from memory_app.providers.embedders.hashing import HashEmbedder
from memory_app.recall.reembed import reembed
from memory_app.records.records import NewTurn, Role
from memory_app.records.reports import ForgetStage
from memory_app.records.run import OPEN
from memory_app.sleep import synthesis
from memory_app.tenancy.rows import keys
from memory_app.turns.relay import relay

USER, WORD = "mira-quokka", "quokka"
"""The person, and a word that stands in everything that is said about them and nowhere else."""

AGENT, SCHOLAR = "assistant", "scholar"
"""Agents: one reads by rules; of the other one's turns a language model makes syntheses."""

SESSION_TURNS = 100
SCHOLAR_TURNS = 20
BATCH = 100
PRODUCERS, WORKERS = 2, 2
WARM_SECONDS = 3.0
"""All parts are at work for so long before the erasure is asked for."""

PAUSE_SECONDS = 0.02
OTHER_DIMENSIONS = 128
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(slots=True)
class Notes:
    """What the parts saw. Filled by several threads, one item at a time."""

    accepted: list[UUID] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Erased:
    """The run at its end, and seconds: until the caller had an answer, until its turn came, and from then to the end.

    An erasure that was done at once had its turn when it was asked for.
    """

    run: Run
    answer_seconds: float
    wait_seconds: float
    erase_seconds: float


@dataclass(frozen=True, slots=True)
class _Part:
    """One thread: calls ``act`` again and again."""

    name: str
    act: Callable[[], None]


def measure(
    memory: MemoryApp, *, memories: int, turns: int, watch_seconds: float, say: Say
) -> Mapping[str, Any]:
    """Erase one person under load; ``faults`` counts what was left, miscounted or came back.

    The settings must name a language model, or no synthesis takes part.
    """
    owner = _owner(memory)
    with owner.begin() as connection:
        ledger.begin(connection)
    notes = Notes()
    say(f"writing {memories} memories and {turns} turns")
    _prepare(memory, notes, memories=memories, turns=turns)
    parts = _parts(memory, notes)
    with _at_work(parts, notes):
        say(f"{len(parts)} parts at work")
        time.sleep(WARM_SECONDS)
        erased = _erase(memory)
        say(f"erased; watching for {watch_seconds:g} s")
        time.sleep(watch_seconds)
    finder.drain(memory.runtime)
    report = erased.run.report or {}
    counts: Mapping[str, int] = report.get("counts", {})
    receipt = forget.read_erasure(memory.runtime, memory.tenant_id, UUID(str(report["erasure"])))
    return {
        "size": {"memories": memories, "turns": turns, "watched for s": watch_seconds},
        "rates": {
            "seconds until the caller had an answer": round(erased.answer_seconds, 2),
            "seconds until its turn came": round(erased.wait_seconds, 2),
            "seconds of the erasure after its turn came": round(erased.erase_seconds, 2),
            "rows erased": sum(counts.values()),
        },
        "counts": dict(counts),
        "work": dict(notes.done),
        "refusals": dict(notes.refused),
        "faults": {
            **_miscounted(owner, receipt.counts, notes),
            **_left(memory, owner),
        },
    }


def _owner(memory: MemoryApp) -> Engine:
    owner = memory.runtime.owner
    if owner is None:
        raise Misconfigured(
            "the ledger is kept by the owner: set MEMORY_DATABASE__OWNER_URL", field="database.owner_url"
        )
    return owner


# --- before ---------------------------------------------------------------------------------------------------


def _prepare(memory: MemoryApp, notes: Notes, *, memories: int, turns: int) -> None:
    """What is there when the parts begin; of the turns nothing is indexed or extracted yet."""
    fill(memory, Scope(AGENT, USER), memories, word=WORD)
    _record(memory, AGENT, turns, notes, seed=5)
    memory.change_agent(SCHOLAR, policy={"extraction": "llm"})
    _record(memory, SCHOLAR, SCHOLAR_TURNS, notes, seed=6)


def _record(memory: MemoryApp, agent: str, turns: int, notes: Notes, *, seed: int) -> None:
    texts = (f"{text} {WORD}" for text in messages(turns, seed=seed))
    for place in count():
        batch = [NewTurn(Role.USER, text) for text in islice(texts, BATCH)]
        if not batch:
            return
        session = f"session {place * BATCH // SESSION_TURNS}"
        tickets = memory.record_all(Scope(agent, USER, session), batch)
        notes.accepted.extend(ticket.id for ticket in tickets)


# --- the parts at work ----------------------------------------------------------------------------------------


def _parts(memory: MemoryApp, notes: Notes) -> Sequence[_Part]:
    key, sent_at = _key(memory), datetime.now(UTC).isoformat()
    texts = messages(10_000_000, seed=8)
    drawing = Lock()
    numbers = count()
    snapshot = _snapshot(memory)
    other = replace(memory.runtime, embedder=HashEmbedder(OTHER_DIMENSIONS))

    def produce() -> None:
        # All of them were sent before the erasure, as messages are that wait in the broker.
        number = next(numbers)
        # Unlike a count, a generator breaks when two threads ask it at the same moment.
        with drawing:
            text = next(texts)
        message = {
            "api_key": key,
            "agent": AGENT,
            "user": USER,
            "session": f"late {number % 20}",
            "role": "user",
            "content": f"{text} {WORD}",
            "sent_at": sent_at,
        }
        notes.accepted.append(relay(memory.runtime, message, message_id=f"message-{number}").id)

    def sleep() -> None:
        memory.sleep(Scope(AGENT, USER))

    def synthesize() -> None:
        # Only so often: a backlog of requests of our own would say nothing.
        scope = Scope(SCHOLAR, USER, "session 0")
        for type in ("turn", "session"):
            synthesis.ask_for(memory.runtime, memory.tenant_id, scope, type=type)
        synthesis.ask_for(memory.runtime, memory.tenant_id, Scope(SCHOLAR, USER), type="deep")
        time.sleep(1)

    def load() -> None:
        document = json.loads(_ID.sub(_new_ids(), snapshot))
        memory.load(Scope(f"guest {next(numbers)}", USER), document)
        time.sleep(0.5)

    def embed_again() -> None:
        for runtime in (other, memory.runtime):
            reembed(runtime, most_seconds=0.5)

    return (
        *(_Part("messages", produce) for _ in range(PRODUCERS)),
        *(_Part("looks of a worker", lambda: _drain(memory)) for _ in range(WORKERS)),
        # The queue of erasures and sleep has workers of its own.
        _Part("looks of a worker of maintenance", lambda: _maintain(memory)),
        _Part("sleep cycles asked for", sleep),
        _Part("syntheses asked for", synthesize),
        _Part("imports", load),
        _Part("passes of re-embedding", embed_again),
    )


def _drain(memory: MemoryApp) -> None:
    finder.drain(memory.runtime)


def _maintain(memory: MemoryApp) -> None:
    with transaction(memory.runtime.engine, None) as connection:
        due = runs.due(connection, most=10)
    for run in due:
        if queue.ROUTES[JOBS[run.name].task] == queue.MAINTENANCE:
            jobs.perform(memory.runtime, run.run_id, JOBS)


def _key(memory: MemoryApp) -> str:
    with transaction(memory.runtime.engine, memory.tenant_id) as connection:
        return keys.add(connection, rights=("record",)).key


def _snapshot(memory: MemoryApp) -> str:
    """A small scope of somebody else, to be imported for the person."""
    scope = Scope("source", "somebody")
    for place in range(20):
        memory.remember(scope, f"The {WORD} number {place} likes gardening.", kind="fact")
    return json.dumps(memory.export(scope))


def _new_ids() -> Callable[[re.Match[str]], str]:
    """Each id of a snapshot becomes another one, the same wherever it stands: a database holds each id once."""
    ids: dict[str, str] = {}
    return lambda match: ids.setdefault(match[0], str(uuid4()))


@contextmanager
def _at_work(parts: Sequence[_Part], notes: Notes) -> Iterator[None]:
    """The parts, in a thread each, during the block. What one of them raised unexpectedly is raised at its end."""
    over = Event()
    with ThreadPoolExecutor(len(parts)) as pool:
        at_work: list[Future[None]] = [pool.submit(_repeat, part, over, notes) for part in parts]
        try:
            yield
        finally:
            over.set()
        for future in at_work:
            future.result()


def _repeat(part: _Part, over: Event, notes: Notes) -> None:
    while not over.wait(PAUSE_SECONDS):
        try:
            part.act()
            notes.done[part.name] += 1
        except MemoryAppError as error:
            notes.refused[f"{part.name}: {error.kind}"] += 1


# --- the erasure ----------------------------------------------------------------------------------------------


def _erase(memory: MemoryApp) -> Erased:
    began = time.perf_counter()
    run = memory.forget(USER)
    answered = time.perf_counter()
    turn_at = began if run.state not in OPEN else None
    while run.state in OPEN:
        time.sleep(PAUSE_SECONDS)
        run = memory.run(run.id)
        is_erasing = run.state in OPEN and (run.report or {}).get("stage") == ForgetStage.ERASING
        if turn_at is None and is_erasing:
            turn_at = time.perf_counter()
    ended = time.perf_counter()
    # Over between two looks: as good as at once.
    turn_at = ended if turn_at is None else turn_at
    if run.report is None or "erasure" not in run.report:
        raise Misconfigured(f"the erasure failed: {run.reason}")
    return Erased(run, answered - began, turn_at - began, ended - turn_at)


# --- afterwards -----------------------------------------------------------------------------------------------


def _miscounted(owner: Engine, counts: Mapping[str, int], notes: Notes) -> dict[str, int]:
    with owner.connect() as connection:
        sums = ledger.sums(connection)
    return {
        "tables whose count is not that of the rows that stood there": sum(
            counts.get(table, 0) != row.stored for table, row in sums.items()
        ),
        "tables whose count is not that of the rows that went": sum(
            counts.get(table, 0) != row.erased for table, row in sums.items()
        ),
        "accepted turns that are not in the receipt": len(notes.accepted) - counts.get("turns", 0),
    }


def _left(memory: MemoryApp, owner: Engine) -> dict[str, int]:
    """``WORD`` in any column or value of Redis, rows and keys of scopes that are gone, and the person."""
    # The scope that was imported for the person has the word as well.
    memory.forget("somebody")
    with owner.connect() as connection:
        rows = ledger.tables_with(connection, WORD)
        orphans = ledger.rows_of_scopes_gone(connection)
        people = ledger.users_named(connection, USER)
        scopes = ledger.gone_scopes(connection)
    return {
        "rows with a word of the person": sum(rows.values()),
        "rows of scopes that are gone": sum(orphans.values()),
        "people who came back": people,
        "keys in Redis with a word of the person or of their scopes": _keys_left(memory, scopes),
    }


def _keys_left(memory: MemoryApp, scopes: Sequence[int]) -> int:
    hot = memory.runtime.hot
    gone = {hot.scope_key(key, scope) for key in KEYS if key.per_scope for scope in scopes}
    left = 0
    with hot.calling() as redis:
        for name in redis.scan_iter(match=f"{hot.prefix}*"):
            value = redis.dump(name) or b""
            left += name.decode() in gone or WORD.encode() in name + value
    return left
