-- Who may do what: rights, row-level security, and the functions that see more than one tenant.
--
-- Applied by every `memory migrate`, after the revisions and in their transaction. So each statement must be right on a
-- fresh database, on one that has it all, and on one restored from a dump into a cluster without our roles. Policies and
-- triggers that are there are left alone: to make them again would lock their tables against those who work.
--
-- Applied once for each shard. Names need no schema: the search path is the shard's schema, the home shard's, that of
-- pgvector, "pg_temp"; functions keep it (FROM CURRENT).
-- The setting memory.tables lists our tables, so that a new one is never without row-level security.
--
-- Four roles, which belong to the cluster and are made before (memory_app/db/prerequisites.py):
--   memory_app     the API and the workers log in as it; owns nothing; row-level security holds for it.
--   memory_finder  nobody logs in as it; owns the few functions that look across tenants and return ids only.
--   memory_search  nobody logs in as it; owns the one function that asks the keyword index of a big scope.
--   memory_bound   nobody logs in as it; memory_app becomes it for the transactions of a key that is for one agent or one
--                  person, and sees the rows of those only. memory_app does not inherit it, so other transactions are not
--                  planned with its policies.

DO $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO memory_app, memory_bound', current_schema());
    -- Who is to own a function must be able to create one; taken back at the end.
    EXECUTE format('GRANT USAGE, CREATE ON SCHEMA %I TO memory_finder, memory_search', current_schema());
END
$$;

-- What the application may do, table by table, and row-level security wherever there is a tenant.
DO $$
DECLARE
    names CONSTANT text[] := string_to_array(current_setting('memory.tables'), ',');
    -- Rows have yet to be compared with a new constraint (memory_app/db/validation.py): by the owner, who has to see them.
    -- Whether row-level security holds for the owner, too, changes nothing for anybody else.
    is_validating CONSTANT boolean := EXISTS (
        SELECT FROM pg_constraint r JOIN pg_class c ON c.oid = r.conrelid
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(names) AND NOT r.convalidated);
    name text;
    sequence text;
BEGIN
    FOREACH name IN ARRAY names LOOP
        EXECUTE format('REVOKE ALL ON %I FROM PUBLIC, memory_app, memory_finder, memory_search, memory_bound', name);
        -- The audit log is added to by a function only, and never changed.
        IF name IN ('tenants', 'api_keys', 'audit', 'shards', 'alembic_version') THEN
            EXECUTE format('GRANT SELECT ON %I TO memory_app, memory_bound', name);
        ELSIF name = 'decisions' THEN
            EXECUTE format('GRANT SELECT, INSERT, DELETE ON %I TO memory_app', name);
            EXECUTE format('GRANT INSERT ON %I TO memory_bound', name);
        ELSE
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO memory_app, memory_bound', name);
        END IF;
        FOR sequence IN
            SELECT s.oid::regclass::text FROM pg_depend d
            JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
            WHERE d.classid = 'pg_class'::regclass AND d.refobjid = name::regclass AND d.deptype = 'i'
        LOOP
            EXECUTE format('GRANT USAGE ON SEQUENCE %s TO memory_app, memory_bound', sequence);
        END LOOP;
        CONTINUE WHEN name IN ('shards', 'decisions', 'alembic_version') OR (
            SELECT relrowsecurity AND relforcerowsecurity <> is_validating FROM pg_class WHERE oid = name::regclass);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I %s ROW LEVEL SECURITY',
                       name, CASE WHEN is_validating THEN 'NO FORCE' ELSE 'FORCE' END);
    END LOOP;
END
$$;

-- The finder sees what it needs to say "look there", and moves leases and counters only.
GRANT SELECT (id, tenant_id, scope_id, session_id, indexed_at, extracted_at, failed_at, lease_until, starts, accepted_at)
    ON turns TO memory_finder;
GRANT UPDATE (lease_until, starts) ON turns TO memory_finder;
GRANT SELECT (id, tenant_id, scope_id, due_at, lease_until, fence, starts, next_seq, extracted_seq, synthesized_seq,
        asked_seq, ended_at, last_activity_at, waits_for_cap)
    ON sessions TO memory_finder;
GRANT UPDATE (lease_until, starts, fence, asked_seq, waits_for_cap) ON sessions TO memory_finder;
GRANT SELECT (id, tenant_id, scope_id, session_id, name, state, due_at, lease_until, fence, starts, period, finished_at,
        kept_at, waits_for_cap)
    ON runs TO memory_finder;
GRANT UPDATE (state, lease_until, fence, starts, started_at, waits_for_cap) ON runs TO memory_finder;
GRANT SELECT ON api_keys TO memory_finder;
GRANT UPDATE (last_used_at, expires_at, revoked_at, limits) ON api_keys TO memory_finder;
GRANT DELETE ON api_keys TO memory_finder;
GRANT INSERT (tenant_id, prefix, digest, rights, label, expires_at, agent_name, user_name) ON api_keys TO memory_finder;
GRANT SELECT, INSERT ON audit TO memory_finder;
GRANT SELECT (id, name, limits), INSERT ON tenants TO memory_finder;
GRANT SELECT (id, tenant_id, agent_id) ON scopes TO memory_finder;
GRANT SELECT (id, policy) ON agents TO memory_finder;
GRANT SELECT (shard) ON users TO memory_finder;
GRANT SELECT ON scope_models TO memory_finder;
GRANT SELECT (scope_id, term, row_count) ON terms TO memory_finder;
GRANT SELECT (tenant_id, scope_id, row_count) ON scope_sizes TO memory_finder;
GRANT SELECT (tenant_id, scope_id, job, due_at) ON schedules TO memory_finder;
GRANT SELECT (id, tenant_id, due_at, lease_until, waiting_since, failing_since, paused_reason) ON webhooks TO memory_finder;
GRANT SELECT (id, tenant_id, scope_id, keywords, terms) ON turns TO memory_search;
GRANT SELECT (id, tenant_id, scope_id, keywords, terms) ON memories TO memory_search;

-- Policies. A condition is written just as Postgres shows it, but for line breaks: one that is there in these words stays.
-- The tenant is that of the transaction, or NULL, which matches no row; a sub-select, so evaluated once per statement.
-- The operator (who owns the tables) creates tenants and keys.
--
-- Those called "bound" are restrictive, for the role memory_bound: beside the tenant, the rows must be of the agent and of
-- the person whom the transaction names; an empty name is any, and the part of an agent that all its users share belongs
-- to each of them. A table with a scope is seen by way of its scope. The others name nobody: erasures, erased_turns and
-- refused_messages hold digests and ids, and usage sums of a tenant; keys and the audit log are of the whole tenant, and
-- hidden, and so are webhooks, but for those that go with the erasure of the agent or the person. A run without a scope
-- is one of a tenant, or an erasure that waits and names its target. A person is deleted with all agents, and an agent with all persons, by the foreign keys: so only by who may do that. While a call reads what a
-- person lets its agent recall of another, the transaction names that agent and, in memory.kinds, what may be seen of its
-- memories (bound_to_grant in memory_app/db/shards.py).
DO $$
DECLARE
    tenant CONSTANT text :=
        '( SELECT (NULLIF(current_setting(''memory.tenant''::text, true), ''''::text))::bigint AS "nullif")';
    agent CONSTANT text := '( SELECT current_setting(''memory.agent''::text, true) AS current_setting)';
    person CONSTANT text := '( SELECT current_setting(''memory.user''::text, true) AS current_setting)';
    kinds CONSTANT text := '( SELECT current_setting(''memory.kinds''::text, true) AS current_setting)';
    named CONSTANT text := '((%1$s = ''''::text) OR (%1$s = name))';
    visible CONSTANT text := '(EXISTS ( SELECT FROM scopes c WHERE (c.id = %I.scope_id)))';
    operator CONSTANT text := (SELECT relowner::regrole::text FROM pg_class WHERE oid = 'tenants'::regclass);
    entry record;
