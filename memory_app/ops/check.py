"""The result of one check of the doctor, and checks that several of its parts share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memory_app.errors import MemoryAppError

# Leases and due times follow the database's clock alone, so a wrong clock elsewhere breaks nothing: times in logs and
# of turns do not fit together.
CLOCK_WARN_SECONDS = 1.0
CLOCK_FAIL_SECONDS = 30.0


class State(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, what was found, and what to do about it; ``to_do`` is empty when all is well."""

    name: str
    state: State
    found: str
    to_do: str = ""


def ok(name: str, finding: str) -> Check:
    return Check(name, State.OK, finding)


def warn(name: str, finding: str, *, to_do: str) -> Check:
    return Check(name, State.WARN, finding, to_do=to_do)


def fail(name: str, finding: str, *, to_do: str) -> Check:
    return Check(name, State.FAIL, finding, to_do=to_do)


def failure(name: str, error: MemoryAppError) -> Check:
    """The check that ended with this error."""
    # Messages of errors say what is wrong, then, after a semicolon, what to do.
    finding, _, to_do = error.message.partition("; ")
    return fail(name, finding, to_do=to_do)


def clock(of: str, offset_seconds: float) -> Check:
    """Whether the clock of a server agrees with this machine's."""
    name, finding = f"clock of {of}", f"{offset_seconds:+.3f} s from this machine's"
    if abs(offset_seconds) < CLOCK_WARN_SECONDS:
        return ok(name, finding)
    judge = fail if abs(offset_seconds) >= CLOCK_FAIL_SECONDS else warn
    return judge(name, finding, to_do="let every machine follow the same time server (NTP)")


def version(text: str) -> tuple[int, ...]:
    """The first two numbers of a version, for comparing."""
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())
