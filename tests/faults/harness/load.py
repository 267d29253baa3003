"""The load: seeded turns of many sessions, sent by clients that retry with the same key until they are accepted.

Each turn states one thing about the user that no other turn states, so that every effect of it can be counted.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

from harness.ledger import Entry, Ledger
from memory_app.errors import Transient
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.record import record

AGENT = "ada"
THINGS = ("lamp", "clock", "kettle", "violin", "saddle", "anvil", "carpet", "telescope", "teapot", "ladder")
CITIES = ("Paris", "Oslo", "Lima", "Cairo", "Quito", "Hanoi", "Dakar", "Turin", "Perth", "Boston")

Receipt = tuple[str, int]
"""Id and seq, as the answer named them."""

Send = Callable[[Scope, Sequence[NewTurn]], Sequence[Receipt]]
"""Hand turns over; returns only when they are accepted for certain. `Transient` or `OSError` when that is unknown."""


@dataclass(frozen=True, slots=True)
class Call:
    """Turns that one client sends together."""

    scope: Scope
    numbers: tuple[int, ...]
    turns: tuple[NewTurn, ...]


def plan(
    *, seed: int, turns: int, sessions: int, run: str = "run", most_per_call: int = 4
) -> list[list[Call]]:
    """For each session its calls, in order. Two sessions share a user."""
    dice = random.Random(seed)
    calls: list[list[Call]] = [[] for _ in range(sessions)]
    number = 0
    while number < turns:
        place = dice.randrange(sessions)
        size = min(dice.randint(1, most_per_call), turns - number)
        numbers = tuple(range(number + 1, number + size + 1))
        scope = Scope(AGENT, f"{run}-user-{place // 2}", f"{run}-session-{place}")
        calls[place].append(Call(scope, numbers, tuple(turn(run, n, dice) for n in numbers)))
        number += size
    return calls


def turn(run: str, number: int, dice: random.Random) -> NewTurn:
    """A turn from which the rules make exactly one statement, which carries the number."""
    said = f"I bought {dice.choice(THINGS)} number {number} in {dice.choice(CITIES)}."
    return NewTurn(Role.USER, said, idempotency_key=f"{run}-{number}")


def in_process(runtime: Runtime, tenant_id: int) -> Send:
    """Clients inside this process, over the product's own service."""

    def send(scope: Scope, turns: Sequence[NewTurn]) -> Sequence[Receipt]:
        return [(str(ticket.id), ticket.seq) for ticket in record(runtime, tenant_id, scope, turns)]

    return send


@dataclass(frozen=True, slots=True)
class Accepted:
    """When a call that was accepted began, by the monotonic clock, and how long it took."""

    began: float
    seconds: float

    def lies_within(self, start: float, end: float) -> bool:
        return start <= self.began and self.began + self.seconds <= end


@dataclass(frozen=True, slots=True)
class Load:
    """A load under way."""

    clients: ThreadPoolExecutor
    results: list[Future[int]]
    stop: Event
    accepted: list[Accepted]
    """Each call that was accepted, from all clients."""
    failures: list[str]
    """The kind of error of each call that has to be sent again."""

    def is_done(self) -> bool:
        return all(result.done() for result in self.results)

    def retries(self) -> int:
        """Wait for the end; how often a client had to send again. Raises what a client raised."""
        try:
            return sum(result.result() for result in self.results)
        finally:
            self.clients.shutdown()

    def p99(self) -> float:
        """Seconds that 99 of 100 accepted calls took at most."""
        return sorted(call.seconds for call in self.accepted)[int(len(self.accepted) * 0.99)]

    def cancel(self) -> None:
        self.stop.set()
        self.clients.shutdown()


def play(
    calls: Sequence[Sequence[Call]],
    send: Send,
    ledger: Ledger,
    *,
    clients: int = 4,
    seed: int = 0,
    seconds: float = 0,
    patience_seconds: float = 120,
) -> Load:
    """Send the calls from several clients, spread over ``seconds`` (0: as fast as possible), in the background.

    A session belongs to one client, which sends its calls in order and each one until it is accepted.
    """
    executor = ThreadPoolExecutor(clients, thread_name_prefix="client")
    stop = Event()
    accepted: list[Accepted] = []
    failures: list[str] = []
    send = _timed(send, accepted, failures)
    shares: dict[int, list[Sequence[Call]]] = defaultdict(list)
    for place, session in enumerate(calls):
        shares[place % clients].append(session)
    results = [
        executor.submit(
            _client,
            _interleaved(share, random.Random(seed + place)),
            send,
            ledger,
            stop,
            seconds,
            patience_seconds,
        )
        for place, share in shares.items()
    ]
    return Load(executor, results, stop, accepted, failures)


def _timed(send: Send, accepted: list[Accepted], failures: list[str]) -> Send:
    def timed(scope: Scope, turns: Sequence[NewTurn]) -> Sequence[Receipt]:
        began = time.monotonic()
        try:
            receipts = send(scope, turns)
        except (Transient, OSError) as error:
            failures.append(type(error).__name__)
            raise
        accepted.append(Accepted(began, time.monotonic() - began))
        return receipts

    return timed


def _interleaved(sessions: Sequence[Sequence[Call]], dice: random.Random) -> list[Call]:
    places = [place for place, session in enumerate(sessions) for _ in session]
    dice.shuffle(places)
    iterators = [iter(session) for session in sessions]
    return [next(iterators[place]) for place in places]


def _client(
    calls: Sequence[Call], send: Send, ledger: Ledger, stop: Event, seconds: float, patience_seconds: float
) -> int:
    began, retries = time.monotonic(), 0
    for place, call in enumerate(calls):
        due = began + seconds * place / len(calls)
        if stop.wait(max(0.0, due - time.monotonic())):
            return retries
        retries += _until_accepted(call, send, ledger, stop, patience_seconds)
    return retries


def _until_accepted(call: Call, send: Send, ledger: Ledger, stop: Event, patience_seconds: float) -> int:
    deadline, retries = time.monotonic() + patience_seconds, 0
    while True:
        try:
            receipts = send(call.scope, call.turns)
        except (Transient, OSError):
            retries += 1
            if stop.wait(0.2) or time.monotonic() > deadline:
                return retries
            continue
        assert call.scope.session is not None
        ledger.note(
            [
                Entry(turn.idempotency_key or "", call.scope.session, number, id, seq)
                for turn, number, (id, seq) in zip(call.turns, call.numbers, receipts, strict=True)
            ]
        )
        return retries
