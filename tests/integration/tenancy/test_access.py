"""The second wall: even code that forgets whose data it asks for sees only one tenant's rows, or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection, Engine, bindparam, text
from sqlalchemy.exc import IntegrityError, ProgrammingError

from memory_app.db.db import connect, transaction
from memory_app.db.tables import metadata
from memory_app.errors import StoreRefused
from memory_app.local.embedded import Servers
from memory_app.tenancy.rows import keys
from memory_app.turns.rows import index_work, turns

TABLES = sorted(table.name for table in metadata.tables.values() if table.name not in ("shards", "decisions"))
"""All tables but the list of shards and the decisions, which are nobody's and tell nothing of anybody."""
ROLES = ("memory_app", "memory_bound", "memory_finder", "memory_search")
DEFINERS = {
    "authenticate": [
        "key_id",
        "tenant_id",
        "tenant_name",
        "rights",
        "agent_name",
        "user_name",
        "limits",
        "tenant_limits",
    ],
    "add_key": [],
    "end_key": [],
    "limit_key": [],
    "forget_keys": [],
    "add_audit": [],
    "capped_tenants": [],
    "tenant_named": [],
    "copy_tenant": [],
    "note_key_use": [],
    "claim_turns": ["tenant_id", "scope_id", "id", "starts"],
    "claim_session": ["tenant_id", "scope_id", "fence", "starts"],
    "due_sessions": ["session_id", "asks_model", "is_suspect"],
    "pipeline_state": [
        "unindexed",
        "claimable",
        "oldest_unindexed_seconds",
        "due_sessions",
        "oldest_due_seconds",
        "failed",
    ],
    "shards_of_users": [],
    "users_by_shard": ["shard", "user_count"],
    "due_webhooks": ["tenant_id", "webhook_id"],
    "webhook_state": ["active", "failing", "given_up", "oldest_waiting_seconds"],
    "due_work": ["kind", "oldest_seconds", "is_held"],
    "has_live_key": [],
    "claim_run": ["tenant_id", "scope_id", "session_id", "name", "fence", "starts"],
    "due_runs": ["run_id", "name", "is_suspect"],
    "idle_sessions": ["tenant_id", "scope_id", "session_id", "last_seq"],
    "due_scopes": ["tenant_id", "scope_id", "job", "due_at"],
    "big_scopes": ["tenant_id", "scope_id"],
    "stale_scopes": ["tenant_id", "scope_id", "model"],
    "old_runs": ["tenant_id", "run_id"],
    "scope_rows": ["tenant_id", "scope_id", "row_count"],
    "keyword_hits": ["id"],
}
"""The only functions that look across tenants, with the columns they answer: ids, counts and ages."""

