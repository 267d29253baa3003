"""Play the conversation: send each turn, follow its ticket, read what is remembered, ask for a context window."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from memory_app.demo.conversation import AGENT, MEETINGS, QUESTION, TURN_PACE, USER, Meeting
from memory_app.errors import Permanent, StoreUnavailable
from memory_app.local.stack.api import Api, user_path

PATIENCE_SECONDS = 60.0
"""Longest wait for the last turn; workers need a second or two."""

POLL_SECONDS = 0.05

STAGES = ("accepted", "indexed", "extracted")


@dataclass(frozen=True, slots=True)
class Progress:
    """How many turns have reached each of the `STAGES`; a turn further on counts for the ones before."""

    turns: int
    accepted: int = 0
    indexed: int = 0
    extracted: int = 0


@dataclass(frozen=True, slots=True)
class Remembered:
    """One memory and how many turns stand behind it. ``valid_until`` is set when it is no longer true."""

    kind: str
    text: str
    valid_from: datetime
    valid_until: datetime | None
    evidence: int


@dataclass(frozen=True, slots=True)
class Played:
    """The results of the demo."""

    progress: Progress
    memories: tuple[Remembered, ...]
    question: str
    window: str
    tokens: int
    accept_seconds: tuple[float, ...]
    through_seconds: float
    """From the first turn sent to the last one extracted."""
    context_seconds: float


def play(api: Api, *, on_progress: Callable[[Progress], None]) -> Played:
    """The whole demo over HTTP. Raises `Permanent` when a turn fails, `StoreUnavailable` when one does not arrive."""
    began = time.perf_counter()
    tickets, seconds = _send(api, on_progress)
    turns = _follow(api, tickets, on_progress)
    through = time.perf_counter() - began
    # Timed on its own: this is what a chat waits for.
    context_began = time.perf_counter()
    query = {"query": QUESTION, "session": MEETINGS[-1].name}
    window = api.call("POST", f"{user_path(AGENT, USER)}/context", query)
    return Played(
        progress=_progress(tickets, turns),
        context_seconds=time.perf_counter() - context_began,
        memories=_memories(api, turns),
        question=QUESTION,
        window=window["text"],
        tokens=window["tokens"],
        accept_seconds=tuple(seconds),
        through_seconds=through,
    )


def _send(api: Api, on_progress: Callable[[Progress], None]) -> tuple[list[str], list[float]]:
    """Send the turns one by one, as a chat does; the ids of the tickets, and the seconds that each took."""
    total = sum(len(meeting.turns) for meeting in MEETINGS)
    now = datetime.now(UTC)
    tickets: list[str] = []
    seconds: list[float] = []
    for meeting in MEETINGS:
        path = f"{user_path(AGENT, USER)}/sessions/{meeting.name}/turns"
        for turn in _turns(meeting, now):
            began = time.perf_counter()
            answer = api.call("POST", path, turn)
            seconds.append(time.perf_counter() - began)
            tickets.append(answer["tickets"][0]["id"])
            on_progress(Progress(total, accepted=len(tickets)))
    return tickets, seconds


def _turns(meeting: Meeting, now: datetime) -> Sequence[Mapping[str, str]]:
    start = now - timedelta(days=meeting.days_ago)
    # With the time in the key, so that a second demo in the same folder is a new conversation.
    return [
        {
            "role": role,
            "content": text,
            "at": (start + place * TURN_PACE).isoformat(),
            "idempotency_key": f"demo-{now.isoformat()}-{meeting.name}-{place}",
        }
        for place, (role, text) in enumerate(meeting.turns)
    ]


def _follow(
    api: Api, tickets: Sequence[str], on_progress: Callable[[Progress], None]
) -> Mapping[str, Mapping[str, Any]]:
    """Wait until all tickets are extracted; the last answer to each."""
    latest: dict[str, Mapping[str, Any]] = {}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        for ticket in tickets:
            # A ticket that got there stays there: it is not asked for again.
            if latest.get(ticket, {}).get("stage") != "extracted":
                latest[ticket] = api.call("GET", f"/v1/turns/{ticket}")
        failed = [turn for turn in latest.values() if turn["stage"] == "failed"]
        if failed:
            raise Permanent(f"turn {failed[0]['id']} failed: {failed[0]['reason']}")
        progress = _progress(tickets, latest)
        on_progress(progress)
        if progress.extracted == progress.turns:
            return latest
        if time.monotonic() > deadline:
            raise StoreUnavailable(
                f"only {progress.extracted} of {progress.turns} turns were extracted in time"
            )
        time.sleep(POLL_SECONDS)


def _progress(tickets: Sequence[str], latest: Mapping[str, Mapping[str, Any]]) -> Progress:
    reached = [STAGES.index(latest[ticket]["stage"]) for ticket in tickets]
    return Progress(
        turns=len(tickets),
        accepted=len(reached),
        indexed=sum(stage >= 1 for stage in reached),
        extracted=sum(stage >= 2 for stage in reached),
    )


def _memories(api: Api, turns: Mapping[str, Mapping[str, Any]]) -> tuple[Remembered, ...]:
    """Read all memories made from the turns, once each, in the order in which they became true."""
    ids = dict.fromkeys(memory for turn in turns.values() for memory in turn["memory_ids"])
    memories = [_remembered(api.call("GET", f"/v1/memories/{memory}/why")) for memory in ids]
    return tuple(sorted(memories, key=lambda memory: memory.valid_from))


def _remembered(why: Mapping[str, Any]) -> Remembered:
    memory = why["memory"]
    kind, subtype, until = memory["kind"], memory["subtype"], memory["valid_until"]
    # The subtype may repeat the kind ("fact"); then it is shown once.
    kind_shown = kind if subtype in (None, kind) else f"{kind}, {subtype}"
    return Remembered(
        kind=kind_shown,
        text=memory["text"],
        valid_from=datetime.fromisoformat(memory["valid_from"]),
        valid_until=None if until is None else datetime.fromisoformat(until),
        evidence=len(why["evidence"]),
    )
