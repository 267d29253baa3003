"""Moves under way: all users change their shard, one after the other, while some of them chat and others ask.

Every second user has a writer; nobody touches the others, so that all of their rows must be the same afterwards. The
clients have a runtime of their own, as other processes have: they learn of a move by meeting it.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import count, cycle
from threading import Event
from typing import Any
from uuid import UUID

from memory_app import MemoryApp, Scope
from memory_app.bench.figures import time_figures
from memory_app.bench.plain_rows import fill
from memory_app.bench.prose import messages
from memory_app.bench.rows import bulk, stored
from memory_app.bench.rows.stored import StoredTurn
from memory_app.bench.stage import Say, drain
from memory_app.db.db import transaction
from memory_app.db.shards import HOME
from memory_app.dispatch import finder
from memory_app.errors import MemoryAppError, Misconfigured
from memory_app.records.records import Ticket
from memory_app.runtime import build
from memory_app.tenancy import schema
from memory_app.tenancy.rows import names
from memory_app.transfer.shards import move_user

AGENT, EARLIER = "assistant", "earlier"
"""The agent, and the session from before the moves."""

SESSION_TURNS = 20
"""So often a writer goes on in a session before the next begins: a move must not be in the way of either."""

EARLIER_TURNS = 5
WRITERS = 4
READERS = 2
PAUSE_SECONDS = 0.005
"""Between two calls of a writer or reader, so that the moves get their share of two cores."""

GIVE_UP_SECONDS = 120.0
"""A turn that was not accepted for so long will not be."""

COMPARED_USERS = 10
"""Users without a writer whose recalls are compared."""

SCORE_TOLERANCE = 1e-6
"""A memory loses as much of its recency in a few seconds."""

QUESTIONS = tuple(messages(3, seed=9))


@dataclass(frozen=True, slots=True)
class Spoken:
    """A turn that was accepted: what was said, with which key, and from when to when the call took."""

    user: str
    session: str
    text: str
    key: str
    ticket: Ticket
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Move:
    """One user's move and its time by the clock of the calls; ``rows`` is None where it failed."""

    user: str
    began: float
    ended: float
    rows: int | None


