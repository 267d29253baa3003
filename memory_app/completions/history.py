"""Tell which messages of a chat are new: clients send the whole conversation again with every call. Pure.

A message is known by its place: by what it says and what stands before it. The latest turns of the session are laid
beside what was sent; where the longest beginning of it ends among them, there the new messages begin.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory_app.language.redaction import Rules, redact
from memory_app.language.text import clean

KEY_PREFIX = "chat:"
"""Of the idempotency keys of turns that were recorded from chats."""

LONG_RUN = 4
"""So many messages in a row that are recorded in a row stand in the same place, whatever came before."""


@dataclass(frozen=True, slots=True)
class Known:
    """``count`` messages from the first on are recorded, the last of them at ``place`` of the recorded turns."""

    count: int
    place: int | None


def known_messages(sent: Sequence[str], recorded: Sequence[str | None], *, is_whole: bool) -> Known:
    """The messages of ``sent`` that stand in ``recorded``; both are digests, oldest first. None: a turn whose words
    were deleted, which may have been any.

    ``is_whole``: nothing was recorded before the first of ``recorded``. A client may send all of a conversation or
    its end. A single message is taken for known only where the conversation began with it: "ok" is said often.
    """
    ends = list(_ends(sent, recorded))
    for end in ends:
        if end.run == end.count and (end.same > 1 or (is_whole and end.place == 0)):
            return Known(end.count, end.place)
    for end in ends:
        # Memory may have been away at the beginning, or a client leaves out what is old.
        if end.same >= LONG_RUN or (end.same > 1 and end.run == end.place + 1):
            return Known(end.count, end.place)
    return Known(0, None)


def digest(role: str, text: str, tools: Sequence[str], rules: Rules) -> str:
    """What a message says, as it is stored: with what the agent's redaction takes out of it."""
    stored = redact(clean(text)[0], rules).text.strip()
    return _hash(role, stored, *tools)


def key_after(previous: str, said: str) -> str:
    """The idempotency key of a message with the digest ``said`` behind ``previous``: another key, or the id of a turn.

    The same message in the same place has the same key, so that two calls at the same moment record it once.
    """
    return KEY_PREFIX + _hash(previous, said)


@dataclass(frozen=True, slots=True)
class _End:
    """``run`` messages in a row fit up to the last of ``count`` that were sent and the turn at ``place``; the words of
    ``same`` of them are there to show it."""

    count: int
    place: int
    run: int
    same: int


def _ends(sent: Sequence[str], recorded: Sequence[str | None]) -> Iterator[_End]:
    """The longest beginnings of ``sent`` first, and of their places the latest."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, said in enumerate(recorded):
        if said is not None:
            places[said].append(place)
    for count in range(len(sent), 0, -1):
        for place in reversed(places.get(sent[count - 1], ())):
            run = _run(sent[:count], recorded[: place + 1])
            deleted = sum(said is None for said in recorded[place + 1 - run : place + 1])
            yield _End(count, place, run, same=run - deleted)


def _run(sent: Sequence[str], recorded: Sequence[str | None]) -> int:
    """How many messages at the end of both are the same."""
    run = 0
    for one, other in zip(reversed(sent), reversed(recorded), strict=False):
        if other is not None and one != other:
            break
        run += 1
    return run


def _hash(*parts: str) -> str:
    # With the lengths, so that no two lists of parts give the same text.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]
