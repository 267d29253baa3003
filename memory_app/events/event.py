"""What an event is, which types there are, and which of them a listener asks for. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from memory_app.errors import InvalidInput


class EventType(StrEnum):
    """What happened. The values are known to listeners: never rename one."""

    TURN_ACCEPTED = "turn.accepted"
    TURN_INDEXED = "turn.indexed"
    TURN_EXTRACTED = "turn.extracted"
    TURN_FAILED = "turn.failed"
    MEMORY_INSERTED = "memory.inserted"
    MEMORY_CHANGED = "memory.changed"
    MEMORY_MERGED = "memory.merged"
    MEMORY_SUPERSEDED = "memory.superseded"
    MEMORY_EVICTED = "memory.evicted"
    MEMORY_EXPIRED = "memory.expired"
    MEMORY_INVALIDATED = "memory.invalidated"
    RUN_CREATED = "run.created"
    RUN_DONE = "run.done"
    RUN_FAILED = "run.failed"
    RUN_UNDONE = "run.undone"
    ERASURE_DONE = "erasure.done"
    RESET = "reset"


GROUPS = tuple(dict.fromkeys(type.partition(".")[0] for type in EventType if "." in type))
"""``turn``, ``memory``, ``run``, ``erasure``: each stands for all types that begin with it."""


EVENT_VERSION = 1
"""Of the form of events. It changes when a field goes or means something else, not when one is added."""


@dataclass(frozen=True, slots=True)
class Event:
    """One change, without a word of what was said. ``id`` is its place in the order, to go on from.

    ``target`` is the id of the turn, memory, run or receipt. ``kind`` is that of the memory, or what the run does;
    ``successor`` the memory that took the place of this one. ``agent`` and ``user`` are None where the change is about
    no one in particular, ``at`` where nobody noted the time.
    """

    id: str
    type: EventType
    at: datetime | None = None
    agent: str | None = None
    user: str | None = None
    session: str | None = None
    target: UUID | None = None
    kind: str | None = None
    successor: UUID | None = None
    version: int = EVENT_VERSION


@dataclass(frozen=True, slots=True)
class Choice:
    """Which events somebody hears of: types, None for all; of one agent or one user, None for any."""

    types: frozenset[EventType] | None = None
    agent: str | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in their order, and the place from which the next page goes on. ``is_last``: there are no more now."""

    events: tuple[Event, ...]
    cursor: str
    is_last: bool


def types_of(names: str | None, *, field: str = "types") -> frozenset[EventType] | None:
    """The types that are named with commas between them, each by itself or by its group; None: all.

    Raises `InvalidInput` naming ``field`` for a name that is neither.
    """
    return None if names is None else checked_types(names.split(","), field=field)


def checked_types(names: Sequence[str], *, field: str) -> frozenset[EventType]:
    """The types of these names, each of which is a type or a group. Raises `InvalidInput` as `types_of`."""
    types: set[EventType] = set()
    for name in names:
        members = [type for type in EventType if name.strip() in (type, type.partition(".")[0])]
        if not members:
            choices = ", ".join((*GROUPS, *(type for type in EventType if type is not EventType.RESET)))
            raise InvalidInput(f"{field}: each is one of {choices}", field=field)
        types.update(members)
    if not types:
        raise InvalidInput(f"{field}: name at least one type, or leave it out for all", field=field)
    return frozenset(types)