@dataclass(slots=True)
class Notes:
    """What was seen during the moves. Lists and counters are filled by several threads, one item at a time."""

    spoken: list[Spoken] = field(default_factory=list)
    recall_seconds: list[float] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    """Calls that were refused, and then tried again, by who called and why."""
    moves: list[Move] = field(default_factory=list)
    unequal_recalls: int = 0
    compared_recalls: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Digests of rows by table: of the keys of all rows, and of the whole rows of users whom nobody touches."""

    keys: Mapping[str, list[int]]
    quiet_rows: Mapping[str, list[int]]


@dataclass(frozen=True, slots=True)
class Crowd:
    """Users with a writer, users whom nobody touches, and where each is to go."""

    chatting: tuple[str, ...]
    quiet: tuple[str, ...]
    targets: Mapping[str, int]
    shards: tuple[int, ...]

    @property
    def users(self) -> tuple[str, ...]:
        return tuple(self.targets)


def measure(memory: MemoryApp, *, users: int, memories: int, say: Say) -> Mapping[str, Any]:
    """Move ``users`` users with ``memories`` memories each; ``faults`` counts what was lost, doubled or changed."""
    say(f"writing {users} users with {memories} memories each")
    crowd = _crowd(memory, users, memories)
    earlier = _talk_earlier(memory, crowd)
    drain(memory)
    before = _snapshot(memory, crowd)
    say("moving")
    notes = Notes()
    with closing(build(memory.runtime.settings)) as runtime:
        clients = MemoryApp(runtime, memory.tenant_id)
        _move_all(memory, clients, crowd, notes)
        say("comparing")
        drain(memory)
        after = _snapshot(memory, crowd)
        turns = stored.stored_turns(_owner(memory), memory.tenant_id, crowd.shards)
        repeated = _wrong_repeats(clients, [*earlier, *notes.spoken])
    faults = {
        **turn_faults(turns, [*earlier, *notes.spoken]),
        **_row_faults(before, after),
        "keys that were used again and did not give the first ticket": repeated,
        "recalls that differ after the move": notes.unequal_recalls,
        "users who were not moved": _unmoved(memory, crowd),
    }
    return {
        "size": {"users": users, "memories": memories, "writers": WRITERS, "readers": READERS},
        "rates": _rates(notes, before),
        "times": _times(notes),
        "rows": {table: len(keys) for table, keys in before.keys.items() if keys},
        "refusals": dict(notes.refusals),
        "faults": faults,
    }


def _owner(memory: MemoryApp) -> Any:
    owner = memory.runtime.owner
    if owner is None:
        raise Misconfigured(
            "rows of all shards are read as the owner: set MEMORY_DATABASE__OWNER_URL",
            field="database.owner_url",
        )
    return owner


# --- before ---------------------------------------------------------------------------------------------------


def _crowd(memory: MemoryApp, count: int, memories: int) -> Crowd:
    """Users with the same memories, half of them in the home shard and half in a new one."""
    (other,) = schema.add_shards(memory.runtime.settings, 1)
    users = [f"user {place}" for place in range(count)]
    _fill(memory, users, memories)
    _wait_for_shard(memory, other)
    targets = {}
    for place, user in enumerate(users):
        # By pairs, so that both shards have users with a writer and users without.
        is_away = place % 4 >= 2
        if is_away:
            move_user(memory.runtime, memory.tenant_id, user, to=other)
        targets[user] = HOME if is_away else other
    shards = tuple(shard.id for shard in memory.runtime.directory.shards())
    return Crowd(tuple(users[::2]), tuple(users[1::2]), targets, shards)


def _wait_for_shard(memory: MemoryApp, number: int) -> None:
    """Wait until this process has heard of a new shard."""
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while number not in {shard.id for shard in memory.runtime.directory.shards()}:
        if time.monotonic() > deadline:
            raise Misconfigured(f"shard {number} was made and is not in the list")
        time.sleep(PAUSE_SECONDS)


def _fill(memory: MemoryApp, users: Sequence[str], memories: int) -> None:
    first, *others = users
    source = fill(memory, Scope(AGENT, first), memories)
    with transaction(memory.runtime.engine, memory.tenant_id) as connection:
        ids = [names.ensure_scope(connection, memory.tenant_id, Scope(AGENT, user)).id for user in others]
    for scope_id in ids:
        with transaction(memory.runtime.engine, memory.tenant_id) as connection:
            bulk.copy_memories(connection, source, [scope_id])
            bulk.copy_size(connection, source, [scope_id])


def _talk_earlier(memory: MemoryApp, crowd: Crowd) -> list[Spoken]:
    """A session of each user that is over when the moves begin."""
    spoken = []
    for place, user in enumerate(crowd.users):
        for number, text in enumerate(messages(EARLIER_TURNS, seed=place)):
            key = f"{user} {EARLIER} {number}"
            ticket = memory.record(Scope(AGENT, user, EARLIER), text, idempotency_key=key)
            spoken.append(Spoken(user, EARLIER, text, key, ticket, 0.0, 0.0))
    return spoken


def _snapshot(memory: MemoryApp, crowd: Crowd) -> Snapshot:
    owner, tenant_id = _owner(memory), memory.tenant_id
    return Snapshot(
        keys=stored.key_digests(owner, tenant_id, crowd.shards, users=crowd.users),
        quiet_rows=stored.row_digests(owner, tenant_id, crowd.shards, users=crowd.quiet),
    )


# --- the moves ------------------------------------------------------------------------------------------------


def _move_all(memory: MemoryApp, clients: MemoryApp, crowd: Crowd, notes: Notes) -> None:
    compared = crowd.quiet[:COMPARED_USERS]
    with _busy(memory, clients, crowd, notes):
        for user, target in crowd.targets.items():
            expected = _answers(clients, user) if user in compared else []
            notes.moves.append(_move(memory, user, to=target, notes=notes))
            for answer, former in zip(_answers(clients, user), expected, strict=False):
                notes.compared_recalls += 1
                notes.unequal_recalls += not _are_equal(answer, former)


def _move(memory: MemoryApp, user: str, *, to: int, notes: Notes) -> Move:
    began = time.perf_counter()
    rows = None
    try:
        rows = sum(move_user(memory.runtime, memory.tenant_id, user, to=to).rows.values())
    except MemoryAppError as error:
        notes.refusals[f"move: {error.kind}: {error.message}"] += 1
    return Move(user, began, time.perf_counter(), rows)


@contextlib.contextmanager
def _busy(memory: MemoryApp, clients: MemoryApp, crowd: Crowd, notes: Notes) -> Iterator[None]:
    """Writers, readers and a worker during the block. What one of them raised is raised at its end."""
    over = Event()
    with ThreadPoolExecutor(WRITERS + READERS + 1) as pool:
        at_work: list[Future[None]] = []
        for place in range(WRITERS):
            if users := crowd.chatting[place::WRITERS]:
                at_work.append(pool.submit(_write, clients, users, over, notes))
        for place in range(READERS):
            at_work.append(pool.submit(_read, clients, crowd.chatting, place, over, notes))
        at_work.append(pool.submit(_work, memory, over, notes))
        try:
            yield
        finally:
            over.set()
        for future in at_work:
            future.result()


def _write(memory: MemoryApp, users: Sequence[str], over: Event, notes: Notes) -> None:
    """One thread says all turns of these users, so that it is known which came first."""
    for number in count():
        for user in users:
            if over.is_set():
                return
            notes.spoken.append(_say(memory, user, number, notes))
            over.wait(PAUSE_SECONDS)


def _say(memory: MemoryApp, user: str, number: int, notes: Notes) -> Spoken:
    """Record a turn; what is refused for a while is sent again with its key, as a client does."""
    session = f"session {number // SESSION_TURNS}"
    text, key = f"{user} walked dog number {number}.", f"{user} {number}"
    began = time.perf_counter()
    while True:
        try:
            ticket = memory.record(Scope(AGENT, user, session), text, idempotency_key=key)
            return Spoken(user, session, text, key, ticket, began, time.perf_counter())
        except MemoryAppError as error:
            if time.perf_counter() - began > GIVE_UP_SECONDS:
                raise
            notes.refusals[f"record: {error.kind}: {error.message}"] += 1
            time.sleep(PAUSE_SECONDS)


def _read(memory: MemoryApp, users: Sequence[str], seed: int, over: Event, notes: Notes) -> None:
    for user, text in zip(cycle(users), messages(1_000_000, seed=seed), strict=False):
        if over.wait(PAUSE_SECONDS):
            return
        began = time.perf_counter()
        try:
            memory.recall(Scope(AGENT, user), text)
        except MemoryAppError as error:
            notes.refusals[f"recall: {error.kind}: {error.message}"] += 1
            continue
        notes.recall_seconds.append(time.perf_counter() - began)


def _work(memory: MemoryApp, over: Event, notes: Notes) -> None:
    """Index and extract, as a worker beside the moves does."""
    while not over.wait(PAUSE_SECONDS):
        try:
            finder.drain(memory.runtime)
        except MemoryAppError as error:
            notes.refusals[f"work: {error.kind}: {error.message}"] += 1


def _answers(memory: MemoryApp, user: str) -> list[dict[UUID | str, float]]:
    return [
        {hit.id: hit.score for hit in memory.recall(Scope(AGENT, user), question).memories}
        for question in QUESTIONS
    ]


def _are_equal(answer: Mapping[UUID | str, float], former: Mapping[UUID | str, float]) -> bool:
    return answer.keys() == former.keys() and all(
        abs(score - former[id]) <= SCORE_TOLERANCE for id, score in answer.items()
    )


# --- afterwards -----------------------------------------------------------------------------------------------


def turn_faults(turns: Sequence[StoredTurn], spoken: Sequence[Spoken]) -> dict[str, int]:
    """Pure. ``spoken`` is in the order of each session."""
    stored_ids = Counter(turn.id for turn in turns)
    texts = Counter((turn.user, turn.session, turn.text) for turn in turns if turn.session != EARLIER)
    accepted = {item.ticket.id for item in spoken}
    expected: dict[tuple[str, str], list[tuple[int, UUID, str]]] = {}
    for item in spoken:
        expected.setdefault((item.user, item.session), []).append(
            (item.ticket.seq, item.ticket.id, item.text)
        )
    found: dict[tuple[str, str], list[tuple[int, UUID, str]]] = {}
    for turn in turns:
        found.setdefault((turn.user, turn.session), []).append((turn.seq, turn.id, turn.text))
    sessions = expected.keys() | found.keys()
    return {
        "turns lost": len(accepted - stored_ids.keys()),
        "turns stored and never accepted": len(stored_ids.keys() - accepted),
        "turns doubled": stored_ids.total() - len(stored_ids) + texts.total() - len(texts),
        "sessions out of order": sum(
            found.get(session, []) != expected.get(session) or not _is_gapless(found[session])
            for session in sessions
        ),
        "turns not extracted": sum(not turn.is_extracted for turn in turns),
    }


def _is_gapless(turns: Sequence[tuple[int, UUID, str]]) -> bool:
    return [seq for seq, _, _ in turns] == list(range(1, len(turns) + 1))


def _row_faults(before: Snapshot, after: Snapshot) -> dict[str, int]:
    """Pure."""
    return {
        "rows from before that are gone": sum(
            (Counter(keys) - Counter(after.keys[table])).total() for table, keys in before.keys.items()
        ),
        "rows in two shards": sum(len(keys) - len(set(keys)) for keys in after.keys.values()),
        "rows that differ, of users without a writer": sum(
            len(set(rows) ^ set(after.quiet_rows[table])) for table, rows in before.quiet_rows.items()
        ),
    }


def _wrong_repeats(memory: MemoryApp, spoken: Sequence[Spoken]) -> int:
    """Say the last turn of each session again with its key; how many were not taken for the same."""
    last = {(item.user, item.session): item for item in spoken}
    wrong = 0
    for item in last.values():
        scope = Scope(AGENT, item.user, item.session)
        ticket = memory.record(scope, item.text, idempotency_key=item.key)
        wrong += not (ticket.duplicate and ticket.id == item.ticket.id and ticket.seq == item.ticket.seq)
    return wrong


def _unmoved(memory: MemoryApp, crowd: Crowd) -> int:
    # A directory that has heard of no move: the one of this process noted each of them.
    with closing(build(memory.runtime.settings)) as runtime:
        return sum(
            runtime.directory.shard_of_user(memory.tenant_id, user) != target
            for user, target in crowd.targets.items()
        )


# --- figures --------------------------------------------------------------------------------------------------


def _rates(notes: Notes, before: Snapshot) -> dict[str, object]:
    seconds = sum(move.ended - move.began for move in notes.moves)
    rows = sum(move.rows or 0 for move in notes.moves)
    return {
        "moves/s": round(len(notes.moves) / seconds, 2),
        "rows moved": rows,
        "rows moved/s": round(rows / seconds),
        "turns accepted meanwhile": len(notes.spoken),
        "of them in calls that met the move of their user": sum(_met_move(notes)),
        "recalls meanwhile": len(notes.recall_seconds),
        "recalls compared": notes.compared_recalls,
        "calls refused and tried again": notes.refusals.total(),
        "rows compared": sum(map(len, before.keys.values())),
    }


def _times(notes: Notes) -> dict[str, Any]:
    calls = [(item.ended - item.began, met) for item, met in zip(notes.spoken, _met_move(notes), strict=True)]
    seconds = {
        "move of a user": [move.ended - move.began for move in notes.moves],
        "record, no move of the user": [seconds for seconds, met in calls if not met],
        "record, met the move of the user": [seconds for seconds, met in calls if met],
        "recall": notes.recall_seconds,
    }
    return {name: asdict(time_figures(times)) for name, times in seconds.items() if times}


def _met_move(notes: Notes) -> list[bool]:
    """For each turn that was accepted: whether the call and the move of its user were under way at the same time."""
    moves = {move.user: move for move in notes.moves}
    return [
        item.user in moves and item.began < moves[item.user].ended and item.ended > moves[item.user].began
        for item in notes.spoken
    ]
