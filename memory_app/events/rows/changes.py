"""Read changes out of the columns that record them, in the order of their transactions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, TextClause, text

from memory_app.db.shards import HOME, schema_of
from memory_app.events.cursor import Cursor
from memory_app.events.event import Choice, Event, EventType
from memory_app.records.records import Retirement
from memory_app.records.run import RunName, RunState


@dataclass(frozen=True, slots=True)
class _Source:
    """A column with the numbers of transactions, and in SQL what an event says of its row ``r``."""

    table: str
    column: str
    types: tuple[EventType, ...]
    type: str
    at: str
    scope: str = "r.scope_id"
    session: str = "r.session_id"
    kind: str = "NULL"
    successor: str = "NULL::uuid"
    only: str = ""


_T = EventType
_RETIRED = tuple(EventType(f"memory.{reason}") for reason in Retirement)
_NOT_EXTRACT = f"AND r.name <> '{RunName.EXTRACT}'"

SOURCES = (
    _Source("turns", "accepted_xact", (_T.TURN_ACCEPTED,), f"'{_T.TURN_ACCEPTED}'", "r.accepted_at"),
    _Source("turns", "indexed_xact", (_T.TURN_INDEXED,), f"'{_T.TURN_INDEXED}'", "r.indexed_at"),
    _Source(
        "turns",
        "settled_xact",
        (_T.TURN_EXTRACTED, _T.TURN_FAILED),
        f"CASE WHEN r.failed_at IS NULL THEN '{_T.TURN_EXTRACTED}' ELSE '{_T.TURN_FAILED}' END",
        "coalesce(r.failed_at, r.extracted_at)",
    ),
    _Source(
        "memories",
        "stored_xact",
        (_T.MEMORY_INSERTED,),
        f"'{_T.MEMORY_INSERTED}'",
        "r.stored_at",
        kind="r.kind",
    ),
    _Source(
        "memories",
        "altered_xact",
        (_T.MEMORY_CHANGED, *_RETIRED),
        f"coalesce('memory.' || r.retired_reason, '{_T.MEMORY_CHANGED}')",
        "r.retired_at",
        kind="r.kind",
        successor="r.successor",
    ),
    _Source(
        "runs",
        "created_xact",
        (_T.RUN_CREATED,),
        f"'{_T.RUN_CREATED}'",
        "r.created_at",
        kind="r.name",
        only=_NOT_EXTRACT,
    ),
    _Source(
        "runs",
        "finished_xact",
        (_T.RUN_DONE, _T.RUN_FAILED, _T.RUN_UNDONE),
        f"CASE WHEN r.report ->> 'undone_at' IS NOT NULL THEN '{_T.RUN_UNDONE}' "
        f"WHEN r.state = '{RunState.FAILED}' THEN '{_T.RUN_FAILED}' ELSE '{_T.RUN_DONE}' END",
        "r.finished_at",
        kind="r.name",
        only=_NOT_EXTRACT,
    ),
    # Receipts belong to no scope, and stand in the home shard.
    _Source(
        "erasures",
        "created_xact",
        (_T.ERASURE_DONE,),
        f"'{_T.ERASURE_DONE}'",
        "r.finished_at",
        scope="NULL::bigint",
        session="NULL::bigint",
    ),
)
"""Their places are part of the ids of events: a new one goes to the end."""

_ERASURES = len(SOURCES) - 1

# A shard that is still being made holds nobody.
_STATE = text(
    """SELECT public.xact_epoch() AS epoch, public.xact_horizon() AS horizon,
    ARRAY(SELECT id FROM public.shards WHERE id > 0 AND revision IS NOT NULL ORDER BY id) AS shards"""
)

# A sub-select for each row and not a join, which could be planned from the scopes on, past the order of the index.
_WHOSE = """AND (
    SELECT (CAST(:agent AS text) IS NULL OR a.name = :agent) AND (CAST(:user AS text) IS NULL OR u.name = :user)
    FROM {schema}.scopes c JOIN {schema}.agents a ON a.id = c.agent_id LEFT JOIN {schema}.users u ON u.id = c.user_id
    WHERE c.id = r.scope_id)"""
# A receipt says by a digest whose it is, and not with which agent.
_WHOSE_RECEIPT = "AND CAST(:agent AS text) IS NULL AND r.subject_digest = ANY(CAST(:digests AS bytea[]))"


@dataclass(frozen=True, slots=True)
class OrderState:
    """The epoch, the number below which no transaction is under way any more, and the shards that hold rows."""

    epoch: str
    horizon: int
    shards: tuple[int, ...]


def order_state(connection: Connection) -> OrderState:
    row = connection.execute(_STATE).one()
    return OrderState(row.epoch, row.horizon, (HOME, *row.shards))


def changes(
    connection: Connection,
    tenant_id: int,
    *,
    choice: Choice,
    shards: Sequence[int],
    after: Cursor,
    below: int,
    limit: int,
    digests: Sequence[bytes] = (),
) -> tuple[Event, ...]:
    """Changes after the cursor whose transactions have a number smaller than ``below``, in their order, all shards in
    one statement: a user who moves between two of them is seen in one.

    ``digests`` stand for the user of the choice in receipts.
    """
    statement = _statement(
        tuple(shards),
        choice.types,
        choice.agent is not None or choice.user is not None,
    )
    if statement is None:
        return ()
    values: dict[str, Any] = {
        "tenant": tenant_id,
        "number": after.number,
        "below": below,
        "limit": limit,
        "agent": choice.agent,
        "user": choice.user,
        "digests": list(digests),
        "types": sorted(choice.types or ()),
        **{f"id_{place}": after.lower_bound(place) for place in range(len(SOURCES))},
    }
    return tuple(_event(row, after.epoch) for row in connection.execute(statement, values))


@cache
def _statement(
    shards: tuple[int, ...], types: frozenset[EventType] | None, is_narrow: bool
) -> TextClause | None:
    """None where no source has such a type."""
    places = [
        place for place, source in enumerate(SOURCES) if types is None or not types.isdisjoint(source.types)
    ]
    parts = [
        _of_shard(shard, shard_places, types, is_narrow)
        for shard in shards
        if (shard_places := [place for place in places if place != _ERASURES or shard == HOME])
    ]
    if not parts:
        return None
    return text(" UNION ALL ".join(parts) + " ORDER BY number, source, id LIMIT :limit")


def _of_shard(shard: int, places: Sequence[int], types: frozenset[EventType] | None, is_narrow: bool) -> str:
    schema = schema_of(shard)
    branches = " UNION ALL ".join(_branch(schema, place, types, is_narrow) for place in places)
    # The names only of those that are shown.
    return f"""(SELECT e.number, e.source, e.id, e.type, e.at, e.kind, e.successor,
            a.name AS agent, u.name AS user, s.name AS session
        FROM (SELECT * FROM ({branches}) b ORDER BY number, source, id LIMIT :limit) e
        LEFT JOIN {schema}.scopes c ON c.id = e.scope_id
        LEFT JOIN {schema}.agents a ON a.id = c.agent_id
        LEFT JOIN {schema}.users u ON u.id = c.user_id
        LEFT JOIN {schema}.sessions s ON s.scope_id = e.scope_id AND s.id = e.session_id)"""


def _branch(schema: str, place: int, types: frozenset[EventType] | None, is_narrow: bool) -> str:
    source = SOURCES[place]
    chosen = "" if types is None or types.issuperset(source.types) else f"AND {source.type} = ANY(:types)"
    whose = ""
    if is_narrow:
        whose = _WHOSE_RECEIPT if place == _ERASURES else _WHOSE.format(schema=schema)
    return f"""(SELECT r.{source.column} AS number, {place} AS source, r.id, {source.type} AS type,
            {source.at} AS at, {source.scope} AS scope_id, {source.session} AS session_id,
            CAST({source.kind} AS text) AS kind, {source.successor} AS successor
        FROM {schema}.{source.table} r
        WHERE r.tenant_id = :tenant
          AND (r.{source.column}, r.id) > (CAST(:number AS bigint), CAST(:id_{place} AS uuid))
          AND r.{source.column} < :below {source.only} {chosen} {whose}
        ORDER BY r.{source.column}, r.id LIMIT :limit)"""


def _event(row: Row[*tuple[Any, ...]], epoch: str) -> Event:
    return Event(
        id=str(Cursor(epoch, row.number, row.source, row.id)),
        type=EventType(row.type),
        at=row.at,
        agent=row.agent,
        user=row.user,
        session=row.session,
        target=row.id,
        kind=row.kind,
        successor=row.successor,
    )
