"""One thing that doctor looked at, and what several of its parts judge in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

CLOCK_WARN_SECONDS = 1.0
CLOCK_FAIL_SECONDS = 30.0
"""Leases and due times follow the database's clock; far apart, logs and times of turns do not fit together."""


class State(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at and found; ``to_do`` is empty when all is well."""

    name: str
    state: State
    found: str
    to_do: str = ""


def clock(of: str, offset_seconds: float) -> Check:
    """Whether the clock of a server goes as this machine's."""
    name, found = f"clock of {of}", f"{offset_seconds:+.3f} s from this machine's"
    if abs(offset_seconds) < CLOCK_WARN_SECONDS:
        return Check(name, State.OK, found)
    state = State.FAIL if abs(offset_seconds) >= CLOCK_FAIL_SECONDS else State.WARN
    return Check(name, state, found, "let every machine follow the same time server (NTP)")


def version(text: str) -> tuple[int, ...]:
    """The first two numbers of a version, for comparing."""
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())