FILL = """
    WITH t AS (SELECT CAST(:tenant AS bigint) AS tenant),
    k AS (INSERT INTO api_keys (tenant_id, prefix, digest, rights)
          SELECT tenant, 'mem_', decode(md5(tenant::text), 'hex'), '{read}' FROM t),
    a AS (INSERT INTO agents (tenant_id, name) SELECT tenant, 'ada' FROM t RETURNING *),
    u AS (INSERT INTO users (tenant_id, name) SELECT tenant, 'bob' FROM t RETURNING *),
    c AS (INSERT INTO scopes (tenant_id, agent_id, user_id)
          SELECT tenant, a.id, u.id FROM t, a, u RETURNING *),
    a2 AS (INSERT INTO agents (tenant_id, name) SELECT tenant, 'max' FROM t RETURNING *),
    c2 AS (INSERT INTO scopes (tenant_id, agent_id, user_id)
           SELECT tenant, a2.id, u.id FROM t, a2, u RETURNING *),
    q AS (INSERT INTO grants (tenant_id, scope_id, to_scope_id, kinds)
          SELECT c.tenant_id, c.id, c2.id, '{fact}' FROM c, c2),
    s AS (INSERT INTO sessions (tenant_id, scope_id, name, next_seq, due_at)
          SELECT tenant_id, id, 's1', 2, now() FROM c RETURNING *),
    n AS (INSERT INTO turns (tenant_id, scope_id, session_id, seq, role, speaker, text, at)
          SELECT tenant_id, scope_id, id, 1, 'user', 'bob', 'canary', now() FROM s RETURNING *),
    r AS (INSERT INTO runs (tenant_id, scope_id, session_id, name, state)
          SELECT tenant_id, scope_id, id, 'extract', 'done' FROM s RETURNING *),
    m AS (INSERT INTO memories (tenant_id, scope_id, run_id, kind, text, canonical_key, importance, confidence,
                                origin, valid_from, last_seen, confirmed_at)
          SELECT tenant_id, scope_id, id, 'fact', v.text, v.text, 5, 1, 'declared', now(), now(), now()
          FROM r, (VALUES ('canary'), ('another')) v(text) RETURNING *),
    e AS (INSERT INTO entities (tenant_id, scope_id, key, type, label, first_seen, last_seen)
          SELECT tenant_id, id, 'person:bob', 'person', 'Bob', now(), now() FROM c RETURNING *),
    l AS (INSERT INTO links (tenant_id, scope_id, source_id, target_id, type, weight)
          SELECT x.tenant_id, x.scope_id, x.id, y.id, 'similar_to', 1 FROM m x JOIN m y ON x.text < y.text),
    i AS (INSERT INTO mentions (tenant_id, scope_id, memory_id, entity_id)
          SELECT m.tenant_id, m.scope_id, m.id, e.id FROM m, e LIMIT 1),
    d AS (INSERT INTO evidence (tenant_id, scope_id, memory_id, turn_scope_id, turn_id)
          SELECT m.tenant_id, m.scope_id, m.id, n.scope_id, n.id FROM m, n LIMIT 1),
    w AS (INSERT INTO terms (tenant_id, scope_id, term, row_count) SELECT tenant_id, id, 1, 1 FROM c),
    v AS (INSERT INTO speakers (tenant_id, scope_id, name) SELECT tenant_id, id, 'bob' FROM c),
    f AS (INSERT INTO feedback (tenant_id, scope_id, turn_id, label)
          SELECT tenant_id, scope_id, id, 'up' FROM n),
    p AS (INSERT INTO checkpoints (tenant_id, scope_id, content) SELECT tenant_id, id, '{}' FROM c),
    b AS (INSERT INTO scope_sizes (tenant_id, scope_id, row_count) SELECT tenant_id, id, 64 FROM c),
    g AS (INSERT INTO scope_models (tenant_id, scope_id, model) SELECT tenant_id, id, 'hash-256' FROM c),
    y AS (INSERT INTO schedules (tenant_id, scope_id, job) SELECT tenant_id, id, 'sleep' FROM c),
    z AS (INSERT INTO images (tenant_id, scope_id, run_id, source, change, row_key)
          SELECT tenant_id, scope_id, id, 'memories', 'insert', '{}' FROM r),
    ip AS (INSERT INTO import_parts (tenant_id, scope_id, run_id, number, content)
          SELECT tenant_id, scope_id, id, 0, 'canary' FROM r),
    wh AS (INSERT INTO webhooks (tenant_id, url, salt, made_with, position)
           SELECT tenant, 'https://example.com', 'x', 'x', 'x' FROM t RETURNING *),
    wd AS (INSERT INTO deliveries (tenant_id, webhook_id, message_id, outcome)
           SELECT tenant_id, id, id, 'delivered' FROM wh),
    x AS (INSERT INTO erasures (tenant_id, subject_digest, state) SELECT tenant, 'x', 'done' FROM t),
    j AS (INSERT INTO erased_turns (tenant_id, digest) SELECT tenant, 'x' FROM t),
    o AS (INSERT INTO audit (tenant_id, seq, at, action, outcome, previous, digest)
          SELECT tenant, 1, now(), 'import', 'done', '', '' FROM t),
    h AS (INSERT INTO refused_messages (tenant_id, message_id, reason) SELECT tenant, 'x', 'turn_erased' FROM t)
    INSERT INTO usage (tenant_id, day, model) SELECT tenant, current_date, 'small' FROM t"""


@pytest.fixture
def app(database: Servers) -> Iterator[Engine]:
    """The database as the API and the workers log in to it."""
    engine = connect(database.app_url)
    yield engine
    engine.dispose()


