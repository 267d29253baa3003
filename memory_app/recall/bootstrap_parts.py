"""What stands in every window of a scope, whatever is asked: sections 1–4, 6 and 9, and the user's own card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app.agents.persona import persona_of, render_persona
from memory_app.db import clock
from memory_app.db.shards import at_home
from memory_app.errors import MemoryAppError
from memory_app.hot import cache
from memory_app.hot.cache import CachedContext, asked_about
from memory_app.hot.window import HotContext
from memory_app.language.text import normalise
from memory_app.language.zones import zone_of
from memory_app.memories.remember import needs_seed
from memory_app.recall.own_card import EACH, RELATIONS, is_label, own_card, own_key
from memory_app.recall.parts import ContextParts, ExpressionPart, shared_vocabulary
from memory_app.recall.rows import always_shown
from memory_app.recall.rows.always_shown import KindLimit
from memory_app.records.importance import stored_importance
from memory_app.records.kinds import KINDS, Section, kind_of, kinds_of_section
from memory_app.records.layout import ANCHOR_IMPORTANCE, ANCHOR_LIMIT, ARTIFACT_LIMIT, CORE_LIMIT
from memory_app.records.records import Memory
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow

log = structlog.get_logger(__name__)

_READS = {
    Section.CORE: (CORE_LIMIT, 1),
    Section.EXPRESSION: (10, 1),
    Section.INSIGHTS: (ARTIFACT_LIMIT, 1),
    Section.IDENTITY: (5, 1),
    Section.NARRATIVE: (1, 1),
}
"""Sections that stand in every window of a scope, beside the anchors: most memories of each kind, and their least
importance."""

_LIMITS = {Section.CORE: CORE_LIMIT, Section.NARRATIVE: 1}


@dataclass(frozen=True, slots=True)
class Anchors:
    """Which relational anchors are shown: at most ``limit``. ``importance`` is the least one, 1–10; None: the usual."""

    limit: int = ANCHOR_LIMIT
    importance: int | None = None


def _kind_limits(anchors: Anchors) -> tuple[KindLimit, ...]:
    """Return the kinds that are read for every window, whatever the query."""
    least = ANCHOR_IMPORTANCE if anchors.importance is None else anchors.importance
    limits = []
    for section, (limit, floor) in {**_READS, Section.RELATIONSHIP: (anchors.limit, least)}.items():
        for kind in kinds_of_section(section):
            # The usual importance of a kind is enough, whatever its section requires: else a new kind might never show.
            is_chosen = section is Section.RELATIONSHIP and anchors.importance is not None
            least_of_kind = floor if is_chosen else min(floor, KINDS[kind].importance)
            limits.append(KindLimit(kind, limit, least=least_of_kind))
    return tuple(limits)


def bootstrap_parts(
    runtime: Runtime,
    connection: Connection,
    row: ScopeRow,
    *,
    hot_context: HotContext | None,
    anchors: Anchors = Anchors(),
) -> ContextParts:
    """Read the sections that do not depend on the query: 1–4, 6 and 9, and the user's own card."""
    bootstrap = _bootstrap_memories(runtime, connection, row, hot_context=hot_context, anchors=anchors)
    start = _start(connection, row, bootstrap.memories)
    memories = [memory for memory in bootstrap.memories if memory.id not in start.outdated]
    parts = _parts((*memories, *start.missing), row.persona, anchors=anchors)
    names_only = {memory.id for memory in bootstrap.own if is_label(row, memory)}
    parts = replace(parts, hidden=start.outdated | names_only)
    # What tunes the expression stands in that section already.
    in_expression = {memory.id for memory in parts.expression.memories}
    card = own_card(row, [memory for memory in bootstrap.own if memory.id not in in_expression])
    return replace(parts, cards=(card,) if card else (), zone=zone_of(row.time_zone))


@dataclass(frozen=True, slots=True)
class _Start:
    """What the agent begins with now, against what its user got of it: ``missing`` defaults, and ids of ``outdated``
    ones, which the agent no longer has."""

    missing: tuple[Memory, ...] = ()
    outdated: frozenset[UUID] = frozenset()


def _start(connection: Connection, row: ScopeRow, stored: Sequence[Memory]) -> _Start:
    if row.user_id is None:
        return _Start()
    defaults = _defaults(row.default_memories, row.now)
    if needs_seed(row):
        return _Start(missing=defaults)
    default_texts = {normalise(memory.text) for memory in defaults}
    # Defaults are stored in the transaction that notes the time; one that was said again since is the user's own.
    of_start = [
        memory for memory in stored if memory.created_at == row.seeded_at and memory.repeat_count == 1
    ]
    outdated = frozenset(memory.id for memory in of_start if normalise(memory.text) not in default_texts)
    stored_texts = {normalise(memory.text) for memory in stored}
    missing = [memory for memory in defaults if normalise(memory.text) not in stored_texts]
    if missing:
        # What the user took back is not missing.
        former = always_shown.former_texts(connection, row.id, [memory.text for memory in missing])
        missing = [memory for memory in missing if memory.text not in former]
    return _Start(tuple(missing), outdated)


def first_parts(
    connection: Connection, tenant_id: int, agent: str, *, anchors: Anchors = Anchors()
) -> FirstParts:
    """Read the window of a user whom the agent has not met: the persona, what the agent begins with, and its own
    memories."""
    start = names.agent_start(connection, tenant_id, agent)
    if start is None:
        return FirstParts(_parts((), None), clock.now(connection))
    if not parse_policy(start.policy).memory:
        return FirstParts(_parts((), start.persona), start.now)
    own: tuple[Memory, ...] = ()
    if start.scopes:
        with at_home(connection) as home:
            own = always_shown.strongest(home, start.scopes, _kind_limits(anchors))
    memories = (*own, *_defaults(start.default_memories, start.now))
    return FirstParts(_parts(memories, start.persona, anchors=anchors), start.now)


