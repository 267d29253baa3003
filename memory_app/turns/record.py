"""Record turns: store them durably, once and in order, then send a hint to the workers and answer.

Everything after the commit is best effort: the stream and the hint may be lost, the rows cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from uuid import UUID

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from memory_app import correlation, failpoint, metrics, queue
from memory_app.db.db import transaction
from memory_app.errors import Conflict, InvalidInput, MemoryAppError
from memory_app.hot import accepted, expression
from memory_app.hot.accepted import Accepted
from memory_app.hot.expression import Interaction
from memory_app.hot.stream import Entry
from memory_app.jobs.rows.runs import Run
from memory_app.language.zones import offset_of
from memory_app.records.records import NewTurn, Role, Stage, Ticket
from memory_app.records.scope import Scope
from memory_app.runtime import HINT_LIFE_MS, Runtime
from memory_app.settings import Extract
from memory_app.tenancy import quotas, redaction
from memory_app.tenancy.digests import KEY, TURN, Digests, digests_of, hidden_key, key_name, sent_name
from memory_app.tenancy.policy import ExtractionMode, Policy, parse_policy
from memory_app.tenancy.quotas import Quota
from memory_app.tenancy.rows import names, user_details
from memory_app.tenancy.shards import in_scopes_shard
from memory_app.turns import erased
from memory_app.turns.erased import Waited
from memory_app.turns.intake import Limits, believed, checked_batch
from memory_app.turns.redacted import Prepared, prepared_turn
from memory_app.turns.replaced import hint_erasures, take_places
from memory_app.turns.rows import acceptance, sessions

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Recorded:
    """What a call stored: the turns as they are stored, and the erasures of those that they replaced."""

    tickets: tuple[Ticket, ...]
    session: sessions.LockedSession
    turns: tuple[NewTurn, ...]
    erasures: tuple[Run, ...]


@in_scopes_shard
def record(
    runtime: Runtime,
    tenant_id: int,
    scope: Scope,
    new: Sequence[NewTurn],
    *,
    waited: Waited | None = None,
) -> tuple[Ticket, ...]:
    """Accept turns of one session in the order given; one ticket each, in the same order.

    A turn whose idempotency key was used before gets the first ticket again; `Conflict` if the key stood for other
    content, and then nothing of the call is stored; `Erased` if the very turn was erased since, or, for a turn that
    ``waited`` as a message, its person or session. A turn that ``replaces`` another of the session takes its place in
    listings, and the other is forgotten; `NotFound` if it is not there. Raises `InvalidInput`, `TooLarge`,
    `RateLimited` above the backlog limit, `QuotaExceeded`, or `StoreUnavailable` when the outcome is uncertain (the
    keys make a retry safe).
    """
    if scope.session is None or scope.user is None:
        raise InvalidInput("session: a turn belongs to a user and a session", field="session")
    settings = runtime.settings.record
    limits = Limits(
        text_chars=settings.text_limit_chars,
        metadata_bytes=settings.metadata_limit_bytes,
        batch=settings.batch_limit,
    )
    checked = checked_batch(new, limits)
    new_turns = [turn for turn, _ in checked]
    # Before anything is stored: a caller who sends faster than workers index is told to wait.
    of_tenant = runtime.backlog.admit(runtime.engine, tenant_id)
    turn_quotas = quotas.turn_quotas(runtime, tenant_id, scope.user, of_tenant)
    store = partial(
        _store,
        runtime,
        tenant_id,
        scope=scope,
        new_turns=new_turns,
        waited=waited,
        turn_quotas=turn_quotas,
    )
    try:
        recorded = store()
    except IntegrityError:
        # The same key was accepted at this moment in another session: the second look finds it.
        recorded = store()
    tickets = tuple(
        replace(ticket, cleaned=is_changed)
        for ticket, (_, is_changed) in zip(recorded.tickets, checked, strict=True)
    )
    quotas.note_turns(runtime, tenant_id, scope.user, sum(not ticket.duplicate for ticket in tickets))
    _announce(runtime, recorded.session, new_turns=recorded.turns, tickets=tickets)
    hint_erasures(runtime, recorded.erasures)
    return tickets


def debounce(policy: Policy, settings: Extract) -> sessions.Debounce | None:
    """When turns of an agent make their session due; None where nothing is extracted."""
    if policy.extraction is ExtractionMode.OFF or not policy.memory:
        return None
    # Rules cost nothing, so they run at once. A model is asked about several turns together.
    if policy.extraction is ExtractionMode.RULES:
        return sessions.Debounce(after_turns=1, idle=timedelta(0), max_age=timedelta(0))
    idle_seconds, max_age_seconds = policy.idle_seconds, policy.max_age_seconds
    # 0 is a value of the policy, which must not be taken for none.
    if idle_seconds is None:
        idle_seconds = settings.idle_seconds
    if max_age_seconds is None:
        max_age_seconds = settings.max_age_seconds
    return sessions.Debounce(
        after_turns=policy.after_turns or settings.after_turns,
        idle=timedelta(seconds=idle_seconds),
        max_age=timedelta(seconds=max_age_seconds),
    )


def _speaker_of_role(scope: Scope, role: Role) -> str:
    if role is Role.USER:
        return scope.user or role.value
    return scope.agent if role is Role.ASSISTANT else role.value


def _store(
    runtime: Runtime,
    tenant_id: int,
    *,
    scope: Scope,
    new_turns: Sequence[NewTurn],
    waited: Waited | None,
    turn_quotas: Sequence[Quota],
) -> _Recorded:
    made = digests_of(runtime.settings)
    with transaction(runtime.engine, tenant_id) as connection:
        if waited is not None:
            # Before all other locks, as an erasure takes it.
            erased.hold(connection, tenant_id, scope)
        # The lock first: under it the numbers have no gaps, and two calls of one session cannot both store a key.
        session = _locked(connection, tenant_id, scope)
        if waited is not None:
            erased.check_waited(connection, tenant_id, scope, waited=waited, made=made)
        policy = parse_policy(session.policy)
        prepared = _prepared(scope, new_turns, session=session, policy=policy)
        earlier_uses = _earlier_uses(
            connection, tenant_id, session, scope=scope, prepared=prepared, made=made
        )
        fresh = _fresh(prepared, earlier_uses)
        # After the key was compared, which is of what the caller sent.
        fresh = [replace(item, turn=believed(item.turn, session.now)) for item in fresh]
        stored: tuple[tuple[UUID, int], ...] = ()
        erasures: tuple[Run, ...] = ()
        if fresh:
            # Only for new turns: a retry of what was stored before the switch still gets its tickets.
            if not policy.memory:
                raise Conflict(
                    f"agent {scope.agent!r}: its memory is off; switch `memory` on in its policy to record",
                    field="agent",
                )
            # For the same reason: what is stored already costs nothing.
            for quota in turn_quotas:
                quota.check(len(fresh))
            places, erasures = take_places(connection, tenant_id, session, [item.turn for item in fresh])
            stored = acceptance.accept(
                connection,
                tenant_id,
                session,
                new_turns=fresh,
                debounce=debounce(policy, runtime.settings.extract),
                request_id=correlation.request_id(),
                places=places,
            )
            _note_offset(connection, tenant_id, session, turns=[item.turn for item in fresh])
        failpoint.reach("record.before_commit")
    failpoint.reach("record.after_commit")
    tickets = _tickets(prepared, earlier_uses, stored)
    return _Recorded(tickets, session, tuple(item.turn for item in prepared), erasures)


def _prepared(
    scope: Scope, new_turns: Sequence[NewTurn], *, session: sessions.LockedSession, policy: Policy
) -> list[Prepared]:
    """The turns as they may be stored, with who said each."""
    return [
        prepared_turn(
            scope,
            turn,
            speaker=turn.speaker or _speaker_of_role(scope, turn.role),
            rules=policy.redaction_rules,
            label=session.label if turn.role is Role.USER else None,
        )
        for turn in new_turns
    ]


def _earlier_uses(
    connection: Connection,
    tenant_id: int,
    session: sessions.LockedSession,
    *,
    scope: Scope,
    prepared: Sequence[Prepared],
    made: Digests,
) -> dict[str, acceptance.KnownKey]:
    """What the idempotency keys of the turns stood for before. Raises `Erased` where it was the turn and is erased."""
    # A turn whose words were deleted has a digest in place of its key.
    keys: dict[str, str] = {}
    digests: list[bytes] = []
    for item in prepared:
        key = item.turn.idempotency_key
        if key is None:
            continue
        keys[key] = key
        for digest in made.possible(tenant_id, KEY, key_name(scope.user, key)):
            hidden = hidden_key(digest)
            keys[hidden] = key
            # Under this it was erased, where that came after its words were deleted: the hash went with them.
            digests += made.possible(tenant_id, TURN, sent_name(scope.user, hidden, b""))
        for request_digest in item.digests:
            digests += made.possible(tenant_id, TURN, sent_name(scope.user, key, request_digest))
    if not keys:
        return {}
    uses, erased_digests = acceptance.known_keys(
        connection, tenant_id, user_id=session.user_id, keys=list(keys), digests=digests
    )
    erased.check_turns(digests, erased_digests)
    return {keys[stored]: use for stored, use in uses.items()}


def _note_offset(
    connection: Connection, tenant_id: int, session: sessions.LockedSession, *, turns: Sequence[NewTurn]
) -> None:
    """The offset of the user's times tells in which zone their "yesterday" is meant, while no zone is set."""
    times = [turn.at for turn in turns if turn.role is Role.USER and turn.at is not None]
    offset = offset_of(times[-1]) if times else None
    # Nearly always it is known already, and nothing is written.
    if offset is not None and offset != (session.utc_offset or "+00:00"):
        user_details.note_offset(connection, tenant_id, session.user_id, utc_offset=offset)


