"""The kinds of memory, as one table. A kind is a row of data, never a branch in code."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from memory_app.errors import InvalidInput


class Section(StrEnum):
    """Where a kind stands in the context window."""

    CORE = "core"
    EXPRESSION = "expression"
    RELATIONSHIP = "relationship"
    INSIGHTS = "insights"
    IDENTITY = "identity"
    MEMORIES = "memories"
    NARRATIVE = "narrative"


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the table. ``half_life`` None means it never fades (or is set elsewhere, for ``query``)."""

    name: str
    section: Section | None
    half_life: timedelta | None
    importance: int
    subtypes: tuple[str, ...] = ()
    merges: bool = True
    """False: near duplicates are counted and similar ones linked, but no two become one."""


def _days(n: int) -> timedelta:
    return timedelta(days=n)


FACT_SUBTYPES = ("fact", "preference", "relationship", "friction", "habit")

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("core", Section.CORE, None, 10),
        Kind("capability", Section.CORE, None, 8),
        Kind("expression", Section.EXPRESSION, _days(90), 5),
        Kind("value", Section.EXPRESSION, _days(180), 6),
        Kind("anchor", Section.RELATIONSHIP, _days(180), 6),
        Kind("fact", Section.MEMORIES, _days(120), 5, subtypes=FACT_SUBTYPES),
        Kind("artifact", Section.INSIGHTS, _days(180), 5),
        Kind("identity", Section.IDENTITY, _days(180), 5),
        Kind("episode", Section.NARRATIVE, _days(30), 4),
        Kind("query", None, None, 3, merges=False),
    )
}


def kind_of(name: str, *, field: str = "kind") -> Kind:
    """The row of ``name``; `InvalidInput` listing the known kinds otherwise."""
    try:
        return KINDS[name]
    except KeyError:
        raise InvalidInput(f"{field}: unknown kind; one of {', '.join(KINDS)}", field=field) from None


def kinds_of_section(*sections: Section) -> tuple[str, ...]:
    """Names of the kinds that stand in any of ``sections``, in table order."""
    return tuple(k.name for k in KINDS.values() if k.section in sections)


def half_life_of(name: str, *, of_queries: timedelta) -> timedelta | None:
    """How long a kind takes to lose half its strength; None: it never fades. Questions take a setting's time."""
    return of_queries if name == "query" else KINDS[name].half_life
