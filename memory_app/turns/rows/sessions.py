"""Rows of sessions: the gapless numbers of their turns, and the lease and fence under which they are extracted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Boolean,
    Connection,
    Integer,
    Interval,
    Row,
    and_,
    bindparam,
    cast,
    func,
    null,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from memory_app.db.expressions import column_list, columns_of
from memory_app.db.locks import locking
from memory_app.db.tables.turns import sessions
from memory_app.records.scope import Scope
from memory_app.tenancy.rows.names import AGENT_ID, USER_ID

# An older tone says nothing about now.
OTHER_SESSIONS = 50
"""Newest sessions of a scope in which the last interaction is looked for."""

TONE_TURNS = 50
"""Newest turns that are searched for an emotional tone."""


@dataclass(frozen=True, slots=True)
class Debounce:
    """When accepted turns make a session due for extraction."""

    after_turns: int
    idle: timedelta
    max_age: timedelta


@dataclass(frozen=True, slots=True)
class LockedSession:
    """A session whose row is held by this transaction."""

    id: int
    scope_id: int
    user_id: int
    next_seq: int
    policy: dict[str, Any]
    created_at: datetime
    now: datetime
    utc_offset: str | None
    """That of the times which the user sent last."""
    label: str | None
    """What the app calls the user."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A session lent to this worker. ``starts`` counts this start; more than the limit means: park, do not run."""

    session_id: int
    tenant_id: int
    scope_id: int
    fence: int
    starts: int


@dataclass(frozen=True, slots=True)
class Progress:
    """A session whose place was moved on and which is free again. ``is_due``: further turns wait for extraction."""

    is_due: bool


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session as extraction, context and listings read it."""

    id: int
    scope_id: int
    name: str
    next_seq: int
    extracted_seq: int
    fence: int
    failures: int
    refusals: int
    """How often in a row an error that does not pass came back; such a batch is taken apart."""
    failing_since: datetime | None
    created_at: datetime
    last_activity_at: datetime
    ended_at: datetime | None
    summary: str | None
    parked_reason: str | None
    replay_seqs: tuple[int, ...]
    """Turns behind ``extracted_seq`` that are to be extracted once more."""
    now: datetime
    """The database's clock when the row was read."""


_COLUMNS = columns_of(sessions, SessionRow)
_OF_SCOPE = sessions.c.scope_id == bindparam("scope")
_IS_SESSION = and_(_OF_SCOPE, sessions.c.id == bindparam("session"))
_IS_CLAIMED = and_(_IS_SESSION, sessions.c.fence == bindparam("claimed_fence"))
_SELECT = select(*_COLUMNS, func.now().label("now"))

