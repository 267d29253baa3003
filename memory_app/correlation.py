"""The ids that join log lines, rows and messages of one request or task: one piece of work, wherever it is done.

The id of a piece of work stands in each of its log lines and in the rows that it writes. What it did (turns, runs,
memories and tasks by their ids) is noted meanwhile and stands in the line that ends it. Never text, never names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import structlog

TURNS: Final = "turns"
RUNS: Final = "runs"
MEMORIES: Final = "memories"
TASKS: Final = "tasks"
"""Kinds of notes. Tasks are those that were sent."""

IDS_LIMIT = 100
"""Ids of one kind in a log line; of more only the number is said."""

HIDDEN: Final = "{…}"
"""What stands for arguments that are not shown."""

_SHOWN: Final[Mapping[str, type]] = {"session_id": int, "run_id": UUID, "shard": int}


@dataclass(slots=True)
class Work:
    """A request or a task under way. ``notes``: what it touched, by kind, without repetition. ``error`` is the kind of
    error that was answered, a word of ours."""

    request_id: UUID | None = None
    task_id: UUID | None = None
    notes: dict[str, dict[str, None]] = field(default_factory=dict)
    error: str | None = None

    @property
    def has_effect(self) -> bool:
        """Whether it did more than look for work and send tasks."""
        return bool(self.notes.keys() - {TASKS})

    def summary(self) -> dict[str, list[str] | int]:
        """The notes as fields of a log line: the first `IDS_LIMIT` ids of each kind, and how many where these are not
        all."""
        fields: dict[str, list[str] | int] = {}
        for kind, ids in self.notes.items():
            fields[kind] = list(ids)[:IDS_LIMIT]
            if len(ids) > IDS_LIMIT:
                fields[f"{kind}_count"] = len(ids)
        return fields


_work: ContextVar[Work | None] = ContextVar("memory_work", default=None)


@contextmanager
def request(request_id: UUID) -> Iterator[Work]:
    """Everything inside belongs to this request. A task may do it: then both are noted as one piece of work."""
    task = _work.get() or Work()
    with _under_way(Work(request_id, task.task_id, task.notes), request_id=str(request_id)) as work:
        yield work


@contextmanager
def task(task_id: UUID | None, name: str) -> Iterator[Work]:
    """Everything inside belongs to this task; without an id, as when no message brought the work, it gets one."""
    number = task_id or new_id()
    with _under_way(Work(task_id=number), task_id=str(number), task=name) as work:
        yield work


@contextmanager
def _under_way(work: Work, **fields: str) -> Iterator[Work]:
    token = _work.set(work)
    try:
        with structlog.contextvars.bound_contextvars(**fields):
            yield work
    finally:
        _work.reset(token)


def request_id() -> UUID | None:
    """The request that is being answered."""
    work = _work.get()
    return None if work is None else work.request_id


def task_id() -> UUID | None:
    """The task that is being done."""
    work = _work.get()
    return None if work is None else work.task_id


def note(kind: str, ids: Iterable[object]) -> None:
    """Note for the last line of this piece of work what it touched. Outside of any, nothing happens."""
    work = _work.get()
    if work is not None:
        work.notes.setdefault(kind, {}).update((str(number), None) for number in ids)


def note_error(kind: str) -> None:
    """Note for the last line of this piece of work with which error it is answered."""
    work = _work.get()
    if work is not None:
        work.error = kind


def new_id() -> UUID:
    """A UUID of version 7: it begins with the time in ms, so that rows of one time stand together (RFC 9562, 5.7)."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds << 80) | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | (0x7 << 76)
    value = value & ~(0x3 << 62) | (0x2 << 62)
    return UUID(int=value)


def parse_id(text: str | None) -> UUID | None:
    """The id that a caller sent along, or None for anything else: a log must not repeat it."""
    # 36 characters: `UUID` also takes braces, prefixes and digits of other scripts.
    if text is None or len(text) != 36 or not text.isascii():
        return None
    try:
        return UUID(text)
    except ValueError:
        return None


def shown(arguments: Mapping[str, Any]) -> str:
    """Arguments of a task as logs, events and Flower show them: ids, and of anything else nothing.

    Whoever sends a task chooses names and values, so both must be what our own senders write.
    """
    ids = [f"{name}={arguments[name]}" for name in _SHOWN if _is_id(arguments.get(name), _SHOWN[name])]
    return ", ".join(ids) or HIDDEN


def _is_id(value: object, kind: type) -> bool:
    if kind is UUID:
        return isinstance(value, str) and parse_id(value) is not None
    # Numbers of rows are of 64 bits; the digits of a longer one could be a message.
    return type(value) is int and 0 <= value < 2**63
