"""Index: make accepted turns searchable, in batches over all sessions and tenants. Order does not matter here.

Turns are borrowed for a lease, embedded with no transaction open, and written where nobody else was faster.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from uuid import UUID

import structlog

from memory_app import failpoint, queue
from memory_app.db.db import transaction, wait_briefly
from memory_app.errors import MemoryAppError, Permanent, StoreUnavailable, Transient
from memory_app.hot import hints
from memory_app.jobs import schedule
from memory_app.language.keywords import keyword_weights
from memory_app.language.sentence_type import traits_of
from memory_app.language.text import embedded_text, indexed_text, terms
from memory_app.memories import remember
from memory_app.memories.rows import scope_models
from memory_app.memories.rows import terms as term_store
from memory_app.records.records import Role, Turn
from memory_app.runtime import Runtime, hint_name
from memory_app.tenancy.rows import names
from memory_app.turns import routing
from memory_app.turns.rows import speakers, turns, waiting
from memory_app.turns.rows.turns import ClaimedTurn, IndexedTurn
from memory_app.turns.rows.waiting import DueSession

log = structlog.get_logger(__name__)

QUARANTINED = (
    "quarantined: its worker died {starts} times while indexing it; replay it once the cause is mended"
)


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What one call did: turns indexed, set aside with a reason, and given back for later."""

    indexed: int = 0
    failed: int = 0
    postponed: int = 0

    def __add__(self, other: IndexReport) -> IndexReport:
        return IndexReport(
            self.indexed + other.indexed, self.failed + other.failed, self.postponed + other.postponed
        )


def index_turns(runtime: Runtime, *, most_batches: int = 50) -> IndexReport:
    """Index until nothing is left to claim, or ``most_batches`` were done; then the next hint goes on.

    Calls the embedder. A second call at the same time finds other turns, or none.
    """
    _clear_hint(runtime)
    runtime.returns.try_again()
    done = IndexReport()
    for _ in range(most_batches):
        claimed = _claim(runtime)
        if not claimed:
            break
        failpoint.reach("index.after_claim")
        done += _index_claimed(runtime, claimed)
    else:
        runtime.hint(queue.INDEX_TURNS)
    if done != IndexReport():
        log.info("turns_indexed", indexed=done.indexed, failed=done.failed, postponed=done.postponed)
    return done


def _clear_hint(runtime: Runtime) -> None:
    """Before looking, so that a turn committed after the look brings a new hint."""
    try:
        hints.clear(runtime.hot, hint_name(queue.INDEX_TURNS))
    except MemoryAppError as error:
        log.warning("hint_not_cleared", error=error.kind)


def _claim(runtime: Runtime) -> tuple[ClaimedTurn, ...]:
    settings = runtime.settings.index
    with transaction(runtime.engine, None) as connection:
        return turns.claim(connection, batch=settings.batch, lease=timedelta(seconds=settings.lease_seconds))


def _index_claimed(runtime: Runtime, claimed: Sequence[ClaimedTurn]) -> IndexReport:
    limit = runtime.settings.index.starts_limit
    report = IndexReport()
    by_tenant: dict[int, list[ClaimedTurn]] = defaultdict(list)
    for turn in claimed:
        if turn.starts > limit:
            reason = QUARANTINED.format(starts=limit)
            report += IndexReport(failed=_set_aside(runtime, turn.tenant_id, [turn], reason))
        else:
            by_tenant[turn.tenant_id].append(turn)
    try:
        for tenant_id in list(by_tenant):
            report += _index_of_tenant(runtime, tenant_id, by_tenant[tenant_id])
            del by_tenant[tenant_id]
    except StoreUnavailable:
        gives = [partial(_free, runtime, tenant_id, borrowed) for tenant_id, borrowed in by_tenant.items()]
        runtime.returns.give_back(*gives, within_seconds=runtime.settings.index.lease_seconds)
        raise
    return report


def _free(runtime: Runtime, tenant_id: int, borrowed: Sequence[ClaimedTurn], *, briefly: bool) -> None:
    with transaction(runtime.engine, tenant_id) as connection:
        if briefly:
            wait_briefly(connection)
        turns.postpone(connection, borrowed, timedelta(seconds=_backoff(runtime)))