# NO KEY UPDATE: rows that refer to the session, such as a run, can be written while it is held.
_LOCK = locking(
    "session",
    text(
        f"""
    SELECT s.id, s.scope_id, u.id AS user_id, s.next_seq, a.policy, s.created_at, now() AS now, u.utc_offset, u.label
    FROM sessions s
    JOIN agents a ON a.tenant_id = s.tenant_id AND a.name = :agent
    JOIN users u ON u.tenant_id = :tenant AND u.name = :user
    WHERE s.name = :session AND s.scope_id = (
        SELECT id FROM scopes WHERE tenant_id = :tenant AND agent_id = {AGENT_ID} AND user_id = {USER_ID})
    FOR NO KEY UPDATE OF s
    """
    ),
)
_ENSURE = insert(sessions).on_conflict_do_nothing().inline()
_CLAIM = text("SELECT tenant_id, scope_id, fence, starts FROM claim_session(:session, :lease, :shared)")
_READ = _SELECT.where(_IS_SESSION)
_FIND = _SELECT.where(_OF_SCOPE, sessions.c.name == bindparam("name"))
_ONGOING = text(
    f"""
    SELECT {column_list(_COLUMNS, "s")}, now() AS now,
        f.at AS first_at,
        (SELECT max(l.at) FROM (
             SELECT e.id FROM sessions e WHERE e.scope_id = :scope AND e.id IS DISTINCT FROM s.id
             ORDER BY e.id DESC LIMIT :others) e
         CROSS JOIN LATERAL (
             SELECT t.at FROM turns t WHERE t.scope_id = :scope AND t.session_id = e.id
                 AND t.at <= coalesce(f.at, now())
             ORDER BY t.seq DESC LIMIT 1) l) AS active_before,
        (SELECT n.emotional_tone FROM (
             SELECT id, emotional_tone FROM turns WHERE scope_id = :scope ORDER BY id DESC LIMIT :newest) n
         WHERE n.emotional_tone IS NOT NULL ORDER BY n.id DESC LIMIT 1) AS tone
    FROM (SELECT) one LEFT JOIN sessions s ON s.scope_id = :scope AND s.name = CAST(:name AS text)
    LEFT JOIN LATERAL (
        SELECT t.at FROM turns t WHERE t.scope_id = :scope AND t.session_id = s.id ORDER BY t.seq LIMIT 1) f ON true
    """
)
# With a cast, since the server cannot tell the type of a parameter that is only compared with null.
_ACTIVE = cast(bindparam("active"), Boolean)
_LIST = (
    _SELECT.where(_OF_SCOPE, or_(_ACTIVE.is_(None), sessions.c.ended_at.is_(None) == _ACTIVE))
    .order_by(sessions.c.last_activity_at.desc())
    .limit(bindparam("limit"))
)
_END = update(sessions).where(_IS_SESSION).values(ended_at=func.coalesce(sessions.c.ended_at, func.now()))
_IS_OPEN = and_(_OF_SCOPE, sessions.c.ended_at.is_(None))
_SILENT = _SELECT.where(
    _IS_OPEN, sessions.c.last_activity_at <= func.now() - bindparam("silence", type_=Interval)
).order_by(sessions.c.last_activity_at, sessions.c.id)
_NEXT_SILENT = select(func.min(sessions.c.last_activity_at)).where(_IS_OPEN)
# Only from the place before the batch, and under the fence of the claim: of two workers that have read the same turns
# one commits. Turns that were accepted meanwhile are due at once.
_ADVANCE = text(
    """
    UPDATE sessions
    SET extracted_seq = :to_seq, asked_seq = CASE WHEN :sums_up THEN asked_seq ELSE :to_seq END,
        starts = 0, failures = 0, refusals = 0, failing_since = NULL, lease_until = NULL,
        due_at = CASE WHEN next_seq - 1 > :to_seq OR replay_seqs <> '{}' THEN now() END,
        pending_since = CASE WHEN next_seq - 1 > :to_seq THEN now() END
    WHERE scope_id = :scope AND id = :session AND fence = :claimed_fence AND extracted_seq = :from_seq - 1
    RETURNING due_at IS NOT NULL AS is_due
    """
)
_RELEASE = text(
    """
    UPDATE sessions
    SET lease_until = NULL, starts = 0,
        due_at = CASE WHEN :extracting AND (next_seq - 1 > extracted_seq OR replay_seqs <> '{}') THEN now() END
    WHERE scope_id = :scope AND id = :session AND fence = :claimed_fence
    """
)
_IN_A_WHILE = func.now() + bindparam("wait", type_=Interval)
_FREE: dict[str, Any] = {"lease_until": null(), "starts": 0}
# Only what is still on loan: nobody knows of a commit that broke off whether it was made, and this may come late.
_POSTPONE = (
    update(sessions)
    .where(_IS_CLAIMED, sessions.c.lease_until.is_not(None))
    .values(
        **_FREE,
        failures=sessions.c.failures + 1,
        refusals=sessions.c.refusals + cast(bindparam("refused", type_=Boolean), Integer),
        failing_since=func.coalesce(sessions.c.failing_since, func.now()),
        due_at=_IN_A_WHILE,
    )
)
# Each claim adds one to the fence and to the starts: the starts after this one are as many as the fences. Where no more
# are counted, somebody explained this one already.
_EXPLAIN = (
    update(sessions)
    .where(
        _IS_SESSION,
        sessions.c.fence > bindparam("claimed_fence"),
        sessions.c.starts > sessions.c.fence - bindparam("claimed_fence"),
    )
    .values(
        starts=sessions.c.fence - bindparam("claimed_fence"),
        failures=sessions.c.failures + 1,
        failing_since=func.coalesce(sessions.c.failing_since, func.now()),
    )
)
_REPLAYED = text(
    """
    UPDATE sessions
    SET replay_seqs = array_remove(replay_seqs, :seq), starts = 0, failures = 0, refusals = 0, failing_since = NULL,
        lease_until = NULL,
        due_at = CASE WHEN next_seq - 1 > extracted_seq OR cardinality(array_remove(replay_seqs, :seq)) > 0
                      THEN now() END
    WHERE scope_id = :scope AND id = :session AND fence = :claimed_fence AND :seq = ANY(replay_seqs)
    RETURNING due_at IS NOT NULL AS is_due
    """
)
_RESUME = text(
    """
    UPDATE sessions
    SET replay_seqs = CASE WHEN :again AND :seq <= extracted_seq AND NOT :seq = ANY(replay_seqs)
                           THEN array_append(replay_seqs, :seq) ELSE replay_seqs END,
        parked_reason = NULL, failures = 0, refusals = 0, failing_since = NULL, starts = 0, due_at = now()
    WHERE scope_id = :scope AND id = :session
    """
)
_IDLE = text("SELECT tenant_id, scope_id, session_id, last_seq FROM idle_sessions(:idle, :most)")
_SYNTHESIZED = (
    update(sessions)
    .where(_IS_SESSION)
    .values(synthesized_seq=func.greatest(sessions.c.synthesized_seq, bindparam("seq")))
)
_ASKED = (
    update(sessions)
    .where(_IS_SESSION)
    .values(asked_seq=func.greatest(sessions.c.asked_seq, bindparam("seq")))
)
_SUMMARY = update(sessions).where(_IS_SESSION)
_SUMMARY_ID = select(sessions.c.summary_id).where(_IS_SESSION)
_DEFER = (
    update(sessions)
    .where(_IS_CLAIMED)
    .values(**_FREE, due_at=_IN_A_WHILE, waits_for_cap=bindparam("for_cap", type_=Boolean))
)
_FREE_CAPPED = (
    update(sessions)
    .where(sessions.c.tenant_id == bindparam("tenant"), sessions.c.waits_for_cap)
    .values(waits_for_cap=False, due_at=func.least(sessions.c.due_at, func.now()))
)
_EXTEND = (
    update(sessions).where(_IS_CLAIMED).values(lease_until=func.now() + bindparam("lease", type_=Interval))
)
_STOP = update(sessions).where(_IS_CLAIMED).values(**_FREE, due_at=null())