BEGIN
    FOR entry IN
        SELECT name AS relation, 'tenant' AS name, true AS is_permissive, '*' AS command, 'public' AS role,
               '(tenant_id = ' || tenant || ')' AS condition, NULL AS new_condition
        FROM unnest(string_to_array(current_setting('memory.tables'), ',')) name
        WHERE name NOT IN ('tenants', 'shards', 'decisions', 'alembic_version')
        UNION ALL
        SELECT name, 'bound', false, '*', 'memory_bound', format(visible, name), NULL
        FROM unnest(string_to_array(current_setting('memory.tables'), ',')) name
        WHERE name <> 'runs' AND EXISTS (
            SELECT FROM pg_attribute WHERE attrelid = name::regclass AND attname = 'scope_id' AND NOT attisdropped)
        UNION ALL
        SELECT * FROM (VALUES
            ('api_keys', 'bound', false, '*', 'memory_bound', 'false', NULL),
            ('audit', 'bound', false, '*', 'memory_bound', 'false', NULL),
            ('webhooks', 'bound', false, '*', 'memory_bound',
                format('((user_name = %s) OR (agent_name = %s))', person, agent), NULL),
            ('deliveries', 'bound', false, '*', 'memory_bound', 'false', NULL),
            ('agents', 'bound', false, '*', 'memory_bound', format(named, agent), NULL),
            ('agents', 'bound_update', false, 'w', 'memory_bound', 'true', format('(%s = ''''::text)', person)),
            ('agents', 'bound_delete', false, 'd', 'memory_bound', format('(%s = ''''::text)', person), NULL),
            ('users', 'bound', false, '*', 'memory_bound', format(named, person), NULL),
            ('users', 'bound_delete', false, 'd', 'memory_bound', format('(%s = ''''::text)', agent), NULL),
            ('scopes', 'bound_delete', false, 'd', 'memory_bound',
                format('((%s = ''''::text) OR (user_id IS NOT NULL))', person), NULL),
            ('scopes', 'bound', false, '*', 'memory_bound', format(
                '(((%1$s = ''''::text) OR (agent_id = ( SELECT a.id FROM agents a WHERE (a.name = %1$s)))) AND '
                '((%2$s = ''''::text) OR (user_id IS NULL) OR (user_id = ( SELECT u.id FROM users u WHERE (u.name = %2$s)))))',
                agent, person), NULL),
            ('memories', 'bound_kinds', false, 'r', 'memory_bound', format(
                '((COALESCE(%1$s, ''''::text) = ''''::text) OR (kind = ANY (string_to_array(%1$s, '',''::text))))',
                kinds), NULL),
            ('runs', 'bound', false, '*', 'memory_bound', format(
                'CASE WHEN (scope_id IS NOT NULL) THEN %1$s ELSE (((options -> ''target''::text) IS NULL) OR '
                '((options -> ''target''::text) @> to_jsonb(COALESCE(NULLIF(%3$s, ''''::text), %2$s)))) END',
                format(visible, 'runs'), agent, person), NULL),
            ('tenants', 'tenant', true, '*', 'public', '(id = ' || tenant || ')', NULL),
            ('tenants', 'operator', true, '*', operator, 'true', 'true'),
            ('api_keys', 'operator', true, '*', operator, 'true', 'true'),
            ('turns', 'finder', true, '*', 'memory_finder', 'true', 'true'),
            ('sessions', 'finder', true, '*', 'memory_finder', 'true', 'true'),
            ('runs', 'finder', true, '*', 'memory_finder', 'true', 'true'),
            ('api_keys', 'finder', true, '*', 'memory_finder', 'true', 'true'),
            ('audit', 'finder', true, '*', 'memory_finder', 'true', 'true'),
            ('tenants', 'finder', true, '*', 'memory_finder', 'true', NULL),
            ('agents', 'finder', true, '*', 'memory_finder', 'true', NULL),
            ('users', 'finder', true, '*', 'memory_finder', 'true', NULL),
            ('scopes', 'finder', true, '*', 'memory_finder', 'true', NULL),
            ('terms', 'finder', true, '*', 'memory_finder', 'true', NULL),
            ('scope_models', 'finder', true, '*', 'memory_finder', 'true', NULL),
            ('schedules', 'finder', true, '*', 'memory_finder', 'true', NULL),
            ('scope_sizes', 'finder', true, '*', 'memory_finder', 'true', NULL),
            ('webhooks', 'finder', true, '*', 'memory_finder', 'true', NULL),
            ('turns', 'search', true, '*', 'memory_search', 'true', NULL),
            ('memories', 'search', true, '*', 'memory_search', 'true', NULL)
        ) listed
    LOOP
        CONTINUE WHEN EXISTS (
            SELECT FROM pg_policy p
            WHERE p.polrelid = entry.relation::regclass AND p.polname = entry.name
              AND p.polcmd::text = entry.command AND p.polpermissive = entry.is_permissive
              AND p.polroles = ARRAY[CASE entry.role WHEN 'public' THEN 0 ELSE entry.role::regrole::oid END]
              AND btrim(regexp_replace(pg_get_expr(p.polqual, p.polrelid), '\s+', ' ', 'g')) = entry.condition
              AND pg_get_expr(p.polwithcheck, p.polrelid) IS NOT DISTINCT FROM entry.new_condition);
        EXECUTE format('DROP POLICY IF EXISTS %I ON %I', entry.name, entry.relation);
        EXECUTE format('CREATE POLICY %I ON %I AS %s FOR %s TO %s USING (%s)', entry.name, entry.relation,
                       CASE WHEN entry.is_permissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
                       CASE entry.command WHEN '*' THEN 'ALL' WHEN 'r' THEN 'SELECT' WHEN 'w' THEN 'UPDATE'
                                          ELSE 'DELETE' END,
                       entry.role, entry.condition)
            || coalesce(' WITH CHECK (' || entry.new_condition || ')', '');
    END LOOP;
END
$$;

-- What can change about a memory. No text, so that what is kept of it holds nothing that a person said.
CREATE OR REPLACE FUNCTION memory_state(m memories) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'session_id', m.session_id, 'successor', m.successor, 'retired_at', m.retired_at,
        'retired_reason', m.retired_reason, 'valid_from', m.valid_from, 'valid_until', m.valid_until,
        'pinned', m.pinned, 'importance', m.importance, 'confidence', m.confidence, 'sources', m.sources,
        'repeat_count', m.repeat_count, 'recall_count', m.recall_count, 'feedback_score', m.feedback_score,
        'last_seen', m.last_seen, 'confirmed_at', m.confirmed_at, 'first_confirmed_at', m.first_confirmed_at,
        'last_recalled', m.last_recalled, 'origin', m.origin, 'subtype', m.subtype,
        'synthesis_type', m.synthesis_type, 'traits', m.traits)
$$;

-- While a job that can be undone works, it names itself (memory.run) and every row it touches is kept.
CREATE OR REPLACE FUNCTION keep_image() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    touched jsonb;
    before jsonb;
    after jsonb;
BEGIN
    IF TG_TABLE_NAME = 'memories' THEN
        IF TG_OP <> 'INSERT' THEN before := memory_state(OLD); END IF;
        IF TG_OP <> 'DELETE' THEN after := memory_state(NEW); END IF;
        touched := jsonb_build_object('id', CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END);
    ELSE
        IF TG_OP <> 'INSERT' THEN before := to_jsonb(OLD); END IF;
        IF TG_OP <> 'DELETE' THEN after := to_jsonb(NEW); END IF;
        touched := coalesce(before, after) - 'weight' - 'created_at';
    END IF;
    INSERT INTO images (tenant_id, scope_id, run_id, source, change, row_key, before, after)
    VALUES (CASE TG_OP WHEN 'DELETE' THEN OLD.tenant_id ELSE NEW.tenant_id END,
            CASE TG_OP WHEN 'DELETE' THEN OLD.scope_id ELSE NEW.scope_id END,
            current_setting('memory.run')::uuid,
            TG_TABLE_NAME, lower(TG_OP), touched, before, after);
    RETURN NULL;
END
$$;

DO $$
DECLARE
    name text;
    condition CONSTANT text := 'current_setting(''memory.run''::text, true) <> ''''::text';
BEGIN
    FOREACH name IN ARRAY ARRAY['memories', 'links', 'mentions', 'evidence'] LOOP
        CONTINUE WHEN EXISTS (
            SELECT FROM pg_trigger t
            WHERE t.tgrelid = name::regclass AND t.tgname = 'keep_image' AND t.tgenabled = 'O'
              AND pg_get_triggerdef(t.oid, true) = format(
                  'CREATE TRIGGER keep_image AFTER INSERT OR DELETE OR UPDATE ON %I FOR EACH ROW '
                  'WHEN (%s) EXECUTE FUNCTION keep_image()', name, condition));
        EXECUTE format('DROP TRIGGER IF EXISTS keep_image ON %I', name);
        EXECUTE format(
            'CREATE TRIGGER keep_image AFTER INSERT OR UPDATE OR DELETE ON %I FOR EACH ROW
             WHEN (%s) EXECUTE FUNCTION keep_image()', name, condition);
    END LOOP;
END
$$;

-- The release before does not write whose a turn is, and its idempotency keys must be unique with those of this one.
CREATE OR REPLACE FUNCTION name_user() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.user_id := (SELECT c.user_id FROM scopes c WHERE c.id = NEW.scope_id);
    RETURN NEW;
END
$$;

DO $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_trigger t
        WHERE t.tgrelid = 'turns'::regclass AND t.tgname = 'name_user' AND t.tgenabled = 'O'
          AND pg_get_triggerdef(t.oid, true) = 'CREATE TRIGGER name_user BEFORE INSERT ON turns FOR EACH ROW '
              'WHEN (new.user_id IS NULL AND new.idempotency_key IS NOT NULL) EXECUTE FUNCTION name_user()') THEN
        DROP TRIGGER IF EXISTS name_user ON turns;
        CREATE TRIGGER name_user BEFORE INSERT ON turns FOR EACH ROW
        WHEN (NEW.user_id IS NULL AND NEW.idempotency_key IS NOT NULL) EXECUTE FUNCTION name_user();
    END IF;
END
$$;

-- In which transaction a turn, a memory or a run changed (see memory_app/events), written in the same row version: no
-- writer can leave it out. An insert that names the transaction is a move between shards, and tells nobody anything.
CREATE OR REPLACE FUNCTION number_turn() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    number CONSTANT bigint := public.xact_number();
BEGIN
    IF TG_OP = 'INSERT' THEN
        NEW.accepted_xact := number;
    END IF;
    IF NEW.indexed_at IS NOT NULL AND (TG_OP = 'INSERT' OR OLD.indexed_at IS NULL) THEN
        NEW.indexed_xact := number;
    END IF;
    IF NEW.extracted_at IS NULL AND NEW.failed_at IS NULL THEN
        NEW.settled_xact := NULL;
    ELSIF TG_OP = 'INSERT' OR NEW.extracted_at IS DISTINCT FROM OLD.extracted_at
            OR NEW.failed_at IS DISTINCT FROM OLD.failed_at THEN
        NEW.settled_xact := number;
    END IF;
    RETURN NEW;
END
$$;

CREATE OR REPLACE FUNCTION number_memory() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        NEW.stored_xact := public.xact_number();
    ELSE
        NEW.altered_xact := public.xact_number();
    END IF;
    RETURN NEW;
END
$$;

CREATE OR REPLACE FUNCTION number_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.finished_xact := public.xact_number();
    RETURN NEW;
END
$$;

DO $$
DECLARE
    entry record;
    definition text;
BEGIN
    FOR entry IN
        SELECT * FROM (VALUES
            ('turns', 'number_turn', 'INSERT', 'number_turn', 'new.accepted_xact IS NULL'),
            ('turns', 'number_turn_stage', 'UPDATE', 'number_turn',
                'old.indexed_at IS DISTINCT FROM new.indexed_at OR old.extracted_at IS DISTINCT FROM new.extracted_at '
                'OR old.failed_at IS DISTINCT FROM new.failed_at'),
            ('memories', 'number_memory', 'INSERT', 'number_memory', 'new.stored_xact IS NULL'),
            ('memories', 'number_memory_change', 'UPDATE', 'number_memory',
                'old.retired_at IS DISTINCT FROM new.retired_at OR old.valid_until IS DISTINCT FROM new.valid_until '
                'OR old.pinned IS DISTINCT FROM new.pinned OR old.importance IS DISTINCT FROM new.importance'),
            ('runs', 'number_run', 'INSERT', 'number_run',
                'new.finished_at IS NOT NULL AND new.finished_xact IS NULL'),
            ('runs', 'number_run_end', 'UPDATE', 'number_run',
                'old.finished_at IS DISTINCT FROM new.finished_at OR '
                '(old.report ->> ''undone_at''::text) IS DISTINCT FROM (new.report ->> ''undone_at''::text)')
        ) AS listed(relation, name, event, function, condition)
    LOOP
        definition := format('CREATE TRIGGER %I BEFORE %s ON %I FOR EACH ROW WHEN (%s) EXECUTE FUNCTION %I()',
                             entry.name, entry.event, entry.relation, entry.condition, entry.function);
        CONTINUE WHEN EXISTS (
            SELECT FROM pg_trigger t
            WHERE t.tgrelid = entry.relation::regclass AND t.tgname = entry.name AND t.tgenabled = 'O'
              AND pg_get_triggerdef(t.oid, true) = definition);
        EXECUTE format('DROP TRIGGER IF EXISTS %I ON %I', entry.name, entry.relation);
        EXECUTE definition;
    END LOOP;
END
$$;

-- Restored into another cluster, the rows hold numbers of transactions that it has perhaps not come to.
DO $$
DECLARE
    cluster CONSTANT text := (SELECT system_identifier::text FROM pg_control_system());
BEGIN
    IF obj_description('public.xact_offset()'::regprocedure, 'pg_proc') IS DISTINCT FROM cluster THEN
        PERFORM public.xact_renumber();
        EXECUTE format('COMMENT ON FUNCTION public.xact_offset() IS %L', cluster);
    END IF;
END
$$;

-- Whose key is this? No row for an unknown, revoked or expired one.
CREATE OR REPLACE FUNCTION authenticate(key_digest bytea)
RETURNS TABLE (key_id bigint, tenant_id bigint, tenant_name text, rights text[], agent_name text, user_name text,
               limits jsonb, tenant_limits jsonb)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT k.id, k.tenant_id, t.name, k.rights, k.agent_name, k.user_name, k.limits, t.limits
    FROM api_keys k JOIN tenants t ON t.id = k.tenant_id
    WHERE k.digest = key_digest
      AND k.revoked_at IS NULL
      AND (k.expires_at IS NULL OR k.expires_at > now())
$$;

-- A new key of the transaction's tenant; its id. The application may not write the table itself.
CREATE OR REPLACE FUNCTION add_key(key_prefix text, key_digest bytea, key_rights text[], key_label text,
                                   key_expires_at timestamptz, key_agent text, key_user text) RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    INSERT INTO api_keys (tenant_id, prefix, digest, rights, label, expires_at, agent_name, user_name)
    VALUES (nullif(current_setting('memory.tenant', true), '')::bigint, key_prefix, key_digest, key_rights, key_label,
            key_expires_at, key_agent, key_user)
    RETURNING id
$$;

-- End a key of the transaction's tenant: at a time, or without one now and for good. Nothing for an unknown id.
CREATE OR REPLACE FUNCTION end_key(wanted bigint, ends_at timestamptz) RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    UPDATE api_keys SET
        -- A second call leaves the time of the first.
        revoked_at = CASE WHEN ends_at IS NULL THEN coalesce(revoked_at, now()) ELSE revoked_at END,
        expires_at = CASE WHEN ends_at IS NULL THEN expires_at ELSE least(expires_at, ends_at) END
    WHERE id = wanted AND tenant_id = nullif(current_setting('memory.tenant', true), '')::bigint
    RETURNING id
$$;

-- Delete the keys of the transaction's tenant that are for one agent or one person who is erased: they name whom they are
-- for. How many. A transaction that is bound itself deletes none but those of whom it is bound to.
CREATE OR REPLACE FUNCTION forget_keys(erased_agent text, erased_user text, made_before timestamptz) RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    WITH gone AS (
        DELETE FROM api_keys k
        WHERE k.tenant_id = nullif(current_setting('memory.tenant', true), '')::bigint
          AND (k.agent_name = erased_agent OR k.user_name = erased_user)
          AND (made_before IS NULL OR k.created_at < made_before)
          AND (coalesce(current_setting('memory.agent', true), '') IN ('', k.agent_name)) IS TRUE
          AND (coalesce(current_setting('memory.user', true), '') IN ('', k.user_name)) IS TRUE
        RETURNING k.id
    )
    SELECT count(*) FROM gone
$$;

-- Set the limits of a key of the transaction's tenant. Nothing for an unknown id.
CREATE OR REPLACE FUNCTION limit_key(wanted bigint, new_limits jsonb) RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    UPDATE api_keys SET limits = new_limits
    WHERE id = wanted AND tenant_id = nullif(current_setting('memory.tenant', true), '')::bigint
    RETURNING id
$$;

-- Add an entry to the audit log of the transaction's tenant, chained to the one before. The text that is digested is that
-- of memory_app/records/audit.py, which verifies it.
CREATE OR REPLACE FUNCTION add_audit(entry_key bigint, entry_action text, entry_agent text, entry_subject bytea,
                                     entry_target text, entry_outcome text, entry_request uuid) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    owner CONSTANT bigint := nullif(current_setting('memory.tenant', true), '')::bigint;
    entry_seq bigint := 1;
    entry_previous bytea := '';
    entry_at timestamptz;
BEGIN
    -- One entry of a tenant after the other. A lock of the last entry would not do: who waits would not see the new last.
    PERFORM pg_advisory_xact_lock(hashtextextended('audit', owner));
    SELECT a.seq + 1, a.digest INTO entry_seq, entry_previous
    FROM audit a WHERE a.tenant_id = owner ORDER BY a.seq DESC LIMIT 1;
    IF NOT FOUND THEN
        entry_seq := 1;
        entry_previous := '';
    END IF;
    entry_at := clock_timestamp();
    INSERT INTO audit (tenant_id, seq, at, key_id, action, agent, subject, target, outcome, request_id, previous, digest)
    VALUES (owner, entry_seq, entry_at, entry_key, entry_action, entry_agent, entry_subject, entry_target, entry_outcome,
            entry_request, entry_previous, sha256(convert_to(array_to_string(ARRAY[
                encode(entry_previous, 'hex'), entry_seq::text,
                to_char(entry_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                entry_key::text, entry_action, entry_agent, encode(entry_subject, 'hex'), entry_target, entry_outcome,
                entry_request::text], E'\n', ''), 'UTF8')));
    RETURN entry_seq;
END
$$;

-- Whether anybody holds a key that opens the door now.
CREATE OR REPLACE FUNCTION has_live_key() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT EXISTS (SELECT FROM api_keys
                   WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()))
$$;

-- The id behind a tenant's name, for producers that run in the operator's own process and hold no key.
CREATE OR REPLACE FUNCTION tenant_named(wanted text) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT t.id FROM tenants t WHERE t.name = wanted
$$;

-- Copy a tenant, whose entry in the directory is given, into a shard on another server: what foreign keys refer to. The
-- home shard has the entries themselves, which the owner makes.
CREATE OR REPLACE FUNCTION copy_tenant(entry jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF current_schema() <> 'public' THEN
        INSERT INTO tenants OVERRIDING SYSTEM VALUE SELECT * FROM jsonb_populate_record(CAST(NULL AS tenants), entry)
        ON CONFLICT DO NOTHING;
    END IF;
END
$$;

-- Note that a key was used; at most once a minute, so that reading does not become writing.
CREATE OR REPLACE FUNCTION note_key_use(used_key_id bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
    UPDATE api_keys SET last_used_at = now()
    WHERE id = used_key_id AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
$$;

-- Tenants with rows of `source` that wait, up to `most`. Found by stepping from tenant to tenant through an index, so the
-- number of rows does not count; from a random place on, so that with more tenants than that everybody's turn comes.
CREATE OR REPLACE FUNCTION tenants_in_turn(source text, most integer) RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $$
DECLARE
    start bigint := floor(random() * coalesce((SELECT max(id) FROM tenants), 0));
    place bigint := start;
    is_round boolean := false;
    seen integer := 0;
    step CONSTANT text := format(
        'SELECT r.tenant_id FROM %I r WHERE r.tenant_id > $1 AND %s ORDER BY r.tenant_id LIMIT 1',
        CASE source WHEN 'unasked' THEN 'sessions' WHEN 'capped sessions' THEN 'sessions' WHEN 'capped runs' THEN 'runs'
                    ELSE source END,
        CASE source
            WHEN 'turns' THEN 'r.indexed_at IS NULL AND r.failed_at IS NULL'
            WHEN 'unasked' THEN
                'r.due_at IS NULL AND r.synthesized_seq < r.next_seq - 1 AND r.asked_seq < r.next_seq - 1'
            WHEN 'capped sessions' THEN 'r.waits_for_cap'
            WHEN 'capped runs' THEN 'r.waits_for_cap'
            ELSE 'r.due_at IS NOT NULL'
        END);
BEGIN
    WHILE seen < most LOOP
        EXECUTE step INTO place USING place;
        IF place IS NULL AND NOT is_round THEN
            is_round := true;
            place := -1;
        ELSIF place IS NULL OR (is_round AND place > start) THEN
            RETURN;
        ELSE
            seen := seen + 1;
            RETURN NEXT place;
        END IF;
    END LOOP;
END
$$;

-- Lend up to `batch` unindexed turns of any session for `lease`, from each tenant its share, so that the many turns of one
-- do not delay the few of another. A start is counted before the work, because nothing runs after SIGKILL: a turn that
-- was started and never explained is lent alone, so that it can only kill itself.
CREATE OR REPLACE FUNCTION claim_turns(batch integer, lease interval)
RETURNS TABLE (tenant_id bigint, scope_id bigint, id uuid, starts smallint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    tenants bigint[];
    share integer;
    lent integer := 0;
    taken integer;
BEGIN
    RETURN QUERY
        UPDATE turns t SET starts = t.starts + 1, lease_until = now() + lease
        FROM (
            SELECT d.scope_id, d.id FROM turns d
            WHERE d.indexed_at IS NULL AND d.failed_at IS NULL AND d.starts > 0 AND d.lease_until <= now()
            ORDER BY d.lease_until LIMIT 1 FOR UPDATE SKIP LOCKED
        ) due
        WHERE t.scope_id = due.scope_id AND t.id = due.id
        RETURNING t.tenant_id, t.scope_id, t.id, t.starts;
    IF FOUND THEN
        RETURN;
    END IF;
    tenants := ARRAY(SELECT tenants_in_turn('turns', batch));
    share := ceil(batch::numeric / greatest(cardinality(tenants), 1));
    -- Twice: what some did not need is for the others.
    FOR round IN 1..2 LOOP
        EXIT WHEN lent >= batch;
        RETURN QUERY
            UPDATE turns t SET starts = t.starts + 1, lease_until = now() + lease
            FROM (
                SELECT d.scope_id, d.id FROM unnest(tenants) AS w(id) CROSS JOIN LATERAL (
                    SELECT f.scope_id, f.id FROM turns f
                    WHERE f.tenant_id = w.id AND f.indexed_at IS NULL AND f.failed_at IS NULL AND f.starts = 0
                      AND coalesce(f.lease_until, '-infinity') <= now()
                    ORDER BY coalesce(f.lease_until, '-infinity'), f.id LIMIT share FOR UPDATE SKIP LOCKED
                ) d LIMIT batch - lent
            ) due
            WHERE t.scope_id = due.scope_id AND t.id = due.id
            RETURNING t.tenant_id, t.scope_id, t.id, t.starts;
        GET DIAGNOSTICS taken = ROW_COUNT;
        lent := lent + taken;
        share := batch - lent;
    END LOOP;
END
$$;

-- Lend one session for extraction if it is due and free. The fence grows with every claim; a commit whose fence is
-- older finds no row to move and takes nothing with it. A session whose last start was never explained is not lent to a
-- process that does other work at the same time (`shared`): it may kill that process, and all of that work with it.
CREATE OR REPLACE FUNCTION claim_session(wanted bigint, lease interval, shared boolean)
RETURNS TABLE (tenant_id bigint, scope_id bigint, fence bigint, starts integer)
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
    UPDATE sessions s
    SET fence = s.fence + 1, starts = s.starts + 1, lease_until = now() + lease, waits_for_cap = false
    WHERE s.id = wanted AND s.due_at <= now() AND (s.lease_until IS NULL OR s.lease_until <= now())
      AND (s.starts = 0 OR NOT shared)
    RETURNING s.tenant_id, s.scope_id, s.fence, s.starts
$$;

-- Whether the agent of a scope has its turns read by a language model. A look-up of its own, since a join would be made
-- by way of everybody's scopes.
CREATE OR REPLACE FUNCTION asks_model(scope bigint) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN coalesce((
        SELECT a.policy ->> 'extraction' = 'llm' FROM agents a
        WHERE a.id = (SELECT c.agent_id FROM scopes c WHERE c.id = scope)), false);
END
$$;

-- Ids of sessions that are due and free, from each tenant its share, so that a busy one cannot starve the others; with
-- what decides who may do the work.
CREATE OR REPLACE FUNCTION due_sessions(most integer)
RETURNS TABLE (session_id bigint, asks_model boolean, is_suspect boolean)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    WITH tenants AS MATERIALIZED (SELECT tenants_in_turn('sessions', most) AS id),
    share AS MATERIALIZED (SELECT ceil(most::numeric / greatest(count(*), 1))::integer AS size FROM tenants),
    first AS MATERIALIZED (
        SELECT d.* FROM tenants w CROSS JOIN LATERAL (
            SELECT s.id, s.scope_id, s.starts, s.due_at, row_number() OVER (ORDER BY s.due_at) AS place
            FROM sessions s
            WHERE s.tenant_id = w.id AND s.due_at <= now() AND (s.lease_until IS NULL OR s.lease_until <= now())
            ORDER BY s.due_at LIMIT (SELECT size FROM share)) d
        LIMIT most
    ), rest AS MATERIALIZED (
        SELECT d.* FROM tenants w CROSS JOIN LATERAL (
            SELECT s.id, s.scope_id, s.starts, s.due_at, row_number() OVER (ORDER BY s.due_at) AS place
            FROM sessions s
            WHERE s.tenant_id = w.id AND s.due_at <= now() AND (s.lease_until IS NULL OR s.lease_until <= now())
            ORDER BY s.due_at OFFSET (SELECT size FROM share) LIMIT most) d
        LIMIT most - (SELECT count(*) FROM first)
    )
    SELECT due.id, asks_model(due.scope_id), due.starts > 0
    FROM (SELECT * FROM first UNION ALL SELECT * FROM rest) due
    ORDER BY due.place, due.due_at
$$;

-- Tenants of which sessions or runs wait for their cap, up to `most` of either; from a random place on, so that all come
-- to be looked at.
CREATE OR REPLACE FUNCTION capped_tenants(most integer) RETURNS SETOF bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT tenants_in_turn('capped sessions', most) UNION SELECT tenants_in_turn('capped runs', most)
$$;

-- Lend one queued run if it is due and free; fence and `shared` as for sessions.
CREATE OR REPLACE FUNCTION claim_run(wanted uuid, lease interval, shared boolean)
RETURNS TABLE (tenant_id bigint, scope_id bigint, session_id bigint, name text, fence bigint, starts integer)
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
    UPDATE runs r
    SET state = 'running', fence = r.fence + 1, starts = r.starts + 1, lease_until = now() + lease, started_at = now(),
        waits_for_cap = false
    WHERE r.id = wanted AND r.state IN ('queued', 'running') AND r.due_at <= now()
      AND (r.lease_until IS NULL OR r.lease_until <= now()) AND (r.starts = 0 OR NOT shared)
    RETURNING r.tenant_id, r.scope_id, r.session_id, r.name, r.fence, r.starts
$$;

-- Ids and names of runs that are due and free, from each tenant its share.
CREATE OR REPLACE FUNCTION due_runs(most integer) RETURNS TABLE (run_id uuid, name text, is_suspect boolean)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    WITH tenants AS MATERIALIZED (SELECT tenants_in_turn('runs', most) AS id),
    share AS MATERIALIZED (SELECT ceil(most::numeric / greatest(count(*), 1))::integer AS size FROM tenants),
    first AS MATERIALIZED (
        SELECT d.* FROM tenants w CROSS JOIN LATERAL (
            SELECT r.id, r.name, r.starts, r.due_at, row_number() OVER (ORDER BY r.due_at) AS place FROM runs r
            WHERE r.tenant_id = w.id AND r.due_at <= now() AND r.state IN ('queued', 'running')
              AND (r.lease_until IS NULL OR r.lease_until <= now())
            ORDER BY r.due_at LIMIT (SELECT size FROM share)) d
        LIMIT most
    ), rest AS MATERIALIZED (
        SELECT d.* FROM tenants w CROSS JOIN LATERAL (
            SELECT r.id, r.name, r.starts, r.due_at, row_number() OVER (ORDER BY r.due_at) AS place FROM runs r
            WHERE r.tenant_id = w.id AND r.due_at <= now() AND r.state IN ('queued', 'running')
              AND (r.lease_until IS NULL OR r.lease_until <= now())
            ORDER BY r.due_at OFFSET (SELECT size FROM share) LIMIT most) d
        LIMIT most - (SELECT count(*) FROM first)
    )
    SELECT due.id, due.name, due.starts > 0 FROM (SELECT * FROM first UNION ALL SELECT * FROM rest) due
    ORDER BY due.place, due.due_at
$$;

-- Periodic jobs of scopes that are due at an instant, from each tenant its share.
CREATE OR REPLACE FUNCTION due_scopes(at timestamptz, most integer)
RETURNS TABLE (tenant_id bigint, scope_id bigint, job text, due_at timestamptz)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    WITH tenants AS MATERIALIZED (SELECT tenants_in_turn('schedules', most) AS id),
    share AS MATERIALIZED (SELECT ceil(most::numeric / greatest(count(*), 1))::integer AS size FROM tenants),
    first AS MATERIALIZED (
        SELECT d.* FROM tenants w CROSS JOIN LATERAL (
            SELECT s.tenant_id, s.scope_id, s.job, s.due_at, row_number() OVER (ORDER BY s.due_at) AS place
            FROM schedules s WHERE s.tenant_id = w.id AND s.due_at <= at
            ORDER BY s.due_at LIMIT (SELECT size FROM share)) d
        LIMIT most
    ), rest AS MATERIALIZED (
        SELECT d.* FROM tenants w CROSS JOIN LATERAL (
            SELECT s.tenant_id, s.scope_id, s.job, s.due_at, row_number() OVER (ORDER BY s.due_at) AS place
            FROM schedules s WHERE s.tenant_id = w.id AND s.due_at <= at
            ORDER BY s.due_at OFFSET (SELECT size FROM share) LIMIT most) d
        LIMIT most - (SELECT count(*) FROM first)
    )
    SELECT due.tenant_id, due.scope_id, due.job, due.due_at
    FROM (SELECT * FROM first UNION ALL SELECT * FROM rest) due
    ORDER BY due.place, due.due_at
$$;

-- Sessions of agents with a language model that fell silent, or were ended, with turns that no synthesis was asked for.
-- Those of other agents are stamped as if it had been, which takes them out of the index that is gone through here; so
-- are those for which a run was written down by a release that does not stamp them itself.
CREATE OR REPLACE FUNCTION idle_sessions(idle interval, most integer)
RETURNS TABLE (tenant_id bigint, scope_id bigint, session_id bigint, last_seq integer)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    tenants CONSTANT bigint[] := ARRAY(SELECT tenants_in_turn('unasked', most));
    share CONSTANT integer := ceil(most::numeric / greatest(cardinality(tenants), 1));
    silent record;
    asked record;
BEGIN
    FOR silent IN
        SELECT d.* FROM unnest(tenants) AS w(id) CROSS JOIN LATERAL (
            SELECT s.tenant_id, s.scope_id, s.id, s.next_seq - 1 AS last_seq FROM sessions s
            WHERE s.tenant_id = w.id AND s.due_at IS NULL
              AND s.synthesized_seq < s.next_seq - 1 AND s.asked_seq < s.next_seq - 1
              AND CASE WHEN s.ended_at IS NULL THEN s.last_activity_at ELSE '-infinity' END < now() - idle
            ORDER BY CASE WHEN s.ended_at IS NULL THEN s.last_activity_at ELSE '-infinity' END
            LIMIT share FOR NO KEY UPDATE SKIP LOCKED) d
    LOOP
        SELECT coalesce(bool_or(r.state IN ('queued', 'running')), false) AS is_open,
               coalesce(bool_or(r.period = silent.id || ':' || silent.last_seq), false) AS is_done
        INTO asked FROM runs r
        WHERE r.scope_id = silent.scope_id AND r.session_id = silent.id AND r.name = 'synthesize_session';
        IF asked.is_done OR NOT asks_model(silent.scope_id) THEN
            UPDATE sessions s SET asked_seq = silent.last_seq
            WHERE s.scope_id = silent.scope_id AND s.id = silent.id;
        ELSIF NOT asked.is_open THEN
            tenant_id := silent.tenant_id;
            scope_id := silent.scope_id;
            session_id := silent.id;
            last_seq := silent.last_seq;
            RETURN NEXT;
        END IF;
    END LOOP;
END
$$;

-- How many users each shard holds, by the directory.
CREATE OR REPLACE FUNCTION users_by_shard() RETURNS TABLE (shard smallint, user_count bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT u.shard, count(*) FROM users u GROUP BY u.shard
$$;

-- The shards that hold a user, by the directory: one look into the index for each, however many users there are.
CREATE OR REPLACE FUNCTION shards_of_users() RETURNS SETOF smallint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    WITH RECURSIVE found(shard) AS (
        SELECT min(u.shard) FROM users u
        UNION ALL
        SELECT (SELECT min(u.shard) FROM users u WHERE u.shard > f.shard) FROM found f WHERE f.shard IS NOT NULL
    )
    SELECT f.shard FROM found f WHERE f.shard IS NOT NULL
$$;

-- How far behind the pipe is, over all tenants and without naming any. Counts go to 1,000 and no further.
CREATE OR REPLACE FUNCTION pipeline_state()
RETURNS TABLE (unindexed bigint, claimable bigint, oldest_unindexed_seconds double precision,
               due_sessions bigint, oldest_due_seconds double precision, failed bigint)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT
        (SELECT count(*) FROM (
            SELECT FROM turns t WHERE t.indexed_at IS NULL AND t.failed_at IS NULL LIMIT 1000) counted),
        (SELECT count(*) FROM (
            SELECT FROM tenants_in_turn('turns', 1000) w(id) CROSS JOIN LATERAL (
                SELECT FROM turns t
                WHERE t.tenant_id = w.id AND t.indexed_at IS NULL AND t.failed_at IS NULL
                  AND coalesce(t.lease_until, '-infinity') <= now() LIMIT 1000) d
            LIMIT 1000) counted),
        coalesce((
            SELECT extract(epoch FROM now() - t.accepted_at) FROM turns t
            WHERE t.indexed_at IS NULL AND t.failed_at IS NULL ORDER BY t.id LIMIT 1), 0)::double precision,
        (SELECT count(*) FROM (
            SELECT FROM tenants_in_turn('sessions', 1000) w(id) CROSS JOIN LATERAL (
                SELECT FROM sessions s WHERE s.tenant_id = w.id AND s.due_at <= now() LIMIT 1000) d
            LIMIT 1000) counted),
        coalesce((
            SELECT greatest(extract(epoch FROM now() - min(d.due_at)), 0)
            FROM tenants_in_turn('sessions', 1000) w(id) CROSS JOIN LATERAL (
                SELECT s.due_at FROM sessions s WHERE s.tenant_id = w.id AND s.due_at IS NOT NULL
                ORDER BY s.due_at LIMIT 1) d), 0)::double precision,
        (SELECT count(*) FROM (
            SELECT FROM turns t WHERE t.failed_at IS NOT NULL AND t.extracted_at IS NULL LIMIT 1000) counted)
$$;

-- For each kind of work, over all tenants and without naming any: for how long the oldest has been due that nobody has in
-- hand, and whether somebody has any in hand. A turn that waits for its next try is not due before that. Sessions and runs
-- whose last start was never explained wait for a worker that may be busy for long, so they are no measure. Who has a
-- session or a run in hand is looked for among those that have been due longest, and shortest: workers are sent to these.
CREATE OR REPLACE FUNCTION due_work() RETURNS TABLE (kind text, oldest_seconds double precision, is_held boolean)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT work.kind, coalesce(extract(epoch FROM now() - work.due_at), 0)::double precision, work.is_held FROM (
        SELECT 'turns',
            (SELECT min(d.due_at) FROM tenants_in_turn('turns', 1000) AS w(id) CROSS JOIN LATERAL (
                (SELECT t.accepted_at AS due_at FROM turns t
                 WHERE t.tenant_id = w.id AND t.indexed_at IS NULL AND t.failed_at IS NULL
                   AND coalesce(t.lease_until, '-infinity') = '-infinity'
                 ORDER BY coalesce(t.lease_until, '-infinity'), t.id LIMIT 1)
                UNION ALL
                (SELECT greatest(t.accepted_at, t.lease_until) FROM turns t
                 WHERE t.tenant_id = w.id AND t.indexed_at IS NULL AND t.failed_at IS NULL
                   AND coalesce(t.lease_until, '-infinity') > '-infinity'
                   AND coalesce(t.lease_until, '-infinity') <= now()
                 ORDER BY coalesce(t.lease_until, '-infinity') LIMIT 1)) d),
            EXISTS (SELECT FROM turns t WHERE t.indexed_at IS NULL AND t.failed_at IS NULL AND t.starts > 0
                    AND t.lease_until > now())
        UNION ALL SELECT 'sessions',
            (SELECT min(d.due_at) FROM tenants_in_turn('sessions', 1000) AS w(id) CROSS JOIN LATERAL (
                SELECT s.due_at FROM sessions s
                WHERE s.tenant_id = w.id AND s.due_at <= now() AND s.starts = 0
                  AND coalesce(s.lease_until, '-infinity') <= now()
                ORDER BY s.due_at LIMIT 1) d),
            EXISTS (SELECT FROM tenants_in_turn('sessions', 1000) AS w(id) CROSS JOIN LATERAL (
                (SELECT s.lease_until FROM sessions s WHERE s.tenant_id = w.id AND s.due_at <= now()
                 ORDER BY s.due_at LIMIT 500)
                UNION ALL
                (SELECT s.lease_until FROM sessions s WHERE s.tenant_id = w.id AND s.due_at <= now()
                 ORDER BY s.due_at DESC LIMIT 500)) d
                WHERE d.lease_until > now())
        UNION ALL SELECT 'runs',
            (SELECT min(d.due_at) FROM tenants_in_turn('runs', 1000) AS w(id) CROSS JOIN LATERAL (
                SELECT r.due_at FROM runs r
                WHERE r.tenant_id = w.id AND r.due_at <= now() AND r.state IN ('queued', 'running') AND r.starts = 0
                  AND coalesce(r.lease_until, '-infinity') <= now()
                ORDER BY r.due_at LIMIT 1) d),
            EXISTS (SELECT FROM tenants_in_turn('runs', 1000) AS w(id) CROSS JOIN LATERAL (
                (SELECT r.lease_until FROM runs r WHERE r.tenant_id = w.id AND r.due_at <= now()
                 ORDER BY r.due_at LIMIT 500)
                UNION ALL
                (SELECT r.lease_until FROM runs r WHERE r.tenant_id = w.id AND r.due_at <= now()
                 ORDER BY r.due_at DESC LIMIT 500)) d
                WHERE d.lease_until > now())
        UNION ALL SELECT 'periodic jobs',
            (SELECT min(d.due_at) FROM tenants_in_turn('schedules', 1000) AS w(id) CROSS JOIN LATERAL (
                SELECT j.due_at FROM schedules j WHERE j.tenant_id = w.id AND j.due_at <= now()
                ORDER BY j.due_at LIMIT 1) d),
            false
    ) AS work(kind, due_at, is_held)
$$;

-- Webhooks at which somebody should look, the tenants in turn, and those of a tenant in no order: most of them have nothing
-- to deliver, and stay due.
CREATE OR REPLACE FUNCTION due_webhooks(most integer) RETURNS TABLE (tenant_id bigint, webhook_id uuid)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT d.tenant_id, d.id FROM tenants_in_turn('webhooks', most) AS t(id) CROSS JOIN LATERAL (
        SELECT w.tenant_id, w.id, row_number() OVER (ORDER BY random()) AS place FROM webhooks w
        WHERE w.tenant_id = t.id AND w.due_at <= now() AND coalesce(w.lease_until, '-infinity') <= now()) d
    ORDER BY d.place LIMIT most
$$;

-- Over all tenants and without naming any: how many webhooks are active, fail, and were paused because they failed for too
-- long or their receiver is gone; and for how long the oldest event waits of which a delivery was tried.
CREATE OR REPLACE FUNCTION webhook_state()
RETURNS TABLE (active bigint, failing bigint, given_up bigint, oldest_waiting_seconds double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT count(*) FILTER (WHERE w.due_at IS NOT NULL),
        count(*) FILTER (WHERE w.due_at IS NOT NULL AND w.failing_since IS NOT NULL),
        count(*) FILTER (WHERE w.paused_reason <> 'asked'),
        coalesce(extract(epoch FROM now() - min(w.waiting_since) FILTER (WHERE w.due_at IS NOT NULL)), 0)::double precision
    FROM webhooks w
$$;

-- Scopes that grew past a size and have no search indexes for the current model yet: ids only. What is noted of a size
-- lags behind by less than 64 rows.
CREATE OR REPLACE FUNCTION big_scopes(least_rows integer, model text, most integer) RETURNS TABLE (tenant_id bigint, scope_id bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT z.tenant_id, z.scope_id FROM scope_sizes z
    JOIN terms t ON t.scope_id = z.scope_id AND t.term = 0
    WHERE z.row_count > least_rows - 64 AND t.row_count >= least_rows AND NOT EXISTS (
        SELECT FROM scope_models m WHERE m.scope_id = z.scope_id AND m.model = big_scopes.model AND m.is_indexed)
    ORDER BY z.row_count DESC LIMIT most
$$;

-- How many rows each of these scopes holds; one that is gone is not among them. Ids and counts only.
CREATE OR REPLACE FUNCTION scope_rows(scopes bigint[]) RETURNS TABLE (tenant_id bigint, scope_id bigint, row_count integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT c.tenant_id, c.id, coalesce((
        SELECT t.row_count FROM terms t WHERE t.scope_id = c.id AND t.term = 0), 0)
    FROM scopes c WHERE c.id = ANY(scopes)
$$;

-- Scopes that hold vectors of other models than the current one: ids and the model only. Models are few: each is looked
-- up by stepping from one to the next.
CREATE OR REPLACE FUNCTION stale_scopes(current_model text, most integer)
RETURNS TABLE (tenant_id bigint, scope_id bigint, model text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    WITH RECURSIVE models AS (
        SELECT min(m.model) AS model FROM scope_models m
        UNION ALL
        SELECT (SELECT min(m.model) FROM scope_models m WHERE m.model > o.model) FROM models o
        WHERE o.model IS NOT NULL
    )
    SELECT d.tenant_id, d.scope_id, o.model FROM models o CROSS JOIN LATERAL (
        SELECT m.tenant_id, m.scope_id FROM scope_models m
        WHERE m.model = o.model ORDER BY m.scope_id LIMIT most) d
    WHERE o.model <> current_model ORDER BY d.scope_id, o.model LIMIT most
$$;

-- Runs that ended longer ago than `age`, the oldest first, or that were kept longer ago when they were looked at last.
CREATE OR REPLACE FUNCTION old_runs(age interval, most integer) RETURNS TABLE (tenant_id bigint, run_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT r.tenant_id, r.id FROM runs r
    WHERE r.finished_at IS NOT NULL AND coalesce(r.kept_at, r.finished_at) < now() - age
    ORDER BY coalesce(r.kept_at, r.finished_at) LIMIT most
$$;

-- Rows of one big scope that hold all terms of any one of the anchors, best keyword score first. A function of its own
-- because an index on an operator that is not leakproof is not used under row-level security; it applies tenant and
-- scope itself. The scope stands in the statement as a number, so that its own partial index fits. The inner limit
-- bounds what a question of common words may cost.
CREATE OR REPLACE FUNCTION keyword_hits(source text, wanted_scope bigint, anchors text[], query sparsevec, most integer)
RETURNS TABLE (id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF cardinality(anchors) = 0 THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT h.id FROM (SELECT r.id, r.keywords FROM %I r
                           WHERE r.scope_id = %s AND (%s) AND r.tenant_id = $3 LIMIT 3000) h
         ORDER BY h.keywords <#> $1 LIMIT $2',
        CASE source WHEN 'turns' THEN 'turns' ELSE 'memories' END, wanted_scope,
        (SELECT string_agg(format('r.terms @> %L::integer[]', a), ' OR ') FROM unnest(anchors) a))
    USING query, most, nullif(current_setting('memory.tenant', true), '')::bigint;
END
$$;

-- Whose the functions are decides what they see: they run with the rights of their owner. Only the application calls
-- them. Every form of a name is meant: while two releases work side by side there may be one for each.
DO $$
DECLARE
    entry record;
BEGIN
    FOR entry IN
        SELECT p.oid::regprocedure AS signature, listed.name, listed.owner, p.proowner <> listed.owner::regrole AS is_foreign
        FROM (VALUES
            ('authenticate', 'memory_finder'),
            ('add_key', 'memory_finder'),
            ('end_key', 'memory_finder'),
            ('limit_key', 'memory_finder'),
            ('forget_keys', 'memory_finder'),
            ('add_audit', 'memory_finder'),
            ('has_live_key', 'memory_finder'),
            ('tenant_named', 'memory_finder'),
            ('copy_tenant', 'memory_finder'),
            ('note_key_use', 'memory_finder'),
            ('claim_turns', 'memory_finder'),
            ('claim_session', 'memory_finder'),
            ('claim_run', 'memory_finder'),
            ('due_sessions', 'memory_finder'),
            ('due_runs', 'memory_finder'),
            ('capped_tenants', 'memory_finder'),
            ('due_scopes', 'memory_finder'),
            ('idle_sessions', 'memory_finder'),
            ('pipeline_state', 'memory_finder'),
            ('users_by_shard', 'memory_finder'),
            ('shards_of_users', 'memory_finder'),
            ('due_work', 'memory_finder'),
            ('due_webhooks', 'memory_finder'),
            ('webhook_state', 'memory_finder'),
            ('big_scopes', 'memory_finder'),
            ('stale_scopes', 'memory_finder'),
            ('scope_rows', 'memory_finder'),
            ('old_runs', 'memory_finder'),
            ('tenants_in_turn', 'memory_finder'),
            ('asks_model', 'memory_finder'),
            ('keyword_hits', 'memory_search')
        ) AS listed(name, owner)
        JOIN pg_proc p ON p.proname = listed.name AND p.pronamespace = current_schema()::regnamespace
    LOOP
        IF entry.is_foreign THEN
            EXECUTE format('ALTER FUNCTION %s OWNER TO %I', entry.signature, entry.owner);
        END IF;
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', entry.signature);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO memory_app', entry.signature);
        -- The first gives ids only, and the policies hide the rows of others; the second looks itself at who is bound; the
        -- third tells nothing.
        IF entry.owner = 'memory_search' OR entry.name IN ('forget_keys', 'copy_tenant') THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO memory_bound', entry.signature);
        END IF;
    END LOOP;
END
$$;

DO $$
BEGIN
    EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM memory_finder, memory_search', current_schema());
END
$$;
