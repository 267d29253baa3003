"""A narrative for the query: made by the model in the background after a context call, shown by the next one.

At most one question for each scope in 300 seconds, for agents with a model. Without one, and until it is there, the
newest rolling summary stands in the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app import queue
from memory_app.db.db import transaction
from memory_app.errors import BadModelOutput, MemoryAppError, Transient
from memory_app.extraction import model_calls
from memory_app.extraction.llm import Row, narrate
from memory_app.hot import narrative as store
from memory_app.hot.narrative import StoredNarrative, Wish
from memory_app.language.zones import zone_of
from memory_app.recall.parts import ContextParts
from memory_app.recall.records import Hit, RecallQuery
from memory_app.recall.rows import always_shown
from memory_app.records.records import Memory, Tier, Turn
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import ExtractionMode, parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.turns.rows import turns

log = structlog.get_logger(__name__)

ROWS = 12
"""Rows that a narrative is made of."""

BEST_ROWS = 6
"""A query that shares half of its best rows is on the same subject; all rows of a small scope would always do."""

FEWEST_ROWS = 3
"""Fewer tell their story themselves."""

SAME_SUBJECT = 0.5

_TIERS = (Tier.FACTS, Tier.DAILY_LOGS)


def with_narrative(
    runtime: Runtime,
    tenant_id: int,
    row: ScopeRow,
    parts: ContextParts,
    *,
    query: RecallQuery,
    hits: Sequence[Hit],
) -> ContextParts:
    """Return ``parts`` with the narrative for what was recalled; where there is none, workers are asked for one.

    Without Redis the parts stay as they are.
    """
    ids = [hit.id for hit in hits if hit.tier in _TIERS and isinstance(hit.id, UUID)][:ROWS]
    if query.text is None or len(ids) < FEWEST_ROWS or not _is_on(runtime, row):
        return parts
    try:
        stored = store.read(runtime.hot, row.own_first)
        if stored is not None and _is_about(stored, _best(ids)):
            # Its rows stay in the window: it leaves much out of them.
            return replace(parts, narrative=stored.text, narrative_ids=())
        if store.wish(runtime.hot, row.id, Wish(tenant_id, tuple(ids))):
            runtime.hint(queue.NARRATE, scope_id=row.id)
    except MemoryAppError as error:
        log.warning("narrative_left_out", error=error.kind)
    return parts


def _best(ids: Sequence[UUID]) -> frozenset[str]:
    return frozenset(str(id) for id in ids[:BEST_ROWS])


def _is_on(runtime: Runtime, row: ScopeRow) -> bool:
    is_possible = runtime.settings.context.narrative and runtime.chat is not None
    return is_possible and parse_policy(row.policy).extraction is ExtractionMode.LLM


def _is_about(stored: StoredNarrative, ids: frozenset[str]) -> bool:
    fewest = min(len(stored.rows), len(ids))
    return len(stored.rows & ids) >= SAME_SUBJECT * fewest


def make_narrative(runtime: Runtime, scope_id: int) -> None:
    """Make the narrative that was wished for, and keep it for some minutes. Without a wish there is nothing to do.

    What goes wrong leaves it out: it is worth no second try.
    """
    try:
        _make(runtime, scope_id)
    except (BadModelOutput, Transient) as error:
        log.warning("narrative_not_made", scope=scope_id, error=error.kind)


def _make(runtime: Runtime, scope_id: int) -> None:
    wish = store.take_wish(runtime.hot, scope_id)
    if wish is None:
        return
    with transaction(runtime.engine, wish.tenant_id) as connection:
        row = names.read_scope(connection, scope_id)
    if row is None or not _is_on(runtime, row):
        return
    # Before the rows are read: a memory that changes afterwards makes what is stored below void.
    token = store.token(runtime.hot, row.own_first)
    with transaction(runtime.engine, wish.tenant_id) as connection:
        rows = _read_rows(connection, row, wish.rows)
    if len(rows) < FEWEST_ROWS:
        return
    asking = model_calls.for_narratives(runtime, wish.tenant_id, parse_policy(row.policy))
    narrative = narrate(asking, rows, zone=zone_of(row.time_zone), names=(row.user or "", row.agent))
    model_calls.count_dropped(runtime, narrative.provenance.dropped)
    with transaction(runtime.engine, wish.tenant_id) as connection:
        is_erased = _is_erased(connection, scope_id)
    if narrative.sentences and not is_erased:
        story = " ".join(sentence.text for sentence in narrative.sentences)
        store.put(runtime.hot, scope_id, StoredNarrative(story, _best(wish.rows)), token=token)
    log.info(
        "narrative_made", scope=scope_id, sentences=len(narrative.sentences), calls=narrative.provenance.calls
    )


def _read_rows(connection: Connection, row: ScopeRow, ids: Sequence[UUID]) -> list[Row]:
    """Return what is still there of the memories and turns, best first."""
    by_id = {memory.id: _memory_row(memory) for memory in always_shown.visible_by_ids(connection, row, ids)}
    by_id |= {turn.id: _turn_row(turn) for turn in turns.by_ids(connection, row.own_first, ids)}
    return [by_id[id] for id in ids if id in by_id]


def _is_erased(connection: Connection, scope_id: int) -> bool:
    # The person may have been forgotten while the model worked.
    return names.read_scope(connection, scope_id) is None


def _memory_row(memory: Memory) -> Row:
    return Row(memory.id, memory.text, memory.kind, at=memory.valid_from, until=memory.valid_until)


def _turn_row(turn: Turn) -> Row:
    return Row(turn.id, turn.text, f"{turn.speaker} ({turn.role})", at=turn.at)
