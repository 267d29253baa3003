"""The kinds of memory, as one table. A kind is a row of data, never a branch in code.

Code that makes memories names the kind it makes. Code that reads them asks the row what holds for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from enum import StrEnum
from itertools import chain

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
    """One row of the table: everything in which a kind differs from another."""

    name: str
    _: KW_ONLY
    section: Section | None
    """None: it is not recalled and never shown."""
    half_life: timedelta | None
    """Time in which it loses half its strength; None: it never fades. See `half_life_of` for questions."""
    importance: int
    """1 to 10, where a statement gives none."""
    subtypes: tuple[str, ...] = ()
    lead: str = ""
    """What its lines in the context window begin with."""
    merges: bool = True
    """False: near duplicates are counted and similar ones linked, but no two become one."""
    is_question: bool = False
    """What somebody asked. It fades as the settings of questions say, and is nothing that was remembered of a turn."""
    is_material: bool = True
    """Deep synthesis reads it, and is due when there is something new of it."""
    is_curated: bool = False
    """Of one session only the most important are taken from a model."""
    may_command: bool = False
    """How to speak with somebody is a command by nature, and nothing suspicious."""
    expires: bool = False
    """It is retired when it has faded. What does not expire only ranks lower with age: an allergy that was told once is
    still true in ten years."""
    about_agent: bool = False
    is_directive: bool = False
    """What an agent must do, whoever it talks to. Its tool stores one only where its policy lets it."""
    """It says something of the agent itself, so it may stand for all of the agent's users."""


def _days(number: int) -> timedelta:
    return timedelta(days=number)


FACT_SUBTYPES = ("fact", "preference", "relationship", "friction", "habit")

_ROWS = (
    Kind(
        "core",
        section=Section.CORE,
        half_life=None,
        importance=10,
        is_material=False,
        about_agent=True,
        is_directive=True,
    ),
    Kind(
        "capability",
        section=Section.CORE,
        half_life=None,
        importance=8,
        is_material=False,
        about_agent=True,
    ),
    Kind(
        "expression",
        section=Section.EXPRESSION,
        half_life=_days(90),
        importance=5,
        may_command=True,
        expires=True,
    ),
    Kind(
        "value",
        section=Section.EXPRESSION,
        half_life=_days(180),
        importance=6,
        lead="Value being explored: ",
        about_agent=True,
    ),
    Kind("anchor", section=Section.RELATIONSHIP, half_life=_days(180), importance=6),
    Kind(
        "fact",
        section=Section.MEMORIES,
        half_life=_days(120),
        importance=5,
        subtypes=FACT_SUBTYPES,
        is_curated=True,
    ),
    Kind("artifact", section=Section.INSIGHTS, half_life=_days(180), importance=5),
    Kind("identity", section=Section.IDENTITY, half_life=_days(180), importance=5, about_agent=True),
    Kind("episode", section=Section.NARRATIVE, half_life=_days(30), importance=4, expires=True),
    Kind(
        "query",
        section=None,
        half_life=None,
        importance=3,
        merges=False,
        is_question=True,
        is_material=False,
        expires=True,
    ),
)
"""One line adds a kind to a section.

In the section EXPRESSION kinds stand in the order of the table, in the others the strongest memories come first.
"""

KINDS: dict[str, Kind] = {kind.name: kind for kind in _ROWS}


def kind_of(name: str, *, field: str = "kind") -> Kind:
    """The row of ``name``; `InvalidInput` listing the known kinds otherwise."""
    try:
        return KINDS[name]
    except KeyError:
        raise InvalidInput(f"{field}: unknown kind; one of {', '.join(KINDS)}", field=field) from None


def kinds_of_section(*sections: Section) -> tuple[str, ...]:
    """Names of the kinds that stand in any of ``sections``, in table order."""
    return _names_of(lambda kind: kind.section in sections)


def subtypes() -> tuple[str, ...]:
    """All subtypes of all kinds, each once."""
    names = chain.from_iterable(kind.subtypes for kind in KINDS.values())
    return tuple(dict.fromkeys(names))


def recalled_kinds() -> tuple[str, ...]:
    """Names of the kinds that are recalled where a query names none."""
    return _names_of(lambda kind: kind.section is not None)


def material_kinds() -> tuple[str, ...]:
    """Names of the kinds that deep synthesis reads."""
    return _names_of(lambda kind: kind.is_material)


def shareable_kinds() -> tuple[str, ...]:
    """Names of the kinds that say something of the person, so that they may let another agent recall them."""
    return _names_of(lambda kind: kind.section is not None and not kind.about_agent)


def question_kinds() -> tuple[str, ...]:
    """Names of the kinds that say what somebody asked."""
    return _names_of(lambda kind: kind.is_question)


def _names_of(belongs: Callable[[Kind], bool]) -> tuple[str, ...]:
    return tuple(kind.name for kind in filter(belongs, KINDS.values()))


def half_life_of(name: str, *, of_queries: timedelta) -> timedelta | None:
    """How long a kind takes to lose half its strength; None: it never fades. Questions take a setting's time."""
    kind = KINDS[name]
    return of_queries if kind.is_question else kind.half_life
