"""Index accepted turns, so that search finds them, in batches over all sessions and tenants, in any order.

Turns are borrowed for a lease, embedded with no transaction open, and written unless another worker was faster.
"""

from __future__ import annotations

import itertools
import random
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app import correlation, failpoint, metrics, queue
from memory_app.db.db import transaction, wait_briefly
from memory_app.errors import MemoryAppError, Permanent, StoreUnavailable, Transient
from memory_app.hot import hints
from memory_app.jobs import schedule
from memory_app.language.keywords import keyword_weights
from memory_app.language.redaction import NO_RULES, Rules
from memory_app.language.sentence_type import traits_of
from memory_app.language.text import embedded_text, indexed_text, terms
from memory_app.memories import remember
from memory_app.memories.rows import scope_models
from memory_app.memories.rows import terms as term_store
from memory_app.records.records import Role, Turn
from memory_app.runtime import Runtime
from memory_app.tenancy import redaction
from memory_app.tenancy.rows import names
from memory_app.turns import routing
from memory_app.turns.rows import extract_work, failed_turns, index_work, speakers, turns
from memory_app.turns.rows.extract_work import DueSession
from memory_app.turns.rows.index_work import ClaimedTurn, IndexedTurn

log = structlog.get_logger(__name__)

MOST_SECONDS = 15.0
"""How long one call goes on: far below the time limit of a task, which would end a batch that did nothing wrong."""

QUARANTINED = (
    "quarantined: its worker died {starts} times while indexing it; replay it once the cause is mended"
)


