"""Routes of entities: the card of one, and merging two that are the same thing."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import ConfigDict, Field

from memory_app.memories import entities
from memory_app.memories.answers import (
    CardAnswer,
    EntityAnswer,
    LinkedEntityAnswer,
    MergedEntityAnswer,
    memory_answer,
)
from memory_app.memories.entities import Card
from memory_app.web.call import IN_SCOPE, OfUser, Reader, Writer, errors
from memory_app.web.edge import SLASH
from memory_app.web.fields import Body, CleanWords
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["entities"])

Key = Annotated[str, Path(description="`type:slug`, or an alias of it.", examples=["person:john_doe"])]


class MergeBody(Body):
    """What the entity is merged into."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"into": "person:john_doe"}]})

    into: CleanWords = Field(description="Key of the entity that stays.")


@router.get(IN_SCOPE + "/entities/{key}", responses=errors(404))
def get_entity(call: Reader, scope: OfUser, key: Key) -> CardAnswer:
    """What is known of one entity; a merged key leads to what it was merged into."""
    return _card(entities.card(call.runtime, call.tenant_id, scope, key=key.replace(SLASH, "/")))


@router.post(IN_SCOPE + "/entities/{key}/merge", responses=errors(400, 404, 409))
def merge_entities(call: Writer, scope: OfUser, key: Key, body: MergeBody) -> MergedEntityAnswer:
    """The entity is the same thing as another: its mentions and aliases move there and its key becomes an alias."""
    merged = entities.merge(call.runtime, call.tenant_id, scope, key=key.replace(SLASH, "/"), into=body.into)
    return MergedEntityAnswer(card=_card(merged.card), run=merged.run_id)


def _card(card: Card) -> CardAnswer:
    return CardAnswer(
        **EntityAnswer.model_validate(card.entity).model_dump(exclude={"mentions"}),
        mention_count=card.entity.mention_count,
        alias_keys=list(card.alias_keys),
        facts=list(map(memory_answer, card.facts)),
        linked=list(map(LinkedEntityAnswer.model_validate, card.linked)),
    )