def _locked(connection: Connection, tenant_id: int, scope: Scope) -> sessions.LockedSession:
    # In nearly every call the session is there: one statement looks up all names and takes the lock.
    session = sessions.lock_session(connection, tenant_id, scope)
    if session is not None:
        return session
    row = names.ensure_scope(connection, tenant_id, Scope(scope.agent, scope.user))
    assert scope.session is not None
    sessions.ensure_session(connection, tenant_id, row.id, name=scope.session)
    new_session = sessions.lock_session(connection, tenant_id, scope)
    assert new_session is not None
    return new_session


def _fresh(prepared: Sequence[Prepared], earlier_uses: dict[str, acceptance.KnownKey]) -> list[Prepared]:
    """The turns to store; `Conflict` where a key stood for other content, before or within this call."""
    fresh: list[Prepared] = []
    hashes = {key: use.request_hash for key, use in earlier_uses.items()}
    for item in prepared:
        key = item.turn.idempotency_key
        if key is None or item.digest is None:
            fresh.append(item)
        elif key not in hashes:
            hashes[key] = item.digest
            fresh.append(item)
        elif hashes[key] is not None and hashes[key] not in item.digests:
            raise Conflict(
                f"idempotency_key: {key!r} was used for another turn; take a new key for new content",
                field="idempotency_key",
            )
    return fresh


