"""The relations that the rules of a pack may give. A name that is not here is a mistake of the pack."""

from __future__ import annotations

from memory_app.memories.relations import FAVOURITE, RELATIONS

_OTHERS = """
    coach mentor roommate therapist
    address_part age anniversary asked_to_remember attends aunt believes best_friend birth_year
    blood_group born brother brother_in_law child colleague collects cousin daughter daughter_in_law
    diet doctor does_not does_not_smoke does_not_take drives due_date father_in_law fears friend
    goal godfather godmother granddaughter grandfather grandmother grandson grew_up_in had_operation
    has_condition has_family hobby household intolerant_of is is_doing learns lived_in lives_with
    member_of mother_in_law moves_to neighbour nephew never_does nickname niece no_longer_has
    no_longer_member_of no_longer_plays no_longer_with owes owns parent parks_at pet_kind
    phone_model plans_to prefers pregnant reminder retired saves_for school sibling sister
    sister_in_law smokes son son_in_law spouse starts_job_at stepdaughter stepfather stepmother
    stepson stopped stopped_smoking struggles_with studied_at subscribes_to surname takes_medicine
    teacher uncle unemployed used_to used_to_like uses values visited volunteers_at wants_replies wants_to
    income_side keeps_at eats drinks
    did weight worked_as works_in worries_about
"""
KNOWN = frozenset({*RELATIONS, *_OTHERS.split()})


def is_known(relation: str) -> bool:
    """Whether a pack may use ``relation``."""
    return relation.startswith(FAVOURITE) or relation in KNOWN
