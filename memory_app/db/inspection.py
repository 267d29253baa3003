"""What a database is like and how much is in it: for `doctor` and `status`. Reads only; no content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select, text

from memory_app.db.tables.memories import memories
from memory_app.db.tables.tenancy import agents
from memory_app.db.tables.tenancy import tenants as tenants_table
from memory_app.db.tables.turns import sessions, turns
from memory_app.records.records import Stage
from memory_app.records.run import RunName, RunState


@dataclass(frozen=True, slots=True)
class Server:
    """The server and the role that asked. ``version`` is 180004 for 18.4; a vector version of None is not there."""

    version: int
    vector_installed: str | None
    vector_available: str | None
    role: str
    is_superuser: bool
    bypasses_rls: bool
    owned_tables: int
    open_tables: tuple[str, ...]
    """Tables with tenants' rows on which row-level security is off, or does not hold for their owner."""
    synchronous_commit: str
    fsync: str
    now: datetime
    is_pooled: bool
    """Whether a pooler stands between: it names another process at login than the one that works."""


# FORCE counts as well: without it row-level security does not hold for the owner of a table.
_SERVER = text(
    """
    SELECT current_setting('server_version_num')::integer AS version,
           (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS vector_installed,
           (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') AS vector_available,
           r.rolname AS role, r.rolsuper AS is_superuser, r.rolbypassrls AS bypasses_rls,
           (SELECT count(*) FROM pg_class c WHERE c.relowner = r.oid AND c.relnamespace = 'public'::regnamespace
                AND c.relkind IN ('r', 'p')) AS owned_tables,
           ARRAY(SELECT c.relname::text FROM pg_class c
                 JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
                 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
                   AND NOT (c.relrowsecurity AND c.relforcerowsecurity) ORDER BY 1) AS open_tables,
           current_setting('synchronous_commit') AS synchronous_commit, current_setting('fsync') AS fsync,
           clock_timestamp() AS now, pg_backend_pid() AS process
    FROM pg_roles r WHERE r.rolname = current_user
    """
)
_TENANTS = select(tenants_table.c.id, tenants_table.c.name).order_by(tenants_table.c.id)
_EMBEDDINGS = text(
    """SELECT embedding_model AS model, vector_dims(embedding) AS dimensions, count(*) AS n FROM (
        SELECT embedding_model, embedding FROM turns WHERE embedding IS NOT NULL
        UNION ALL SELECT embedding_model, embedding FROM memories WHERE embedding IS NOT NULL AND retired_at IS NULL
    ) stored GROUP BY 1, 2 ORDER BY 3 DESC"""
)
# What failed counts as failed, also where it had been indexed before.
_STAGES = text(
    f"""SELECT CASE WHEN failed_at IS NOT NULL THEN '{Stage.FAILED}' WHEN indexed_at IS NULL THEN '{Stage.ACCEPTED}'
                   WHEN extracted_at IS NULL THEN '{Stage.INDEXED}' ELSE '{Stage.EXTRACTED}' END AS stage, count(*) AS n
    FROM turns GROUP BY 1"""
)
_HOW_MANY = func.count().label("n")
_KINDS = (
    select(memories.c.kind, _HOW_MANY)
    .where(memories.c.retired_at.is_(None))
    .group_by(memories.c.kind)
    .order_by(_HOW_MANY.desc(), memories.c.kind)
)
_SESSIONS = select(func.count()).select_from(sessions)
_MISSED = text(
    "SELECT job, sum(missed)::bigint AS n FROM schedules GROUP BY 1 HAVING sum(missed) > 0 ORDER BY 1"
)
# By the time they ended, which is when their effects were committed; the id decides within one instant.
_ORDER = text(
    f"""SELECT count(*) FROM (
        SELECT from_seq, lag(to_seq, 1, 0) OVER (PARTITION BY session_id ORDER BY finished_at, id) AS before
        FROM runs WHERE name = '{RunName.EXTRACT}' AND state = '{RunState.DONE}') AS done
    WHERE from_seq <> before + 1"""
)
_WITH_MODEL = select(func.count()).where(agents.c.policy["extraction"].astext == "llm")
_REDACTIONS = text(
    """SELECT jsonb_strip_nulls(jsonb_build_object(
        'redaction', policy -> 'redaction', 'redaction_kinds', policy -> 'redaction_kinds')) AS policy, count(*) AS n
    FROM agents GROUP BY 1"""
)
_FAILED = select(func.count()).where(turns.c.failed_at.is_not(None))


