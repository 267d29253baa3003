"""Read and delete the rows of an erasure, and what rests on them. Nothing here decides.

The rows of the scopes must be locked. Deleting a turn or a memory takes its links, mentions, evidence and feedback with
it, by the foreign keys.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Connection,
    DateTime,
    and_,
    bindparam,
    delete,
    func,
    literal_column,
    null,
    select,
    text,
    update,
)

from memory_app.db.expressions import among, before_if_given, columns_of
from memory_app.db.tables.jobs import runs
from memory_app.db.tables.memories import entities as entities_table
from memory_app.db.tables.memories import evidence, memories, mentions
from memory_app.db.tables.tenancy import grants, scopes, users
from memory_app.db.tables.transfer import checkpoints
from memory_app.db.tables.turns import sessions
from memory_app.db.tables.turns import turns as turns_table
from memory_app.forget.rules import Kin
from memory_app.memories.rows import terms as term_store
from memory_app.records.records import LinkType, Origin, Retirement
from memory_app.records.run import OPEN, RunName

# A day after the first instant of Python, so that it can be written in any time zone.
LONG_AGO = datetime(1, 1, 2, tzinfo=UTC)
"""Before every row."""


@dataclass(frozen=True, slots=True)
class TurnRow:
    """The fields of a turn that say what its share in other rows is."""

    id: UUID
    session_id: int
    seq: int
    speaker: str
    text: str
    idempotency_key: str | None
    request_hash: bytes | None


@dataclass(frozen=True, slots=True)
class Family:
    """Memories that rest on each other, and which of them were retired, why and in favour of what."""

    kin: Mapping[UUID, Kin]
    retired: Mapping[UUID, tuple[datetime, Retirement, UUID | None]]
    parts: Mapping[UUID, tuple[UUID, ...]]
    """By merged memory: the rows it unites, one step back."""


_SCOPE = bindparam("scope", type_=BigInteger)
_SESSION = bindparam("session", type_=BigInteger)
_BEFORE = bindparam("before", type_=DateTime(timezone=True))

_USER = (
    select(users.c.name).join_from(scopes, users, users.c.id == scopes.c.user_id).where(scopes.c.id == _SCOPE)
)
_SENT = select(turns_table.c.idempotency_key, turns_table.c.request_hash).where(
    among(turns_table.c.scope_id, "scopes"), turns_table.c.idempotency_key.is_not(None)
)
_TURN = select(turns_table.c.scope_id).where(turns_table.c.id == bindparam("turn"))
_TURNS_OF_SCOPE = (
    select(*columns_of(turns_table, TurnRow))
    .where(turns_table.c.scope_id == _SCOPE, before_if_given(turns_table.c.accepted_at, "before"))
    .order_by(turns_table.c.id)
)
"""Of what is erased again, only what is older than the erasure."""
_TURNS_OF_SESSION = _TURNS_OF_SCOPE.where(turns_table.c.session_id == _SESSION)
_OF_TURNS = and_(turns_table.c.scope_id == _SCOPE, among(turns_table.c.id, "ids"))
_TURNS = select(*columns_of(turns_table, TurnRow)).where(_OF_TURNS).order_by(turns_table.c.id)
_OF_MEMORIES = and_(memories.c.scope_id == _SCOPE, among(memories.c.id, "ids"))
_MEMORIES_OF_SCOPE = select(memories.c.id).where(
    memories.c.scope_id == _SCOPE, before_if_given(memories.c.stored_at, "before")
)
_MEMORIES_OF_SESSION = _MEMORIES_OF_SCOPE.where(memories.c.session_id == _SESSION)
_HOLDS_ROWS = text(
    """
    SELECT EXISTS (SELECT FROM turns WHERE scope_id = ANY(:scopes) AND accepted_at >= :since)
        OR EXISTS (SELECT FROM memories WHERE scope_id = ANY(:scopes) AND stored_at >= :since)
    """
)
_CITED_ELSEWHERE = text(
    """
    SELECT e.scope_id, e.memory_id, t.text FROM evidence e
    JOIN turns t ON t.scope_id = e.turn_scope_id AND t.id = e.turn_id
    WHERE e.turn_scope_id = ANY(:scopes) AND e.scope_id <> ALL(:scopes)
    """
)
_RESTING = (
    select(evidence.c.scope_id, evidence.c.memory_id)
    .distinct()
    .where(evidence.c.turn_scope_id == _SCOPE, among(evidence.c.turn_id, "ids"))
)
# The fence keeps an extraction that is under way from committing. Its lease ends and the session is due, so that the
# rest is extracted at once. The summary may say what the turns said.
_FENCE = text(
    """
    UPDATE sessions SET fence = fence + 1, lease_until = NULL, summary = NULL,
        replay_seqs = ARRAY(SELECT r FROM unnest(replay_seqs) r WHERE r <> ALL(CAST(:seqs AS integer[]))),
        due_at = CASE WHEN lease_until IS NOT NULL THEN now() ELSE due_at END
    WHERE scope_id = :scope AND id = :session
    """
)
_DROP_ANSWERS = (
    update(runs)
    .where(runs.c.scope_id == _SCOPE, runs.c.answer.is_not(None), runs.c.state.in_(OPEN))
    .values(answer=null())
)
# The report of an import names sessions and who spoke in them.
_DROP_SURVEYS = (
    update(runs)
    .where(runs.c.scope_id == _SCOPE, runs.c.name == RunName.IMPORT_FILE, runs.c.report.is_not(None))
    .values(report=runs.c.report.op("-")(literal_column("'survey'")))
)
# In the order of their ids, as they are indexed. With the terms as they are then: a turn may have been indexed since it
# was read.
_DELETE_TURNS = text(
    """
    WITH held AS MATERIALIZED (
        SELECT t.id FROM turns t WHERE t.scope_id = :scope AND t.id = ANY(:ids) ORDER BY t.id FOR UPDATE)
    DELETE FROM turns t USING held h WHERE t.scope_id = :scope AND t.id = h.id RETURNING t.terms
    """
)
_DELETE_SESSION = delete(sessions).where(sessions.c.scope_id == _SCOPE, sessions.c.id == _SESSION)
_DELETE_EMPTY_SESSIONS = text(
    """
    DELETE FROM sessions s
    WHERE s.scope_id = :scope AND s.created_at < :before
      AND (CAST(:session AS bigint) IS NULL OR s.id = :session)
      AND NOT EXISTS (SELECT FROM turns t WHERE t.scope_id = s.scope_id AND t.session_id = s.id)
      AND NOT EXISTS (SELECT FROM memories m WHERE m.scope_id = s.scope_id AND m.session_id = s.id)
    """
)
# What hangs on no turn or memory is told by its age alone.
_DELETE_OLDER = {
    table.name: delete(table).where(table.c.scope_id == _SCOPE, table.c.created_at < _BEFORE)
    for table in (checkpoints, runs, grants)
}
_OLDER_ENTITIES = select(entities_table.c.id).where(
    entities_table.c.scope_id == _SCOPE, entities_table.c.first_seen < _BEFORE
)
_SPEAKERS = text(
    """
    DELETE FROM speakers s WHERE s.scope_id = :scope AND s.name = ANY(:names)
      AND NOT EXISTS (SELECT FROM turns t WHERE t.scope_id = s.scope_id AND t.speaker = s.name)
    """
)
# In the same session only: equal words in another session are a statement of its own, from other turns.
_SAME_WORDS = text(
    """
    SELECT o.id FROM memories m JOIN memories o ON o.scope_id = m.scope_id AND o.kind = m.kind
      AND o.session_id IS NOT DISTINCT FROM m.session_id AND o.canonical_key = m.canonical_key
    WHERE m.scope_id = :scope AND m.id = ANY(:ids)
    """
)
# UNION and not UNION ALL: links may lead in a circle, and the recursion must end.
_KIN = text(
    f"""
    WITH RECURSIVE kin AS (
        SELECT m.id FROM memories m WHERE m.scope_id = :scope AND m.id = ANY(:ids)
        UNION
        SELECT n.id FROM kin k CROSS JOIN LATERAL (
            SELECT m.successor AS id FROM memories m
            WHERE m.scope_id = :scope AND m.id = k.id AND m.retired_reason = '{Retirement.MERGED}'
              AND m.successor IS NOT NULL
            UNION ALL
            SELECT l.source_id FROM links l
            WHERE l.scope_id = :scope AND l.target_id = k.id AND l.type = '{LinkType.DERIVED_FROM}') n
    )
    SELECT id FROM kin
    """
)
_PARENTS = text(
    f"""
    SELECT m.successor AS id, m.id AS parent, true AS is_part FROM memories m
    WHERE m.scope_id = :scope AND m.successor = ANY(:ids) AND m.retired_reason = '{Retirement.MERGED}'
    UNION
    SELECT l.source_id, l.target_id, false FROM links l
    WHERE l.scope_id = :scope AND l.source_id = ANY(:ids) AND l.type = '{LinkType.DERIVED_FROM}'
      AND NOT EXISTS (SELECT FROM memories m WHERE m.scope_id = :scope AND m.id = l.target_id
                      AND m.successor = l.source_id AND m.retired_reason = '{Retirement.MERGED}')
    """
)
_ROWS = select(
    memories.c.id,
    memories.c.text,
    memories.c.origin,
    memories.c.retired_at,
    memories.c.retired_reason,
    memories.c.successor,
).where(_OF_MEMORIES)
_EVIDENCE = text(
    """
    SELECT e.memory_id, e.turn_id, t.text FROM evidence e
    JOIN turns t ON t.scope_id = e.turn_scope_id AND t.id = e.turn_id
    WHERE e.scope_id = :scope AND e.memory_id = ANY(:ids)
    """
)
_HAND_ON = update(memories).where(_OF_MEMORIES)
_UNSUPPORTED = (
    update(memories)
    .where(_OF_MEMORIES, memories.c.retired_at.is_(None))
    .values(retired_at=func.now(), retired_reason=Retirement.EXPIRED)
)
# Ids are looked for in the text of the document: they are unique, and may stand in any list of it.
_CHECKPOINTS = text(
    """
    DELETE FROM checkpoints c WHERE c.scope_id = :scope
      AND EXISTS (SELECT FROM unnest(CAST(:ids AS text[])) v(id) WHERE position(v.id IN c.content::text) > 0)
    """
)
_LABELS = select(entities_table.c.id, entities_table.c.label, entities_table.c.aliases).where(
    entities_table.c.scope_id == _SCOPE
)
_MENTIONED = (
    select(mentions.c.entity_id)
    .distinct()
    .where(mentions.c.scope_id == _SCOPE, among(mentions.c.memory_id, "ids"))
)
_LOWER = text(
    """
    UPDATE entities e SET summary = NULL, mention_count = greatest(e.mention_count - v.n, 0)
    FROM unnest(CAST(:ids AS bigint[]), CAST(:counts AS integer[])) AS v(id, n)
    WHERE e.scope_id = :scope AND e.id = v.id
    """
)
# An entity that a remaining turn names stays, although no memory mentions it: it came from that turn, too.
_ORPHANS = text(
    """
    DELETE FROM entities e WHERE e.scope_id = :scope AND e.id = ANY(:ids)
      AND NOT EXISTS (SELECT FROM mentions n WHERE n.scope_id = e.scope_id AND n.entity_id = e.id)
      AND NOT EXISTS (SELECT FROM entities a WHERE a.scope_id = e.scope_id AND a.merged_into = e.id)
      AND NOT EXISTS (SELECT FROM turns t WHERE t.scope_id = e.scope_id
                      AND position(lower(e.label) IN lower(t.text)) > 0)
    """
)


def scope_of_turn(connection: Connection, turn_id: UUID) -> int | None:
    return connection.execute(_TURN, {"turn": turn_id}).scalar_one_or_none()


def user_of_scope(connection: Connection, scope_id: int) -> str | None:
    """The person's name; None for the scope of an agent alone."""
    return connection.execute(_USER, {"scope": scope_id}).scalar_one_or_none()


