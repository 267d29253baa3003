"""The relations of facts, as one table: which hold one object at a time, and which end each other.

A relation that is not in the table is allowed and many-valued, so extractors and callers may use new names;
an agent may declare more single-valued ones. Names are snake case. ``favourite:colour`` is one relation per
thing, each single-valued.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

FAVOURITE = "favourite:"
"""Prefix of the relations "the favourite … is"; what follows names the thing."""


@dataclass(frozen=True, slots=True)
class Relation:
    """One row. A single-valued relation holds one object at a time: a newer one supersedes.

    ``opposes`` names the relations which a new fact of this one ends when subject and object are the same
    ("dislikes olives" ends "likes olives").
    """

    name: str
    single_valued: bool = False
    opposes: tuple[str, ...] = ()


# What somebody has one of at a time: a new one ends the one before.
_SINGLE_VALUED = (
    "name",
    "preferred_name",
    "birthday",
    "birth_year",
    "birthplace",
    "age",
    "from",
    "nationality",
    "lives_in",
    "works_at",
    "job_title",
    "marital_status",
    "native_language",
    "pronouns",
    "email",
    "phone_number",
    "address",
    "time_zone",
    "blood_type",
    "height",
    "years_of_experience",
)

_ONE_PERSON = ("mother", "father", "boss")

# One at a time, too, though not one in a life: the next one ends the one before.
_SPOUSES = ("wife", "husband", "partner", "girlfriend", "boyfriend", "fiance")

_OPPOSED = (
    ("likes", "dislikes"),
    ("eats", "does_not_eat"),
    ("drinks", "does_not_drink"),
    ("allergic_to", "not_allergic_to"),
    ("diet", "no_longer_follows_diet"),
    ("has", "no_longer_has"),
    ("has", "has_no"),
    ("drives", "no_longer_has"),
    ("owns", "no_longer_has"),
    ("has_condition", "no_longer_has"),
    ("has_pet", "no_longer_has"),
    ("has_pet", "has_no"),
    ("practises", "stopped"),
    ("does_regularly", "stopped"),
    ("plays", "stopped"),
    ("speaks", "does_not_speak"),
    ("plans_to", "no_longer_plans_to"),
    ("wants_to", "no_longer_plans_to"),
    ("works_at", "left"),
    ("works_at", "worked_at"),
    ("lives_in", "left"),
    ("lives_in", "lived_in"),
    ("studies", "studied"),
    ("studies_at", "left"),
    ("knows", "lost_touch_with"),
    ("smokes", "does_not_smoke"),
    ("smokes", "stopped_smoking"),
    ("takes_medicine", "does_not_take"),
    ("subscribes_to", "stopped"),
    ("member_of", "no_longer_member_of"),
    ("plays", "no_longer_plays"),
    *(
        (relation, ended)
        for relation in ("spouse", *_SPOUSES)
        for ended in ("no_longer_with", "no_longer_has")
    ),
)

# Whoever has no girlfriend any more has ended that relation, whatever her name was.
_ENDS_OF_RELATIONS = ("no_longer_with", "no_longer_has")
_COUPLES = {
    "wife": ("wife", "spouse", "partner"),
    "husband": ("husband", "spouse", "partner"),
    "spouse": ("spouse", "wife", "husband", "partner"),
    "girlfriend": ("girlfriend", "partner"),
    "boyfriend": ("boyfriend", "partner"),
    "partner": ("partner", "girlfriend", "boyfriend"),
    "fiance": ("fiance", "partner"),
}

# Spellings that models and callers use, so that one relation does not get two lines of facts.
_SYNONYMS = {
    "adores": "likes",
    "allergy": "allergic_to",
    "allergic": "allergic_to",
    "based_in": "lives_in",
    "born_in": "birthplace",
    "born_on": "birthday",
    "comes_from": "from",
    "detests": "dislikes",
    "does_not_like": "dislikes",
    "dislike": "dislikes",
    "doesn_t_like": "dislikes",
    "doesnt_like": "dislikes",
    "employed_at": "works_at",
    "employed_by": "works_at",
    "employer": "works_at",
    "enjoys": "likes",
    "fond_of": "likes",
    "has_allergy": "allergic_to",
    "hates": "dislikes",
    "home": "lives_in",
    "is_allergic_to": "allergic_to",
    "is_from": "from",
    "is_called": "name",
    "is_named": "name",
    "is_fond_of": "likes",
    "job": "job_title",
    "like": "likes",
    "lives": "lives_in",
    "lives_at": "lives_in",
    "living_in": "lives_in",
    "located_in": "lives_in",
    "loves": "likes",
    "moved_to": "lives_in",
    "named": "name",
    "occupation": "job_title",
    "origin": "from",
    "owns_pet": "has_pet",
    "pet": "has_pet",
    "profession": "job_title",
    "quit_working_at": "left",
    "relationship_status": "marital_status",
    "resides_at": "lives_in",
    "resides_in": "lives_in",
    "residence": "lives_in",
    "role": "job_title",
    "speaks_language": "speaks",
    "timezone": "time_zone",
    "works_as": "job_title",
    "works_for": "works_at",
    "workplace": "works_at",
}


def _opposites(name: str) -> tuple[str, ...]:
    # Both ways: "dislikes olives" ends "likes olives", and the other way round.
    pairs = (pair for pair in _OPPOSED if name in pair)
    return tuple(dict.fromkeys(second if name == first else first for first, second in pairs))


def _build() -> dict[str, Relation]:
    single = {*_SINGLE_VALUED, *_ONE_PERSON, *_SPOUSES}
    names = single.union(*_OPPOSED)
    return {
        name: Relation(name, single_valued=name in single, opposes=_opposites(name)) for name in sorted(names)
    }


RELATIONS: dict[str, Relation] = _build()


def normalise_relation(text: str) -> str:
    """``text`` in snake case, synonyms united: "resides in" and "Lives-in" are both ``lives_in``.

    Letters of every script are kept; an empty result is returned as such, for the caller to refuse.
    """
    # The thing may have a colon of its own, so only the first one divides.
    prefix, colon, thing = text.partition(":")
    if colon and _snake(prefix) in ("favourite", "favorite"):
        return FAVOURITE + _snake(thing)
    name = _snake(text)
    for spelling in ("favourite_", "favorite_"):
        if name.startswith(spelling):
            return FAVOURITE + name.removeprefix(spelling)
    return _SYNONYMS.get(name, name)


def relation_of(name: str, *, extra_single_valued: Collection[str] = ()) -> Relation:
    """The row of ``name`` after normalising; a many-valued one when the table has none.

    ``extra_single_valued`` are names an agent declares single-valued besides the table's.
    """
    key = normalise_relation(name)
    row = RELATIONS.get(key) or Relation(key, single_valued=key.startswith(FAVOURITE))
    declared = {normalise_relation(extra) for extra in extra_single_valued}
    if key in declared and not row.single_valued:
        return replace(row, single_valued=True)
    return row


def ended_relations(name: str, obj: str | None) -> tuple[str, ...]:
    """The relations that a fact of the normalised relation ``name`` ends for every object: no longer with a wife."""
    if name not in _ENDS_OF_RELATIONS or obj is None:
        return ()
    return _COUPLES.get(normalise_relation(obj), ())


def _snake(text: str) -> str:
    return re.sub(r"[\W_]+", "_", text.strip().lower()).strip("_")
