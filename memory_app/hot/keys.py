"""Every key in Redis, once: type, life, meaning. Keys are made nowhere else.

All keys begin with the prefix of the settings. Whatever a caller puts into a name, a key shows no text and cannot reach
another key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b

PLAIN_NAME = re.compile(r"[A-Za-z0-9_.:@-]{1,100}")


@dataclass(frozen=True, slots=True)
class Key:
    """One row. ``life``: the longest a key stays untouched. ``per_scope``: goes when a scope is forgotten."""

    name: str
    type: str
    life: timedelta
    per_scope: bool
    meaning: str


# An epoch outlives every read that began under it by far. Where it is gone, what is read counts as new.
KEYS = (
    STREAM := Key(
        "stream",
        type="list",
        life=timedelta(days=7),
        per_scope=True,
        meaning="ids of the newest turns, newest first",
    ),
    STREAM_EPOCH := Key(
        "stream-epoch",
        type="string",
        life=timedelta(hours=1),
        per_scope=True,
        meaning="changes with each turn; guards rebuilding",
    ),
    CONTEXT := Key(
        "context",
        type="string",
        life=timedelta(seconds=300),
        per_scope=True,
        meaning="ids used in the last narrative context, JSON",
    ),
    CONTEXT_EPOCH := Key(
        "context-epoch",
        type="string",
        life=timedelta(hours=1),
        per_scope=True,
        meaning="changes with each memory; stale contexts show",
    ),
    NARRATIVE := Key(
        "narrative",
        type="string",
        life=timedelta(seconds=300),
        per_scope=True,
        meaning="a few sentences on what was asked about last, JSON",
    ),
    NARRATIVE_WISH := Key(
        "narrative-wish",
        type="string",
        life=timedelta(seconds=300),
        per_scope=True,
        meaning="what a narrative is asked for; one in its life",
    ),
    EXPRESSION := Key(
        "expression",
        type="hash",
        life=timedelta(days=30),
        per_scope=True,
        meaning="last interaction, its tone, start of the session",
    ),
    SHOWN := Key(
        "shown",
        type="list",
        life=timedelta(days=7),
        per_scope=True,
        meaning="ids of memories in the newest windows, with time and session's digest",
    ),
    RECALLED := Key(
        "recalled",
        type="list",
        life=timedelta(hours=6),
        per_scope=False,
        meaning="ids of memories that were shown, to be counted",
    ),
    HINT := Key(
        "hint",
        type="string",
        life=timedelta(hours=1),
        per_scope=False,
        meaning="a message of that name is under way",
    ),
    LIMIT := Key(
        "limit",
        type="hash",
        life=timedelta(days=1),
        per_scope=False,
        meaning="a token bucket: tokens left and when",
    ),
    BREAKER := Key(
        "breaker",
        type="hash",
        life=timedelta(minutes=10),
        per_scope=False,
        meaning="failures of a provider, and until when it rests",
    ),
    LIFE := Key(
        "life",
        type="hash",
        life=timedelta(days=1),
        per_scope=False,
        meaning="when each process of a kind said last that it goes on, and tasks",
    ),
    DROPPED := Key(
        "dropped",
        type="hash",
        life=timedelta(days=1),
        per_scope=False,
        meaning="messages that could not be handled, counted by reason",
    ),
    METRICS := Key(
        "metrics",
        type="hash",
        life=timedelta(days=1),
        per_scope=False,
        meaning="what all processes counted, in millionths",
    ),
    ANSWERS := Key(
        "answers",
        type="hash",
        life=timedelta(days=1),
        per_scope=False,
        meaning="items of language models' answers that were dropped, counted by reason",
    ),
)


def scope_key(prefix: str, key: Key, scope_id: int) -> str:
    """The key of one scope, for rows that are ``per_scope``."""
    # In braces the id is a hash tag: whatever spreads keys over servers keeps those of one scope together.
    return f"{prefix}scope:{{{scope_id}}}:{key.name}"


def named_key(prefix: str, key: Key, name: str) -> str:
    """The key of one ``name`` (a task, a limit, a provider), for all other rows."""
    # A name may hold anything; its digest tells nothing of it.
    plain = name if PLAIN_NAME.fullmatch(name) else f"digest:{digest(name)}"
    return f"{prefix}{key.name}:{plain}"


def digest(text: str) -> str:
    """A short name for ``text`` that does not show it."""
    # Half an emoji in a name must not be an error here.
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def milliseconds(life: timedelta) -> int:
    """``life`` as Redis takes it; at least 1, since 0 is an error there."""
    return max(1, round(life / timedelta(milliseconds=1)))
