"""The user's own card: what must not be missed about the person, whatever is asked."""

from __future__ import annotations

from collections.abc import Iterable

from memory_app.errors import InvalidInput
from memory_app.language.text import slug
from memory_app.memories.vital import RELATIONS as VITAL_RELATIONS
from memory_app.recall.parts import Card
from memory_app.records.records import Memory
from memory_app.tenancy.rows.names import ScopeRow

# What an answer must never contradict comes first, then what most answers touch.
_HEALTH = ("intolerant_of", "pregnant", "had_operation")
_NAME = ("name", "preferred_name", "pronouns")
_HOME = ("lives_in", "moves_to", "lives_with", "address", "time_zone", "native_language")
_WORK = ("job_title", "works_at", "works_in", "starts_job_at", "studies_at", "studies", "retired")
_FAMILY = (
    "marital_status",
    "spouse",
    "wife",
    "husband",
    "partner",
    "fiance",
    "girlfriend",
    "boyfriend",
    "child",
    "son",
    "daughter",
    "mother",
    "father",
    "brother",
    "sister",
    "has_family",
    "has_pet",
)
_DATES = ("birthday", "anniversary", "due_date", "plans_to")

RELATIONS = tuple(dict.fromkeys((*VITAL_RELATIONS, *_HEALTH, *_NAME, *_HOME, *_WORK, *_FAMILY, *_DATES)))
"""Relations of the card, in the order in which they are shown."""

EACH = 6
"""Most facts of one relation."""

FACTS_LIMIT = 24


def own_key(row: ScopeRow) -> str | None:
    """Key of the user's own entity; None for a scope without a user, or where the user's id makes no key."""
    if row.user is None:
        return None
    try:
        return f"person:{slug(row.user)}"
    except InvalidInput:
        return None


def _is_label(memory: Memory, label: str | None) -> bool:
    """Whether it says no more than that the card's label is the name."""
    name = memory.object
    return memory.relation == "name" and name is not None and name.casefold() == (label or "").casefold()


def own_card(row: ScopeRow, facts: Iterable[Memory]) -> Card | None:
    """The card of the scope's user; None when nothing of it is known. ``facts`` are in the order of `RELATIONS`."""
    key = own_key(row)
    texts = tuple(memory.text for memory in facts if not _is_label(memory, row.label or row.user))[
        :FACTS_LIMIT
    ]
    if key is None or row.user is None or not texts:
        return None
    return Card(key=key, label=row.label or row.user, type="person, the user", facts=texts, is_own=True)
