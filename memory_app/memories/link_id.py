"""The id of a link, as callers see it: both ends and the type, since a link has no row number of its own."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

_SEPARATOR = "~"


@dataclass(frozen=True, slots=True)
class LinkId:
    """A link by its ends, in the direction in which it was drawn, and its type."""

    source: UUID
    target: UUID
    type: str

    def __str__(self) -> str:
        return _SEPARATOR.join((str(self.source), self.type, str(self.target)))


def parse_link_id(text: str) -> LinkId | None:
    """Read an id as `LinkId` writes it; None for what no link can have."""
    try:
        source, type, target = text.split(_SEPARATOR)
        link = LinkId(UUID(source), UUID(target), type)
    except ValueError:
        return None
    # UUID() reads other spellings, too, which are no id that was ever given out.
    return link if str(link) == text and type.isprintable() else None