GoOn = Callable[[Runtime, Sequence[DueSession]], None]
"""What follows for the sessions that are due once their turns are indexed."""


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What one call did: turns indexed, set aside with a reason, and given back for later. ``due`` are the sessions
    that may be extracted now."""

    indexed: int = 0
    failed: int = 0
    postponed: int = 0
    due: tuple[DueSession, ...] = field(default=(), compare=False)

    def __add__(self, other: IndexReport) -> IndexReport:
        return IndexReport(
            self.indexed + other.indexed,
            self.failed + other.failed,
            self.postponed + other.postponed,
            self.due + other.due,
        )


def index_turns(
    runtime: Runtime,
    *,
    most_batches: int = 50,
    most_seconds: float = MOST_SECONDS,
    go_on: GoOn = routing.hint_sessions,
) -> IndexReport:
    """Index until nothing is left to claim, or for ``most_batches`` or ``most_seconds``; then the next hint goes on.

    ``go_on`` is called with the sessions that became due, after each batch. Calls the embedder. A second call at the
    same time finds other turns, or none.
    """
    _clear_hint(runtime)
    runtime.returns.try_again()
    done = IndexReport()
    ends_at = time.monotonic() + most_seconds
    for batch in itertools.count(1):
        claimed = _claim(runtime)
        if not claimed:
            break
        failpoint.reach("index.after_claim")
        report = _index_claimed(runtime, claimed)
        _count(report)
        done += report
        # Only now: what fails there keeps no other tenant's turns from being indexed.
        go_on(runtime, report.due)
        # Nothing else waited, and a turn that came since brings a hint of its own, since that of this call was cleared.
        # One whose worker died is claimed alone, whatever waits beside it.
        if len(claimed) < runtime.settings.index.batch and all(turn.starts == 1 for turn in claimed):
            break
        if batch >= most_batches or time.monotonic() > ends_at:
            runtime.hint(queue.INDEX_TURNS)
            break
    if done != IndexReport():
        log.info("turns_indexed", indexed=done.indexed, failed=done.failed, postponed=done.postponed)
    return done


def _count(report: IndexReport) -> None:
    metrics.turns.labels("indexed").inc(report.indexed)
    metrics.turns.labels("failed").inc(report.failed)
    metrics.turns.labels("postponed").inc(report.postponed)


def _clear_hint(runtime: Runtime) -> None:
    """Before looking, so that a turn committed after the look brings a new hint."""
    try:
        hints.clear(runtime.hot, runtime.hint_name(queue.INDEX_TURNS))
    except MemoryAppError as error:
        log.warning("hint_not_cleared", error=error.kind)


def _claim(runtime: Runtime) -> tuple[ClaimedTurn, ...]:
    settings = runtime.settings.index
    with transaction(runtime.engine, None) as connection:
        return index_work.claim(
            connection, batch=settings.batch, lease=timedelta(seconds=settings.lease_seconds)
        )


def _index_claimed(runtime: Runtime, claimed: Sequence[ClaimedTurn]) -> IndexReport:
    limit = runtime.settings.index.starts_limit
    report = IndexReport()
    by_tenant: dict[int, list[ClaimedTurn]] = defaultdict(list)
    for turn in claimed:
        if turn.starts > limit:
            reason = QUARANTINED.format(starts=limit)
            report += IndexReport(failed=_set_aside(runtime, turn.tenant_id, [turn], reason=reason))
        else:
            by_tenant[turn.tenant_id].append(turn)
    try:
        for tenant_id in list(by_tenant):
            report += _index_of_tenant(runtime, tenant_id, by_tenant[tenant_id])
            # What remains when the database goes away is given back.
            del by_tenant[tenant_id]
    except StoreUnavailable:
        gives = [
            partial(_free, runtime, tenant_id, borrowed=borrowed) for tenant_id, borrowed in by_tenant.items()
        ]
        runtime.returns.give_back(*gives, within_seconds=runtime.settings.index.lease_seconds)
        raise
    return report


def _free(runtime: Runtime, tenant_id: int, borrowed: Sequence[ClaimedTurn], *, briefly: bool) -> None:
    with transaction(runtime.engine, tenant_id) as connection:
        if briefly:
            wait_briefly(connection)
        _give_back(connection, borrowed, seconds=_backoff(runtime))


def _give_back(connection: Connection, borrowed: Sequence[ClaimedTurn], *, seconds: float) -> None:
    names.share_scopes(connection, {turn.scope_id for turn in borrowed})
    index_work.postpone(connection, borrowed, timedelta(seconds=seconds))


def _index_of_tenant(runtime: Runtime, tenant_id: int, borrowed: Sequence[ClaimedTurn]) -> IndexReport:
    scope_of = {turn.id: turn.scope_id for turn in borrowed}
    with transaction(runtime.engine, tenant_id) as connection:
        borrowed_turns = turns.by_ids(connection, list(set(scope_of.values())), scope_of, withheld=True)
        new_scopes = names.unseeded(connection, list(set(scope_of.values())))
        rules = redaction.rules_by_scope(connection, runtime, set(scope_of.values()))
    try:
        indexed, terms_of = _indexed(runtime, borrowed_turns, scope_of, rules=rules)
    except Transient as error:
        return _postpone(runtime, tenant_id, borrowed, error=error)
    except Permanent as error:
        if len(borrowed) == 1:
            return IndexReport(failed=_set_aside(runtime, tenant_id, borrowed, reason=error.message))
        # One bad text must not take its neighbours along: each gets its own call.
        return sum((_index_of_tenant(runtime, tenant_id, [turn]) for turn in borrowed), IndexReport())
    try:
        count, due = _write(
            runtime,
            tenant_id,
            borrowed_turns=borrowed_turns,
            indexed=indexed,
            terms_of=terms_of,
            scope_of=scope_of,
        )
    except Transient as error:
        return _postpone(runtime, tenant_id, borrowed, error=error)
    for scope_id in new_scopes:
        _seed(runtime, tenant_id, scope_id)
    return IndexReport(indexed=count, due=due)


def _write(
    runtime: Runtime,
    tenant_id: int,
    *,
    borrowed_turns: Sequence[Turn],
    indexed: Sequence[IndexedTurn],
    terms_of: dict[UUID, set[int]],
    scope_of: dict[UUID, int],
) -> tuple[int, tuple[DueSession, ...]]:
    """Write vectors and counts of the turns; how many no other worker wrote before, and which sessions are due now."""
    with transaction(runtime.engine, tenant_id) as connection:
        scope_models.add(connection, scope_of.values(), runtime.embedder.model)
        written = index_work.index(
            connection, indexed, model=runtime.embedder.model, task_id=correlation.task_id()
        )
        # Document frequencies count each turn once, also when two workers have embedded it.
        new_terms = [(scope_of[turn_id], terms_of[turn_id]) for turn_id in terms_of if written.get(turn_id)]
        term_store.add(connection, tenant_id, new_terms)
        new_speakers = [(scope_of[turn.id], turn.speaker) for turn in borrowed_turns if turn.id in written]
        speakers.add(connection, tenant_id, new_speakers)
        schedule.wake(connection, runtime, set(scope_of.values()))
        due = extract_work.due_sessions_of(connection, list(set(scope_of.values())), list(scope_of))
        failpoint.reach("index.before_commit")
    failpoint.reach("index.after_commit")
    correlation.note(correlation.TURNS, written)
    return len(written), due


def _postpone(
    runtime: Runtime, tenant_id: int, borrowed: Sequence[ClaimedTurn], *, error: Transient
) -> IndexReport:
    wait = error.retry_after or _backoff(runtime)
    with transaction(runtime.engine, tenant_id) as connection:
        _give_back(connection, borrowed, seconds=wait)
    log.warning("indexing_postponed", turns=len(borrowed), seconds=wait, error=error.kind)
    return IndexReport(postponed=len(borrowed))


def _seed(runtime: Runtime, tenant_id: int, scope_id: int) -> None:
    """Store the default memories of the agent for a new scope."""
    try:
        remember.seed(runtime, tenant_id, scope_id)
    except MemoryAppError as error:
        # The defaults of one agent must not hold up the turns of others: it is tried again with the next turn.
        log.warning("scope_not_seeded", scope=scope_id, error=error.kind)


def _indexed(
    runtime: Runtime,
    borrowed_turns: Sequence[Turn],
    scope_of: dict[UUID, int],
    *,
    rules: Mapping[int, Rules],
) -> tuple[list[IndexedTurn], dict[UUID, set[int]]]:
    """What search reads of the turns, and the distinct terms of each."""
    texts = [
        embedded_text(
            turn.speaker,
            turn.at,
            redaction.for_provider(turn.text, rules.get(scope_of[turn.id], NO_RULES)),
        )
        for turn in borrowed_turns
    ]
    # One call for all of them: a provider answers many texts nearly as soon as one.
    vectors = runtime.embedder.embed(texts)
    indexed, terms_of = [], {}
    for turn, vector in zip(borrowed_turns, vectors, strict=True):
        # Speaker and date in the indexed text find more turns than a better model would.
        weights = keyword_weights(terms(indexed_text(turn.speaker, turn.at, turn.text)))
        indexed.append(
            IndexedTurn(
                scope_id=scope_of[turn.id],
                id=turn.id,
                embedding=vector,
                keywords=weights,
                traits=traits_of(turn.text, by_user=turn.role is Role.USER),
            )
        )
        terms_of[turn.id] = set(weights)
    return indexed, terms_of


def _set_aside(runtime: Runtime, tenant_id: int, borrowed: Sequence[ClaimedTurn], *, reason: str) -> int:
    count = 0
    with transaction(runtime.engine, tenant_id) as connection:
        for turn in borrowed:
            count += len(failed_turns.fail(connection, turn.scope_id, [turn.id], reason=reason))
            log.error("turn_failed", turn=str(turn.id), reason=reason)
    return count


def _backoff(runtime: Runtime) -> float:
    """Seconds to wait when the provider named none."""
    # With jitter, so that many workers do not come back together.
    return runtime.settings.extract.retry_base_seconds * random.uniform(1, 3)