@dataclass(frozen=True, slots=True)
class FirstParts:
    """``now`` is the database's clock when they were read."""

    parts: ContextParts
    now: datetime


def persona_parts(persona: Mapping[str, object] | None) -> ContextParts:
    """The window of an agent whose memory is off: how it speaks, and nothing else."""
    return _parts((), persona)


def _defaults(defaults: Sequence[Mapping[str, Any]], now: datetime) -> tuple[Memory, ...]:
    """The agent's default memories as they will be stored."""
    return tuple(_default(fields, now) for fields in defaults)


def _default(fields: Mapping[str, Any], now: datetime) -> Memory:
    usual = kind_of(fields["kind"]).importance
    importance, _ = stored_importance(fields.get("importance"), usual, scale=fields.get("importance_scale"))
    return Memory(
        kind=fields["kind"],
        text=fields["text"],
        subtype=fields.get("subtype"),
        tags=tuple(fields.get("tags", ())),
        pinned=bool(fields.get("pinned", False)),
        importance=importance,
        created_at=now,
        valid_from=now,
    )


def _parts(
    memories: Sequence[Memory], persona: Mapping[str, object] | None, *, anchors: Anchors = Anchors()
) -> ContextParts:
    by_section = _by_section(memories)
    bonds = by_section[Section.RELATIONSHIP][: anchors.limit]
    speaking = by_section[Section.EXPRESSION]
    episodes = by_section[Section.NARRATIVE]
    moods = (memory.emotional_state for memory in (*speaking, *bonds))
    return ContextParts(
        core=by_section[Section.CORE],
        expression=ExpressionPart(
            persona=render_persona(persona_of(persona)),
            memories=speaking,
            mood=next(filter(None, moods), None),
        ),
        anchors=bonds,
        vocabulary=shared_vocabulary(bonds),
        artifacts=by_section[Section.INSIGHTS],
        identity=by_section[Section.IDENTITY],
        narrative=episodes[0].text if episodes else "",
        narrative_ids=tuple(memory.id for memory in episodes),
    )


@dataclass(frozen=True, slots=True)
class _Bootstrap:
    """Memories of every window: the strongest of some kinds, and ``own``, the facts of the user's own card."""

    memories: tuple[Memory, ...]
    own: tuple[Memory, ...]


def _bootstrap_memories(
    runtime: Runtime,
    connection: Connection,
    row: ScopeRow,
    *,
    hot_context: HotContext | None,
    anchors: Anchors,
) -> _Bootstrap:
    """Read them, by their cached ids while no memory of the scopes has changed."""
    limits = _kind_limits(anchors)
    if hot_context is None:
        return _read_bootstrap(connection, row, limits)
    cached = hot_context.cached.context
    # Part of the key, so that a kind or a relation that is new in this version shows at once.
    cache_key = asked_about("bootstrap", *limits, *RELATIONS)
    if cached is not None and cached.asked == cache_key:
        return _bootstrap_of(connection, row, cached)
    bootstrap = _read_bootstrap(connection, row, limits)
    fresh = CachedContext(cache_key, {"bootstrap": _ids(bootstrap.memories), "own": _ids(bootstrap.own)})
    try:
        # The token was taken before the read, so a change in between invalidates this entry.
        cache.put(runtime.hot, row.own_first, fresh, token=hot_context.cached.token)
    except MemoryAppError as error:
        log.warning("context_cache_not_written", error=error.kind)
    return bootstrap


def _bootstrap_of(connection: Connection, row: ScopeRow, cached: CachedContext) -> _Bootstrap:
    # The rows themselves are read, so that one that was erased a moment ago does not stand in the window.
    own = cached.ids.get("own", ())
    ids = dict.fromkeys((*cached.ids.get("bootstrap", ()), *own))
    memories = {memory.id: memory for memory in always_shown.visible_by_ids(connection, row, list(ids))}
    return _Bootstrap(
        memories=tuple(memories[id] for id in cached.ids.get("bootstrap", ()) if id in memories),
        own=tuple(memories[id] for id in own if id in memories),
    )


def _read_bootstrap(connection: Connection, row: ScopeRow, limits: Sequence[KindLimit]) -> _Bootstrap:
    key = own_key(row)
    own: tuple[Memory, ...] = ()
    if key is not None:
        own = always_shown.about(connection, row.id, key.partition(":")[2], RELATIONS, each=EACH)
    return _Bootstrap(_strongest(connection, row, limits), own)


def _ids(memories: Sequence[Memory]) -> tuple[UUID, ...]:
    return tuple(memory.id for memory in memories)


def _strongest(connection: Connection, row: ScopeRow, limits: Sequence[KindLimit]) -> tuple[Memory, ...]:
    return names.over_visible(
        connection, row, lambda place, scopes: always_shown.strongest(place, scopes, limits)
    )


def _by_section(memories: Sequence[Memory]) -> dict[Section, tuple[Memory, ...]]:
    """Group memories by section, strongest first, whatever their scope and kind."""
    ordered = sorted(memories, key=_strength_order, reverse=True)
    by_section = {}
    for section in Section:
        kinds = kinds_of_section(section)
        of_section = [memory for memory in ordered if memory.kind in kinds]
        # The limits of `_READS` hold for each kind and each visible scope; these for all of them together.
        by_section[section] = tuple(of_section[: _LIMITS.get(section)])
    return by_section


def _strength_order(memory: Memory) -> tuple[bool, int, datetime]:
    return memory.pinned, memory.importance, memory.last_seen or memory.created_at