def lock_session(connection: Connection, tenant_id: int, scope: Scope) -> LockedSession | None:
    """Hold the session's row until the end of the transaction, so that one caller at a time takes its numbers."""
    names = {"tenant": tenant_id, "agent": scope.agent, "user": scope.user, "session": scope.session}
    row = connection.execute(_LOCK, names).one_or_none()
    if row is None:
        return None
    return LockedSession(
        id=row.id,
        scope_id=row.scope_id,
        user_id=row.user_id,
        next_seq=row.next_seq,
        policy=dict(row.policy),
        created_at=row.created_at,
        now=row.now,
        utc_offset=row.utc_offset,
        label=row.label,
    )


def ensure_session(connection: Connection, tenant_id: int, scope_id: int, *, name: str) -> None:
    """Make the session when it is new."""
    connection.execute(_ENSURE, {"tenant_id": tenant_id, "scope_id": scope_id, "name": name})


def claim(connection: Connection, session_id: int, lease: timedelta, *, shared: bool = False) -> Claim | None:
    """Take the session if it is due and free; counts the start. Needs no tenant and commits with its transaction.

    ``shared``: for a process that does other work meanwhile, which gets no session that may kill it.
    """
    values = {"session": session_id, "lease": lease, "shared": shared}
    row = connection.execute(_CLAIM, values).one_or_none()
    return None if row is None else Claim(session_id=session_id, **row._mapping)


