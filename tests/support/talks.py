"""A conversation as language models are shown it, and an answer to it: what tests of their answers begin with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from memory_app.extraction.llm import Extracted, Talk
from memory_app.records.records import Role, Turn

ZONE = ZoneInfo("Europe/Lisbon")
AT = datetime(2026, 3, 6, 14, 30, tzinfo=UTC)

DOG: Mapping[str, object] = {"text": "Mira has a dog called Pepper.", "evidence": ["t1"]}
"""A fact of the answer."""


def talk(*texts: str, user: str = "Mira") -> Talk:
    """A conversation with Nova in which the user says these texts; the id of a turn is its number, from 1."""
    turns = tuple(
        Turn(UUID(int=number), "s", number, Role.USER, "Mira", text, AT)
        for number, text in enumerate(texts, start=1)
    )
    return Talk(turns, user, "Nova", ZONE)


def answer(**parts: object) -> dict[str, object]:
    """An answer with `DOG` as its only statement, but for these parts."""
    return {"insights": [], "identity_notes": [], "topics": [], "facts": [DOG], "tones": [], **parts}


def texts_of(extracted: Extracted) -> list[str]:
    return [statement.text for statement in extracted.extraction.statements]
