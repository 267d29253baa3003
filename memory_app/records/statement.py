"""What a statement must be before the write path looks at it: cleaned, checked, numbers brought into range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, get_type_hints

from memory_app.errors import InvalidInput, TooLarge
from memory_app.language.text import clean_given
from memory_app.records.importance import SCALES, clamped
from memory_app.records.kinds import kind_of
from memory_app.records.records import VALENCES, EmotionalState, RelationalContext, Statement

TEXT_LIMIT = 8_000
"""Longest text of a memory, in characters: one statement, not a page."""

PART_LIMIT = 500
"""Longest subject, relation, object or other short text of a statement."""

CLOCK_MARGIN = timedelta(minutes=5)
"""How far the clock of a client may be ahead of the database's."""

TAGS_LIMIT = 32
TAG_LIMIT = 100

_PARTS = tuple(
    name
    for name, type in get_type_hints(Statement).items()
    if type == str | None and name not in {"subtype", "synthesis_type", "importance_scale"}
)
"""Short texts of a caller: all but those with a rule of their own, and what the product sets itself."""

_RELATIONAL_LISTS = ("communication_style", "shared_references", "user_values", "user_struggles")


def checked_statement(statement: Statement) -> tuple[Statement, tuple[str, ...]]:
    """The statement as it can be stored, and notes on everything that was changed.

    Raises `InvalidInput` or `TooLarge` naming the field.
    """
    notes: list[str] = []
    _check_subtype(statement)
    _check_scale(statement.importance_scale)
    text = _checked_text(statement.text, notes)
    confidence = _within_range(statement.confidence, name="confidence", notes=notes)
    emotional_state = _checked_emotion(statement.emotional_state, notes)
    relational_context = _checked_relational(statement.relational_context, notes)
    _check_interval(statement.valid_from, statement.valid_until)
    _check_zone(statement.said_at, field="said_at")
    parts: dict[str, Any] = {name: _part(getattr(statement, name), name) for name in _PARTS}
    _check_triple(parts)
    checked = replace(
        statement,
        text=text,
        confidence=confidence,
        emotional_state=emotional_state,
        relational_context=relational_context,
        **parts,
        tags=_checked_tags(statement.tags),
    )
    return checked, tuple(notes)


def _check_subtype(statement: Statement) -> None:
    kind = kind_of(statement.kind)
    if statement.subtype not in (None, *kind.subtypes):
        names = ", ".join(kind.subtypes) or "none"
        raise InvalidInput(f"subtype: {kind.name} has these subtypes: {names}", field="subtype")


def _check_scale(scale: str | None) -> None:
    if scale not in (None, *SCALES):
        raise InvalidInput(f"importance_scale: one of {', '.join(SCALES)}", field="importance_scale")


def _checked_text(value: str, notes: list[str]) -> str:
    text, is_changed = clean_given(value, field="text")
    text = text.strip()
    if not text:
        raise InvalidInput("text: nothing is left after cleaning; say what to remember", field="text")
    if len(text) > TEXT_LIMIT:
        raise TooLarge(f"text: {len(text)} characters; at most {TEXT_LIMIT}", field="text")
    # Blanks at the ends are no loss, so only characters that were taken out are worth a note.
    if is_changed:
        notes.append("text: characters that cannot be stored were removed")
    return text


def _within_range(value: float, *, name: str, notes: list[str]) -> float:
    """``value`` brought into 0 to 1, with a note where it was not."""
    stored, note = clamped(value, name=name)
    if note:
        notes.append(note)
    return stored


def _check_triple(parts: Mapping[str, str | None]) -> None:
    subject, relation = parts["subject"], parts["relation"]
    is_whole = (relation is None) == (subject is None)
    has_object_alone = parts["object"] is not None and relation is None
    if is_whole and not has_object_alone:
        return
    missing = "relation" if relation is None else "subject"
    raise InvalidInput(
        f"{missing}: subject and relation go together, and an object needs both", field=missing
    )


def _part(value: str | None, field: str) -> str | None:
    if value is None:
        return None
    text = clean_given(value, field=field)[0].strip()
    # Not taken for absent: whoever sends the field means to say something with it.
    if not text:
        raise InvalidInput(f"{field}: empty; leave it out or name it", field=field)
    if len(text) > PART_LIMIT:
        raise TooLarge(f"{field}: at most {PART_LIMIT} characters", field=field)
    return text


def _checked_tags(tags: Sequence[str]) -> tuple[str, ...]:
    if len(tags) > TAGS_LIMIT:
        raise TooLarge(f"tags: at most {TAGS_LIMIT}", field="tags")
    cleaned = [clean_given(tag, field="tags")[0].strip() for tag in tags]
    for tag in cleaned:
        if not 1 <= len(tag) <= TAG_LIMIT:
            raise InvalidInput(f"tags: each has 1 to {TAG_LIMIT} characters", field="tags")
    # A dict keeps the order in which the caller gave them, which a set does not.
    return tuple(dict.fromkeys(cleaned))


def _check_interval(start: datetime | None, until: datetime | None) -> None:
    _check_zone(start, field="valid_from")
    _check_zone(until, field="valid_until")
    # The end is exclusive: an interval of no length would never hold.
    if start is not None and until is not None and until <= start:
        raise InvalidInput("valid_until: must be later than valid_from", field="valid_until")


def _check_zone(at: datetime | None, *, field: str) -> None:
    # Without a zone PostgreSQL would read it in the zone of the session.
    if at is not None and at.utcoffset() is None:
        raise InvalidInput(
            f"{field}: a time needs its zone, as in 2026-01-31T09:00:00+01:00",
            field=field,
        )


def _checked_emotion(state: EmotionalState | None, notes: list[str]) -> EmotionalState | None:
    if state is None:
        return None
    if state.valence not in VALENCES:
        raise InvalidInput(
            f"emotional_state.valence: one of {', '.join(VALENCES)}", field="emotional_state.valence"
        )
    return EmotionalState(
        valence=state.valence,
        intensity=_within_range(state.intensity, name="emotional_state.intensity", notes=notes),
        user_impact=_part(state.user_impact, "emotional_state.user_impact"),
    )


def _checked_relational(context: RelationalContext | None, notes: list[str]) -> RelationalContext | None:
    if context is None:
        return None
    bond = context.bond_strength
    if bond is not None:
        bond = _within_range(bond, name="relational_context.bond_strength", notes=notes)
    lists = {
        name: _items(getattr(context, name), field=f"relational_context.{name}") for name in _RELATIONAL_LISTS
    }
    return RelationalContext(bond_strength=bond, **lists)


def _items(values: Sequence[str], *, field: str) -> tuple[str, ...]:
    parts = (_part(value, field) for value in values[:TAGS_LIMIT])
    return tuple(filter(None, parts))