def read(connection: Connection, scope_id: int, session_id: int) -> SessionRow | None:
    row = connection.execute(_READ, {"scope": scope_id, "session": session_id}).one_or_none()
    return None if row is None else _session(row._asdict())


def find(connection: Connection, scope_id: int, name: str) -> SessionRow | None:
    row = connection.execute(_FIND, {"scope": scope_id, "name": name}).one_or_none()
    return None if row is None else _session(row._asdict())


@dataclass(frozen=True, slots=True)
class IdleSession:
    """A session that fell silent with turns that no synthesis has read; ``last_seq`` is the newest of them."""

    tenant_id: int
    scope_id: int
    session_id: int
    last_seq: int


def idle(connection: Connection, *, silence: timedelta, most: int) -> tuple[IdleSession, ...]:
    """Silent or ended sessions of agents with a language model, over all tenants; ids only."""
    rows = connection.execute(_IDLE, {"idle": silence, "most": most})
    return tuple(IdleSession(*row) for row in rows)


def note_synthesis(connection: Connection, scope_id: int, session_id: int, to_seq: int) -> None:
    """Turns up to ``to_seq`` were synthesised."""
    values = {"scope": scope_id, "session": session_id, "seq": to_seq}
    connection.execute(_SYNTHESIZED, values)


def note_asked(connection: Connection, scope_id: int, session_id: int, to_seq: int) -> None:
    """A synthesis of the turns up to ``to_seq`` was asked for; no look for silent sessions comes by it until the next
    turn."""
    connection.execute(_ASKED, {"scope": scope_id, "session": session_id, "seq": to_seq})


def summary_memory(connection: Connection, scope_id: int, session_id: int) -> UUID | None:
    """The memory that holds the rolling summary of the session."""
    values = {"scope": scope_id, "session": session_id}
    return connection.execute(_SUMMARY_ID, values).scalar_one_or_none()


def note_summary(
    connection: Connection, scope_id: int, session_id: int, memory_id: UUID, summary: str
) -> None:
    """Keep the newest summary of the session and the memory that holds it."""
    values = {"scope": scope_id, "session": session_id, "summary_id": memory_id, "summary": summary}
    connection.execute(_SUMMARY, values)


def listed(
    connection: Connection, scope_id: int, *, active: bool | None, limit: int
) -> tuple[SessionRow, ...]:
    """Sessions of a scope, latest activity first."""
    rows = connection.execute(_LIST, {"scope": scope_id, "active": active, "limit": limit})
    return tuple(_session(row._asdict()) for row in rows)


def end(connection: Connection, scope_id: int, session_id: int) -> None:
    """Note that the session is over; its next turn opens it again."""
    connection.execute(_END, {"scope": scope_id, "session": session_id})


def silent(connection: Connection, scope_id: int, *, longer_than: timedelta) -> tuple[SessionRow, ...]:
    """Open sessions of the scope without a turn for as long, the longest silent first."""
    rows = connection.execute(_SILENT, {"scope": scope_id, "silence": longer_than})
    return tuple(_session(row._asdict()) for row in rows)


def oldest_activity(connection: Connection, scope_id: int) -> datetime | None:
    """When the open session that has been silent longest heard its last turn; None when no session is open."""
    oldest: datetime | None = connection.execute(_NEXT_SILENT, {"scope": scope_id}).scalar_one()
    return oldest


@dataclass(frozen=True, slots=True)
class Ongoing:
    """A session of a scope, None if there is none of that name. ``first_at`` is the time of its first turn,
    ``active_before`` that of the last turn before it in one of the newest other sessions: the turns' own times, which
    an import brings from years ago. ``tone``: the emotional tone of the last of the scope's newest turns that has one.
    """

    session: SessionRow | None
    first_at: datetime | None
    active_before: datetime | None
    tone: str | None