@pytest.fixture
def filled(owner: Engine, tenant: int, other_tenant: int) -> tuple[int, int]:
    """Two tenants that have at least one row in every table."""
    with owner.begin() as connection:
        for one in (tenant, other_tenant):
            connection.execute(text(FILL), {"tenant": one})
    return tenant, other_tenant


def count(connection: Connection, table: str) -> int:
    return int(connection.execute(text(f'SELECT count(*) FROM "{table}"')).scalar_one())


def found(owner: Engine, statement: str, **values: object) -> list[Mapping[str, Any]]:
    asked = text(statement)
    if "roles" in values:
        asked = asked.bindparams(bindparam("roles", expanding=True))
    with owner.connect() as connection:
        return [dict(row) for row in connection.execute(asked, values).mappings()]


@pytest.mark.one_shard
def test_every_table_forces_row_level_security_and_has_a_tenant_policy(owner: Engine) -> None:
    secured = found(
        owner,
        """SELECT c.relname FROM pg_class c JOIN pg_policy p ON p.polrelid = c.oid AND p.polname = 'tenant'
        WHERE c.relrowsecurity AND c.relforcerowsecurity AND p.polcmd = '*' AND p.polroles = '{0}'""",
    )
    assert sorted(row["relname"] for row in secured) == TABLES


def test_every_row_names_its_tenant_and_cannot_do_without(owner: Engine) -> None:
    naming = found(
        owner,
        """SELECT table_name FROM information_schema.columns WHERE table_schema = 'public'
        AND column_name = 'tenant_id' AND is_nullable = 'NO'""",
    )
    assert sorted(row["table_name"] for row in naming) == [name for name in TABLES if name != "tenants"]


def test_the_applications_roles_are_not_above_the_rules(owner: Engine) -> None:
    roles = found(
        owner,
        """SELECT rolname, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication FROM pg_roles
        WHERE rolname IN :roles""",
        roles=ROLES,
    )
    assert len(roles) == len(ROLES)
    assert not any(value for role in roles for name, value in role.items() if name != "rolname")


def test_the_finder_has_no_login_and_the_application_cannot_become_it(owner: Engine) -> None:
    assert found(owner, "SELECT rolcanlogin AS yes FROM pg_roles WHERE rolname = 'memory_finder'") == [
        {"yes": False}
    ]
    assert found(owner, "SELECT pg_has_role('memory_app', 'memory_finder', 'MEMBER') AS yes") == [
        {"yes": False}
    ]


def test_the_applications_role_owns_nothing(owner: Engine) -> None:
    owned = found(
        owner,
        """SELECT c.relname AS name FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner WHERE r.rolname IN :roles
        UNION ALL
        SELECT p.proname FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner WHERE r.rolname = 'memory_app'
        UNION ALL
        SELECT n.nspname FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner WHERE r.rolname IN :roles""",
        roles=ROLES,
    )
    assert owned == []


@pytest.mark.one_shard
def test_a_bound_key_sees_a_table_by_its_policy_or_the_table_names_nobody(owner: Engine) -> None:
    policies = found(owner, "SELECT polrelid::regclass::text AS name FROM pg_policy WHERE polname = 'bound'")
    free = set(TABLES) - {row["name"] for row in policies}
    assert free == {"tenants", "erasures", "erased_turns", "refused_messages", "usage"}


@pytest.mark.one_shard
def test_the_application_may_become_the_bound_role_and_inherits_nothing(owner: Engine) -> None:
    (right,) = found(
        owner,
        """SELECT pg_has_role('memory_app', 'memory_bound', 'SET') AS may_become,
                  pg_has_role('memory_app', 'memory_bound', 'USAGE') AS inherits""",
    )
    assert right == {"may_become": True, "inherits": False}


@pytest.mark.parametrize("role", ROLES)
def test_no_role_of_ours_may_make_tables(owner: Engine, role: str) -> None:
    assert found(owner, f"SELECT has_schema_privilege('{role}', 'public', 'CREATE') AS yes") == [
        {"yes": False}
    ]