def sent_turns(connection: Connection, scope_ids: Sequence[int]) -> tuple[tuple[str, bytes], ...]:
    """Idempotency key and request hash of each turn of the scopes that has them."""
    rows = connection.execute(_SENT, {"scopes": list(scope_ids)})
    return tuple((row.idempotency_key, bytes(row.request_hash)) for row in rows)


def turns(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> tuple[TurnRow, ...]:
    return tuple(
        TurnRow(**row._mapping) for row in connection.execute(_TURNS, {"scope": scope_id, "ids": list(ids)})
    )


def turns_of_session(
    connection: Connection, scope_id: int, session_id: int, *, before: datetime | None = None
) -> tuple[TurnRow, ...]:
    """The turns of a session; with ``before`` those that were accepted earlier."""
    values = {"scope": scope_id, "session": session_id, "before": before}
    return tuple(TurnRow(**row._mapping) for row in connection.execute(_TURNS_OF_SESSION, values))


def turns_of_scope(connection: Connection, scope_id: int, *, before: datetime) -> tuple[TurnRow, ...]:
    """The turns of a scope that were accepted before that instant."""
    rows = connection.execute(_TURNS_OF_SCOPE, {"scope": scope_id, "before": before})
    return tuple(TurnRow(**row._mapping) for row in rows)


def memories_of_scope(connection: Connection, scope_id: int, *, before: datetime) -> tuple[UUID, ...]:
    """The memories of a scope that were stored before that instant."""
    return tuple(connection.execute(_MEMORIES_OF_SCOPE, {"scope": scope_id, "before": before}).scalars())


def holds_rows(connection: Connection, scope_ids: Sequence[int], *, since: datetime = LONG_AGO) -> bool:
    """Whether any of the scopes has a turn or a memory that came in at that instant or later."""
    values = {"scopes": list(scope_ids), "since": since}
    return bool(connection.execute(_HOLDS_ROWS, values).scalar_one())


def resting_on(
    connection: Connection, scope_id: int, turn_ids: Sequence[UUID]
) -> dict[int, tuple[UUID, ...]]:
    """Memories that name any of the turns as evidence, by their scope."""
    memories: dict[int, list[UUID]] = defaultdict(list)
    for row in connection.execute(_RESTING, {"scope": scope_id, "ids": list(turn_ids)}):
        memories[row.scope_id].append(row.memory_id)
    # Sorted, since callers lock the scopes in this order.
    return {scope: tuple(ids) for scope, ids in sorted(memories.items())}


def resting_outside(
    connection: Connection, scope_ids: Sequence[int]
) -> tuple[dict[int, tuple[UUID, ...]], str]:
    """Memories of other scopes that rest on turns of these, by their scope; and what those turns say, in one text."""
    memories: dict[int, set[UUID]] = defaultdict(set)
    texts: set[str] = set()
    for row in connection.execute(_CITED_ELSEWHERE, {"scopes": list(scope_ids)}):
        memories[row.scope_id].add(row.memory_id)
        texts.add(row.text)
    # Sorted, since callers lock the scopes in this order.
    return {scope: tuple(sorted(ids)) for scope, ids in sorted(memories.items())}, "\n".join(sorted(texts))


def fence_sessions(connection: Connection, scope_id: int, turns: Sequence[TurnRow]) -> None:
    """Keep an extraction that has read the turns from committing what it made of them."""
    seqs: dict[int, list[int]] = defaultdict(list)
    for turn in turns:
        seqs[turn.session_id].append(turn.seq)
    for session_id, session_seqs in sorted(seqs.items()):
        connection.execute(_FENCE, {"scope": scope_id, "session": session_id, "seqs": session_seqs})


def drop_answers(connection: Connection, scope_id: int) -> None:
    """Delete the answers of models that unfinished jobs of the scope keep for a retry; they ask again."""
    connection.execute(_DROP_ANSWERS, {"scope": scope_id})


def drop_surveys(connection: Connection, scope_id: int) -> None:
    """Delete from the reports of imports what the files held; how far each came stays."""
    connection.execute(_DROP_SURVEYS, {"scope": scope_id})


def delete_turns(connection: Connection, tenant_id: int, scope_id: int, *, turns: Sequence[TurnRow]) -> int:
    """Delete turns with their share in the document frequencies, and speakers who have no turn any more."""
    ids = [turn.id for turn in turns]
    terms = connection.execute(_DELETE_TURNS, {"scope": scope_id, "ids": ids}).scalars().all()
    # A turn that was not indexed yet has no terms, and was not counted.
    counted = [(scope_id, present) for present in terms if present is not None]
    term_store.add(connection, tenant_id, counted, sign=-1)
    drop_speakers(connection, scope_id, turns)
    return len(terms)


def drop_speakers(connection: Connection, scope_id: int, turns: Sequence[TurnRow]) -> None:
    """After turns are gone: forget those of their speakers whom no turn names any more."""
    names = sorted({turn.speaker for turn in turns})
    connection.execute(_SPEAKERS, {"scope": scope_id, "names": names})


def delete_session(connection: Connection, scope_id: int, session_id: int) -> int:
    return connection.execute(_DELETE_SESSION, {"scope": scope_id, "session": session_id}).rowcount


def delete_empty_sessions(
    connection: Connection, scope_id: int, *, before: datetime, session_id: int | None = None
) -> int:
    """Delete sessions, or only ``session_id``, that began before that instant and are empty now."""
    values = {"scope": scope_id, "session": session_id, "before": before}
    return connection.execute(_DELETE_EMPTY_SESSIONS, values).rowcount


def delete_remains(connection: Connection, scope_id: int, *, before: datetime) -> dict[str, int]:
    """Delete what is older than that instant and hangs on no turn or memory: entities, runs, checkpoints, grants,
    sessions."""
    values = {"scope": scope_id, "before": before}
    entities = connection.execute(_OLDER_ENTITIES, values).scalars()
    counts = {"entities": lower_mentions(connection, scope_id, dict.fromkeys(entities, 0))}
    for table, statement in _DELETE_OLDER.items():
        counts[table] = connection.execute(statement, values).rowcount
    counts["sessions"] = delete_empty_sessions(connection, scope_id, before=before)
    return counts


def memories_of_session(
    connection: Connection, scope_id: int, session_id: int, *, before: datetime | None = None
) -> tuple[UUID, ...]:
    """The memories of a session; with ``before`` those that were stored earlier."""
    values = {"scope": scope_id, "session": session_id, "before": before}
    return tuple(connection.execute(_MEMORIES_OF_SESSION, values).scalars())


def same_words(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> tuple[UUID, ...]:
    """The memories and every row that says the very same: earlier and later intervals, and merged parts."""
    return tuple(connection.execute(_SAME_WORDS, {"scope": scope_id, "ids": list(ids)}).scalars())


def family(
    connection: Connection, scope_id: int, ids: Collection[UUID], *, touched: Collection[UUID]
) -> Family:
    """The memories, all that rest on them, and the parents of those. ``touched`` lost evidence already."""
    values = {"scope": scope_id, "ids": list(ids)}
    resting = list(connection.execute(_KIN, values).scalars())
    parents: dict[UUID, set[UUID]] = defaultdict(set)
    parts: dict[UUID, list[UUID]] = defaultdict(list)
    for row in connection.execute(_PARENTS, {"scope": scope_id, "ids": resting}):
        parents[row.id].add(row.parent)
        if row.is_part:
            parts[row.id].append(row.parent)
    members = list({*resting, *chain.from_iterable(parents.values())})
    evidence: dict[UUID, dict[UUID, str]] = defaultdict(dict)
    for row in connection.execute(_EVIDENCE, {"scope": scope_id, "ids": members}):
        evidence[row.memory_id][row.turn_id] = row.text
    kin, retired = {}, {}
    for row in connection.execute(_ROWS, {"scope": scope_id, "ids": members}):
        # A merged row takes over the evidence of its parts; only what it was told since is its own.
        inherited = {turn for part in parts[row.id] for turn in evidence[part]}
        kin[row.id] = Kin(
            id=row.id,
            text=row.text,
            origin=Origin(row.origin),
            is_merged=bool(parts[row.id]),
            is_touched=row.id in touched,
            parents=frozenset(parents[row.id]),
            evidence=tuple(evidence[row.id].values()),
            has_own_evidence=bool(evidence[row.id].keys() - inherited),
        )
        if row.retired_at is not None:
            retired[row.id] = (row.retired_at, Retirement(row.retired_reason), row.successor)
    return Family(kin, retired, {id: tuple(part_ids) for id, part_ids in parts.items()})


def hand_on(
    connection: Connection,
    scope_id: int,
    ids: Sequence[UUID],
    *,
    at: datetime,
    reason: Retirement,
    successor: UUID | None,
) -> None:
    """Retire the parts of a row that is deleted as that row was retired: they take its place in the history."""
    values = {
        "scope": scope_id,
        "ids": list(ids),
        "retired_at": at,
        "retired_reason": reason,
        "successor": successor,
    }
    connection.execute(_HAND_ON, values)


def retire_unsupported(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> int:
    """Retire memories that have no source left; how many were current."""
    return connection.execute(_UNSUPPORTED, {"scope": scope_id, "ids": list(ids)}).rowcount


def delete_checkpoints(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> int:
    """Delete checkpoints that hold any of the memories or turns."""
    # Without ids the statement would still read every document of the scope.
    if not ids:
        return 0
    return connection.execute(_CHECKPOINTS, {"scope": scope_id, "ids": list(map(str, ids))}).rowcount


def labels(connection: Connection, scope_id: int) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """Ids of the entities of a scope and everything each is called."""
    rows = connection.execute(_LABELS, {"scope": scope_id})
    return tuple((row.id, (row.label, *row.aliases)) for row in rows)


def mentioned_by(connection: Connection, scope_id: int, memory_ids: Sequence[UUID]) -> frozenset[int]:
    return frozenset(connection.execute(_MENTIONED, {"scope": scope_id, "ids": list(memory_ids)}).scalars())


def lower_mentions(connection: Connection, scope_id: int, counts: Mapping[int, int]) -> int:
    """Count fewer mentions of entities, and delete those that nothing names any more; how many went."""
    if not counts:
        return 0
    # Summaries are dropped, too: they may say what is forgotten.
    ids = sorted(counts)
    connection.execute(_LOWER, {"scope": scope_id, "ids": ids, "counts": [counts[id] for id in ids]})
    return connection.execute(_ORPHANS, {"scope": scope_id, "ids": ids}).rowcount
