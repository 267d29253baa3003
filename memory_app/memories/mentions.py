"""Which entities a statement is tied to: those its source names, and every known one that its words name. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from memory_app.errors import InvalidInput
from memory_app.memories.entity_names import KnownEntity, named_in
from memory_app.records.entity import entity_key
from memory_app.records.records import Mention, Statement

Ties = dict[str, tuple[str, str, datetime]]
"""Key of an entity to its type, its label, and when it was mentioned."""

VAGUE = "thing"
"""The type of what nobody knew a type for."""


def ties_of(text: str, mentions: Iterable[Mention], known: Sequence[KnownEntity], at: datetime) -> Ties:
    """Return what is mentioned at ``at``: by ``mentions``, new ones too, and by ``text`` of what is ``known``."""
    by_name = {name.casefold(): entity for entity in reversed(known) for name in entity.names}
    ties: Ties = {}
    stated: list[KnownEntity] = []
    for mention in mentions:
        entity = by_name.get(mention.label.casefold())
        # Another spelling or a missing type must not make a second entity of one that is known.
        if entity is None or mention.type not in (entity.type, VAGUE):
            entity = _as_known(mention)
        if entity is not None:
            stated.append(entity)
            ties[entity.key] = (entity.type, entity.label, at)
    # With what is stated, so that a longer name that is new takes its words: "Anna (friend)" is not Anna.
    for entity in named_in(text, [*stated, *known]):
        ties.setdefault(entity.key, (entity.type, entity.label, at))
    return ties


def named_text(statement: Statement) -> str:
    """The words of a statement in which entities are looked for."""
    return "\n".join(filter(None, (statement.text, statement.subject, statement.object)))


def new_entities(statements: Iterable[Statement]) -> tuple[KnownEntity, ...]:
    """What the statements mention, as known to each other."""
    mentioned = (_as_known(mention) for statement in statements for mention in statement.mentions)
    return tuple({entity.key: entity for entity in mentioned if entity is not None}.values())


def _as_known(mention: Mention) -> KnownEntity | None:
    try:
        return KnownEntity(entity_key(mention.type, mention.label), mention.type, mention.label)
    except InvalidInput:
        return None  # A label of signs only names nothing; the statement itself stands.