def _index_of_tenant(runtime: Runtime, tenant_id: int, borrowed: Sequence[ClaimedTurn]) -> IndexReport:
    scope_of = {turn.id: turn.scope_id for turn in borrowed}
    with transaction(runtime.engine, tenant_id) as connection:
        found = turns.by_ids(connection, list(set(scope_of.values())), scope_of)
        new_scopes = names.unseeded(connection, list(set(scope_of.values())))
    try:
        indexed, counted = _indexed(runtime, found, scope_of)
    except Transient as error:
        return _postpone(runtime, tenant_id, borrowed, error)
    except Permanent as error:
        if len(borrowed) == 1:
            return IndexReport(failed=_set_aside(runtime, tenant_id, borrowed, error.message))
        # One bad text must not take its neighbours along: each gets its own call.
        return sum((_index_of_tenant(runtime, tenant_id, [turn]) for turn in borrowed), IndexReport())
    try:
        done, due = _write(runtime, tenant_id, found, indexed, counted, scope_of)
    except Transient as error:
        return _postpone(runtime, tenant_id, borrowed, error)
    for session in due:
        routing.hint_session(runtime, session)
    for scope_id in new_scopes:
        _seed(runtime, tenant_id, scope_id)
    return IndexReport(indexed=done)


def _write(
    runtime: Runtime,
    tenant_id: int,
    found: Sequence[Turn],
    indexed: Sequence[IndexedTurn],
    counted: dict[UUID, set[int]],
    scope_of: dict[UUID, int],
) -> tuple[int, tuple[DueSession, ...]]:
    """Vectors and counts of the turns that nobody else wrote meanwhile; how many, and which sessions are due now."""
    with transaction(runtime.engine, tenant_id) as connection:
        scope_models.add(connection, scope_of.values(), runtime.embedder.model)
        written = turns.index(connection, indexed, model=runtime.embedder.model)
        fresh = [(scope_of[turn_id], present) for turn_id, present in counted.items() if turn_id in written]
        term_store.add(connection, tenant_id, fresh)
        spoke = [(scope_of[turn.id], turn.speaker) for turn in found if turn.id in written]
        speakers.add(connection, tenant_id, spoke)
        schedule.wake(connection, runtime, set(scope_of.values()))
        due = waiting.due_sessions_of(connection, list(set(scope_of.values())), list(scope_of))
        failpoint.reach("index.before_commit")
    failpoint.reach("index.after_commit")
    return len(written), due


def _postpone(
    runtime: Runtime, tenant_id: int, borrowed: Sequence[ClaimedTurn], error: Transient
) -> IndexReport:
    wait = error.retry_after or _backoff(runtime)
    with transaction(runtime.engine, tenant_id) as connection:
        turns.postpone(connection, borrowed, timedelta(seconds=wait))
    log.warning("indexing_postponed", turns=len(borrowed), seconds=wait, error=error.kind)
    return IndexReport(postponed=len(borrowed))


def _seed(runtime: Runtime, tenant_id: int, scope_id: int) -> None:
    """One agent's defaults must not hold up the turns of others; the scope is tried again with its next turn."""
    try:
        remember.seed(runtime, tenant_id, scope_id)
    except MemoryAppError as error:
        log.warning("scope_not_seeded", scope=scope_id, error=error.kind)


def _indexed(
    runtime: Runtime, found: Sequence[Turn], scope_of: dict[UUID, int]
) -> tuple[list[IndexedTurn], dict[UUID, set[int]]]:
    vectors = runtime.embedder.embed([embedded_text(turn.speaker, turn.at, turn.text) for turn in found])
    indexed, counted = [], {}
    for turn, vector in zip(found, vectors, strict=True):
        weights = keyword_weights(terms(indexed_text(turn.speaker, turn.at, turn.text)))
        traits = traits_of(turn.text, by_user=turn.role is Role.USER)
        indexed.append(IndexedTurn(scope_of[turn.id], turn.id, vector, weights, traits))
        counted[turn.id] = set(weights)
    return indexed, counted


def _set_aside(runtime: Runtime, tenant_id: int, borrowed: Sequence[ClaimedTurn], reason: str) -> int:
    count = 0
    with transaction(runtime.engine, tenant_id) as connection:
        for turn in borrowed:
            count += len(turns.fail(connection, turn.scope_id, [turn.id], reason))
            log.error("turn_failed", turn=str(turn.id), reason=reason)
    return count


def _backoff(runtime: Runtime) -> float:
    """Seconds to wait when the provider named none; jitter keeps many workers from coming back together."""
    return runtime.settings.extract.retry_base_seconds * random.uniform(1, 3)
