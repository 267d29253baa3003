"""Calls of memories, facts and entities."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from pydantic import BaseModel

from memory_app.client.call import Call, answer_of, body_of, in_agent, in_user, nothing, path, query_of
from memory_app.memories.answers import (
    CardAnswer,
    EntitiesAnswer,
    FactsAnswer,
    LinkAnswer,
    LinksAnswer,
    MemoriesAnswer,
    MemoryAnswer,
    MergedEntityAnswer,
    RememberedAnswer,
    VersionsAnswer,
    WhyAnswer,
)
from memory_app.records.ids import checked_id
from memory_app.records.records import EmotionalState, RelationalContext
from memory_app.records.scope import Scope
from memory_app.sleep.answers import RestoredAnswer

Model = TypeVar("Model", bound=BaseModel)


def remember(
    scope: Scope,
    text: str,
    *,
    kind: str = "fact",
    subtype: str | None = None,
    importance: float | None = None,
    importance_scale: str | None = None,
    tags: Sequence[str] = (),
    emotional_state: EmotionalState | None = None,
    relational_context: RelationalContext | None = None,
    subject: str | None = None,
    relation: str | None = None,
    object: str | None = None,
    valid_from: datetime | None = None,
    said_at: datetime | None = None,
    valid_until: datetime | None = None,
    pinned: bool = False,
    deduplicate: bool = True,
    shared: bool = False,
) -> Call[RememberedAnswer]:
    """Store one statement. A fact of a text alone is read by rules: "Mira lives in Lisbon." ends "Mira lives in Porto."

    A scope with a session stores it as said there; one without a user holds what is about the agent itself, and
    ``shared`` lets all users see other kinds. ``deduplicate`` False stores what is known already once more.
    """
    body = body_of(
        text=text,
        kind=kind,
        subtype=subtype,
        importance=importance,
        importance_scale=importance_scale,
        tags=tags,
        emotional_state=emotional_state,
        relational_context=relational_context,
        subject=subject,
        relation=relation,
        object=object,
        valid_from=valid_from,
        said_at=said_at,
        valid_until=valid_until,
        pinned=pinned,
        deduplicate=deduplicate,
        session=scope.session,
        shared=shared if scope.user is None else None,
    )
    return Call(
        "POST",
        _memories_of(scope),
        answer_of(RememberedAnswer),
        body=body,
        is_repeatable=deduplicate,
    )


def correct(
    memory_id: UUID | str,
    text: str,
    *,
    subject: str | None = None,
    relation: str | None = None,
    object: str | None = None,
) -> Call[RememberedAnswer]:
    """Put other words in place of a memory's; a part of the fact that is not given stays as it was."""
    body = body_of(text=text, subject=subject, relation=relation, object=object)
    return Call(
        "POST", _at(memory_id, "correct"), answer_of(RememberedAnswer), body=body, is_repeatable=False
    )


def memories(
    scope: Scope,
    *,
    kind: str | None = None,
    tag: str | None = None,
    history: bool = False,
    limit: int = 50,
    cursor: UUID | str | None = None,
) -> Call[MemoriesAnswer]:
    """Current memories, newest first, the agent's own included; ``history`` adds retired ones."""
    query = query_of(kind=kind, tag=tag, history=history, limit=limit, cursor=cursor)
    return Call("GET", _memories_of(scope), answer_of(MemoriesAnswer), query=query)


def memory(memory_id: UUID | str) -> Call[MemoryAnswer]:
    """One memory; retired ones too, with the reason."""
    return Call("GET", _at(memory_id), answer_of(MemoryAnswer))


def why(memory_id: UUID | str) -> Call[WhyAnswer]:
    """Why a memory is there and how firmly: evidence, parents, successor, runs, strength, when it fades."""
    return Call("GET", _at(memory_id, "why"), answer_of(WhyAnswer))


def versions(memory_id: UUID | str) -> Call[VersionsAnswer]:
    """The chain that a memory stands in, oldest first."""
    return Call("GET", _at(memory_id, "versions"), answer_of(VersionsAnswer))


def pin(memory_id: UUID | str) -> Call[MemoryAnswer]:
    """Pin: it never fades, is never evicted and is always considered."""
    return Call("POST", _at(memory_id, "pin"), answer_of(MemoryAnswer))


def unpin(memory_id: UUID | str) -> Call[MemoryAnswer]:
    """Take the pin off."""
    return Call("POST", _at(memory_id, "unpin"), answer_of(MemoryAnswer))


def invalidate(memory_id: UUID | str) -> Call[MemoryAnswer]:
    """It is no longer true: close its interval now and keep it as history."""
    return _change(memory_id, "invalidate", MemoryAnswer)


def revive(memory_id: UUID | str) -> Call[MemoryAnswer]:
    """Bring back a memory that expired or was evicted."""
    return _change(memory_id, "revive", MemoryAnswer)


def unmerge(memory_id: UUID | str) -> Call[RestoredAnswer]:
    """Take a merged memory apart: its parts are current again and it is gone."""
    return _change(memory_id, "unmerge", RestoredAnswer)


