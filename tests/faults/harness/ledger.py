"""The external ledger: what a client was told is accepted, written the moment it was told, never by the system."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock


@dataclass(frozen=True, slots=True)
class Entry:
    """One accepted turn as its client saw it. ``number`` is unique in the run and stands in the turn's text."""

    key: str
    session: str
    number: int
    id: str
    seq: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """An append-only file of entries; safe between threads."""

    path: Path
    _lock: Lock = field(default_factory=Lock, repr=False)

    def note(self, entries: list[Entry]) -> None:
        lines = "".join(json.dumps(asdict(entry)) + "\n" for entry in entries)
        with self._lock, self.path.open("a", encoding="utf-8") as file:
            file.write(lines)

    def __iter__(self) -> Iterator[Entry]:
        if not self.path.exists():
            return
        with self.path.open(encoding="utf-8") as file:
            for line in file:
                yield Entry(**json.loads(line))