def _tickets(
    prepared: Sequence[Prepared],
    earlier_uses: dict[str, acceptance.KnownKey],
    stored: Sequence[tuple[UUID, int]],
) -> tuple[Ticket, ...]:
    """One for each turn of the call, in its order."""
    new_rows = iter(stored)
    by_key = {key: use.ticket for key, use in earlier_uses.items()}
    tickets = []
    for item in prepared:
        key = item.turn.idempotency_key
        if key is not None and key in by_key:
            tickets.append(by_key[key])
            continue
        turn_id, seq = next(new_rows)
        ticket = Ticket(turn_id, seq, Stage.ACCEPTED, redacted=item.redacted)
        tickets.append(ticket)
        # The same turn may stand in one call twice, and is stored once.
        if key is not None:
            by_key[key] = replace(ticket, duplicate=True)
    return tuple(tickets)


def _announce(
    runtime: Runtime,
    session: sessions.LockedSession,
    *,
    new_turns: Sequence[NewTurn],
    tickets: Sequence[Ticket],
) -> None:
    """After the commit: the hot stream and one hint. Nothing here can fail."""
    entries = [Entry(ticket.id, session.id, ticket.seq) for ticket in tickets if not ticket.duplicate]
    if not entries:
        return
    metrics.turns.labels("accepted").inc(len(entries))
    for ticket in tickets:
        redaction.note(ticket.redacted, "turn")
    correlation.note(correlation.TURNS, [entry.id for entry in entries])
    noted = Accepted(session.scope_id, entries, _interaction(session, new_turns))
    # No hint for the session: when the turns are indexed, that worker hints at the sessions that are due.
    name = runtime.hint_name(queue.INDEX_TURNS)
    try:
        is_claimed = accepted.note(runtime.hot, noted, hint=name, hint_life_ms=HINT_LIFE_MS)
    except MemoryAppError as error:
        # Mostly the broker is the same Redis. The rows are there, and a finder sends the hint.
        log.warning("hot_memory_not_noted", error=error.kind)
        return
    if is_claimed:
        runtime.send_claimed(queue.INDEX_TURNS)


def _interaction(session: sessions.LockedSession, new_turns: Sequence[NewTurn]) -> Interaction:
    """When the user was last here and in which tone, for the next context window."""
    tones = [turn.emotional_tone for turn in new_turns if turn.emotional_tone]
    return Interaction(
        session_id=session.id,
        at=max(believed(turn, session.now).at or session.now for turn in new_turns),
        tone=expression.label(tones[-1]) if tones else None,
        session_started_at=session.created_at,
    )
