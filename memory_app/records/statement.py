"""What a statement must be before the write path looks at it: cleaned, checked, numbers brought into range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, get_type_hints

from memory_app.errors import InvalidInput, TooLarge
from memory_app.language.text import clean_given
from memory_app.records.importance import clamped
from memory_app.records.kinds import kind_of
from memory_app.records.records import VALENCES, EmotionalState, RelationalContext, Statement

TEXT_LIMIT = 8_000
"""Longest text of a memory, in characters: one statement, not a page."""

PART_LIMIT = 500
"""Longest subject, relation, object or other short text of a statement."""

TAGS_LIMIT = 32
TAG_LIMIT = 100

_PARTS = tuple(
    name
    for name, type in get_type_hints(Statement).items()
    if type == str | None and name not in {"subtype", "synthesis_type"}
)
"""Short texts of a caller: all but the subtype, which has a rule of its own, and what the product sets itself."""


def checked_statement(statement: Statement) -> tuple[Statement, tuple[str, ...]]:
    """The statement as it can be stored, and notes on everything that was changed.

    Raises `InvalidInput` or `TooLarge` naming the field.
    """
    kind = kind_of(statement.kind)
    if statement.subtype is not None and statement.subtype not in kind.subtypes:
        known = ", ".join(kind.subtypes) or "none"
        raise InvalidInput(f"subtype: {kind.name} has these subtypes: {known}", field="subtype")
    said, changed = clean_given(statement.text, field="text")
    said = said.strip()
    if not said:
        raise InvalidInput("text: nothing is left after cleaning; say what to remember", field="text")
    if len(said) > TEXT_LIMIT:
        raise TooLarge(f"text: {len(said)} characters; at most {TEXT_LIMIT}", field="text")
    notes = ["text: characters that cannot be stored were removed"] if changed else []
    confidence, note = clamped(statement.confidence, name="confidence")
    notes += [note] if note else []
    emotional_state, more = _checked_emotion(statement.emotional_state)
    notes += more
    relational_context, more = _checked_relational(statement.relational_context)
    notes += more
    _check_interval(statement.valid_from, statement.valid_until)
    parts: dict[str, Any] = {name: _part(getattr(statement, name), name) for name in _PARTS}
    relation, subject = parts["relation"], parts["subject"]
    if (relation is None) != (subject is None) or (parts["object"] is not None and relation is None):
        missing = "relation" if relation is None else "subject"
        raise InvalidInput(
            f"{missing}: subject and relation go together, and an object needs both", field=missing
        )
    checked = replace(
        statement,
        text=said,
        confidence=confidence,
        emotional_state=emotional_state,
        relational_context=relational_context,
        **parts,
        tags=_checked_tags(statement.tags),
    )
    return checked, tuple(notes)


def _part(value: str | None, field: str) -> str | None:
    if value is None:
        return None
    said = clean_given(value, field=field)[0].strip()
    if not said:
        raise InvalidInput(f"{field}: empty; leave it out or name it", field=field)
    if len(said) > PART_LIMIT:
        raise TooLarge(f"{field}: at most {PART_LIMIT} characters", field=field)
    return said


def _checked_tags(tags: Sequence[str]) -> tuple[str, ...]:
    if len(tags) > TAGS_LIMIT:
        raise TooLarge(f"tags: at most {TAGS_LIMIT}", field="tags")
    cleaned = [clean_given(tag, field="tags")[0].strip() for tag in tags]
    for tag in cleaned:
        if not tag or len(tag) > TAG_LIMIT:
            raise InvalidInput(f"tags: each has 1 to {TAG_LIMIT} characters", field="tags")
    return tuple(dict.fromkeys(cleaned))


def _check_interval(start: datetime | None, until: datetime | None) -> None:
    for field, at in (("valid_from", start), ("valid_until", until)):
        if at is not None and at.utcoffset() is None:
            raise InvalidInput(
                f"{field}: a time needs its zone, as in 2026-01-31T09:00:00+01:00", field=field
            )
    if start is not None and until is not None and until <= start:
        raise InvalidInput("valid_until: must be later than valid_from", field="valid_until")


def _checked_emotion(state: EmotionalState | None) -> tuple[EmotionalState | None, list[str]]:
    if state is None:
        return None, []
    if state.valence not in VALENCES:
        raise InvalidInput(
            f"emotional_state.valence: one of {', '.join(VALENCES)}", field="emotional_state.valence"
        )
    intensity, note = clamped(state.intensity, name="emotional_state.intensity")
    impact = _part(state.user_impact, "emotional_state.user_impact")
    return EmotionalState(state.valence, intensity, impact), [note] if note else []


def _checked_relational(context: RelationalContext | None) -> tuple[RelationalContext | None, list[str]]:
    if context is None:
        return None, []
    notes = []
    bond = context.bond_strength
    if bond is not None:
        bond, note = clamped(bond, name="relational_context.bond_strength")
        notes = [note] if note else []
    lists = ("communication_style", "shared_references", "user_values", "user_struggles")
    cleaned = {
        name: tuple(
            _part(item, f"relational_context.{name}") or "" for item in getattr(context, name)[:TAGS_LIMIT]
        )
        for name in lists
    }
    return RelationalContext(bond_strength=bond, **cleaned), notes
