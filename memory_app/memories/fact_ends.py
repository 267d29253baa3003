"""What stands at the two ends of a fact: which sort of thing its subject and object are, and the sentence they make.

One table by relation. It only decides what a new entity is filed under when the caller does not say; an entity that is
known already keeps its type.
"""

from __future__ import annotations

from memory_app.memories.relations import FAVOURITE

SUBJECT_TYPE = "person"
"""Most facts in a conversation are about somebody."""

OBJECT_TYPE = "thing"

_VALUES = frozenset(
    (
        "address",
        "age",
        "birth_year",
        "birthday",
        "blood_type",
        "email",
        "gender",
        "height",
        "marital_status",
        "name",
        "native_language",
        "nationality",
        "phone_number",
        "preferred_name",
        "pronouns",
        "time_zone",
        "weight",
    )
)
"""Relations whose object is a value of the subject, no thing of its own."""

_OBJECT_TYPES = {
    "place": "birthplace from left lived_in lives_in moved_to travelled_to visited",
    "org": "employs studied_at studies_at worked_at works_at",
    "person": (
        "boss boyfriend brother child colleague daughter father fiance friend girlfriend husband knows lost_touch_with "
        "mother parent partner sibling sister son spouse wife"
    ),
    "concept": "believes_in diet interested_in job_title speaks studies practises plays",
    "project": "works_on",
}
_TYPE_OF = {relation: kind for kind, relations in _OBJECT_TYPES.items() for relation in relations.split()}


def object_type(relation: str) -> str | None:
    """The entity type of what a normalised ``relation`` leads to; None where that is a plain value."""
    if relation in _VALUES:
        return None
    if relation.startswith(FAVOURITE):
        # A favourite colour or song is an idea rather than a thing that somebody owns.
        return "concept"
    return _TYPE_OF.get(relation, OBJECT_TYPE)


def sentence(subject: str, relation: str, obj: str) -> str:
    """``Mira``, ``lives_in``, ``Lisbon`` as words, for a fact that comes without a text."""
    words = relation.replace(":", " ").replace("_", " ").strip()
    text = f"{subject} {words} {obj}".strip()
    # The object may bring an end of its own, as in "the film Who's there?".
    return text if text.endswith((".", "!", "?", "。")) else text + "."