def test_without_a_tenant_every_table_is_empty(app: Engine, filled: tuple[int, int], owner: Engine) -> None:
    with transaction(app, None) as connection:
        assert {table: count(connection, table) for table in TABLES} == dict.fromkeys(TABLES, 0)
    with owner.connect() as connection:
        assert all(count(connection, table) >= 2 for table in TABLES), "there was something to see"


def test_rows_of_another_tenant_do_not_exist(app: Engine, filled: tuple[int, int]) -> None:
    mine, other = filled
    for table in TABLES:
        column = "id" if table == "tenants" else "tenant_id"
        with transaction(app, mine) as connection:
            assert count(connection, table) >= 1
            tenants = connection.execute(text(f'SELECT DISTINCT {column} FROM "{table}"')).scalars().all()
        assert tenants == [mine], table
        assert other not in tenants


def test_another_tenants_rows_can_be_neither_changed_nor_deleted(
    app: Engine, filled: tuple[int, int]
) -> None:
    mine, other = filled
    writable = [table for table in TABLES if table not in ("tenants", "api_keys", "audit")]
    for table in writable:
        with transaction(app, mine) as connection:
            values = {"other": other}
            moved = connection.execute(
                text(f'UPDATE "{table}" SET tenant_id = tenant_id WHERE tenant_id = :other'), values
            )
            gone = connection.execute(text(f'DELETE FROM "{table}" WHERE tenant_id = :other'), values)
            assert (moved.rowcount, gone.rowcount) == (0, 0), table


@pytest.mark.parametrize("named", [None, "mine"], ids=["no tenant", "another tenant"])
def test_nothing_can_be_inserted_for_a_tenant_that_is_not_set(
    app: Engine, filled: tuple[int, int], named: str | None
) -> None:
    mine, other = filled
    with (
        pytest.raises(ProgrammingError, match="row-level security"),
        transaction(app, mine if named else None) as connection,
    ):
        connection.execute(
            text("INSERT INTO agents (tenant_id, name) VALUES (:tenant, 'eve')"), {"tenant": other}
        )


def test_a_row_cannot_be_handed_to_another_tenant(app: Engine, filled: tuple[int, int]) -> None:
    mine, other = filled
    with (
        pytest.raises(ProgrammingError, match="row-level security"),
        transaction(app, mine) as connection,
    ):
        connection.execute(text("UPDATE agents SET tenant_id = :other"), {"other": other})


def test_the_tenant_ends_with_its_transaction(database: Servers, filled: tuple[int, int]) -> None:
    mine, _ = filled
    engine = connect(database.app_url, pool_size=1, pool_overflow=0)
    with transaction(engine, mine) as connection:
        assert count(connection, "turns") == 1
    with transaction(engine, None) as connection:
        assert count(connection, "turns") == 0, "the pool hands out the same connection"
    engine.dispose()


@pytest.mark.parametrize(
    ("table", "column"), [("tenants", "created_at"), ("api_keys", "created_at"), ("audit", "at")]
)
def test_the_application_cannot_change_tenants_keys_or_the_audit_log(
    app: Engine, filled: tuple[int, int], table: str, column: str
) -> None:
    for statement in (
        f"DELETE FROM {table}",
        f"UPDATE {table} SET {column} = now()",
        f"INSERT INTO {table} DEFAULT VALUES",
    ):
        with (
            pytest.raises(StoreRefused, match="permission denied"),
            transaction(app, filled[0]) as connection,
        ):
            connection.execute(text(statement))


# --- the functions that look across tenants -------------------------------------------------------------------


