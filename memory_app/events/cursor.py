"""The place of an event in the order, and its text, which is the event's id. Pure.

Changes are ordered by the number of their transaction, then by their source and the id of their row. A number stands
still once every transaction below the horizon is over: one that commits late, with a smaller number than others that
were seen, is waited for. So whoever has read up to a place has missed nothing before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import UUID

from memory_app.errors import InvalidInput

FIRST_ID = UUID(int=0)
LAST_ID = UUID(int=2**128 - 1)
LAST_SOURCE = 15
"""One hexadecimal digit."""

# Of fixed width, so that ids of one epoch are in order as texts, too.
_FORM = re.compile(r"([0-9a-f]{8})-([0-9a-f]{16})-([0-9a-f])-([0-9a-f]{32})")


@dataclass(frozen=True, slots=True)
class Cursor:
    """Everything up to here has been read. ``epoch`` says in which cluster and database numbers mean what they do."""

    epoch: str
    number: int
    source: int = LAST_SOURCE
    id: UUID = LAST_ID

    @classmethod
    def read(cls, text: str, *, field: str = "after") -> Cursor:
        """Raises `InvalidInput` naming ``field`` for what is no id of an event."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise InvalidInput(f"{field}: the id of an event, or the cursor of a page", field=field)
        epoch, number, source, id = match.groups()
        return cls(epoch, int(number, 16), int(source, 16), UUID(id))

    def __str__(self) -> str:
        return f"{self.epoch}-{self.number:016x}-{self.source:x}-{self.id.hex}"

    def lower_bound(self, source: int) -> UUID:
        """The id above which rows of a source with the cursor's own number are still to be read."""
        if source == self.source:
            return self.id
        return LAST_ID if source < self.source else FIRST_ID
