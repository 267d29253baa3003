"""What must never be lost for want of room: health, names, and how somebody wants to be treated from now on. Pure."""

from __future__ import annotations

import re

from memory_app.language.table import alternatives
from memory_app.records.kinds import kind_of
from memory_app.records.records import Content

BIT = 32
"""Stands in the column ``traits`` of a vital memory, beside the bits of `Trait`, which recall weighs."""

RELATIONS = (
    # Health and diet.
    "allergic_to",
    "blood_type",
    "diet",
    "does_not_drink",
    "does_not_eat",
    "does_not_take",
    "has_condition",
    "not_allergic_to",
    "takes_medicine",
    # Names.
    "name",
    "preferred_name",
    "pronouns",
    "surname",
    # What somebody asked for outright.
    "asked_to_remember",
    "wants_replies",
)
"""Relations of facts and expressions that are never evicted and never expire."""

_HEALTH = re.compile(rf"\b(?:{alternatives(lambda language: language.health_patterns)})", re.IGNORECASE)
_STANDING = re.compile(alternatives(lambda language: language.standing_patterns), re.IGNORECASE)


def is_vital(content: Content) -> bool:
    """Whether the memory stays although it is weak, by its relation or, where it has none, by its words."""
    if content.relation in RELATIONS:
        return True
    # An instruction is a command by nature; the same words in a fact tell of one.
    if kind_of(content.kind).may_command and _STANDING.search(content.text):
        return True
    return _HEALTH.search(content.text) is not None
