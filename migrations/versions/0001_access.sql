-- Who may do what. Three roles, no superuser needed afterwards:
--   memory_app     the API and the workers log in as it; owns nothing; row-level security holds for it.
--   memory_finder  nobody logs in as it; owns the few functions that look across tenants and return ids only.
--   memory_search  nobody logs in as it; owns the one function that asks the keyword index of a big scope.
-- Roles belong to the cluster, so both may exist already.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'memory_app') THEN
        CREATE ROLE memory_app LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'memory_finder') THEN
        CREATE ROLE memory_finder NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'memory_search') THEN
        CREATE ROLE memory_search NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;  -- another database of this cluster is being migrated at the same moment
END
$$;

GRANT memory_finder, memory_search TO CURRENT_USER;
GRANT USAGE ON SCHEMA public TO memory_app;
GRANT USAGE, CREATE ON SCHEMA public TO memory_finder, memory_search;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO memory_app;
REVOKE INSERT, UPDATE, DELETE ON tenants FROM memory_app;
REVOKE INSERT, UPDATE, DELETE ON api_keys FROM memory_app;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO memory_app;

-- The tenant of the transaction, or NULL, which matches no row. Evaluated once per statement (sub-select).
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN
        SELECT table_name FROM information_schema.columns
        WHERE table_schema = 'public' AND column_name = 'tenant_id'
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY tenant ON %I USING (tenant_id = (SELECT nullif(current_setting(''memory.tenant'', true), '''')::bigint))',
            name
        );
    END LOOP;
END
$$;

ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenants FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON tenants USING (id = (SELECT nullif(current_setting('memory.tenant', true), '')::bigint));

-- The operator (whoever migrates) creates tenants and keys.
CREATE POLICY operator ON tenants TO CURRENT_USER USING (true) WITH CHECK (true);
CREATE POLICY operator ON api_keys TO CURRENT_USER USING (true) WITH CHECK (true);

-- The finder sees what it needs to say "look there", and moves leases and counters only.
GRANT SELECT (id, tenant_id, scope_id, session_id, indexed_at, extracted_at, failed_at, lease_until, starts, accepted_at)
    ON turns TO memory_finder;
GRANT UPDATE (lease_until, starts) ON turns TO memory_finder;
GRANT SELECT (id, tenant_id, scope_id, due_at, lease_until, fence, starts, next_seq, extracted_seq, synthesized_seq,
        ended_at, last_activity_at)
    ON sessions TO memory_finder;
GRANT UPDATE (lease_until, starts, fence) ON sessions TO memory_finder;
GRANT SELECT (id, tenant_id, scope_id, session_id, name, state, due_at, lease_until, fence, starts, period) ON runs
    TO memory_finder;
GRANT UPDATE (state, lease_until, fence, starts, started_at) ON runs TO memory_finder;
GRANT SELECT ON api_keys TO memory_finder;
GRANT UPDATE (last_used_at) ON api_keys TO memory_finder;
GRANT SELECT (id, name) ON tenants TO memory_finder;
GRANT SELECT (id, tenant_id, agent_id) ON scopes TO memory_finder;
GRANT SELECT (id, policy) ON agents TO memory_finder;
CREATE POLICY finder ON agents TO memory_finder USING (true);
GRANT SELECT ON scope_models TO memory_finder;
GRANT SELECT (scope_id, term, row_count) ON terms TO memory_finder;
GRANT SELECT (tenant_id, scope_id, job, due_at) ON schedules TO memory_finder;
GRANT SELECT (id, tenant_id, scope_id, keywords, terms) ON turns TO memory_search;
GRANT SELECT (id, tenant_id, scope_id, keywords, terms) ON memories TO memory_search;
CREATE POLICY finder ON turns TO memory_finder USING (true) WITH CHECK (true);
CREATE POLICY finder ON sessions TO memory_finder USING (true) WITH CHECK (true);
CREATE POLICY finder ON runs TO memory_finder USING (true) WITH CHECK (true);
CREATE POLICY finder ON api_keys TO memory_finder USING (true) WITH CHECK (true);
CREATE POLICY finder ON tenants TO memory_finder USING (true);
CREATE POLICY search ON turns TO memory_search USING (true);
CREATE POLICY search ON memories TO memory_search USING (true);
CREATE POLICY finder ON scopes TO memory_finder USING (true);
CREATE POLICY finder ON terms TO memory_finder USING (true);
CREATE POLICY finder ON scope_models TO memory_finder USING (true);
CREATE POLICY finder ON schedules TO memory_finder USING (true);

-- What can change about a memory. No text, so that what is kept of it holds nothing that a person said.
CREATE FUNCTION memory_state(m memories) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'session_id', m.session_id, 'successor', m.successor, 'retired_at', m.retired_at,
        'retired_reason', m.retired_reason, 'valid_from', m.valid_from, 'valid_until', m.valid_until,
        'pinned', m.pinned, 'importance', m.importance, 'confidence', m.confidence, 'sources', m.sources,
        'repeat_count', m.repeat_count, 'recall_count', m.recall_count, 'feedback_score', m.feedback_score,
        'last_seen', m.last_seen, 'confirmed_at', m.confirmed_at, 'last_recalled', m.last_recalled)
$$;

-- While a job that can be undone works, it names itself (memory.run) and every row it touches is kept.
CREATE FUNCTION keep_image() RETURNS trigger LANGUAGE plpgsql AS $$
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
BEGIN
    FOREACH name IN ARRAY ARRAY['memories', 'links', 'mentions', 'evidence'] LOOP
        EXECUTE format(
            'CREATE TRIGGER keep_image AFTER INSERT OR UPDATE OR DELETE ON %I FOR EACH ROW
             WHEN (current_setting(''memory.run'', true) <> '''') EXECUTE FUNCTION keep_image()', name);
    END LOOP;
END
$$;

SET ROLE memory_finder;

-- Whose key is this? No row for an unknown, revoked or expired one.
CREATE FUNCTION authenticate(key_digest bytea)
RETURNS TABLE (key_id bigint, tenant_id bigint, tenant_name text, rights text[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT k.id, k.tenant_id, t.name, k.rights
    FROM public.api_keys k JOIN public.tenants t ON t.id = k.tenant_id
    WHERE k.digest = key_digest
      AND k.revoked_at IS NULL
      AND (k.expires_at IS NULL OR k.expires_at > now())
$$;

-- Whether anybody holds a key that opens the door now.
CREATE FUNCTION has_live_key() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT EXISTS (SELECT FROM public.api_keys
                   WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()))
$$;

-- The id behind a tenant's name, for producers that run in the operator's own process and hold no key.
CREATE FUNCTION tenant_named(wanted text) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT t.id FROM public.tenants t WHERE t.name = wanted
$$;

-- Note that a key was used; at most once a minute, so that reading does not become writing.
CREATE FUNCTION note_key_use(used_key_id bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    UPDATE public.api_keys SET last_used_at = now()
    WHERE id = used_key_id AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
$$;

-- Lend up to `batch` unindexed turns of any session for `lease`. A start is counted before the work, because nothing
-- runs after SIGKILL: a turn that was started and never explained is lent alone, so that it can only kill itself.
CREATE FUNCTION claim_turns(batch integer, lease interval)
RETURNS TABLE (tenant_id bigint, scope_id bigint, id uuid, starts smallint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        UPDATE public.turns t SET starts = t.starts + 1, lease_until = now() + lease
        FROM (
            SELECT d.scope_id, d.id FROM public.turns d
            WHERE d.indexed_at IS NULL AND d.failed_at IS NULL AND d.starts > 0 AND d.lease_until <= now()
            ORDER BY d.id LIMIT 1 FOR UPDATE SKIP LOCKED
        ) due
        WHERE t.scope_id = due.scope_id AND t.id = due.id
        RETURNING t.tenant_id, t.scope_id, t.id, t.starts;
    IF FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY
        UPDATE public.turns t SET starts = t.starts + 1, lease_until = now() + lease
        FROM (
            SELECT d.scope_id, d.id FROM public.turns d
            WHERE d.indexed_at IS NULL AND d.failed_at IS NULL AND d.starts = 0
              AND (d.lease_until IS NULL OR d.lease_until <= now())
            ORDER BY d.id LIMIT batch FOR UPDATE SKIP LOCKED
        ) due
        WHERE t.scope_id = due.scope_id AND t.id = due.id
        RETURNING t.tenant_id, t.scope_id, t.id, t.starts;
END
$$;

-- Lend one session for extraction if it is due and free. The fence grows with every claim; a commit whose fence is
-- older finds no row to move and takes nothing with it. A session whose last start was never explained is not lent to a
-- process that does other work at the same time (`shared`): it may kill that process, and all of that work with it.
CREATE FUNCTION claim_session(wanted bigint, lease interval, shared boolean)
RETURNS TABLE (tenant_id bigint, scope_id bigint, fence bigint, starts integer)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    UPDATE public.sessions s
    SET fence = s.fence + 1, starts = s.starts + 1, lease_until = now() + lease
    WHERE s.id = wanted AND s.due_at <= now() AND (s.lease_until IS NULL OR s.lease_until <= now())
      AND (s.starts = 0 OR NOT shared)
    RETURNING s.tenant_id, s.scope_id, s.fence, s.starts
$$;

-- Ids of sessions that are due and free, taken in turn across tenants so that a busy one cannot starve the others; with
-- what decides who may do the work.
CREATE FUNCTION due_sessions(most integer)
RETURNS TABLE (session_id bigint, asks_model boolean, is_suspect boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT due.id, coalesce(a.policy ->> 'extraction' = 'llm', false), due.starts > 0 FROM (
        SELECT s.id, s.scope_id, s.starts, s.due_at,
               row_number() OVER (PARTITION BY s.tenant_id ORDER BY s.due_at) AS place
        FROM public.sessions s
        WHERE s.due_at <= now() AND (s.lease_until IS NULL OR s.lease_until <= now())
        ORDER BY place, s.due_at LIMIT most
    ) due
    JOIN public.scopes c ON c.id = due.scope_id
    JOIN public.agents a ON a.id = c.agent_id
    ORDER BY due.place, due.due_at
$$;

-- Lend one queued run if it is due and free; fence and `shared` as for sessions.
CREATE FUNCTION claim_run(wanted uuid, lease interval, shared boolean)
RETURNS TABLE (tenant_id bigint, scope_id bigint, session_id bigint, name text, fence bigint, starts integer)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    UPDATE public.runs r
    SET state = 'running', fence = r.fence + 1, starts = r.starts + 1, lease_until = now() + lease, started_at = now()
    WHERE r.id = wanted AND r.state IN ('queued', 'running') AND r.due_at <= now()
      AND (r.lease_until IS NULL OR r.lease_until <= now()) AND (r.starts = 0 OR NOT shared)
    RETURNING r.tenant_id, r.scope_id, r.session_id, r.name, r.fence, r.starts
$$;

-- Ids and names of runs that are due and free, in turn across tenants.
CREATE FUNCTION due_runs(most integer) RETURNS TABLE (run_id uuid, name text, is_suspect boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT due.id, due.name, due.starts > 0 FROM (
        SELECT r.id, r.name, r.starts, r.due_at, row_number() OVER (PARTITION BY r.tenant_id ORDER BY r.due_at) AS place
        FROM public.runs r
        WHERE r.due_at <= now() AND r.state IN ('queued', 'running')
          AND (r.lease_until IS NULL OR r.lease_until <= now())
    ) due
    ORDER BY due.place, due.due_at LIMIT most
$$;

-- Periodic jobs of scopes that are due at an instant, in turn across tenants.
CREATE FUNCTION due_scopes(at timestamptz, most integer)
RETURNS TABLE (tenant_id bigint, scope_id bigint, job text, due_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT due.tenant_id, due.scope_id, due.job, due.due_at FROM (
        SELECT s.tenant_id, s.scope_id, s.job, s.due_at,
               row_number() OVER (PARTITION BY s.tenant_id ORDER BY s.due_at) AS place
        FROM public.schedules s WHERE s.due_at <= at
    ) due
    ORDER BY due.place, due.due_at LIMIT most
$$;

-- Sessions of agents with a language model that fell silent, or were ended, with turns that no synthesis has read.
CREATE FUNCTION idle_sessions(idle interval, most integer)
RETURNS TABLE (tenant_id bigint, scope_id bigint, session_id bigint, last_seq integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT s.tenant_id, s.scope_id, s.id, s.next_seq - 1
    FROM public.sessions s
    JOIN public.scopes c ON c.id = s.scope_id
    JOIN public.agents a ON a.id = c.agent_id AND a.policy ->> 'extraction' = 'llm'
    WHERE s.synthesized_seq < s.next_seq - 1 AND s.due_at IS NULL
      AND (s.ended_at IS NOT NULL OR s.last_activity_at < now() - idle)
      AND NOT EXISTS (SELECT FROM public.runs r WHERE r.session_id = s.id AND r.name = 'synthesize_session'
                      AND (r.state IN ('queued', 'running') OR r.period = s.id || ':' || (s.next_seq - 1)))
    ORDER BY s.last_activity_at LIMIT most
$$;

-- How far behind the pipe is, over all tenants and without naming any.
CREATE FUNCTION pipeline_state()
RETURNS TABLE (unindexed bigint, claimable bigint, oldest_unindexed_seconds double precision,
               due_sessions bigint, oldest_due_seconds double precision, failed bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT t.*, s.*, f.* FROM
        (SELECT count(*), count(*) FILTER (WHERE lease_until IS NULL OR lease_until <= now()),
                coalesce(extract(epoch FROM now() - min(accepted_at)), 0)::double precision
         FROM public.turns WHERE indexed_at IS NULL AND failed_at IS NULL) t,
        (SELECT count(*), coalesce(extract(epoch FROM now() - min(due_at)), 0)::double precision
         FROM public.sessions WHERE due_at <= now()) s,
        (SELECT count(*) FROM public.turns WHERE failed_at IS NOT NULL AND extracted_at IS NULL) f
$$;

-- Scopes that grew past a size and have no search indexes for the current model yet: ids only.
CREATE FUNCTION big_scopes(least_rows integer, model text, most integer) RETURNS TABLE (tenant_id bigint, scope_id bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT s.tenant_id, s.id FROM public.terms t JOIN public.scopes s ON s.id = t.scope_id
    WHERE t.term = 0 AND t.row_count >= least_rows AND NOT EXISTS (
        SELECT FROM public.scope_models m WHERE m.scope_id = s.id AND m.model = big_scopes.model AND m.is_indexed)
    ORDER BY t.row_count DESC LIMIT most
$$;

-- Scopes that hold vectors of other models than the current one: ids and the model only.
CREATE FUNCTION stale_scopes(current_model text, most integer)
RETURNS TABLE (tenant_id bigint, scope_id bigint, model text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT m.tenant_id, m.scope_id, m.model FROM public.scope_models m
    WHERE m.model <> current_model ORDER BY m.scope_id, m.model LIMIT most
$$;

SET ROLE memory_search;

-- Rows of one big scope that hold all terms of any one of the anchors, best keyword score first. A function of its own
-- because an index on an operator that is not leakproof is not used under row-level security; it applies tenant and
-- scope itself. The scope stands in the statement as a number, so that its own partial index fits. The inner limit
-- bounds what a question of common words may cost.
CREATE FUNCTION keyword_hits(source text, wanted_scope bigint, anchors text[], query public.sparsevec, most integer)
RETURNS TABLE (id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    IF cardinality(anchors) = 0 THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT h.id FROM (SELECT r.id, r.keywords FROM public.%I r
                           WHERE r.scope_id = %s AND (%s) AND r.tenant_id = $3 LIMIT 3000) h
         ORDER BY h.keywords OPERATOR(public.<#>) $1 LIMIT $2',
        CASE source WHEN 'turns' THEN 'turns' ELSE 'memories' END, wanted_scope,
        (SELECT string_agg(format('r.terms @> %L::integer[]', a), ' OR ') FROM unnest(anchors) a))
    USING query, most, nullif(current_setting('memory.tenant', true), '')::bigint;
END
$$;

RESET ROLE;

REVOKE ALL ON FUNCTION authenticate, has_live_key, tenant_named, note_key_use, claim_turns, claim_session, claim_run,
    due_sessions, idle_sessions, due_runs, due_scopes, pipeline_state, keyword_hits, big_scopes, stale_scopes FROM PUBLIC;
GRANT EXECUTE ON FUNCTION authenticate, has_live_key, tenant_named, note_key_use, claim_turns, claim_session, claim_run,
    due_sessions, idle_sessions, due_runs, due_scopes, pipeline_state, keyword_hits, big_scopes, stale_scopes TO memory_app;
REVOKE CREATE ON SCHEMA public FROM memory_finder, memory_search;
