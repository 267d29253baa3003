"""What of a conversation a turn is read with: what was said before it, and who takes part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory_app.extraction.rules.packs.fact import Fact

History = Callable[[], Sequence[Fact]]
"""The facts that the author stated before, in order."""

Known = Callable[[str], str | None]
"""The name of a person as it is kept, for words that may be one; None for what is nobody's."""


def nothing_before() -> Sequence[Fact]:
    """The history of somebody who stated nothing yet."""
    return ()


def nobody(_words: str) -> str | None:
    """Knows no person by name."""
    return None


@dataclass(frozen=True, slots=True)
class Conversation:
    """What was said before a turn, and to whom it may be said.

    ``before`` gives the facts of the author's turns before, which a correction may mean, ``known`` the name of a person
    of whom they told before. ``is_asked``: the turn may answer a question. ``has_company``: other people take part, to
    whom "remember" may be said.
    """

    before: History = nothing_before
    known: Known = nobody
    is_asked: bool = False
    has_company: bool = False


ALONE = Conversation()
"""A turn that stands by itself."""
