"""A labelled conversation, whatever format it came in: sessions of turns, and questions with their evidence."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from memory_app.errors import InvalidInput
from memory_app.records.records import Role


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. ``id`` is the data set's own, ``speaker`` None takes the product's name for the role."""

    id: str
    role: Role
    speaker: str | None
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Stretch:
    """The turns of one session, in order."""

    name: str
    turns: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """``evidence`` are ids of turns that hold the answer; ``apart`` keeps it out of the overall figures."""

    text: str
    category: str
    evidence: frozenset[str]
    # Such as questions about what was never said, of which the right answer is that nothing fits.
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """Everything one person said, and what is asked about it."""

    name: str
    sessions: tuple[Stretch, ...]
    questions: tuple[Question, ...]

    @property
    def session_of(self) -> dict[str, str]:
        """The session of each turn, by their ids."""
        return {turn.id: session.name for session in self.sessions for turn in session.turns}


def read_json(path: Path) -> Any:
    """The JSON of a file; `InvalidInput` saying what is wrong with it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror})", field="path") from error
    except ValueError as error:
        raise InvalidInput(f"{path}: is not JSON ({error})", field="path") from error
