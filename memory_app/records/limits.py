"""What a key or a tenant may use: requests and bytes a minute, tokens a day, and how much may be stored. Pure.

None everywhere: no limit. A limit of a key is set by its tenant, one of a tenant by the operator alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from memory_app.errors import InvalidInput

LARGEST = 2**53 - 1
"""The greatest whole number that every reader of JSON reads as it is."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a key or of a tenant.

    ``turns``, ``user_turns`` and ``user_memories`` are quotas of a tenant: stored turns of all its sessions, and stored
    turns and current memories of each person.
    """

    requests_per_minute: int | None = None
    bytes_per_minute: int | None = None
    """Of the bodies of requests."""
    tokens_per_day: int | None = None
    """Of language models, in and out, from midnight UTC."""
    turns: int | None = None
    user_turns: int | None = None
    user_memories: int | None = None

    @property
    def has_rate(self) -> bool:
        return self.requests_per_minute is not None or self.bytes_per_minute is not None

    def as_dict(self) -> dict[str, int]:
        """The limits that are set, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


NO_LIMITS = Limits()

NAMES = tuple(field.name for field in fields(Limits))

OF_KEYS = ("requests_per_minute", "bytes_per_minute")
"""What can be limited for one key: work in the background is done for a tenant, whichever key brought it."""


def parse_limits(value: Mapping[str, object], *, names: tuple[str, ...] = NAMES) -> Limits:
    """The limits of a mapping; null is none. Raises `InvalidInput` naming the field."""
    for name in value:
        if name not in names:
            raise InvalidInput(f"{name}: unknown limit; one of {', '.join(names)}", field=name)
    return Limits(**{name: _limit(name, number) for name, number in value.items()})


def stored_limits(value: Mapping[str, object]) -> Limits:
    """The limits as they are stored. A name that only a newer release knows is passed over, since every call reads
    them."""
    return parse_limits({name: number for name, number in value.items() if name in NAMES})


def _limit(name: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST:
        raise InvalidInput(f"{name}: a whole number from 1 to {LARGEST}, or null for no limit", field=name)
    return value
