"""Clean and check a turn before it is accepted, and hash its content. Pure."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, get_type_hints

from memory_app.errors import InvalidInput, TooLarge
from memory_app.language.text import clean, clean_given
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope, check_name
from memory_app.records.statement import CLOCK_MARGIN

KEY_LIMIT = 200
"""Longest idempotency key, in characters."""

METADATA_DEPTH = 8
TOOLS_LIMIT = 64

_SHORT_TEXTS = tuple(
    name
    for name, type in get_type_hints(NewTurn).items()
    if type == str | None and name not in {"speaker", "idempotency_key"}
)
"""Texts about a turn that have no rule of their own."""

# Hashes are stored, so nothing is ever added here.
_FIRST_FIELDS = frozenset(
    {"role", "text", "speaker", "at", "idempotency_key", "emotional_tone", "tools_used", "metadata"}
)
"""The fields that `request_hash` covered in the first release."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Largest turn, in characters of text and bytes of metadata as JSON; most turns in one call."""

    text_chars: int = 500_000
    metadata_bytes: int = 8_192
    batch: int = 500


def checked_turn(turn: NewTurn, limits: Limits, *, field: str = "turn") -> tuple[NewTurn, bool]:
    """The turn with its text cleaned, and whether cleaning removed anything.

    Raises `InvalidInput` naming the field (``content`` for the text), or `TooLarge`.
    """
    if not isinstance(turn.role, Role):
        raise InvalidInput(f"{field}.role: one of {', '.join(Role)}", field=f"{field}.role")
    text, is_changed = _checked_text(turn.text, limits.text_chars, field=f"{field}.content")
    if turn.at is not None:
        _check_instant(turn.at, field=f"{field}.at")
    if turn.speaker is not None:
        check_name(turn.speaker, field=f"{field}.name")
    if turn.idempotency_key is not None:
        _check_key(turn.idempotency_key, field=f"{field}.idempotency_key")
    short_texts: dict[str, Any] = {
        name: _short(getattr(turn, name), field=f"{field}.{name}") for name in _SHORT_TEXTS
    }
    if len(turn.tools_used) > TOOLS_LIMIT:
        raise InvalidInput(f"{field}.tools_used: at most {TOOLS_LIMIT}", field=f"{field}.tools_used")
    for tool in turn.tools_used:
        check_name(tool, field=f"{field}.tools_used")
    metadata = checked_metadata(turn.metadata, limits.metadata_bytes, field=f"{field}.metadata")
    tools = tuple(turn.tools_used)
    return replace(turn, text=text, tools_used=tools, metadata=metadata, **short_texts), is_changed


def _checked_text(original: str, limit: int, *, field: str) -> tuple[str, bool]:
    """The text cleaned, and whether that changed it."""
    text, is_changed = clean_given(original, field=field)
    # The length as the caller sees it, which cleaning may have shortened.
    if len(original) > limit:
        raise TooLarge(f"{field}: {len(original)} characters; at most {limit}", field=field)
    if not text.strip():
        raise InvalidInput(f"{field}: nothing is left after cleaning; send some text", field=field)
    return text, is_changed


def checked_batch(turns: Sequence[NewTurn], limits: Limits) -> tuple[tuple[NewTurn, bool], ...]:
    """Every turn of a call, or the first error with its place (``turns[3].content``)."""
    if not turns:
        raise InvalidInput("turns: at least one turn is required", field="turns")
    if len(turns) > limits.batch:
        raise TooLarge(f"turns: {len(turns)} in one call; at most {limits.batch}", field="turns")
    if len(turns) == 1:
        return (checked_turn(turns[0], limits),)
    return tuple(checked_turn(turn, limits, field=f"turns[{place}]") for place, turn in enumerate(turns))


def believed(turn: NewTurn, now: datetime) -> NewTurn:
    """The turn, said now if its time is further ahead than a clock may be wrong."""
    # Left as it is, what was said at that time would have the last word until then.
    if turn.at is not None and turn.at > now + CLOCK_MARGIN:
        return replace(turn, at=None)
    return turn


def request_hash(scope: Scope, turn: NewTurn, speaker: str) -> bytes:
    """SHA-256 of all that the caller sent, so that one key cannot stand for two different turns."""
    values = [
        scope.agent,
        scope.user,
        scope.session,
        turn.role.value,
        speaker,
        turn.text,
        turn.at.isoformat() if turn.at else None,
        turn.emotional_tone,
        list(turn.tools_used),
        turn.metadata,
    ]
    later = {}
    for field in fields(turn):
        value = getattr(turn, field.name)
        # Only where it is set: a turn that was sent before the field existed keeps its hash.
        if field.name not in _FIRST_FIELDS and value != field.default:
            later[field.name] = value
    if later:
        values.append(later)
    text = json.dumps(values, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).digest()


def checked_metadata(metadata: Mapping[str, Any], limit_bytes: int, *, field: str) -> dict[str, Any]:
    """Metadata as plain JSON with cleaned strings; `InvalidInput` for what JSON cannot hold, `TooLarge` for size."""
    cleaned = {clean(str(key))[0]: _plain(value, field=field, depth=1) for key, value in metadata.items()}
    if len(json.dumps(cleaned, ensure_ascii=False).encode()) > limit_bytes:
        raise TooLarge(f"{field}: at most {limit_bytes} bytes as JSON", field=field)
    return cleaned


def _plain(value: Any, *, field: str, depth: int) -> Any:
    if depth > METADATA_DEPTH:
        raise InvalidInput(f"{field}: nested deeper than {METADATA_DEPTH}", field=field)
    if isinstance(value, str):
        return clean(value)[0]
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        # The JSON of PostgreSQL has neither infinity nor NaN.
        if not math.isfinite(value):
            raise InvalidInput(f"{field}: numbers must be finite", field=field)
        return value
    if isinstance(value, Mapping):
        return {
            clean(str(key))[0]: _plain(inner, field=field, depth=depth + 1) for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(inner, field=field, depth=depth + 1) for inner in value]
    raise InvalidInput(f"{field}: {type(value).__name__} is not JSON", field=field)


def _check_instant(at: datetime, *, field: str) -> None:
    # A zone may be set and know no offset; Python then takes the time for one without a zone.
    if at.tzinfo is None or at.utcoffset() is None:
        raise InvalidInput(f"{field}: a time needs its zone, as in 2026-01-31T09:00:00+01:00", field=field)
    if not 1900 <= at.year <= 2200:
        raise InvalidInput(f"{field}: the year {at.year} is out of range (1900 to 2200)", field=field)


def _check_key(key: str, *, field: str) -> None:
    if not key or len(key) > KEY_LIMIT or not key.isprintable():
        raise InvalidInput(f"{field}: 1 to {KEY_LIMIT} printable characters", field=field)


def _short(value: str | None, *, field: str) -> str | None:
    if value is None:
        return None
    cleaned = clean_given(value, field=field)[0].strip()
    if len(cleaned) > 100:
        raise InvalidInput(f"{field}: at most 100 characters", field=field)
    return cleaned or None
