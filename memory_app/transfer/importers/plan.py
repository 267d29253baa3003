"""Decide what becomes of each item of a file: its session, its speaker's role, and a key by which it is known again.

Keys come from the source's ids, or from what was said and where. They hold neither the role nor the zone of a date,
which an import of the same file may be told otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from itertools import chain

from memory_app.errors import InvalidInput
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import NAME_LIMIT
from memory_app.transfer.importers.archive import files_of
from memory_app.transfer.importers.detection import format_of
from memory_app.transfer.importers.records import (
    Conversation,
    Format,
    Item,
    Memory,
    Message,
    Omission,
    Options,
    Reason,
    Source,
)
from memory_app.transfer.importers.values import name_of

NAMING_MESSAGES = 3
"""Messages at the beginning of a conversation without an id that name its session: greetings alone are often equal."""


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """A turn with its key, and the session that it belongs to."""

    place: str
    session: str
    turn: NewTurn
    speaks_freely: bool = False
    owner: str | None = None


Planned = SessionTurn | Memory | Omission


def planned(source: Source, options: Options, *, format: str | None = None) -> tuple[str, Iterator[Planned]]:
    """The name of the file's format, and its items in their order.

    Raises `InvalidInput` for an unknown format, and while the items are read for a file that is cut, malformed, holds
    nothing of its format, or has several conversations for one session.
    """
    files = files_of(source)
    kind = format_of(files[0], format)
    items = chain.from_iterable(kind.read(file, options) for file in files)
    return kind.name, _checked(_placed(kind.name, items, options), kind)


def _checked(items: Iterator[Planned], kind: Format) -> Iterator[Planned]:
    """The items; an error at their end where none was of the format."""
    is_of_format = False
    lacking = ""
    for item in items:
        if isinstance(item, Omission) and item.reason is Reason.UNREADABLE:
            lacking = lacking or f" ({item.place}: {item.detail})"
        else:
            is_of_format = True
        yield item
    if not is_of_format:
        raise InvalidInput(
            f"file: nothing in it is of the format {kind.name}, which has {kind.needs}{lacking}; nothing was imported",
            field="file",
        )


def _placed(format: str, items: Iterable[Item], options: Options) -> Iterator[Planned]:
    current: _Conversation | None = None
    conversations = 0
    for item in items:
        if isinstance(item, Conversation):
            if current is not None:
                yield from current.rest()
            conversations += 1
            if options.session is not None and conversations > 1:
                raise InvalidInput(
                    "session: the file holds several conversations, each of which is a session of its own",
                    field="session",
                )
            current = _Conversation(format, item, options)
        elif isinstance(item, Message):
            if current is None:
                raise InvalidInput(f"{item.place}: belongs to no conversation", field="file")
            yield from current.add(item)
        elif isinstance(item, Memory) and _is_of_another(item.owner, options):
            yield Omission(item.place, Reason.OF_ANOTHER)
        else:
            yield item
    if current is not None:
        yield from current.rest()


def _is_of_another(owner: str | None, options: Options) -> bool:
    return options.owner is not None and owner is not None and owner != options.owner


@dataclass(slots=True)
class _Conversation:
    """A conversation that is being read. Its first messages wait until they can name it."""

    format: str
    head: Conversation
    options: Options
    session: str | None = None
    waiting: list[Message] = field(default_factory=list)
    place: int = 0
    alike: dict[bytes, int] = field(default_factory=dict)
    """How often the same was said at ``latest``, which tells it from a repetition of the file."""
    latest: datetime | None = None

    def __post_init__(self) -> None:
        if self.options.session is not None:
            self.session = self.options.session
        elif self.head.id is not None:
            self.session = _session_name(self.format, self.head.id)

    def add(self, message: Message) -> Iterator[Planned]:
        if _is_of_another(self.head.owner, self.options):
            yield Omission(message.place, Reason.OF_ANOTHER)
        elif self.session is not None:
            yield self._turn(message, self.session)
        else:
            self.waiting.append(message)
            if len(self.waiting) == NAMING_MESSAGES:
                yield from self.rest()

    def rest(self) -> Iterator[Planned]:
        """The messages that waited for a name, under the name that they give."""
        waiting, self.waiting = self.waiting, []
        if not waiting:
            return
        words = [
            f"{message.turn.speaker}\0{message.turn.text}\0{_naive(message.turn.at)}" for message in waiting
        ]
        self.session = f"{self.format}-{_digest(*words)[:16]}"
        for message in waiting:
            yield self._turn(message, self.session)

    def _turn(self, message: Message, session: str) -> SessionTurn:
        turn = message.turn
        key = f"import-{_digest(self.format, session, *self._identity(message))}"
        # Where it came from stays with the turn.
        origin = {"format": self.format} | ({} if message.id is None else {"id": message.id[:NAME_LIMIT]})
        return SessionTurn(
            message.place,
            session,
            replace(
                turn,
                role=_role(message, self.options),
                idempotency_key=key,
                metadata={**turn.metadata, "imported_from": origin},
            ),
            speaks_freely=message.speaks_freely,
            owner=self.head.owner,
        )

    def _identity(self, message: Message) -> tuple[str, ...]:
        """What tells a message from all others of the conversation, now and when the file has grown."""
        self.place += 1
        if message.id is not None:
            return ("id", message.id)
        turn = message.turn
        if turn.at is None:
            return ("place", str(self.place), turn.text)
        at = _naive(turn.at)
        said = (at, turn.speaker or "", turn.text)
        if turn.at != self.latest:
            self.latest = turn.at
            self.alike.clear()
        digest = blake2b("\0".join(said).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        self.alike[digest] = self.alike.get(digest, 0) + 1
        return ("said", *said, str(self.alike[digest]))


def _session_name(format: str, id: str) -> str:
    name = name_of(id)
    is_whole = name == id and len(format) + 1 + len(id) <= NAME_LIMIT
    return f"{format}-{name if is_whole else _digest(id)}"


def _role(message: Message, options: Options) -> Role:
    """The role of a message: that of its speaker by the options, or as the file says.

    Of people who speak freely in a chat that is no room, one is the user; everybody else is on the other side.
    """
    turn = message.turn
    if turn.speaker is not None and turn.speaker in options.speakers:
        return options.speakers[turn.speaker]
    if message.speaks_freely and not options.is_group:
        return Role.ASSISTANT
    return turn.role


def _naive(at: datetime | None) -> str:
    return "" if at is None else at.replace(tzinfo=None).isoformat()


def _digest(*parts: str) -> str:
    text = "\0".join(parts)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