def ongoing(connection: Connection, scope_id: int, name: str | None) -> Ongoing:
    """What a context window says of a scope's session; ``name`` None: only what belongs to no session."""
    values = {"scope": scope_id, "name": name, "newest": TONE_TURNS, "others": OTHER_SESSIONS}
    fields = connection.execute(_ONGOING, values).one()._asdict()
    first_at, active_before, tone = (fields.pop(name) for name in ("first_at", "active_before", "tone"))
    session = None if fields["id"] is None else _session(fields)
    return Ongoing(session, first_at=first_at, active_before=active_before, tone=tone)


def advance(
    connection: Connection, claimed: Claim, *, from_seq: int, to_seq: int, sums_up: bool = True
) -> Progress | None:
    """Note that turns up to ``to_seq`` took effect and free the session; ``sums_up``: a synthesis is to read them.

    None when another worker holds a newer fence or the session has moved: then the caller must roll back.
    """
    values = {**_keys(claimed), "from_seq": from_seq, "to_seq": to_seq, "sums_up": sums_up}
    return _progress(connection.execute(_ADVANCE, values).one_or_none())


def replayed(connection: Connection, claimed: Claim, seq: int) -> Progress | None:
    """Note that a replayed turn took effect (or failed again) and free the session; None as in `advance`."""
    return _progress(connection.execute(_REPLAYED, {**_keys(claimed), "seq": seq}).one_or_none())


def _progress(row: Row[Any] | None) -> Progress | None:
    return None if row is None else Progress(row.is_due)


def resume(connection: Connection, scope_id: int, session_id: int, *, seq: int, again: bool) -> None:
    """Make the session due, parked or not; with ``again`` its turn ``seq`` is extracted once more if it was passed."""
    values = {"scope": scope_id, "session": session_id, "seq": seq, "again": again}
    connection.execute(_RESUME, values)


def release(connection: Connection, claimed: Claim, *, extracting: bool) -> None:
    """Free a session that had nothing to do; it stays due only for turns that came in between."""
    connection.execute(_RELEASE, {**_keys(claimed), "extracting": extracting})


def postpone(connection: Connection, claimed: Claim, wait: timedelta, *, refused: bool = False) -> bool:
    """Free the session and leave it alone until ``wait`` has passed; its start is explained.

    ``refused``: by an error that does not pass by itself. False when another worker holds a newer fence: then only the
    starts up to this one are explained, since this worker did not die of them.
    """
    values = {**_keys(claimed), "wait": wait, "refused": refused}
    if connection.execute(_POSTPONE, values).rowcount == 1:
        return True
    connection.execute(_EXPLAIN, _keys(claimed))
    return False


def defer(connection: Connection, claimed: Claim, wait: timedelta, *, for_cap: bool) -> None:
    """Free the session until ``wait`` has passed, without counting a failure: it only waits for its turn.

    One that waits for the tenant's cap is found again by `free_capped`.
    """
    connection.execute(_DEFER, {**_keys(claimed), "wait": wait, "for_cap": for_cap})


def free_capped(connection: Connection, tenant_id: int) -> int:
    """Make the sessions due that wait for the tenant's cap; how many."""
    return connection.execute(_FREE_CAPPED, {"tenant": tenant_id}).rowcount


def extend(connection: Connection, claimed: Claim, lease: timedelta) -> None:
    """Hold the session for ``lease`` from now on."""
    connection.execute(_EXTEND, {**_keys(claimed), "lease": lease})


def stop(connection: Connection, claimed: Claim, reason: str) -> bool:
    """Free the session and do not extract from it again until its failed turn is replayed or discarded.

    False when another worker holds a newer fence.
    """
    return connection.execute(_STOP, {**_keys(claimed), "parked_reason": reason}).rowcount == 1


def _keys(claimed: Claim) -> dict[str, int]:
    return {"scope": claimed.scope_id, "session": claimed.session_id, "claimed_fence": claimed.fence}


def _session(fields: dict[str, Any]) -> SessionRow:
    return SessionRow(**{**fields, "replay_seqs": tuple(fields["replay_seqs"])})