@pytest.mark.one_shard
def test_the_known_functions_across_tenants_answer_only_ids_and_counts(owner: Engine) -> None:
    functions = found(
        owner,
        """SELECT p.proname AS name, coalesce(p.proargnames, '{}') AS names, coalesce(p.proargmodes, '{}') AS modes,
                  p.proconfig::text AS path, r.rolname AS owner, p.prorettype::regtype::text AS answer,
                  has_function_privilege('public', p.oid, 'EXECUTE') AS is_public
        FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner
        WHERE p.prosecdef AND p.pronamespace = 'public'::regnamespace""",
    )
    answers = {
        f["name"]: [n for n, mode in zip(f["names"], f["modes"], strict=False) if mode == "t"]
        for f in functions
    }
    assert answers == DEFINERS
    owners = {f["name"]: f["owner"] for f in functions}
    assert owners.pop("keyword_hits") == "memory_search"
    assert set(owners.values()) == {"memory_finder"}
    assert {f["path"] for f in functions} == {'{"search_path=public, pg_temp"}'}
    assert not any(f["is_public"] for f in functions)
    scalars = {f["name"]: f["answer"] for f in functions if not DEFINERS[f["name"]]}
    assert scalars == {
        "add_audit": "bigint",
        "capped_tenants": "bigint",
        "copy_tenant": "void",
        "add_key": "bigint",
        "end_key": "bigint",
        "limit_key": "bigint",
        "forget_keys": "bigint",
        "tenant_named": "bigint",
        "note_key_use": "void",
        "has_live_key": "boolean",
        "shards_of_users": "smallint",
    }


@pytest.mark.one_shard
def test_the_finder_cannot_read_what_people_said(owner: Engine) -> None:
    readable = found(
        owner,
        """SELECT a.attrelid::regclass::text AS name, array_agg(a.attname::text) AS columns
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND c.relkind = 'r'
        WHERE c.relnamespace = 'public'::regnamespace AND a.attnum > 0
          AND has_column_privilege('memory_finder', c.oid, a.attnum, 'SELECT') GROUP BY 1""",
    )
    columns = {row["name"]: set(row["columns"]) for row in readable}
    assert set(columns) == {
        "agents",
        "api_keys",
        "audit",
        "runs",
        "schedules",
        "scope_models",
        "scope_sizes",
        "scopes",
        "sessions",
        "tenants",
        "terms",
        "turns",
        "users",
        "webhooks",
    }
    assert not columns["turns"] & {"text", "speaker", "metadata", "embedding", "keywords", "reason"}
    assert not columns["sessions"] & {"name", "summary"}
    assert columns["users"] == {"shard"}
    assert not columns["webhooks"] & {"url", "description", "salt", "user_name"}


def test_a_claim_without_a_tenant_answers_ids_whose_rows_stay_hidden(
    app: Engine, filled: tuple[int, int]
) -> None:
    mine, other = filled
    with transaction(app, None) as connection:
        claimed = index_work.claim(connection, batch=10, lease=timedelta(seconds=45))
        assert {turn.tenant_id for turn in claimed} == {mine, other}
        assert turns.by_ids(connection, [t.scope_id for t in claimed], [t.id for t in claimed]) == ()
    with transaction(app, mine) as connection:
        visible = turns.by_ids(connection, [t.scope_id for t in claimed], [t.id for t in claimed])
    assert [turn.id for turn in visible] == [turn.id for turn in claimed if turn.tenant_id == mine]


# --- keys -----------------------------------------------------------------------------------------------------


def test_a_key_is_known_by_its_digest_until_it_is_revoked(app: Engine, owner: Engine, tenant: int) -> None:
    with owner.begin() as connection:
        key_id, key = keys.create(connection, "acme", rights=("read",))
    assert keys.is_well_formed(key)
    with transaction(app, None) as connection:
        assert keys.authenticate(connection, key) == keys.Caller(key_id, tenant, "acme", frozenset({"read"}))
        assert keys.authenticate(connection, keys.new_key()) is None
    with owner.begin() as connection:
        assert key.encode() not in b"".join(
            bytes(digest) for digest in connection.execute(text("SELECT digest FROM api_keys")).scalars()
        )
        keys.enter_tenant_of(connection, key_id)
        keys.revoke(connection, key_id)
    with transaction(app, None) as connection:
        assert keys.authenticate(connection, key) is None


def test_an_expired_key_is_unknown(app: Engine, owner: Engine, api_key: str) -> None:
    with owner.begin() as connection:
        connection.execute(text("UPDATE api_keys SET expires_at = now()"))
    with transaction(app, None) as connection:
        assert keys.authenticate(connection, api_key) is None


