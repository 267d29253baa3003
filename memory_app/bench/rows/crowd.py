"""Many rows at once, for measurements of growth: backlogs, scopes, memories, runs, written as the owner and past the
product, which would need hours for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from sqlalchemy import Engine, text

from memory_app.db.vectors import TERM_SPACE
from memory_app.records.records import LinkType
from memory_app.records.run import RunName, RunState

AGENT = "assistant"

_AGENT = text(
    """INSERT INTO agents (tenant_id, name) VALUES (:tenant, :agent)
    ON CONFLICT (tenant_id, name) DO UPDATE SET name = excluded.name RETURNING id"""
)
_SCOPES = text(
    """
    WITH people AS (
        INSERT INTO users (tenant_id, name) SELECT :tenant, 'crowd ' || n FROM generate_series(1, :count) AS n
        RETURNING id)
    INSERT INTO scopes (tenant_id, agent_id, user_id, seeded_at) SELECT :tenant, :agent, id, now() FROM people
    """
)
_SESSIONS = text(
    """
    INSERT INTO sessions (tenant_id, scope_id, name, next_seq, extracted_seq, last_activity_at)
    SELECT tenant_id, id, 'chat', :turns + 1, CASE WHEN :extracted THEN :turns ELSE 0 END, now() - :age
    FROM scopes WHERE tenant_id = :tenant AND user_id IS NOT NULL
    """
)
_TURNS = text(
    f"""
    INSERT INTO turns (tenant_id, scope_id, session_id, seq, role, speaker, text, at, accepted_at, indexed_at,
        extracted_at, embedding, embedding_model, keywords, terms)
    SELECT s.tenant_id, s.scope_id, s.id, n, 'user', 'user', 'I walked dog number ' || n || ' in the morning.',
        now() - :age, now() - :age, CASE WHEN :indexed THEN now() - :age END,
        CASE WHEN :indexed THEN now() - :age END,
        CASE WHEN :indexed THEN v.embedding END, CASE WHEN :indexed THEN :model END,
        CASE WHEN :indexed THEN CAST('{{1\\:0.5,2\\:0.5,' || n + 2 || '\\:1}}/{TERM_SPACE}' AS sparsevec) END,
        CASE WHEN :indexed THEN ARRAY[1, 2, n + 2] END
    FROM sessions s CROSS JOIN generate_series(1, :each) AS n
    CROSS JOIN LATERAL (
        SELECT CASE WHEN :indexed THEN CAST(CAST(array_agg(random() - 0.5) AS vector) AS halfvec) END
            AS embedding
        FROM generate_series(1, CASE WHEN :indexed THEN :dimensions ELSE 1 END) WHERE n > 0) v
    WHERE s.tenant_id = :tenant
    """
)
_LEND = text(
    """UPDATE turns SET starts = 1, lease_until = now() + interval '1 hour'
    WHERE tenant_id = :tenant AND indexed_at IS NULL"""
)
_MEMORIES = text(
    f"""
    INSERT INTO memories (tenant_id, scope_id, kind, text, canonical_key, importance, confidence, origin, valid_from,
        last_seen, confirmed_at, embedding, embedding_model, keywords, terms)
    SELECT :tenant, :scope, 'fact', 'Case ' || n || ' of the archive is kept in room ' || n % 97 || '.',
        'case-' || n || '-of-the-archive', 5, 0.8, 'declared', now(), now() - interval '1 day', now(),
        l2_normalize(v.embedding), :model, CAST('{{1\\:0.5,2\\:0.5,' || n + 2 || '\\:1}}/{TERM_SPACE}' AS sparsevec),
        ARRAY[1, 2, n + 2]
    FROM generate_series(1, :count) AS n
    CROSS JOIN LATERAL (
        SELECT CAST(CAST(array_agg(random() - 0.5) AS vector) AS halfvec) AS embedding
        FROM generate_series(1, :dimensions) WHERE n > 0) v
    """
)
_TERMS = text(
    """INSERT INTO terms (tenant_id, scope_id, term, row_count) SELECT :tenant, :scope, t, :count
    FROM unnest(ARRAY[0, 1, 2]) AS t"""
)
_LINKS = text(
    f"""
    WITH placed AS (SELECT id, row_number() OVER (ORDER BY id) AS n FROM memories WHERE scope_id = :scope)
    INSERT INTO links (tenant_id, scope_id, source_id, target_id, type, weight)
    SELECT :tenant, :scope, a.id, b.id, '{LinkType.SIMILAR_TO}', 0.8
    FROM placed a CROSS JOIN generate_series(1, :each) AS step JOIN placed b ON b.n = a.n + step
    """
)
_MODELS = text(
    """INSERT INTO scope_models (tenant_id, scope_id, model) SELECT tenant_id, id, :model FROM scopes
    WHERE tenant_id = :tenant ON CONFLICT DO NOTHING"""
)
_COUNTS = text(
    """INSERT INTO terms (tenant_id, scope_id, term, row_count)
    SELECT tenant_id, id, t, CASE t WHEN 0 THEN 200 ELSE 1 + t % 40 END
    FROM scopes CROSS JOIN generate_series(0, 40) AS t WHERE tenant_id = :tenant AND user_id IS NOT NULL"""
)
_MODEL_AGENT = text(
    """
    WITH agent AS (
        INSERT INTO agents (tenant_id, name, policy) VALUES (:tenant, 'asks a model', '{"extraction"\\: "llm"}')
        RETURNING id),
    person AS (INSERT INTO users (tenant_id, name) VALUES (:tenant, 'whoever') RETURNING id)
    INSERT INTO scopes (tenant_id, agent_id, user_id, seeded_at) SELECT :tenant, agent.id, person.id, now()
    FROM agent, person
    """
)
_SIZES = """INSERT INTO scope_sizes (tenant_id, scope_id, row_count) SELECT tenant_id, scope_id, row_count FROM terms
    WHERE tenant_id = :tenant AND term = 0 ON CONFLICT (scope_id) DO UPDATE SET row_count = excluded.row_count"""
_HAS_SIZES = text("SELECT to_regclass('scope_sizes') IS NOT NULL")
_SCHEDULES = text(
    """INSERT INTO schedules (tenant_id, scope_id, job, due_at) SELECT tenant_id, id, job, now() - interval '1 minute'
    FROM scopes CROSS JOIN unnest(ARRAY['sleep', 'decay', 'synthesize_deep', 'end_sessions']) AS job
    WHERE tenant_id = :tenant AND user_id IS NOT NULL"""
)
_RUNS = text(
    f"""
    INSERT INTO runs (tenant_id, scope_id, name, state, report, created_at, started_at, finished_at)
    SELECT :tenant, :scope, '{RunName.EXTRACT}', '{RunState.DONE}', '{{"turns": 1}}',
        now() - :age, now() - :age, now() - :age
    FROM generate_series(1, :count)
    """
)
_COUNT_OF = "SELECT count(*) FROM {table} WHERE tenant_id = :tenant"
_BYTES_OF = """SELECT coalesce(sum(coalesce(pg_column_size(embedding), 0) + coalesce(pg_column_size(keywords), 0)
    + coalesce(pg_column_size(terms), 0)), 0) FROM turns WHERE tenant_id = :tenant"""
_OPEN_SESSIONS = text("UPDATE sessions SET due_at = now() - interval '1 minute' WHERE tenant_id = :tenant")
_QUEUE_RUNS = text(
    f"""
    INSERT INTO runs (tenant_id, scope_id, name, state, due_at)
    SELECT tenant_id, id, '{RunName.SLEEP}', '{RunState.QUEUED}', now() - interval '1 minute' FROM scopes
    WHERE tenant_id = :tenant AND user_id IS NOT NULL
    """
)


@contextmanager
def undisturbed(owner: Engine) -> Iterator[None]:
    """The server does nothing by itself meanwhile, which would be counted too. Needs a superuser."""
    with owner.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ALTER SYSTEM SET autovacuum = off"))
        connection.execute(text("SELECT pg_reload_conf()"))
    try:
        yield
    finally:
        with owner.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("ALTER SYSTEM RESET autovacuum"))
            connection.execute(text("SELECT pg_reload_conf()"))


class Crowd:
    """Rows of one tenant, written over the owner's connection."""

    def __init__(self, owner: Engine, tenant_id: int, *, model: str, dimensions: int) -> None:
        self._owner = owner
        self._fixed = {"tenant": tenant_id, "agent": AGENT, "model": model, "dimensions": dimensions}
        self._tables: set[str] = set()

    def scopes(self, count: int) -> None:
        """An agent with as many users, each with counted terms."""
        with self._owner.begin() as connection:
            agent = connection.execute(_AGENT, self._fixed).scalar_one()
            connection.execute(_SCOPES, {**self._fixed, "agent": agent, "count": count})

    def scope_with_model(self) -> None:
        """One user of another agent, which asks a language model."""
        self._write(_MODEL_AGENT)

    def sessions(self, *, turns: int, extracted: bool, age: timedelta = timedelta(0)) -> None:
        """One session in each scope, that has counted ``turns`` turns."""
        self._write(_SESSIONS, turns=turns, extracted=extracted, age=age)

    def turns(self, each: int, *, indexed: bool, age: timedelta = timedelta(0)) -> None:
        """As many turns in each session, accepted ``age`` ago."""
        self._write(_TURNS, each=each, indexed=indexed, age=age)

    def lend_turns(self) -> None:
        """Every waiting turn is in the hands of a worker."""
        self._write(_LEND)

    def memories(self, scope_id: int, count: int, *, links_each: int) -> None:
        """As many current facts with vectors that point anywhere, each linked to those after it."""
        self._write(_MEMORIES, scope=scope_id, count=count)
        self._write(_TERMS, scope=scope_id, count=count)
        self._write(_LINKS, scope=scope_id, each=links_each)
        self._note_sizes()
        self._write(_MODELS)

    def count_terms(self) -> None:
        """What indexing leaves of each scope besides its rows."""
        self._write(_COUNTS)
        self._note_sizes()
        self._write(_MODELS)

    def schedules(self) -> None:
        """Every periodic job of every scope is due."""
        self._write(_SCHEDULES)

    def due_sessions(self) -> None:
        """Every session waits to be extracted."""
        self._write(_OPEN_SESSIONS)

    def due_runs(self) -> None:
        """A run of every scope waits."""
        self._write(_QUEUE_RUNS)

    def old_runs(self, scope_id: int, count: int, *, age: timedelta) -> None:
        """Runs that ended ``age`` ago."""
        self._write(_RUNS, scope=scope_id, count=count, age=age)

    def count(self, table: str) -> int:
        """Rows of the tenant in a table."""
        return self._read(_COUNT_OF.format(table=table))

    def search_bytes(self) -> int:
        """Bytes of the turns' embeddings, keywords and terms."""
        return self._read(_BYTES_OF)

    def settle(self) -> None:
        """What autovacuum does within minutes, so that it does not happen in the middle of a measurement."""
        with self._owner.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM (ANALYZE)"))

    def _note_sizes(self) -> None:
        """Where this version notes them, so that another one can be measured with the same rows."""
        with self._owner.connect() as connection:
            is_noted = connection.execute(_HAS_SIZES).scalar_one()
        if is_noted:
            self._write(text(_SIZES))

    def _write(self, statement: Any, **values: Any) -> None:
        with self._owner.begin() as connection:
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(statement, {**self._fixed, **values})

    def _read(self, statement: str) -> int:
        with self._owner.begin() as connection:
            values: Mapping[str, Any] = self._fixed
            return int(connection.execute(text(statement), values).scalar_one())
