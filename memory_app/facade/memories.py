"""Memories, facts and entities: store, read, correct, pin, delete."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from memory_app.extraction.declared import read_text
from memory_app.facade.base import Facade, cursor_of
from memory_app.forget import forget as forget_service
from memory_app.jobs.rows.runs import Run
from memory_app.memories import correct as correct_service
from memory_app.memories import entities as entities_service
from memory_app.memories import facts as facts_service
from memory_app.memories import fate as fate_service
from memory_app.memories import links as links_service
from memory_app.memories import lookup
from memory_app.memories import remember as remember_service
from memory_app.memories.entities import Card, MergedEntity
from memory_app.memories.facts import FactQuery, Match
from memory_app.memories.links import LinkView
from memory_app.memories.lookup import MemoryFilter, Why
from memory_app.memories.remember import Remembered
from memory_app.memories.rows.entities import Entity
from memory_app.memories.rows.facts import FactHit
from memory_app.records.audit import Action
from memory_app.records.choice import choice_of
from memory_app.records.ids import checked_id
from memory_app.records.records import (
    EmotionalState,
    Memory,
    Mention,
    RelationalContext,
    Statement,
)
from memory_app.records.scope import Scope
from memory_app.sleep import undo


class Memories(Facade):
    """See `MemoryApp`."""

    __slots__ = ()

    def remember(
        self,
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
        mentions: Sequence[Mention] = (),
    ) -> Remembered:
        """Store one statement. A fact of a text alone is read by rules: "Mira lives in Lisbon." ends "… in Porto."

        A scope with a session stores it as said there; one without a user holds what is about the agent itself, and
        ``shared`` lets all users see other kinds. ``deduplicate`` False stores what is known already once more.
        ``mentions`` are entities that it is about.
        """
        statement = Statement(
            kind,
            text,
            subtype=subtype,
            importance=importance,
            importance_scale=importance_scale,
            tags=tuple(tags),
            emotional_state=emotional_state,
            relational_context=relational_context,
            subject=subject,
            relation=relation,
            object=object,
            valid_from=valid_from,
            said_at=said_at,
            valid_until=valid_until,
            pinned=pinned,
            mentions=tuple(mentions),
        )
        return remember_service.remember(
            self.runtime,
            self.tenant_id,
            scope,
            statement=statement,
            deduplicate=deduplicate,
            shared=shared,
            read=read_text,
        )

    def correct(
        self,
        memory_id: UUID | str,
        text: str,
        *,
        subject: str | None = None,
        relation: str | None = None,
        object: str | None = None,
    ) -> Remembered:
        """Put other words in place of a memory's; a part of the fact that is not given stays as it was."""
        parts = {"subject": subject, "relation": relation, "object": object}
        triple = {name: part for name, part in parts.items() if part is not None}
        id = checked_id(memory_id, field="memory_id")
        return correct_service.correct(self.runtime, self.tenant_id, id, text=text, triple=triple)

    def memories(
        self,
        scope: Scope,
        *,
        kind: str | None = None,
        tag: str | None = None,
        history: bool = False,
        limit: int = 50,
        cursor: UUID | str | None = None,
    ) -> tuple[Memory, ...]:
        """Current memories, newest first, the agent's own included; ``history`` adds retired ones.

        ``cursor`` is the last id of the page before.
        """
        filters = MemoryFilter(kind=kind, tag=tag, limit=limit, before=cursor_of(cursor), history=history)
        return lookup.list_memories(self.runtime, self.tenant_id, scope, filters=filters)

    def memory(self, memory_id: UUID | str) -> Memory:
        """One memory; retired ones too, with the reason."""
        return lookup.read_memory(self.runtime, self.tenant_id, checked_id(memory_id, field="memory_id"))

    def why(self, memory_id: UUID | str) -> Why:
        """Why a memory is there and how firmly: evidence, parents, successor, runs, strength, when it fades."""
        return lookup.why(self.runtime, self.tenant_id, checked_id(memory_id, field="memory_id"))

    def versions(self, memory_id: UUID | str) -> tuple[Memory, ...]:
        """The chain that a memory stands in, oldest first."""
        return lookup.versions(self.runtime, self.tenant_id, checked_id(memory_id, field="memory_id"))

    def pin(self, memory_id: UUID | str) -> Memory:
        """Pin: it never fades, is never evicted and is always considered."""
        id = checked_id(memory_id, field="memory_id")
        return lookup.pin(self.runtime, self.tenant_id, id, pinned=True)

    def unpin(self, memory_id: UUID | str) -> Memory:
        """Take the pin off."""
        id = checked_id(memory_id, field="memory_id")
        return lookup.pin(self.runtime, self.tenant_id, id, pinned=False)

    def invalidate(self, memory_id: UUID | str) -> Memory:
        """It is no longer true: close its interval now and keep it as history."""
        return lookup.invalidate(self.runtime, self.tenant_id, checked_id(memory_id, field="memory_id"))

    def revive(self, memory_id: UUID | str) -> Memory:
        """Bring back a memory that expired or was evicted."""
        return fate_service.revive(self.runtime, self.tenant_id, checked_id(memory_id, field="memory_id"))

    def unmerge(self, memory_id: UUID | str) -> tuple[Memory, ...]:
        """Take a merged memory apart: its parts are current again and it is gone."""
        id = checked_id(memory_id, field="memory_id")
        with self._noting(Action.UNMERGE, target=id):
            return undo.undo_merge(self.runtime, self.tenant_id, id)

    def add_fact(
        self,
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
        shared: bool = False,
    ) -> Remembered:
        """Add a fact by hand; what it ends is closed, and entities are made of both ends where there are none yet.

        ``shared`` as for `remember`.
        """
        statement = Statement(
            "fact",
            text or "",
            subtype=subtype,
            subject=subject,
            relation=relation,
            object=object,
            valid_from=valid_from,
            said_at=said_at,
            valid_until=valid_until,
            importance=importance,
            importance_scale=importance_scale,
            confidence=confidence,
            tags=tuple(tags),
            pinned=pinned,
        )
        return facts_service.add_fact(
            self.runtime,
            self.tenant_id,
            scope,
            statement=statement,
            subject_type=subject_type,
            object_type=object_type,
            deduplicate=deduplicate,
            shared=shared,
        )

    def facts(
        self,
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
    ) -> tuple[FactHit, ...]:
        """Facts that hold now, held ``as_of`` a time, or were known at one; the ``history`` of a subject; or a search.

        ``match`` is ``meaning`` or ``keyword``; ``floor`` leaves out what is not clearly similar to the ``query``.
        ``cursor`` is the last id of the page before.
        """
        fact_query = FactQuery(
            subject=subject,
            relation=relation,
            object=object,
            as_of=as_of,
            known_at=known_at,
            history=history,
            text=query,
            match=choice_of(Match, match, field="match"),
            floor=floor,
            limit=limit,
            before=cursor_of(cursor),
        )
        return facts_service.find_facts(self.runtime, self.tenant_id, scope, query=fact_query)

    def add_link(
        self,
        scope: Scope,
        source: UUID | str,
        target: UUID | str,
        *,
        type: str = "related_to",
        weight: float = 1.0,
    ) -> LinkView:
        """Link two current memories of the scope by hand; drawn again it takes the new weight, 0 to 1."""
        return links_service.add_link(
            self.runtime, self.tenant_id, scope, source=source, target=target, type=type, weight=weight
        )

    def links(self, scope: Scope, memory: UUID | str, *, limit: int = 50) -> tuple[LinkView, ...]:
        """Links that begin or end at a memory of the scope, strongest first; also those that jobs drew."""
        return links_service.list_links(self.runtime, self.tenant_id, scope, memory=memory, limit=limit)

    def remove_link(self, scope: Scope, link_id: str) -> None:
        """Remove a link; both memories stay."""
        links_service.remove_link(self.runtime, self.tenant_id, scope, link_id)

    def entities(self, scope: Scope, *, limit: int = 100) -> tuple[Entity, ...]:
        """Who and what is talked about, most mentioned first."""
        return entities_service.list_entities(self.runtime, self.tenant_id, scope, limit=limit)

    def entity(self, scope: Scope, key: str) -> Card:
        """The card of an entity; a merged key leads to what it was merged into."""
        return entities_service.card(self.runtime, self.tenant_id, scope, key=key)

    def merge_entities(self, scope: Scope, key: str, *, into: str) -> MergedEntity:
        """The entity ``key`` is the same thing as ``into``; undo it with the run that is named."""
        return entities_service.merge(self.runtime, self.tenant_id, scope, key=key, into=into)

    def forget_memory(self, memory_id: UUID | str) -> Run:
        """Forget one memory for good, and what was made of it alone."""
        id = checked_id(memory_id, field="memory_id")
        with self._noting(Action.ERASE_MEMORY, target=id):
            return forget_service.forget_memory(self.runtime, self.tenant_id, id)
