"""Tell whether a text is about a subject of which an agent's instructions say that nothing is kept.

Words alone are compared: a text that has all words of a subject is about it, however they are inflected. A language
model is told the subjects besides, and may find what says the same in other words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memory_app.errors import InvalidInput
from memory_app.memories.guards import content_words, words_only_in

FORBIDDEN = "never to be kept for this agent"
"""The reason of what was left out."""

_BETWEEN_SUBJECTS = re.compile(r"\s*[,;、，；]\s*(?:(?:and|or)\s+)?")


def is_forbidden(text: str, never: Sequence[str]) -> bool:
    """Whether ``text`` is about a subject of ``never``, the lines of `Instructions.never`."""
    return any(_is_about(text, subject) for line in never for subject in _BETWEEN_SUBJECTS.split(line))


def check_allowed(text: str, never: Sequence[str]) -> None:
    """Raise `InvalidInput` for a statement that is never kept."""
    if is_forbidden(text, never):
        raise InvalidInput("text: the agent's instructions say that nothing of this is kept", field="text")


def _is_about(text: str, subject: str) -> bool:
    # A subject of nothing but words like "the" would forbid everything.
    return bool(content_words(subject)) and not words_only_in(subject, text)