@dataclass(frozen=True, slots=True)
class StoredEmbeddings:
    """``rows`` vectors of one model and length."""

    model: str
    dimensions: int
    rows: int


@dataclass(frozen=True, slots=True)
class Amounts:
    """How much a tenant has: turns by stage, current memories by kind, and periods in which a periodic job did not run
    because nobody looked for due work, by job."""

    sessions: int
    turns: Mapping[str, int]
    memories: Mapping[str, int]
    missed_periods: Mapping[str, int]

    def __add__(self, other: Amounts) -> Amounts:
        """What two shards hold together."""
        return Amounts(
            sessions=self.sessions + other.sessions,
            turns=_sum(self.turns, other.turns),
            memories=_sum(self.memories, other.memories),
            missed_periods=_sum(self.missed_periods, other.missed_periods),
        )


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    # A sum of counters would leave out what counts 0.
    return {name: one.get(name, 0) + other.get(name, 0) for name in (*one, *other)}


def server(connection: Connection) -> Server:
    row = connection.execute(_SERVER).one()
    driver = connection.connection.driver_connection
    assert driver is not None
    return Server(
        version=row.version,
        vector_installed=row.vector_installed,
        vector_available=row.vector_available,
        role=row.role,
        is_superuser=row.is_superuser,
        bypasses_rls=row.bypasses_rls,
        owned_tables=row.owned_tables,
        open_tables=tuple(row.open_tables),
        synchronous_commit=row.synchronous_commit,
        fsync=row.fsync,
        now=row.now,
        is_pooled=row.process != driver.info.backend_pid,
    )


def tenants(connection: Connection) -> tuple[tuple[int, str], ...]:
    """Ids and names of all tenants. Needs the owner's connection; others see none."""
    return tuple((row.id, row.name) for row in connection.execute(_TENANTS))


def stored_embeddings(connection: Connection) -> tuple[StoredEmbeddings, ...]:
    """Which vectors there are of the transaction's tenant, most first."""
    rows = connection.execute(_EMBEDDINGS)
    return tuple(StoredEmbeddings(row.model, row.dimensions, row.n) for row in rows)


def agents_with_model(connection: Connection) -> int:
    """Agents of the transaction's tenant whose turns a language model extracts."""
    return int(connection.execute(_WITH_MODEL).scalar_one())


def redactions(connection: Connection) -> tuple[tuple[dict[str, object], int], ...]:
    """What policies of the transaction's tenant say of redaction, and how many agents have each."""
    return tuple((dict(row.policy), row.n) for row in connection.execute(_REDACTIONS))


def failed_turns(connection: Connection) -> int:
    return int(connection.execute(_FAILED).scalar_one())


def amounts(connection: Connection) -> Amounts:
    """How much there is of the transaction's tenant."""
    return Amounts(
        sessions=int(connection.execute(_SESSIONS).scalar_one()),
        turns={row.stage: row.n for row in connection.execute(_STAGES)},
        memories={row.kind: row.n for row in connection.execute(_KINDS)},
        missed_periods={row.job: row.n for row in connection.execute(_MISSED)},
    )


@dataclass(frozen=True, slots=True)
class Lag:
    """How long after acceptance a stage was reached, in seconds, over the turns that reached it."""

    p50_seconds: float
    p95_seconds: float
    most_seconds: float


_INDEX_WAITS = text(
    "SELECT extract(epoch FROM indexed_at - accepted_at)::double precision FROM turns WHERE indexed_at IS NOT NULL"
)
_LAG = """SELECT coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY late), 0)::float8 AS p50,
    coalesce(percentile_cont(0.95) WITHIN GROUP (ORDER BY late), 0)::float8 AS p95,
    coalesce(max(late), 0)::float8 AS most
    FROM (SELECT extract(epoch FROM {stage}_at - accepted_at) AS late
          FROM turns WHERE {stage}_at IS NOT NULL) reached"""
_LAGS = {stage: text(_LAG.format(stage=stage)) for stage in ("indexed", "extracted")}


def lags(connection: Connection) -> Mapping[str, Lag]:
    """For ``indexed`` and ``extracted``: how long the transaction's tenant waited."""
    return {stage: Lag(*connection.execute(query).one()) for stage, query in _LAGS.items()}


def order_violations(connection: Connection) -> int:
    """Extractions that did not begin where the one before them in their session had ended."""
    return int(connection.execute(_ORDER).scalar_one())


def index_waits(connection: Connection) -> tuple[float, ...]:
    """Seconds from acceptance to index, of every indexed turn of this tenant."""
    return tuple(connection.execute(_INDEX_WAITS).scalars())