def forget_memory(memory_id: UUID | str) -> Call[None]:
    """Delete a memory for good, and what was made of it alone. Where others work on the rows, a worker does it."""
    return Call("DELETE", _at(memory_id), nothing)


def add_fact(
    scope: Scope,
    subject: str,
    relation: str,
    object: str,
    *,
    text: str | None = None,
    subtype: str | None = None,
    subject_type: str | None = None,
    object_type: str | None = None,
    valid_from: datetime | None = None,
    said_at: datetime | None = None,
    valid_until: datetime | None = None,
    importance: float | None = None,
    importance_scale: str | None = None,
    confidence: float = 0.8,
    tags: Sequence[str] = (),
    pinned: bool = False,
    deduplicate: bool = True,
) -> Call[RememberedAnswer]:
    """Add a fact by hand; what it ends is closed, and entities are made of both ends where there are none yet."""
    body = body_of(
        subject=subject,
        relation=relation,
        object=object,
        text=text,
        subtype=subtype,
        subject_type=subject_type,
        object_type=object_type,
        valid_from=valid_from,
        said_at=said_at,
        valid_until=valid_until,
        importance=importance,
        importance_scale=importance_scale,
        confidence=confidence,
        tags=tags,
        pinned=pinned,
        deduplicate=deduplicate,
        session=scope.session,
    )
    return Call(
        "POST", in_user(scope, "facts"), answer_of(RememberedAnswer), body=body, is_repeatable=deduplicate
    )


def facts(
    scope: Scope,
    *,
    subject: str | None = None,
    relation: str | None = None,
    object: str | None = None,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    history: bool = False,
    query: str | None = None,
    match: str = "meaning",
    floor: bool = False,
    limit: int = 50,
    cursor: UUID | str | None = None,
) -> Call[FactsAnswer]:
    """Facts that hold now, held ``as_of`` a time, or were known at one; the ``history`` of a subject; or a search.

    ``match`` is ``meaning`` or ``keyword``; ``floor`` leaves out what is not clearly similar to the ``query``.
    """
    parameters = query_of(
        subject=subject,
        relation=relation,
        object=object,
        as_of=as_of,
        known_at=known_at,
        history=history,
        query=query,
        match=match,
        floor=floor,
        limit=limit,
        cursor=cursor,
    )
    return Call("GET", in_user(scope, "facts"), answer_of(FactsAnswer), query=parameters)


def entities(scope: Scope, *, limit: int = 100) -> Call[EntitiesAnswer]:
    """Who and what is talked about, most mentioned first."""
    return Call("GET", in_user(scope, "entities"), answer_of(EntitiesAnswer), query=query_of(limit=limit))


def entity(scope: Scope, key: str) -> Call[CardAnswer]:
    """The card of an entity; a merged key leads to what it was merged into."""
    return Call("GET", in_user(scope, "entities", key), answer_of(CardAnswer))


def merge_entities(scope: Scope, key: str, *, into: str) -> Call[MergedEntityAnswer]:
    """The entity ``key`` is the same thing as ``into``; undo it with the run that is named."""
    return Call(
        "POST",
        in_user(scope, "entities", key, "merge"),
        answer_of(MergedEntityAnswer),
        body=body_of(into=into),
        is_repeatable=False,
    )


def add_link(
    scope: Scope,
    source: UUID | str,
    target: UUID | str,
    *,
    type: str = "related_to",
    weight: float = 1.0,
) -> Call[LinkAnswer]:
    """Link two current memories of the scope by hand; drawn again it takes the new weight, above 0 and at most 1."""
    body = body_of(
        source=checked_id(source, field="source"),
        target=checked_id(target, field="target"),
        type=type,
        weight=weight,
    )
    return Call("POST", in_user(scope, "links"), answer_of(LinkAnswer), body=body)


def links(scope: Scope, memory: UUID | str, *, limit: int = 50) -> Call[LinksAnswer]:
    """Links that begin or end at a memory of the scope, strongest first; also those that jobs drew."""
    query = query_of(memory=checked_id(memory, field="memory"), limit=limit)
    return Call("GET", in_user(scope, "links"), answer_of(LinksAnswer), query=query)


def remove_link(scope: Scope, link_id: str) -> Call[None]:
    """Remove a link; both memories stay."""
    return Call("DELETE", in_user(scope, "links", link_id), nothing)


def _memories_of(scope: Scope) -> str:
    """Where memories of a user stand, or those that all users of the agent are shown."""
    return in_agent(scope.agent, "memories") if scope.user is None else in_user(scope, "memories")


def _change(memory_id: UUID | str, verb: str, model: type[Model]) -> Call[Model]:
    # Sent twice, the second would be refused although the first was done.
    return Call("POST", _at(memory_id, verb), answer_of(model), is_repeatable=False)


def _at(memory_id: UUID | str, *rest: str) -> str:
    return path("v1", "memories", checked_id(memory_id, field="memory_id"), *rest)
