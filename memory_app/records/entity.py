"""Keys of entities: the type, a colon and the slug of the label."""

from __future__ import annotations

from memory_app.errors import InvalidInput, TooLarge
from memory_app.language.text import slug
from memory_app.records.records import ENTITY_TYPES

LABEL_LIMIT = 200
"""Longest label of an entity, in characters; longer keys would not fit an index row."""


def entity_key(type: str, label: str) -> str:
    """``person:john_doe``. Raises `InvalidInput` for an unknown type, an empty or an overlong label."""
    if type not in ENTITY_TYPES:
        raise InvalidInput(f"type: unknown entity type; one of {', '.join(ENTITY_TYPES)}", field="type")
    if len(label) > LABEL_LIMIT:
        raise TooLarge(f"label: at most {LABEL_LIMIT} characters", field="label")
    # Spellings that differ in case or punctuation share a key, and so become one entity.
    return f"{type}:{slug(label)}"