def test_using_a_key_is_noted_once_a_minute(app: Engine, owner: Engine, api_key: str) -> None:
    def note() -> object:
        with transaction(app, None) as connection:
            caller = keys.authenticate(connection, api_key)
            assert caller is not None
            keys.note_use(connection, caller.key_id)
        return found(owner, "SELECT last_used_at FROM api_keys")[0]["last_used_at"]

    first = note()
    assert first is not None
    assert note() == first


# --- references ---------------------------------------------------------------------------------------------

REFERENCES = """
    SELECT r.conname AS name, c.relname AS table, t.relname AS target,
           ARRAY(SELECT a.attname::text FROM unnest(r.conkey) WITH ORDINALITY k(number, place)
                 JOIN pg_attribute a ON a.attrelid = r.conrelid AND a.attnum = k.number ORDER BY place) AS columns,
           ARRAY(SELECT a.attname::text FROM unnest(r.confkey) WITH ORDINALITY k(number, place)
                 JOIN pg_attribute a ON a.attrelid = r.confrelid AND a.attnum = k.number ORDER BY place) AS keys
    FROM pg_constraint r JOIN pg_class c ON c.oid = r.conrelid JOIN pg_class t ON t.oid = r.confrelid
    WHERE r.contype = 'f' AND r.connamespace = 'public'::regnamespace AND t.relname <> 'tenants' ORDER BY 2, 1"""


@pytest.mark.one_shard
def test_every_reference_names_the_tenant(owner: Engine) -> None:
    references = found(owner, REFERENCES)
    assert len(references) > 25
    for reference in references:
        assert (reference["columns"][0], reference["keys"][0]) == ("tenant_id", "tenant_id"), reference[
            "name"
        ]


@pytest.mark.one_shard
def test_a_reference_does_not_tell_whether_another_tenant_has_an_id(
    app: Engine, owner: Engine, filled: tuple[int, int]
) -> None:
    """The same refusal for an id that is somebody else's and for one that is nobody's."""
    mine, other = filled
    probed = 0
    for reference in found(owner, REFERENCES):
        # Of its own scope a row is by a reference of its own; what else a caller may name is tried.
        pairs = list(zip(reference["columns"], reference["keys"], strict=True))
        named = [pair for pair in pairs if pair[0] not in ("tenant_id", "scope_id")]
        table, columns, keys_ = reference["table"], [one for one, _ in named], [one for _, one in named]
        if table in ("api_keys", "audit") or not named:
            continue
        key = ", ".join(f"CAST({column} AS text) AS {column}" for column in keys_)
        theirs = found(
            owner, f"SELECT {key} FROM {reference['target']} WHERE tenant_id = :other LIMIT 1", other=other
        )[0]
        nobodys = {column: str(uuid4()) if "-" in value else str(2**62) for column, value in theirs.items()}
        # The scope is somebody's and only the id is nobody's: the second half of the key is probed, too.
        half = theirs | {keys_[-1]: nobodys[keys_[-1]]}
        refusals = {refusal(app, mine, table, columns, list(ids.values())) for ids in (theirs, nobodys, half)}
        assert len(refusals) == 1, (reference["name"], refusals)
        probed += 1
    assert probed >= 14


def refusal(app: Engine, tenant: int, table: str, columns: list[str], values: list[str]) -> str:
    """Which constraint refuses to let the tenant's own row refer to this."""
    types = {column.name: column.type for column in metadata.tables[table].columns}
    settings = ", ".join(f"{column} = :v{place}" for place, column in enumerate(columns))
    statement = text(f"UPDATE {table} SET {settings}").bindparams(
        *(bindparam(f"v{place}", type_=types[column]) for place, column in enumerate(columns))
    )
    typed = [UUID(value) if "-" in value else int(value) for value in values]
    with app.connect() as connection:
        connection.execute(text("SELECT set_config('memory.tenant', :tenant, true)"), {"tenant": str(tenant)})
        with pytest.raises(IntegrityError) as refused:
            connection.execute(statement, {f"v{place}": value for place, value in enumerate(typed)})
        connection.rollback()
    return str(refused.value.orig.diag.constraint_name)  # type: ignore[union-attr]
