"""The user's own card: what must not be missed about the person, whatever is asked."""

from __future__ import annotations

from collections.abc import Iterable

from memory_app.errors import InvalidInput
from memory_app.language.text import slug
from memory_app.memories.rows.cards import CardFact
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


def is_label(row: ScopeRow, memory: Memory) -> bool:
    """Whether a fact of the user says no more than the name by which they are shown."""
    name = memory.object
    return (
        memory.relation == "name" and name is not None and name.casefold() == (_label(row) or "").casefold()
    )


def _label(row: ScopeRow) -> str | None:
    return row.label or row.user


def own_card(row: ScopeRow, facts: Iterable[Memory]) -> Card | None:
    """The card of the scope's user; None when nothing of it is known. ``facts`` are in the order of `RELATIONS`."""
    key = own_key(row)
    known = tuple(facts)
    label = _label(row)
    if key is None or label is None or not known:
        return None
    # As they spell it, which the id of a user need not do.
    spelled = (memory.object for memory in known if is_label(row, memory))
    shown = tuple(CardFact(memory.text, memory.id) for memory in known if not is_label(row, memory))
    return Card(
        key=key,
        label=next(filter(None, spelled), label),
        type="person, the user",
        facts=shown[:FACTS_LIMIT],
        is_own=True,
    )
