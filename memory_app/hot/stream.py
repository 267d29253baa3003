"""The newest turns of a scope, by id. Their text is read from Postgres, so that Redis never holds it.

The list exists only when it is whole. Whoever finds none reads the table and rebuilds; each turn
changes the epoch, and a rebuild whose rows were read under an older epoch is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

from redis.client import Pipeline

from memory_app.hot.client import Commands, Hot
from memory_app.hot.keys import STREAM, STREAM_EPOCH, milliseconds


@dataclass(frozen=True, slots=True)
class Entry:
    """One turn: its id, the key of its session and its place there."""

    id: UUID
    session_id: int
    seq: int


@dataclass(frozen=True, slots=True)
class Newest:
    """``entries`` are oldest first. Unless ``is_whole``, turns may be missing: read the table instead.

    ``token`` is for `rebuild`, which must be given what the table held after this was read.
    """

    entries: tuple[Entry, ...]
    is_whole: bool
    token: str


def append(hot: Hot, scope_id: int, entries: Sequence[Entry]) -> None:
    """Add turns, in order of acceptance, after their commit. Raises `HotUnavailable`."""
    if not entries:
        return
    with hot.calling() as redis:
        pipeline = redis.pipeline()
        put_to(pipeline, hot, scope_id, entries)
        pipeline.execute()


def put_to(pipeline: Pipeline, hot: Hot, scope_id: int, entries: Sequence[Entry]) -> None:
    """Have ``pipeline`` add turns, of which there is at least one.

    The epoch first: a rebuild that read the table before is refused from then on, so the rest needs no MULTI.
    """
    key = hot.scope_key(STREAM, scope_id)
    pipeline.set(hot.scope_key(STREAM_EPOCH, scope_id), uuid4().hex, px=milliseconds(STREAM_EPOCH.life))
    # LPUSHX adds to a list that is there and never begins one: begun after a flush, it would pass for the whole.
    pipeline.lpushx(key, *[_line(entry) for entry in entries[-hot.stream_turns :]])
    pipeline.ltrim(key, 0, hot.stream_turns - 1)
    pipeline.pexpire(key, milliseconds(hot.stream_life))


@dataclass(frozen=True, slots=True)
class Listed:
    """The list of a scope as it stands, newest first; ``token`` as in `Newest`."""

    lines: tuple[bytes, ...]
    token: str


def ask(hot: Hot, scope_id: int) -> Commands[Listed]:
    """The list of a scope, which `newest_of` reads."""
    nonce = uuid4().hex

    def put_to(pipeline: Pipeline) -> None:
        epoch = hot.scope_key(STREAM_EPOCH, scope_id)
        pipeline.set(epoch, nonce, nx=True, get=True, px=milliseconds(STREAM_EPOCH.life))
        pipeline.lrange(hot.scope_key(STREAM, scope_id), 0, -1)

    def read(replies: Sequence[Any]) -> Listed:
        before, lines = replies
        return Listed(tuple(lines), nonce if before is None else before.decode("ascii", "replace"))

    return Commands(2, put_to, read)


def newest_of(hot: Hot, listed: Listed, *, n: int, session_id: int | None) -> Newest:
    """The last ``n`` turns of the scope, or of one session of it."""
    lines = listed.lines
    entries = [_entry(line) for line in reversed(lines)]
    turns = _in_order(entry for entry in entries if entry is not None)
    if session_id is not None:
        turns = [turn for turn in turns if turn.session_id == session_id]
    # A list below its limit was never cut: it holds every turn of the scope.
    holds_all = 0 < len(lines) < hot.stream_turns
    # Turns of a session are counted from 1, so that nothing stands before this one.
    begins = session_id is not None and bool(turns) and turns[0].seq == 1
    reaches_back = len(turns) >= n or holds_all or begins
    is_readable = bool(lines) and None not in entries
    is_whole = is_readable and reaches_back and not has_gaps(turns)
    # A slice from -0 on would be the whole list.
    return Newest(tuple(turns[-n:]) if n else (), is_whole, listed.token)


def rebuild(hot: Hot, scope_id: int, entries: Sequence[Entry], *, token: str) -> bool:
    """Put the newest turns of the table in place of the list; False if a turn came since ``token`` was given.

    ``entries`` are the last ``hot.stream_turns`` of the scope, oldest first. Raises `HotUnavailable`.
    """
    names = [hot.scope_key(STREAM, scope_id), hot.scope_key(STREAM_EPOCH, scope_id)]
    lines = [_line(entry) for entry in entries[-hot.stream_turns :]]
    return bool(hot.run("stream_rebuild", names, [token, milliseconds(hot.stream_life), *lines]))


def clear(hot: Hot, scope_id: int) -> None:
    """Drop the list, and refuse rebuilds that were read before. Raises `HotUnavailable`."""
    with hot.calling() as redis:
        pipeline = redis.pipeline()
        pipeline.delete(hot.scope_key(STREAM, scope_id))
        pipeline.set(hot.scope_key(STREAM_EPOCH, scope_id), uuid4().hex, px=milliseconds(STREAM_EPOCH.life))
        pipeline.execute()


def has_gaps(entries: Iterable[Entry]) -> bool:
    """Whether a session among ``entries`` skips a number: an addition was lost while Redis was away."""
    places: dict[int, list[int]] = defaultdict(list)
    for entry in entries:
        places[entry.session_id].append(entry.seq)
    return any(b - a != 1 for seqs in places.values() for a, b in pairwise(sorted(seqs)))


def _in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Without repetitions, and each session in its own order: two servers may add in the other order."""
    arrived = list(dict.fromkeys(entries))
    by_session: dict[int, list[Entry]] = defaultdict(list)
    for entry in arrived:
        by_session[entry.session_id].append(entry)
    ordered = {
        session: iter(sorted(turns, key=lambda turn: turn.seq)) for session, turns in by_session.items()
    }
    return [next(ordered[entry.session_id]) for entry in arrived]


def _line(entry: Entry) -> str:
    return f"{entry.id} {entry.session_id} {entry.seq}"


def _entry(line: bytes) -> Entry | None:
    """None for what we did not write."""
    try:
        turn_id, session_id, seq = line.decode("ascii").split(" ")
        return Entry(UUID(turn_id), int(session_id), int(seq))
    except ValueError:
        return None
