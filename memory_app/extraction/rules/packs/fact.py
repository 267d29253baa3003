"""The fact that a rule of a pack states."""

from __future__ import annotations

from dataclasses import dataclass

from memory_app.extraction.rules.packs.dates import StartDay
from memory_app.extraction.rules.packs.format import PackRule


@dataclass(frozen=True, slots=True)
class Fact:
    """What a rule states. ``kin`` is the relation of whom it is about to the user, None for the user.

    ``called`` is that person's name, ``term`` the word for them in the language of the turn. ``corrects`` is the object
    that was said by mistake. ``is_request``: the user asked that it be remembered. ``clause`` is what the rule read,
    ``words`` those for the object in it.
    """

    rule: PackRule
    relation: str
    object: str
    says: str
    says_since: str | None = None
    when: StartDay | None = None
    kin: str | None = None
    called: str | None = None
    term: str = ""
    corrects: str | None = None
    is_request: bool = False
    is_beside: bool = False
    """It holds beside others of a relation that has one object at a time."""
    clause: str = ""
    words: str = ""
