"""What redaction looks for, what it does with it, and where in a text something was found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Redaction(StrEnum):
    """What is done with private parts of a text: nothing, their kind in their place, or nothing in their place."""

    OFF = "off"
    MASK = "mask"
    DROP = "drop"


class PrivateKind(StrEnum):
    """Kinds of private parts, the one that is least often mistaken first: it names a part that two kinds claim."""

    KEY = "key"
    IBAN = "iban"
    CARD = "card"
    NATIONAL_ID = "national_id"
    EMAIL = "email"
    PASSWORD = "password"
    PHONE = "phone"


@dataclass(frozen=True, slots=True)
class Span:
    """A private part of a text: characters from ``start`` to before ``end``."""

    start: int
    end: int
    kind: PrivateKind
