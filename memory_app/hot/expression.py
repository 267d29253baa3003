"""The hot part of how an agent speaks with a user: last interaction, its tone, and when the session began.

Kept 30 days and rebuilt from the sessions and turns by noting them again: what is noted is joined with what
is there, the later interaction wins, so the order of notes does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from redis.client import Pipeline

from memory_app.hot.client import Commands, Hot
from memory_app.hot.keys import EXPRESSION, milliseconds
from memory_app.records.records import VALENCES

# One word of letters in any script, perhaps joined by hyphens.
TONE = re.compile(r"[^\W\d_]+(-[^\W\d_]+)*")
TONE_LIMIT_CHARS = 32


@dataclass(frozen=True, slots=True)
class Expression:
    """A part that is not known is None: the caller reads it from the table and notes it."""

    last_interaction_at: datetime | None = None
    tone: str | None = None
    session_id: int | None = None
    session_started_at: datetime | None = None


UNLABELLED = "other"

_SCRIPT = "expression_note"


def label(tone: str) -> str:
    """The tone as it may be kept here: one of `VALENCES`, or `UNLABELLED`, since any other word is what a producer
    said."""
    folded = tone.strip().casefold()
    return folded if folded in VALENCES else UNLABELLED


@dataclass(frozen=True, slots=True)
class Interaction:
    """An interaction at ``at``. ``tone`` is kept if it is one word; a sentence is what somebody said, and stays in
    Postgres."""

    session_id: int
    at: datetime
    tone: str | None = None
    session_started_at: datetime | None = None


def note(hot: Hot, scope_id: int, interaction: Interaction) -> None:
    """Note an interaction. One older than the last changes nothing but a missing start of its session.

    Raises `HotUnavailable`.
    """
    hot.run(_SCRIPT, [hot.scope_key(EXPRESSION, scope_id)], _arguments(interaction))


def put_to(pipeline: Pipeline, hot: Hot, scope_id: int, interaction: Interaction) -> None:
    """Have ``pipeline`` note an interaction, by the script's digest: Redis may not know it, and answers so."""
    key = hot.scope_key(EXPRESSION, scope_id)
    pipeline.evalsha(hot.scripts[_SCRIPT].sha, 1, key, *_arguments(interaction))


def _arguments(interaction: Interaction) -> list[str | int]:
    started, tone = interaction.session_started_at, interaction.tone
    return [
        interaction.session_id,
        _ms(interaction.at),
        tone if tone is not None and _is_word(tone) else "",
        "" if started is None else _ms(started),
        milliseconds(EXPRESSION.life),
    ]


def _is_word(tone: str) -> bool:
    return len(tone) <= TONE_LIMIT_CHARS and TONE.fullmatch(tone) is not None


def restart_session(hot: Hot, scope_id: int, *, session_id: int, at: datetime) -> None:
    """The session counts as begun at ``at``. Raises `HotUnavailable`."""
    key = hot.scope_key(EXPRESSION, scope_id)
    with hot.calling() as redis:
        pipeline = redis.pipeline()
        pipeline.hset(key, mapping={"session_id": session_id, "session_started_at": _ms(at)})
        pipeline.pexpire(key, milliseconds(EXPRESSION.life))
        pipeline.execute()


def ask(hot: Hot, scope_id: int) -> Commands[Expression]:
    """What is known, or an `Expression` of Nones."""

    def put_to(pipeline: Pipeline) -> None:
        names = ["last_interaction_at", "tone", "session_id", "session_started_at"]
        pipeline.hmget(hot.scope_key(EXPRESSION, scope_id), names)

    return Commands(1, put_to, _expression)


def _expression(replies: Sequence[Any]) -> Expression:
    (last, tone, session, started) = replies[0]
    return Expression(
        last_interaction_at=_instant(last),
        tone=tone.decode("utf-8", "replace") if tone else None,
        session_id=_number(session),
        session_started_at=_instant(started),
    )


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _number(value: bytes | None) -> int | None:
    try:
        return None if value is None else int(value)
    except ValueError:
        return None


def _instant(value: bytes | None) -> datetime | None:
    number = _number(value)
    try:
        return None if number is None else datetime.fromtimestamp(number / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        # A number that we did not write, beyond the years that a datetime holds.
        return None
