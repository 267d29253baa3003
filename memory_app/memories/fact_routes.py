"""Routes of facts: add one by hand, and ask what holds, what held, and what was known when."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field

from memory_app.memories.answers import FactAnswer, FactsAnswer, RememberedAnswer, memory_answer
from memory_app.memories.bodies import SaidIn
from memory_app.memories.facts import FactQuery, Match, add_fact, find_facts
from memory_app.memories.rows.facts import FactHit
from memory_app.records.records import ENTITY_TYPES, Origin, Statement
from memory_app.web.answers import next_cursor
from memory_app.web.call import IN_SCOPE, Cursor, OfUser, Reader, Writer, errors
from memory_app.web.fields import Body, CleanWords, ImportanceScale, Instant, Number, Words
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["facts"])

_TYPES = ", ".join(ENTITY_TYPES)


class FactBody(Body):
    """A fact: subject, relation, object, and since when."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "subject": "Mira",
                    "relation": "lives_in",
                    "object": "Lisbon",
                    "valid_from": "2026-01-31T09:00:00+01:00",
                }
            ]
        }
    )

    subject: Words = Field(description="Whom or what it is about.")
    relation: Words = Field(description="Such as `lives_in`; spellings of one relation are united.")
    object: Words = Field(description="The other end of the relation.")
    text: Words | None = Field(
        None, description="The fact in words that stand alone; else made of the parts."
    )
    subtype: Words | None = Field(None, description="fact, preference, relationship, friction or habit.")
    subject_type: Words | None = Field(None, description=f"What a new entity is: one of {_TYPES}.")
    object_type: Words | None = Field(None, description="The same for the object.")
    valid_from: Instant | None = Field(None, description="Since when it is true; else since now.")
    said_at: Instant | None = Field(
        None, description="When it was said, if not of `valid_from`: the newest word about now counts."
    )
    valid_until: Instant | None = Field(None, description="Until when, exclusive; open means still true.")
    importance: Number | None = Field(
        None, description="1 to 10, stored as given; the answer's notes say what was changed."
    )
    importance_scale: ImportanceScale = None
    confidence: Number = Field(0.8, description="0 to 1.")
    tags: list[Words] = Field(default_factory=list)
    pinned: bool = Field(False, description="Never fades and is always considered.")
    deduplicate: bool = Field(True, description="`false` stores it even if the same is known in other words.")
    session: SaidIn = None


@router.post(IN_SCOPE + "/facts", operation_id="add_fact", status_code=201, responses=errors(400, 404, 413))
def add(call: Writer, scope: OfUser, body: FactBody) -> RememberedAnswer:
    """Add a fact by hand. What it ends is closed, what came before it finds its place, and entities are made of both
    ends where there are none yet."""
    left_out = {"deduplicate", "session", "subject_type", "object_type", "tags", "text"}
    statement = Statement(
        kind="fact",
        text=body.text or "",
        tags=tuple(body.tags),
        origin=Origin.DECLARED,
        **body.model_dump(exclude=left_out),
    )
    remembered = add_fact(
        call.runtime,
        call.tenant_id,
        replace(scope, session=body.session),
        statement=statement,
        subject_type=body.subject_type,
        object_type=body.object_type,
        deduplicate=body.deduplicate,
    )
    return RememberedAnswer.model_validate(remembered)


@router.get(IN_SCOPE + "/facts", responses=errors(404, 413))
def list_facts(
    call: Reader,
    scope: OfUser,
    subject: Annotated[CleanWords | None, Query(description="Whom it is about; aliases count.")] = None,
    relation: Annotated[CleanWords | None, Query(description="Only this relation.")] = None,
    object: Annotated[CleanWords | None, Query(description="Only with this at the other end.")] = None,
    as_of: Annotated[Instant | None, Query(description="What held then, instead of now.")] = None,
    known_at: Annotated[Instant | None, Query(description="As it was known then, instead of now.")] = None,
    history: Annotated[
        bool, Query(description="Every interval of the subject, in the order of time.")
    ] = False,
    query: Annotated[CleanWords | None, Query(description="Search for this.")] = None,
    match: Annotated[Literal["keyword", "meaning"], Query(description="How to search.")] = "meaning",
    floor: Annotated[bool, Query(description="Leave out what is not clearly similar.")] = False,
    limit: Annotated[int, Query(ge=1, le=500, description="Most facts of a page.")] = 50,
    cursor: Cursor = None,
) -> FactsAnswer:
    """Facts that hold now, or did as of a date, or were known at a date; the history of a subject; or a search."""
    fact_query = FactQuery(
        subject=subject,
        relation=relation,
        object=object,
        as_of=as_of,
        known_at=known_at,
        history=history,
        text=query,
        match=Match(match),
        floor=floor,
        limit=limit,
        before=cursor,
    )
    hits = find_facts(call.runtime, call.tenant_id, scope, query=fact_query)
    # A search and a history come as a whole, up to the limit: their order is not that of the ids.
    is_paged = query is None and not history
    after = next_cursor([hit.memory.id for hit in hits], limit) if is_paged else None
    return FactsAnswer(
        facts=list(map(_fact_answer, hits)),
        cursor=None if after is None else str(after),
    )


def _fact_answer(hit: FactHit) -> FactAnswer:
    return FactAnswer(**memory_answer(hit.memory).model_dump(), score=hit.score, overlapping=hit.overlapping)
