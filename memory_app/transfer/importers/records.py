"""What a file of another program holds, item by item, and how its reader is told what the file does not say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from enum import StrEnum
from typing import BinaryIO, Protocol

from memory_app.records.records import NewTurn, Role, Statement


class DateOrder(StrEnum):
    """How a date such as 03/04/2025 is read."""

    DAY_FIRST = "dmy"
    MONTH_FIRST = "mdy"


class Reason(StrEnum):
    """Why an item of a file does not come in."""

    EMPTY = "no text"
    MEDIA = "media without text"
    BRANCH = "another branch"
    HIDDEN = "not shown to the user"
    INTERNAL = "written by the program"
    DELETED = "deleted by its author"
    UNREADABLE = "not of the expected form"
    OF_ANOTHER = "of another person"


@dataclass(frozen=True, slots=True)
class Conversation:
    """What follows, up to the next conversation, belongs to it. ``id`` is the source's own; ``owner`` whose it is."""

    place: str
    id: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the conversation before it. Its turn has no idempotency key yet.

    ``speaks_freely``: a person or a character under a name of their own, whose role the options decide.
    """

    place: str
    turn: NewTurn
    id: str | None = None
    speaks_freely: bool = False


@dataclass(frozen=True, slots=True)
class Memory:
    """A statement that another program remembered."""

    place: str
    statement: Statement
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Omission:
    """An item that does not come in. ``detail`` names a field, never what stands in it."""

    place: str
    reason: Reason
    detail: str = ""


Item = Conversation | Message | Memory | Omission


@dataclass(frozen=True, slots=True)
class Options:
    """What the file itself does not say.

    ``session`` names the session of a file that holds one conversation without an id. ``time_zone`` is that of dates
    without one. ``speakers`` are roles by name. ``owner`` is whose part of the file comes in.
    """

    session: str | None = None
    time_zone: tzinfo = UTC
    date_order: DateOrder | None = None
    speakers: Mapping[str, Role] = field(default_factory=dict)
    owner: str | None = None
    is_group: bool = False
    """The user of the scope stands for a room: everybody in it speaks under a name of their own."""


class Source(Protocol):
    """A file that can be read from its beginning as often as needed."""

    def open(self) -> BinaryIO:
        """A stream at the beginning of the file; whoever opens it closes it."""


class Form(StrEnum):
    """What a file is at its outermost."""

    LIST = "a list"
    OBJECT = "an object"
    LINES = "lines of JSON objects"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Shape:
    """The beginning of a file. ``first`` is the first element of the list, or the object of the first line.

    Of an object ``entries`` are its values by key as far as they were read; a list stands for itself by its first
    element, alone. Of a text ``lines`` are the first ones.
    """

    form: Form
    first: object = None
    entries: Mapping[str, object] = field(default_factory=dict)
    lines: tuple[str, ...] = ()

    def element(self) -> Mapping[str, object]:
        """The first element as an object; an empty one where it is none."""
        return self.first if isinstance(self.first, Mapping) else {}

    def element_of(self, key: str) -> Mapping[str, object]:
        """The first element of the list under a key, as an object; an empty one where there is none."""
        value = self.entries.get(key)
        first = value[0] if isinstance(value, list) and value else None
        return first if isinstance(first, Mapping) else {}


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name, how a file of it is recognised, how it is read, and what every file of it has."""

    name: str
    recognises: Callable[[Shape], bool]
    read: Callable[[Source, Options], Iterator[Item]]
    needs: str
