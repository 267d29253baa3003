-- A database of revision 0001 with rows of every table: its tables, roles' rights, policies and functions as the first
-- release (commit caad365) made them on PostgreSQL 18, filled by that release from tests/lived.py, as pg_dump wrote it.
-- Invented people. To be loaded by psql as the superuser postgres into a database of a cluster that has the three roles.
SET check_function_bodies = false;
SELECT pg_catalog.set_config('search_path', '', false);
CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;
CREATE FUNCTION public.authenticate(key_digest bytea) RETURNS TABLE(key_id bigint, tenant_id bigint, tenant_name text, rights text[])
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public'
    AS $$
    SELECT k.id, k.tenant_id, t.name, k.rights
    FROM public.api_keys k JOIN public.tenants t ON t.id = k.tenant_id
    WHERE k.digest = key_digest
      AND k.revoked_at IS NULL
      AND (k.expires_at IS NULL OR k.expires_at > now())
$$;
ALTER FUNCTION public.authenticate(key_digest bytea) OWNER TO memory_finder;
CREATE FUNCTION public.big_scopes(least_rows integer, model text, most integer) RETURNS TABLE(tenant_id bigint, scope_id bigint)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public'
    AS $$
    SELECT s.tenant_id, s.id FROM public.terms t JOIN public.scopes s ON s.id = t.scope_id
    WHERE t.term = 0 AND t.row_count >= least_rows AND NOT EXISTS (
        SELECT FROM public.scope_models m WHERE m.scope_id = s.id AND m.model = big_scopes.model AND m.is_indexed)
    ORDER BY t.row_count DESC LIMIT most
$$;
ALTER FUNCTION public.big_scopes(least_rows integer, model text, most integer) OWNER TO memory_finder;
CREATE FUNCTION public.claim_run(wanted uuid, lease interval, shared boolean) RETURNS TABLE(tenant_id bigint, scope_id bigint, session_id bigint, name text, fence bigint, starts integer)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public'
    AS $$
    UPDATE public.runs r
    SET state = 'running', fence = r.fence + 1, starts = r.starts + 1, lease_until = now() + lease, started_at = now()
    WHERE r.id = wanted AND r.state IN ('queued', 'running') AND r.due_at <= now()
      AND (r.lease_until IS NULL OR r.lease_until <= now()) AND (r.starts = 0 OR NOT shared)
    RETURNING r.tenant_id, r.scope_id, r.session_id, r.name, r.fence, r.starts
$$;
ALTER FUNCTION public.claim_run(wanted uuid, lease interval, shared boolean) OWNER TO memory_finder;
CREATE FUNCTION public.claim_session(wanted bigint, lease interval, shared boolean) RETURNS TABLE(tenant_id bigint, scope_id bigint, fence bigint, starts integer)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public'
    AS $$
    UPDATE public.sessions s
    SET fence = s.fence + 1, starts = s.starts + 1, lease_until = now() + lease
    WHERE s.id = wanted AND s.due_at <= now() AND (s.lease_until IS NULL OR s.lease_until <= now())
      AND (s.starts = 0 OR NOT shared)
    RETURNING s.tenant_id, s.scope_id, s.fence, s.starts
$$;
ALTER FUNCTION public.claim_session(wanted bigint, lease interval, shared boolean) OWNER TO memory_finder;
CREATE FUNCTION public.claim_turns(batch integer, lease interval) RETURNS TABLE(tenant_id bigint, scope_id bigint, id uuid, starts smallint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public'
    AS $$
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
ALTER FUNCTION public.claim_turns(batch integer, lease interval) OWNER TO memory_finder;
CREATE FUNCTION public.due_runs(most integer) RETURNS TABLE(run_id uuid, name text, is_suspect boolean)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public'
    AS $$
    SELECT due.id, due.name, due.starts > 0 FROM (
        SELECT r.id, r.name, r.starts, r.due_at, row_number() OVER (PARTITION BY r.tenant_id ORDER BY r.due_at) AS place
        FROM public.runs r
        WHERE r.due_at <= now() AND r.state IN ('queued', 'running')
          AND (r.lease_until IS NULL OR r.lease_until <= now())
    ) due
    ORDER BY due.place, due.due_at LIMIT most
$$;
ALTER FUNCTION public.due_runs(most integer) OWNER TO memory_finder;
CREATE FUNCTION public.due_scopes(at timestamp with time zone, most integer) RETURNS TABLE(tenant_id bigint, scope_id bigint, job text, due_at timestamp with time zone)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public'
    AS $$
    SELECT due.tenant_id, due.scope_id, due.job, due.due_at FROM (
        SELECT s.tenant_id, s.scope_id, s.job, s.due_at,
               row_number() OVER (PARTITION BY s.tenant_id ORDER BY s.due_at) AS place
        FROM public.schedules s WHERE s.due_at <= at
    ) due
    ORDER BY due.place, due.due_at LIMIT most
$$;
ALTER FUNCTION public.due_scopes(at timestamp with time zone, most integer) OWNER TO memory_finder;
CREATE FUNCTION public.due_sessions(most integer) RETURNS TABLE(session_id bigint, asks_model boolean, is_suspect boolean)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public'
    AS $$
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
ALTER FUNCTION public.due_sessions(most integer) OWNER TO memory_finder;
CREATE FUNCTION public.has_live_key() RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public'
    AS $$
    SELECT EXISTS (SELECT FROM public.api_keys
                   WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()))
$$;
ALTER FUNCTION public.has_live_key() OWNER TO memory_finder;
CREATE FUNCTION public.idle_sessions(idle interval, most integer) RETURNS TABLE(tenant_id bigint, scope_id bigint, session_id bigint, last_seq integer)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public'
    AS $$
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
ALTER FUNCTION public.idle_sessions(idle interval, most integer) OWNER TO memory_finder;
CREATE FUNCTION public.keep_image() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION public.keyword_hits(source text, wanted_scope bigint, anchors text[], query public.sparsevec, most integer) RETURNS TABLE(id uuid)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public'
    AS $_$
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
$_$;
ALTER FUNCTION public.keyword_hits(source text, wanted_scope bigint, anchors text[], query public.sparsevec, most integer) OWNER TO memory_search;
CREATE TABLE public.memories (
    id uuid DEFAULT uuidv7() NOT NULL,
    tenant_id bigint NOT NULL,
    scope_id bigint NOT NULL,
    session_id bigint,
    run_id uuid,
    kind text NOT NULL,
    subtype text,
    text text NOT NULL,
    canonical_key text NOT NULL,
    subject text,
    relation text,
    object text,
    subject_key text,
    object_key text,
    single_valued boolean DEFAULT false NOT NULL,
    importance smallint NOT NULL,
    confidence real NOT NULL,
    pinned boolean DEFAULT false NOT NULL,
    origin text NOT NULL,
    sources text[] DEFAULT '{}'::text[] NOT NULL,
    emotional_state jsonb,
    relational_context jsonb,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    synthesis_type text,
    valid_from timestamp with time zone NOT NULL,
    valid_until timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    stored_at timestamp with time zone DEFAULT now() NOT NULL,
    last_seen timestamp with time zone NOT NULL,
    confirmed_at timestamp with time zone NOT NULL,
    last_recalled timestamp with time zone,
    repeat_count integer DEFAULT 1 NOT NULL,
    recall_count integer DEFAULT 0 NOT NULL,
    feedback_score real DEFAULT 0 NOT NULL,
    successor uuid,
    retired_at timestamp with time zone,
    retired_reason text,
    embedding public.halfvec,
    embedding_model text,
    keywords public.sparsevec,
    terms integer[],
    traits smallint DEFAULT 0 NOT NULL,
    CONSTRAINT memories_confidence_check CHECK (((confidence >= (0)::double precision) AND (confidence <= (1)::double precision))),
    CONSTRAINT memories_embedding_check CHECK (((embedding IS NULL) = (embedding_model IS NULL))),
    CONSTRAINT memories_feedback_score_check CHECK (((feedback_score >= ('-1'::integer)::double precision) AND (feedback_score <= (1)::double precision))),
    CONSTRAINT memories_importance_check CHECK (((importance >= 1) AND (importance <= 10))),
    CONSTRAINT memories_origin_check CHECK ((origin = ANY (ARRAY['declared'::text, 'extracted'::text, 'synthesized'::text, 'imported'::text]))),
    CONSTRAINT memories_retired_check CHECK (((retired_at IS NULL) = (retired_reason IS NULL))),
    CONSTRAINT memories_retired_reason_check CHECK ((retired_reason = ANY (ARRAY['merged'::text, 'superseded'::text, 'evicted'::text, 'expired'::text, 'invalidated'::text]))),
    CONSTRAINT memories_single_valued_check CHECK (((NOT single_valued) OR ((subject_key IS NOT NULL) AND (relation IS NOT NULL)))),
    CONSTRAINT memories_validity_check CHECK ((valid_until >= valid_from))
);
ALTER TABLE ONLY public.memories FORCE ROW LEVEL SECURITY;
CREATE FUNCTION public.memory_state(m public.memories) RETURNS jsonb
    LANGUAGE sql STABLE
    AS $$
    SELECT jsonb_build_object(
        'session_id', m.session_id, 'successor', m.successor, 'retired_at', m.retired_at,
        'retired_reason', m.retired_reason, 'valid_from', m.valid_from, 'valid_until', m.valid_until,
        'pinned', m.pinned, 'importance', m.importance, 'confidence', m.confidence, 'sources', m.sources,
        'repeat_count', m.repeat_count, 'recall_count', m.recall_count, 'feedback_score', m.feedback_score,
        'last_seen', m.last_seen, 'confirmed_at', m.confirmed_at, 'last_recalled', m.last_recalled)
$$;
CREATE FUNCTION public.note_key_use(used_key_id bigint) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public'
    AS $$
    UPDATE public.api_keys SET last_used_at = now()
    WHERE id = used_key_id AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
$$;
ALTER FUNCTION public.note_key_use(used_key_id bigint) OWNER TO memory_finder;
CREATE FUNCTION public.pipeline_state() RETURNS TABLE(unindexed bigint, claimable bigint, oldest_unindexed_seconds double precision, due_sessions bigint, oldest_due_seconds double precision, failed bigint)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public'
    AS $$
    SELECT t.*, s.*, f.* FROM
        (SELECT count(*), count(*) FILTER (WHERE lease_until IS NULL OR lease_until <= now()),
                coalesce(extract(epoch FROM now() - min(accepted_at)), 0)::double precision
         FROM public.turns WHERE indexed_at IS NULL AND failed_at IS NULL) t,
        (SELECT count(*), coalesce(extract(epoch FROM now() - min(due_at)), 0)::double precision
         FROM public.sessions WHERE due_at <= now()) s,
        (SELECT count(*) FROM public.turns WHERE failed_at IS NOT NULL AND extracted_at IS NULL) f
$$;
ALTER FUNCTION public.pipeline_state() OWNER TO memory_finder;
CREATE FUNCTION public.stale_scopes(current_model text, most integer) RETURNS TABLE(tenant_id bigint, scope_id bigint, model text)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public'
    AS $$
    SELECT m.tenant_id, m.scope_id, m.model FROM public.scope_models m
    WHERE m.model <> current_model ORDER BY m.scope_id, m.model LIMIT most
$$;
ALTER FUNCTION public.stale_scopes(current_model text, most integer) OWNER TO memory_finder;
CREATE FUNCTION public.tenant_named(wanted text) RETURNS bigint
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public'
    AS $$
    SELECT t.id FROM public.tenants t WHERE t.name = wanted
$$;
ALTER FUNCTION public.tenant_named(wanted text) OWNER TO memory_finder;
CREATE TABLE public.agents (
    id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    name text NOT NULL,
    persona jsonb,
    policy jsonb DEFAULT '{}'::jsonb NOT NULL,
    default_memories jsonb DEFAULT '[]'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY public.agents FORCE ROW LEVEL SECURITY;
ALTER TABLE public.agents ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.agents_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.api_keys (
    id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    prefix text NOT NULL,
    digest bytea NOT NULL,
    rights text[] NOT NULL,
    label text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    last_used_at timestamp with time zone
);
ALTER TABLE ONLY public.api_keys FORCE ROW LEVEL SECURITY;
ALTER TABLE public.api_keys ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.api_keys_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.checkpoints (
    id uuid DEFAULT uuidv7() NOT NULL,
    tenant_id bigint NOT NULL,
    scope_id bigint NOT NULL,
    session_name text,
    content jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY public.checkpoints FORCE ROW LEVEL SECURITY;
CREATE TABLE public.entities (
    id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    scope_id bigint NOT NULL,
    key text NOT NULL,
    type text NOT NULL,
    label text NOT NULL,
    aliases text[] DEFAULT '{}'::text[] NOT NULL,
    summary text,
    first_seen timestamp with time zone NOT NULL,
    last_seen timestamp with time zone NOT NULL,
    mention_count integer DEFAULT 0 NOT NULL,
    merged_into bigint,
    CONSTRAINT entities_merged_into_check CHECK ((merged_into <> id)),
    CONSTRAINT entities_type_check CHECK ((type = ANY (ARRAY['person'::text, 'place'::text, 'org'::text, 'project'::text, 'thing'::text, 'concept'::text])))
);
ALTER TABLE ONLY public.entities FORCE ROW LEVEL SECURITY;
ALTER TABLE public.entities ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.entities_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.erasures (
    id uuid DEFAULT uuidv7() NOT NULL,
    tenant_id bigint NOT NULL,
    subject_digest bytea NOT NULL,
    state text NOT NULL,
    counts jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    CONSTRAINT erasures_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'done'::text, 'failed'::text])))
);
ALTER TABLE ONLY public.erasures FORCE ROW LEVEL SECURITY;
CREATE TABLE public.evidence (
    tenant_id bigint NOT NULL,
    scope_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    turn_scope_id bigint NOT NULL,
    turn_id uuid NOT NULL
);
ALTER TABLE ONLY public.evidence FORCE ROW LEVEL SECURITY;
CREATE TABLE public.feedback (
    id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    scope_id bigint NOT NULL,
    turn_id uuid,
    memory_id uuid,
    label text NOT NULL,
    note text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT feedback_label_check CHECK ((label = ANY (ARRAY['up'::text, 'down'::text, 'retry'::text]))),
    CONSTRAINT feedback_target_check CHECK (((turn_id IS NULL) <> (memory_id IS NULL)))
);
ALTER TABLE ONLY public.feedback FORCE ROW LEVEL SECURITY;
ALTER TABLE public.feedback ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.feedback_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.images (
    id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    scope_id bigint NOT NULL,
    run_id uuid NOT NULL,
    source text NOT NULL,
    change text NOT NULL,
    row_key jsonb NOT NULL,
    before jsonb,
    after jsonb,
    CONSTRAINT images_change_check CHECK ((change = ANY (ARRAY['insert'::text, 'update'::text, 'delete'::text])))
);
ALTER TABLE ONLY public.images FORCE ROW LEVEL SECURITY;
ALTER TABLE public.images ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.images_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.links (
    tenant_id bigint NOT NULL,
    scope_id bigint NOT NULL,
    source_id uuid NOT NULL,
    target_id uuid NOT NULL,
    type text NOT NULL,
    weight real NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT links_ends_check CHECK ((source_id <> target_id))
);
ALTER TABLE ONLY public.links FORCE ROW LEVEL SECURITY;
CREATE TABLE public.mentions (
    tenant_id bigint NOT NULL,
    scope_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    entity_id bigint NOT NULL
);
ALTER TABLE ONLY public.mentions FORCE ROW LEVEL SECURITY;
CREATE TABLE public.runs (
    id uuid DEFAULT uuidv7() NOT NULL,
    tenant_id bigint NOT NULL,
    scope_id bigint,
    session_id bigint,
    name text NOT NULL,
    period text,
    state text NOT NULL,
    options jsonb DEFAULT '{}'::jsonb NOT NULL,
    from_seq integer,
    to_seq integer,
    answer jsonb,
    report jsonb,
    reason text,
    model text,
    prompt_version text,
    attempts integer DEFAULT 0 NOT NULL,
    fence bigint DEFAULT 0 NOT NULL,
    lease_until timestamp with time zone,
    due_at timestamp with time zone,
    starts integer DEFAULT 0 NOT NULL,
    failing_since timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    CONSTRAINT runs_reason_check CHECK (((state <> 'failed'::text) OR (reason IS NOT NULL))),
    CONSTRAINT runs_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'done'::text, 'failed'::text])))
);
ALTER TABLE ONLY public.runs FORCE ROW LEVEL SECURITY;
CREATE TABLE public.schedules (
    tenant_id bigint NOT NULL,
    scope_id bigint NOT NULL,
    job text NOT NULL,
    due_at timestamp with time zone,
    missed integer DEFAULT 0 NOT NULL
);
ALTER TABLE ONLY public.schedules FORCE ROW LEVEL SECURITY;
CREATE TABLE public.scope_models (
    tenant_id bigint NOT NULL,
    scope_id bigint NOT NULL,
    model text NOT NULL,
    is_indexed boolean DEFAULT false NOT NULL
);
ALTER TABLE ONLY public.scope_models FORCE ROW LEVEL SECURITY;
CREATE TABLE public.scopes (
    id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    agent_id bigint NOT NULL,
    user_id bigint,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    seeded_at timestamp with time zone
);
ALTER TABLE ONLY public.scopes FORCE ROW LEVEL SECURITY;
ALTER TABLE public.scopes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.scopes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.sessions (
    id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    scope_id bigint NOT NULL,
    name text NOT NULL,
    next_seq integer DEFAULT 1 NOT NULL,
    extracted_seq integer DEFAULT 0 NOT NULL,
    fence bigint DEFAULT 0 NOT NULL,
    lease_until timestamp with time zone,
    due_at timestamp with time zone,
    pending_since timestamp with time zone,
    starts integer DEFAULT 0 NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    refusals integer DEFAULT 0 NOT NULL,
    failing_since timestamp with time zone,
    parked_reason text,
    replay_seqs integer[] DEFAULT '{}'::integer[] NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_activity_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    summary text,
    summary_id uuid,
    synthesized_seq integer DEFAULT 0 NOT NULL,
    CONSTRAINT sessions_extracted_seq_check CHECK (((extracted_seq >= 0) AND (extracted_seq < next_seq))),
    CONSTRAINT sessions_next_seq_check CHECK ((next_seq >= 1))
)
WITH (fillfactor='60');
ALTER TABLE ONLY public.sessions FORCE ROW LEVEL SECURITY;
ALTER TABLE public.sessions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.sessions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.speakers (
    tenant_id bigint NOT NULL,
    scope_id bigint NOT NULL,
    name text NOT NULL
);
ALTER TABLE ONLY public.speakers FORCE ROW LEVEL SECURITY;
CREATE TABLE public.tenants (
    id bigint NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY public.tenants FORCE ROW LEVEL SECURITY;
ALTER TABLE public.tenants ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.tenants_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.terms (
    tenant_id bigint NOT NULL,
    scope_id bigint NOT NULL,
    term integer NOT NULL,
    row_count integer NOT NULL
)
WITH (fillfactor='70');
ALTER TABLE ONLY public.terms FORCE ROW LEVEL SECURITY;
CREATE TABLE public.turns (
    id uuid DEFAULT uuidv7() NOT NULL,
    tenant_id bigint NOT NULL,
    scope_id bigint NOT NULL,
    session_id bigint NOT NULL,
    seq integer NOT NULL,
    role text NOT NULL,
    speaker text NOT NULL,
    text text NOT NULL,
    at timestamp with time zone NOT NULL,
    accepted_at timestamp with time zone DEFAULT now() NOT NULL,
    emotional_tone text,
    tools_used text[] DEFAULT '{}'::text[] NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    idempotency_key text,
    request_hash bytea,
    lease_until timestamp with time zone,
    starts smallint DEFAULT 0 NOT NULL,
    failures smallint DEFAULT 0 NOT NULL,
    indexed_at timestamp with time zone,
    extracted_at timestamp with time zone,
    reason text,
    failed_at timestamp with time zone,
    failed_reason text,
    embedding public.halfvec,
    embedding_model text,
    keywords public.sparsevec,
    terms integer[],
    traits smallint DEFAULT 0 NOT NULL,
    CONSTRAINT turns_embedding_check CHECK (((embedding IS NULL) = (embedding_model IS NULL))),
    CONSTRAINT turns_failed_check CHECK (((failed_at IS NULL) = (failed_reason IS NULL))),
    CONSTRAINT turns_idempotency_check CHECK (((idempotency_key IS NULL) = (request_hash IS NULL))),
    CONSTRAINT turns_role_check CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text, 'tool'::text, 'system'::text])))
);
ALTER TABLE ONLY public.turns FORCE ROW LEVEL SECURITY;
CREATE TABLE public.usage (
    tenant_id bigint NOT NULL,
    day date NOT NULL,
    model text NOT NULL,
    calls bigint DEFAULT 0 NOT NULL,
    tokens_in bigint DEFAULT 0 NOT NULL,
    tokens_out bigint DEFAULT 0 NOT NULL,
    cost_usd numeric(14,6) DEFAULT 0 NOT NULL
);
ALTER TABLE ONLY public.usage FORCE ROW LEVEL SECURITY;
CREATE TABLE public.users (
    id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    name text NOT NULL,
    time_zone text DEFAULT 'UTC'::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY public.users FORCE ROW LEVEL SECURITY;
ALTER TABLE public.users ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.users_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
COPY public.agents (id, tenant_id, name, persona, policy, default_memories, created_at) FROM stdin;
1	1	ada	\N	{}	[{"kind": "expression", "tags": [], "text": "Answers are short.", "pinned": false, "subtype": null, "importance": null}]	2026-11-28 16:05:57.357105+00
5	3	ada	\N	{}	[]	2026-11-28 16:06:00.32502+00
\.
COPY public.alembic_version (version_num) FROM stdin;
0001
\.
COPY public.api_keys (id, tenant_id, prefix, digest, rights, label, created_at, expires_at, revoked_at, last_used_at) FROM stdin;
1	1	mem_8htw6J	\\xbea3f2b3fd351c135baf2ff5f3c12dcff704a2dd491a61472d8dce6757af92a8	{read,write}	chat	2026-11-28 16:05:57.337969+00	\N	\N	\N
\.
COPY public.checkpoints (id, tenant_id, scope_id, session_name, content, created_at) FROM stdin;
01a222e7-ffbb-7160-bdac-e8b74b3d092f	1	1	chat-1	{"links": [], "nodes": [{"id": "01a222e7-fc78-73f7-a30d-c11fe0a8ef7e", "kind": "value", "tags": [], "text": "Mira drinks her tea without sugar.", "terms": [362379229, 449636305, 679957907, 846850705, 854122915], "object": null, "origin": "declared", "pinned": false, "traits": 0, "session": null, "sources": [], "subject": null, "subtype": null, "keywords": "{362379229:2.0114,449636305:2.0114,679957907:2.0114,846850705:2.0114,854122915:2.0114}/1000000000", "relation": null, "embedding": "[-0.10723877,0,0.10723877,-0.10723877,0.21447754,-0.21447754,0,0.5361328,0.42895508,-0.21447754,0.3215332,-0.10723877,-0.42895508,0.21447754,0.10723877,0]", "last_seen": "2026-11-28T16:05:58.492817+00:00", "stored_at": "2026-11-28T16:05:58.492817+00:00", "successor": null, "confidence": 0.8, "created_at": "2026-11-28T16:05:58.492817+00:00", "importance": 6, "object_key": null, "retired_at": null, "valid_from": "2026-11-28T16:05:58.492817+00:00", "subject_key": null, "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.492817+00:00", "recall_count": 0, "repeat_count": 1, "canonical_key": "e47b7457ffb5ec103cdfd6f8e247840b", "last_recalled": null, "single_valued": false, "feedback_score": 0.2, "retired_reason": null, "synthesis_type": null, "embedding_model": "hash-16", "emotional_state": null, "relational_context": null}], "scope": {"user": "mira", "agent": "ada", "session": "chat-1", "is_seeded": false}, "turns": [], "counts": {"links": 0, "nodes": 1, "turns": 0, "entities": 0, "evidence": 0, "mentions": 0, "sessions": 0}, "format": "memory-snapshot", "version": 1, "embedder": {"kind": "hash", "model": "hash-16", "dimensions": 16}, "entities": [], "evidence": [], "mentions": [], "sessions": [], "canonical": {"hash": "84ef4164d1ccaaa3cfc38a963b632611", "version": 1}, "created_at": "2026-11-28T16:05:59.291767+00:00"}	2026-11-28 16:05:59.291767+00
01a222e8-02fd-7ff7-afd9-812e2030eaf0	1	1	chat-1	{"links": [], "nodes": [{"id": "01a222e7-fc78-73f7-a30d-c11fe0a8ef7e", "kind": "value", "tags": [], "text": "Mira drinks her tea without sugar.", "terms": [362379229, 449636305, 679957907, 846850705, 854122915], "object": null, "origin": "declared", "pinned": false, "traits": 0, "session": null, "sources": [], "subject": null, "subtype": null, "keywords": "{362379229:2.0114,449636305:2.0114,679957907:2.0114,846850705:2.0114,854122915:2.0114}/1000000000", "relation": null, "embedding": "[-0.10723877,0,0.10723877,-0.10723877,0.21447754,-0.21447754,0,0.5361328,0.42895508,-0.21447754,0.3215332,-0.10723877,-0.42895508,0.21447754,0.10723877,0]", "last_seen": "2026-11-28T16:05:58.492817+00:00", "stored_at": "2026-11-28T16:05:58.492817+00:00", "successor": null, "confidence": 0.8, "created_at": "2026-11-28T16:05:58.492817+00:00", "importance": 6, "object_key": null, "retired_at": null, "valid_from": "2026-11-28T16:05:58.492817+00:00", "subject_key": null, "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.492817+00:00", "recall_count": 0, "repeat_count": 1, "canonical_key": "e47b7457ffb5ec103cdfd6f8e247840b", "last_recalled": null, "single_valued": false, "feedback_score": 0.2, "retired_reason": null, "synthesis_type": null, "embedding_model": "hash-16", "emotional_state": null, "relational_context": null}], "scope": {"user": "mira", "agent": "ada", "session": "chat-1", "is_seeded": false}, "turns": [], "counts": {"links": 0, "nodes": 1, "turns": 0, "entities": 0, "evidence": 0, "mentions": 0, "sessions": 0}, "format": "memory-snapshot", "version": 1, "embedder": {"kind": "hash", "model": "hash-16", "dimensions": 16}, "entities": [], "evidence": [], "mentions": [], "sessions": [], "canonical": {"hash": "84ef4164d1ccaaa3cfc38a963b632611", "version": 1}, "created_at": "2026-11-28T16:06:00.145862+00:00"}	2026-11-28 16:06:00.145862+00
\.
COPY public.entities (id, tenant_id, scope_id, key, type, label, aliases, summary, first_seen, last_seen, mention_count, merged_into) FROM stdin;
1	1	1	place:lisbon	place	Lisbon	{}	\N	2026-10-01 00:00:00+00	2026-10-01 00:00:00+00	1	\N
2	1	1	person:bruno	person	Bruno	{}	\N	2026-11-28 16:05:57.382056+00	2026-11-28 16:05:57.382056+00	1	\N
3	1	1	person:clara	person	Clara	{}	\N	2026-11-28 16:05:57.382056+00	2026-11-28 16:05:57.382056+00	2	\N
5	1	1	concept:sailing	concept	Sailing	{}	\N	2026-11-28 16:05:58.234235+00	2026-11-28 16:05:58.407441+00	3	\N
9	1	1	thing:clara	thing	Clara	{}	\N	2026-11-28 16:05:59.792573+00	2026-11-28 16:05:59.792573+00	1	\N
\.
COPY public.erasures (id, tenant_id, subject_digest, state, counts, created_at, finished_at) FROM stdin;
01a222e8-012f-7d3f-a25d-38f61ac1a0f1	1	\\xf8e5621030c28bf30c9b5cfc470f13d1	done	{"runs": 1, "terms": 13, "turns": 1, "users": 1, "scopes": 1, "entities": 1, "evidence": 2, "memories": 3, "mentions": 1, "sessions": 1, "speakers": 1}	2026-11-28 16:05:59.669874+00	2026-11-28 16:05:59.669874+00
\.
COPY public.evidence (tenant_id, scope_id, memory_id, turn_scope_id, turn_id) FROM stdin;
1	1	01a222e7-fa6a-74d3-ba74-87ab2e9cbac6	1	01a222e7-f837-74f8-8f3e-5b6188c16bbc
1	1	01a222e7-faa8-798d-a4bc-f0a4488a87f9	1	01a222e7-f837-74f8-8f3e-5b6188c16bbc
1	1	01a222e7-fad4-7159-9921-2eed67e48d63	1	01a222e7-f837-7bfd-8799-c5026ce19062
1	1	01a222e7-faf3-73d7-875f-f8f5bac821f0	1	01a222e7-f837-7bfd-8799-c5026ce19062
\.
COPY public.feedback (id, tenant_id, scope_id, turn_id, memory_id, label, note, created_at) FROM stdin;
1	1	1	\N	01a222e7-fc78-73f7-a30d-c11fe0a8ef7e	up	right	2026-11-28 16:05:58.626719+00
2	1	1	01a222e7-f837-7b89-a134-7b4e450004ee	\N	down	\N	2026-11-28 16:05:58.673713+00
\.
COPY public.images (id, tenant_id, scope_id, run_id, source, change, row_key, before, after) FROM stdin;
1	1	1	01a222e7-fd8f-7299-9263-79aec6c9db1c	memories	update	{"id": "01a222e7-fb89-76fe-b38b-4f94da97f053"}	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:05:58.234235+00:00", "successor": null, "confidence": 0.8, "importance": 5, "retired_at": null, "session_id": null, "valid_from": "2026-11-28T16:05:58.234235+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.234235+00:00", "recall_count": 0, "repeat_count": 1, "last_recalled": null, "feedback_score": 0, "retired_reason": null}	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:05:58.234235+00:00", "successor": null, "confidence": 0.8, "importance": 5, "retired_at": "2026-11-28T16:05:59.067305+00:00", "session_id": null, "valid_from": "2026-11-28T16:05:58.234235+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.234235+00:00", "recall_count": 0, "repeat_count": 1, "last_recalled": null, "feedback_score": 0, "retired_reason": "merged"}
2	1	1	01a222e7-fd8f-7299-9263-79aec6c9db1c	memories	update	{"id": "01a222e7-fbd2-7466-b622-1245d17c39e0"}	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:05:58.331805+00:00", "successor": null, "confidence": 0.8, "importance": 5, "retired_at": null, "session_id": null, "valid_from": "2026-11-28T16:05:58.331805+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.331805+00:00", "recall_count": 0, "repeat_count": 1, "last_recalled": null, "feedback_score": 0, "retired_reason": null}	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:05:58.331805+00:00", "successor": null, "confidence": 0.8, "importance": 5, "retired_at": "2026-11-28T16:05:59.067305+00:00", "session_id": null, "valid_from": "2026-11-28T16:05:58.331805+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.331805+00:00", "recall_count": 0, "repeat_count": 1, "last_recalled": null, "feedback_score": 0, "retired_reason": "merged"}
3	1	1	01a222e7-fd8f-7299-9263-79aec6c9db1c	memories	update	{"id": "01a222e7-fc2a-7b71-933c-f5abfa0ea603"}	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:05:58.407441+00:00", "successor": null, "confidence": 0.8, "importance": 5, "retired_at": null, "session_id": null, "valid_from": "2026-11-28T16:05:58.407441+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.407441+00:00", "recall_count": 0, "repeat_count": 1, "last_recalled": null, "feedback_score": 0, "retired_reason": null}	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:05:58.407441+00:00", "successor": null, "confidence": 0.8, "importance": 5, "retired_at": "2026-11-28T16:05:59.067305+00:00", "session_id": null, "valid_from": "2026-11-28T16:05:58.407441+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.407441+00:00", "recall_count": 0, "repeat_count": 1, "last_recalled": null, "feedback_score": 0, "retired_reason": "merged"}
4	1	1	01a222e7-fd8f-7299-9263-79aec6c9db1c	memories	insert	{"id": "01a222e7-fecb-7f49-bb99-0a776efb5e58"}	\N	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:05:58.407441+00:00", "successor": null, "confidence": 0.8, "importance": 6, "retired_at": null, "session_id": null, "valid_from": "2026-11-28T16:05:58.234235+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.407441+00:00", "recall_count": 0, "repeat_count": 3, "last_recalled": null, "feedback_score": 0, "retired_reason": null}
5	1	1	01a222e7-fd8f-7299-9263-79aec6c9db1c	memories	update	{"id": "01a222e7-fb89-76fe-b38b-4f94da97f053"}	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:05:58.234235+00:00", "successor": null, "confidence": 0.8, "importance": 5, "retired_at": "2026-11-28T16:05:59.067305+00:00", "session_id": null, "valid_from": "2026-11-28T16:05:58.234235+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.234235+00:00", "recall_count": 0, "repeat_count": 1, "last_recalled": null, "feedback_score": 0, "retired_reason": "merged"}	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:05:58.234235+00:00", "successor": "01a222e7-fecb-7f49-bb99-0a776efb5e58", "confidence": 0.8, "importance": 5, "retired_at": "2026-11-28T16:05:59.067305+00:00", "session_id": null, "valid_from": "2026-11-28T16:05:58.234235+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.234235+00:00", "recall_count": 0, "repeat_count": 1, "last_recalled": null, "feedback_score": 0, "retired_reason": "merged"}
6	1	1	01a222e7-fd8f-7299-9263-79aec6c9db1c	memories	update	{"id": "01a222e7-fbd2-7466-b622-1245d17c39e0"}	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:05:58.331805+00:00", "successor": null, "confidence": 0.8, "importance": 5, "retired_at": "2026-11-28T16:05:59.067305+00:00", "session_id": null, "valid_from": "2026-11-28T16:05:58.331805+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.331805+00:00", "recall_count": 0, "repeat_count": 1, "last_recalled": null, "feedback_score": 0, "retired_reason": "merged"}	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:05:58.331805+00:00", "successor": "01a222e7-fecb-7f49-bb99-0a776efb5e58", "confidence": 0.8, "importance": 5, "retired_at": "2026-11-28T16:05:59.067305+00:00", "session_id": null, "valid_from": "2026-11-28T16:05:58.331805+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.331805+00:00", "recall_count": 0, "repeat_count": 1, "last_recalled": null, "feedback_score": 0, "retired_reason": "merged"}
7	1	1	01a222e7-fd8f-7299-9263-79aec6c9db1c	memories	update	{"id": "01a222e7-fc2a-7b71-933c-f5abfa0ea603"}	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:05:58.407441+00:00", "successor": null, "confidence": 0.8, "importance": 5, "retired_at": "2026-11-28T16:05:59.067305+00:00", "session_id": null, "valid_from": "2026-11-28T16:05:58.407441+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.407441+00:00", "recall_count": 0, "repeat_count": 1, "last_recalled": null, "feedback_score": 0, "retired_reason": "merged"}	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:05:58.407441+00:00", "successor": "01a222e7-fecb-7f49-bb99-0a776efb5e58", "confidence": 0.8, "importance": 5, "retired_at": "2026-11-28T16:05:59.067305+00:00", "session_id": null, "valid_from": "2026-11-28T16:05:58.407441+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.407441+00:00", "recall_count": 0, "repeat_count": 1, "last_recalled": null, "feedback_score": 0, "retired_reason": "merged"}
8	1	1	01a222e7-fd8f-7299-9263-79aec6c9db1c	mentions	insert	{"scope_id": 1, "entity_id": 5, "memory_id": "01a222e7-fecb-7f49-bb99-0a776efb5e58", "tenant_id": 1}	\N	{"scope_id": 1, "entity_id": 5, "memory_id": "01a222e7-fecb-7f49-bb99-0a776efb5e58", "tenant_id": 1}
9	1	1	01a222e7-fd8f-7299-9263-79aec6c9db1c	links	insert	{"type": "derived_from", "scope_id": 1, "source_id": "01a222e7-fecb-7f49-bb99-0a776efb5e58", "target_id": "01a222e7-fb89-76fe-b38b-4f94da97f053", "tenant_id": 1}	\N	{"type": "derived_from", "weight": 1, "scope_id": 1, "source_id": "01a222e7-fecb-7f49-bb99-0a776efb5e58", "target_id": "01a222e7-fb89-76fe-b38b-4f94da97f053", "tenant_id": 1, "created_at": "2026-11-28T16:05:59.067305+00:00"}
10	1	1	01a222e7-fd8f-7299-9263-79aec6c9db1c	links	insert	{"type": "derived_from", "scope_id": 1, "source_id": "01a222e7-fecb-7f49-bb99-0a776efb5e58", "target_id": "01a222e7-fbd2-7466-b622-1245d17c39e0", "tenant_id": 1}	\N	{"type": "derived_from", "weight": 1, "scope_id": 1, "source_id": "01a222e7-fecb-7f49-bb99-0a776efb5e58", "target_id": "01a222e7-fbd2-7466-b622-1245d17c39e0", "tenant_id": 1, "created_at": "2026-11-28T16:05:59.067305+00:00"}
11	1	1	01a222e7-fd8f-7299-9263-79aec6c9db1c	links	insert	{"type": "derived_from", "scope_id": 1, "source_id": "01a222e7-fecb-7f49-bb99-0a776efb5e58", "target_id": "01a222e7-fc2a-7b71-933c-f5abfa0ea603", "tenant_id": 1}	\N	{"type": "derived_from", "weight": 1, "scope_id": 1, "source_id": "01a222e7-fecb-7f49-bb99-0a776efb5e58", "target_id": "01a222e7-fc2a-7b71-933c-f5abfa0ea603", "tenant_id": 1, "created_at": "2026-11-28T16:05:59.067305+00:00"}
12	1	1	01a222e8-0155-752f-b2cf-a7c6253fe8f9	memories	insert	{"id": "01a222e8-030e-7d41-bc44-51e3e196864f"}	\N	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:06:00.145862+00:00", "successor": null, "confidence": 0.8, "importance": 6, "retired_at": null, "session_id": null, "valid_from": "2026-11-28T16:05:58.492817+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.492817+00:00", "recall_count": 0, "repeat_count": 1, "last_recalled": null, "feedback_score": 0, "retired_reason": null}
13	1	1	01a222e8-0155-752f-b2cf-a7c6253fe8f9	memories	update	{"id": "01a222e8-030e-7d41-bc44-51e3e196864f"}	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:06:00.145862+00:00", "successor": null, "confidence": 0.8, "importance": 6, "retired_at": null, "session_id": null, "valid_from": "2026-11-28T16:05:58.492817+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.492817+00:00", "recall_count": 0, "repeat_count": 1, "last_recalled": null, "feedback_score": 0, "retired_reason": null}	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:06:00.145862+00:00", "successor": null, "confidence": 0.8, "importance": 6, "retired_at": null, "session_id": null, "valid_from": "2026-11-28T16:05:58.492817+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.492817+00:00", "recall_count": 0, "repeat_count": 1, "last_recalled": null, "feedback_score": 0.2, "retired_reason": null}
14	1	1	01a222e8-0155-752f-b2cf-a7c6253fe8f9	memories	update	{"id": "01a222e7-fc78-73f7-a30d-c11fe0a8ef7e"}	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:05:58.492817+00:00", "successor": null, "confidence": 0.8, "importance": 6, "retired_at": null, "session_id": 1, "valid_from": "2026-11-28T16:05:58.492817+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.492817+00:00", "recall_count": 0, "repeat_count": 1, "last_recalled": null, "feedback_score": 0.2, "retired_reason": null}	{"pinned": false, "sources": [], "last_seen": "2026-11-28T16:05:58.492817+00:00", "successor": "01a222e8-030e-7d41-bc44-51e3e196864f", "confidence": 0.8, "importance": 6, "retired_at": "2026-11-28T16:06:00.145862+00:00", "session_id": 1, "valid_from": "2026-11-28T16:05:58.492817+00:00", "valid_until": null, "confirmed_at": "2026-11-28T16:05:58.492817+00:00", "recall_count": 0, "repeat_count": 1, "last_recalled": null, "feedback_score": 0.2, "retired_reason": "merged"}
\.
COPY public.links (tenant_id, scope_id, source_id, target_id, type, weight, created_at) FROM stdin;
1	1	01a222e7-fbd2-7466-b622-1245d17c39e0	01a222e7-fb89-76fe-b38b-4f94da97f053	similar_to	0.9290435	2026-11-28 16:05:58.331805+00
1	1	01a222e7-fc2a-7b71-933c-f5abfa0ea603	01a222e7-fb89-76fe-b38b-4f94da97f053	similar_to	0.95945954	2026-11-28 16:05:58.407441+00
1	1	01a222e7-fc2a-7b71-933c-f5abfa0ea603	01a222e7-fbd2-7466-b622-1245d17c39e0	similar_to	0.8851118	2026-11-28 16:05:58.407441+00
1	1	01a222e7-fecb-7f49-bb99-0a776efb5e58	01a222e7-fb89-76fe-b38b-4f94da97f053	derived_from	1	2026-11-28 16:05:59.067305+00
1	1	01a222e7-fecb-7f49-bb99-0a776efb5e58	01a222e7-fbd2-7466-b622-1245d17c39e0	derived_from	1	2026-11-28 16:05:59.067305+00
1	1	01a222e7-fecb-7f49-bb99-0a776efb5e58	01a222e7-fc2a-7b71-933c-f5abfa0ea603	derived_from	1	2026-11-28 16:05:59.067305+00
\.
COPY public.memories (id, tenant_id, scope_id, session_id, run_id, kind, subtype, text, canonical_key, subject, relation, object, subject_key, object_key, single_valued, importance, confidence, pinned, origin, sources, emotional_state, relational_context, tags, synthesis_type, valid_from, valid_until, created_at, stored_at, last_seen, confirmed_at, last_recalled, repeat_count, recall_count, feedback_score, successor, retired_at, retired_reason, embedding, embedding_model, keywords, terms, traits) FROM stdin;
01a222e7-f9d5-76c8-a28c-d79d7a207175	1	1	\N	\N	expression	\N	Answers are short.	a6775b700a271692720c156646a41b34	\N	\N	\N	\N	\N	f	5	0.8	f	declared	{}	\N	\N	{}	\N	2026-11-28 16:05:57.800502+00	\N	2026-11-28 16:05:57.800502+00	2026-11-28 16:05:57.800502+00	2026-11-28 16:05:57.800502+00	2026-11-28 16:05:57.800502+00	\N	1	0	0	\N	\N	\N	[0.17407227,0.17407227,0,0,-0.17407227,-0.17407227,-0.17407227,0,-0.34814453,-0.34814453,-0.34814453,-0.17407227,-0.17407227,-0.17407227,0.34814453,0.52246094]	hash-16	{49037443:2.1205,159862482:2.1205}/1000000000	{49037443,159862482}	0
01a222e7-fa6a-74d3-ba74-87ab2e9cbac6	1	1	\N	01a222e7-fa13-71fb-826e-a8d5dd4ed14b	fact	fact	mira moved to Lisbon in October 2026.	522fe755888b9f147d8f08b1edfa7776	mira	lives_in	Lisbon	mira	lisbon	t	7	0.8	f	extracted	{user:mira}	\N	\N	{}	\N	2026-10-01 00:00:00+00	\N	2026-11-28 16:05:57.957822+00	2026-11-28 16:05:57.957822+00	2026-11-28 16:05:57.957822+00	2026-10-01 00:00:00+00	\N	1	0	0	\N	\N	\N	[-0.19995117,-0.099975586,0.19995117,-0.19995117,0.30004883,0.099975586,0.099975586,0.099975586,-0.099975586,-0.19995117,0.19995117,-0.5,0.099975586,-0.60009766,0,-0.19995117]	hash-16	{246911860:2.0114,362379229:2.0114,545390579:2.0114,914530026:2.0114,999058039:2.0114}/1000000000	{246911860,362379229,545390579,914530026,999058039}	24
01a222e7-faa8-798d-a4bc-f0a4488a87f9	1	1	\N	01a222e7-fa13-71fb-826e-a8d5dd4ed14b	fact	relationship	mira has a dog called Bruno.	c2bd99a0c1276b0827b268dada86d273	mira	has_pet	Bruno	mira	bruno	f	6	0.8	f	extracted	{user:mira}	\N	\N	{}	\N	2026-11-28 16:05:57.382056+00	\N	2026-11-28 16:05:57.957822+00	2026-11-28 16:05:57.957822+00	2026-11-28 16:05:57.957822+00	2026-11-28 16:05:57.382056+00	\N	1	0	0	\N	\N	\N	[-0.0769043,-0.0769043,0,0.23071289,0.3076172,0.3076172,-0.1538086,0.1538086,0.23071289,-0.0769043,0.38452148,0,-0.6923828,0.0769043,0,-0.0769043]	hash-16	{279213920:2.0465,359730336:2.0465,362379229:2.0465,770550713:2.0465}/1000000000	{279213920,359730336,362379229,770550713}	0
01a222e7-fad4-7159-9921-2eed67e48d63	1	1	\N	01a222e7-fa13-71fb-826e-a8d5dd4ed14b	fact	relationship	mira has a sister called Clara.	93d7c1b00193d5d9e03852a1ef662825	mira	sister	Clara	mira	clara	f	7	0.8	f	extracted	{user:mira}	\N	\N	{}	\N	2026-11-28 16:05:57.382056+00	\N	2026-11-28 16:05:57.957822+00	2026-11-28 16:05:57.957822+00	2026-11-28 16:05:57.957822+00	2026-11-28 16:05:57.382056+00	\N	1	0	0	\N	\N	\N	[-0.24499512,-0.40820312,0.16333008,0.16333008,0.16333008,0.16333008,-0.16333008,-0.16333008,0.40820312,0,0.16333008,0.24499512,-0.57177734,0,0.08166504,0.16333008]	hash-16	{185620494:2.0465,279213920:2.0465,287466703:2.0465,362379229:2.0465}/1000000000	{185620494,279213920,287466703,362379229}	0
01a222e7-faf3-73d7-875f-f8f5bac821f0	1	1	\N	01a222e7-fa13-71fb-826e-a8d5dd4ed14b	fact	fact	Clara works at the harbour museum.	988482105a63d83b99aad3f82646f463	Clara	works_at	harbour museum	clara	harbour_museum	t	7	0.8	f	extracted	{user:mira}	\N	\N	{}	\N	2026-11-28 16:05:57.382056+00	\N	2026-11-28 16:05:57.957822+00	2026-11-28 16:05:57.957822+00	2026-11-28 16:05:57.957822+00	2026-11-28 16:05:57.382056+00	\N	1	0	0	\N	\N	\N	[0.09851074,0,-0.09851074,0,-0.39404297,-0.19702148,-0.19702148,-0.09851074,-0.39404297,-0.09851074,-0.19702148,-0.39404297,0.2956543,-0.49267578,-0.19702148,0.09851074]	hash-16	{287466703:2.0465,524404310:2.0465,591091939:2.0465,743165498:2.0465}/1000000000	{287466703,524404310,591091939,743165498}	0
01a222e7-fcc9-7a76-ace0-cc172cb9587e	1	2	\N	\N	fact	\N	The museum is closed on Mondays.	68d4e91a9693f2b84f94c567b0ae447f	\N	\N	\N	\N	\N	f	5	0.8	f	declared	{}	\N	\N	{}	\N	2026-11-28 16:05:58.569241+00	\N	2026-11-28 16:05:58.569241+00	2026-11-28 16:05:58.569241+00	2026-11-28 16:05:58.569241+00	2026-11-28 16:05:58.569241+00	\N	1	0	0	\N	\N	\N	[0.10723877,-0.10723877,-0.21447754,0,-0.5361328,-0.21447754,0.21447754,0.42895508,-0.3215332,-0.3215332,-0.10723877,0,0.21447754,-0.10723877,-0.21447754,-0.21447754]	hash-16	{415922873:2.0828,743165498:2.0828,800338179:2.0828}/1000000000	{415922873,743165498,800338179}	0
01a222e7-fecb-7f49-bb99-0a776efb5e58	1	1	\N	01a222e7-fd8f-7299-9263-79aec6c9db1c	fact	\N	Mira goes out sailing on the lake with her cousin in the summer.	507e61d6118364426970042bba420652	\N	\N	\N	\N	\N	f	6	0.8	f	declared	{}	\N	\N	{}	consolidation	2026-11-28 16:05:58.234235+00	\N	2026-11-28 16:05:58.234235+00	2026-11-28 16:05:59.067305+00	2026-11-28 16:05:58.407441+00	2026-11-28 16:05:58.407441+00	\N	3	0	0	\N	\N	\N	[0,-0.3425293,-0.41552734,0.43774414,-0.3425293,-0.050567627,0,0.07293701,-0.24707031,0,0.29174805,-0.21887207,-0.24133301,-0.07293701,0.050567627,0.3647461]	hash-16	{21561489:1.9775,37684011:1.9775,362379229:1.9775,662232657:1.9775,828824946:1.9775,884733302:1.9775}/1000000000	{21561489,37684011,362379229,662232657,828824946,884733302}	0
01a222e7-fb89-76fe-b38b-4f94da97f053	1	1	\N	\N	fact	\N	Mira goes sailing on the lake with her cousin in the summer.	798f0c6eb757b18aab8669edfc72c76e	\N	\N	\N	\N	\N	f	5	0.8	f	declared	{}	\N	\N	{}	\N	2026-11-28 16:05:58.234235+00	\N	2026-11-28 16:05:58.234235+00	2026-11-28 16:05:58.234235+00	2026-11-28 16:05:58.234235+00	2026-11-28 16:05:58.234235+00	\N	1	0	0	01a222e7-fecb-7f49-bb99-0a776efb5e58	2026-11-28 16:05:59.067305+00	merged	[0,-0.24768066,-0.38183594,0.40234375,-0.24768066,0.087646484,0.06707764,0.06707764,-0.22717285,-0.06707764,0.33544922,-0.26831055,-0.22180176,-0.20117188,0.04647827,0.46948242]	hash-16	{21561489:1.9775,37684011:1.9775,362379229:1.9775,662232657:1.9775,828824946:1.9775,884733302:1.9775}/1000000000	{21561489,37684011,362379229,662232657,828824946,884733302}	0
01a222e7-fbd2-7466-b622-1245d17c39e0	1	1	\N	\N	fact	\N	Mira goes sailing on the lake with her cousin in summer.	66d986f28f43ef04f93b41cfdb9b2690	\N	\N	\N	\N	\N	f	5	0.8	f	declared	{}	\N	\N	{}	\N	2026-11-28 16:05:58.331805+00	\N	2026-11-28 16:05:58.331805+00	2026-11-28 16:05:58.331805+00	2026-11-28 16:05:58.331805+00	2026-11-28 16:05:58.331805+00	\N	1	0	0	01a222e7-fecb-7f49-bb99-0a776efb5e58	2026-11-28 16:05:59.067305+00	merged	[0,-0.13427734,-0.33569336,0.47021484,-0.2685547,0.087768555,0.06713867,0,0,-0.06713867,0.2685547,-0.47021484,-0.20153809,-0.06713867,0,0.47021484]	hash-16	{21561489:1.9775,37684011:1.9775,362379229:1.9775,662232657:1.9775,828824946:1.9775,884733302:1.9775}/1000000000	{21561489,37684011,362379229,662232657,828824946,884733302}	0
01a222e7-fc2a-7b71-933c-f5abfa0ea603	1	1	\N	\N	fact	\N	Mira goes out sailing on the lake with her cousin in the summer.	507e61d6118364426970042bba420652	\N	\N	\N	\N	\N	f	5	0.8	f	declared	{}	\N	\N	{}	\N	2026-11-28 16:05:58.407441+00	\N	2026-11-28 16:05:58.407441+00	2026-11-28 16:05:58.407441+00	2026-11-28 16:05:58.407441+00	2026-11-28 16:05:58.407441+00	\N	1	0	0	01a222e7-fecb-7f49-bb99-0a776efb5e58	2026-11-28 16:05:59.067305+00	merged	[0,-0.3425293,-0.41552734,0.43774414,-0.3425293,-0.050567627,0,0.07293701,-0.24707031,0,0.29174805,-0.21887207,-0.24133301,-0.07293701,0.050567627,0.3647461]	hash-16	{21561489:1.9775,37684011:1.9775,362379229:1.9775,662232657:1.9775,828824946:1.9775,884733302:1.9775}/1000000000	{21561489,37684011,362379229,662232657,828824946,884733302}	0
01a222e8-030e-7d41-bc44-51e3e196864f	1	1	\N	01a222e8-0155-752f-b2cf-a7c6253fe8f9	value	\N	Mira drinks her tea without sugar.	e47b7457ffb5ec103cdfd6f8e247840b	\N	\N	\N	\N	\N	f	6	0.8	f	declared	{}	\N	\N	{}	\N	2026-11-28 16:05:58.492817+00	\N	2026-11-28 16:06:00.145862+00	2026-11-28 16:06:00.145862+00	2026-11-28 16:06:00.145862+00	2026-11-28 16:05:58.492817+00	\N	1	0	0.2	\N	\N	\N	[-0.10723877,0,0.10723877,-0.10723877,0.21447754,-0.21447754,0,0.5361328,0.42895508,-0.21447754,0.3215332,-0.10723877,-0.42895508,0.21447754,0.10723877,0]	hash-16	{362379229:2.0114,449636305:2.0114,679957907:2.0114,846850705:2.0114,854122915:2.0114}/1000000000	{362379229,449636305,679957907,846850705,854122915}	0
01a222e7-fc78-73f7-a30d-c11fe0a8ef7e	1	1	1	\N	value	\N	Mira drinks her tea without sugar.	e47b7457ffb5ec103cdfd6f8e247840b	\N	\N	\N	\N	\N	f	6	0.8	f	declared	{}	\N	\N	{}	\N	2026-11-28 16:05:58.492817+00	\N	2026-11-28 16:05:58.492817+00	2026-11-28 16:05:58.492817+00	2026-11-28 16:05:58.492817+00	2026-11-28 16:05:58.492817+00	\N	1	0	0.2	01a222e8-030e-7d41-bc44-51e3e196864f	2026-11-28 16:06:00.145862+00	merged	[-0.10723877,0,0.10723877,-0.10723877,0.21447754,-0.21447754,0,0.5361328,0.42895508,-0.21447754,0.3215332,-0.10723877,-0.42895508,0.21447754,0.10723877,0]	hash-16	{362379229:2.0114,449636305:2.0114,679957907:2.0114,846850705:2.0114,854122915:2.0114}/1000000000	{362379229,449636305,679957907,846850705,854122915}	0
01a222e8-03d7-7cc6-849e-140d73344f8a	3	4	\N	\N	fact	\N	Zoe collects stamps from Lisbon.	3c4ba69add3ca401a30350adb34fdea7	\N	\N	\N	\N	\N	f	5	0.8	f	declared	{}	\N	\N	{}	\N	2026-11-28 16:06:00.388707+00	\N	2026-11-28 16:06:00.388707+00	2026-11-28 16:06:00.388707+00	2026-11-28 16:06:00.388707+00	2026-11-28 16:06:00.388707+00	\N	1	0	0	\N	\N	\N	[0.19152832,0.19152832,-0.38305664,0.38305664,0.09576416,-0.09576416,0.09576416,-0.19152832,0.09576416,0.09576416,-0.4790039,-0.09576416,0.4790039,-0.19152832,0.09576416,-0.19152832]	hash-16	{198534147:2.0465,426559248:2.0465,618469873:2.0465,999058039:2.0465}/1000000000	{198534147,426559248,618469873,999058039}	0
\.
COPY public.mentions (tenant_id, scope_id, memory_id, entity_id) FROM stdin;
1	1	01a222e7-fa6a-74d3-ba74-87ab2e9cbac6	1
1	1	01a222e7-faa8-798d-a4bc-f0a4488a87f9	2
1	1	01a222e7-fad4-7159-9921-2eed67e48d63	3
1	1	01a222e7-faf3-73d7-875f-f8f5bac821f0	3
1	1	01a222e7-fb89-76fe-b38b-4f94da97f053	5
1	1	01a222e7-fbd2-7466-b622-1245d17c39e0	5
1	1	01a222e7-fc2a-7b71-933c-f5abfa0ea603	5
1	1	01a222e7-fecb-7f49-bb99-0a776efb5e58	5
\.
COPY public.runs (id, tenant_id, scope_id, session_id, name, period, state, options, from_seq, to_seq, answer, report, reason, model, prompt_version, attempts, fence, lease_until, due_at, starts, failing_since, created_at, started_at, finished_at) FROM stdin;
01a222e8-0155-752f-b2cf-a7c6253fe8f9	1	1	1	end_session	1:3	done	{"carry": true, "promote": true, "checkpoint": true, "promote_most": 20, "promote_degree": 0, "promote_strength": 0.3}	\N	\N	\N	{"gate": {"floor": 0.99, "probes": 0, "recall": 1.0}, "freed": 0, "links": 0, "slept": true, "reason": null, "applied": true, "changes": 1, "dropped": 0, "evicted": [], "refused": [], "trigger": "session-end", "clusters": [], "patterns": [], "promoted": ["01a222e7-fc78-73f7-a30d-c11fe0a8ef7e"], "inspected": 1, "timestamp": "2026-11-28T16:00:00+00:00", "checkpoint": "01a222e8-02fd-7ff7-afd9-812e2030eaf0", "left_alone": [], "summary_chars": 600}	\N	\N	\N	0	1	\N	\N	1	\N	2026-11-28 16:05:59.748823+00	2026-11-28 16:06:00.017144+00	2026-11-28 16:06:00.145862+00
01a222e7-fa13-71fb-826e-a8d5dd4ed14b	1	1	1	extract	\N	done	{}	1	3	\N	{"made": {"model": "rules-1"}, "turns": 3, "memories": ["01a222e7-fa6a-74d3-ba74-87ab2e9cbac6", "01a222e7-faa8-798d-a4bc-f0a4488a87f9", "01a222e7-fad4-7159-9921-2eed67e48d63", "01a222e7-faf3-73d7-875f-f8f5bac821f0"]}	\N	rules-1	\N	1	0	\N	\N	0	\N	2026-11-28 16:05:57.89536+00	2026-11-28 16:05:57.89536+00	2026-11-28 16:05:57.957822+00
01a222e7-fd8f-7299-9263-79aec6c9db1c	1	1	\N	sleep	\N	done	{"force": false, "dry_run": false, "trigger": "manual", "similarity": null, "max_clusters": 1000, "min_strength": 0.9, "max_inspected": 5000, "summary_chars": 600, "min_cluster_size": 2, "cool_down_seconds": 0.0}	\N	\N	\N	{"gate": {"floor": 0.99, "probes": 2, "recall": 1.0}, "freed": 2, "links": 0, "reason": null, "applied": true, "changes": 1, "evicted": [], "refused": [], "trigger": "manual", "clusters": [{"freed": 2, "anchor": "01a222e7-fc2a-7b71-933c-f5abfa0ea603", "merged": ["01a222e7-fb89-76fe-b38b-4f94da97f053", "01a222e7-fbd2-7466-b622-1245d17c39e0"], "strength_after": 0.595, "strength_before": 0.485}], "patterns": [], "promoted": [], "inspected": 9, "timestamp": "2026-11-28T16:00:00+00:00", "left_alone": [], "summary_chars": 600}	\N	\N	\N	0	1	\N	\N	1	\N	2026-11-28 16:05:58.783465+00	2026-11-28 16:05:58.831921+00	2026-11-28 16:05:59.067305+00
01a222e8-0134-737b-a61b-7e9d6d64bc1a	1	\N	\N	forget	\N	done	{"of": "user", "dry_run": false}	\N	\N	\N	{"counts": {"runs": 1, "terms": 13, "turns": 1, "users": 1, "scopes": 1, "entities": 1, "evidence": 2, "memories": 3, "mentions": 1, "sessions": 1, "speakers": 1}, "erasure": "01a222e8-012f-7d3f-a25d-38f61ac1a0f1"}	\N	\N	\N	1	0	\N	\N	0	\N	2026-11-28 16:05:59.669874+00	2026-11-28 16:05:59.669874+00	2026-11-28 16:05:59.669874+00
01a222e8-020a-7313-a6d3-fd5f14e3cf46	1	1	3	extract	\N	done	{}	1	1	\N	{"made": {"model": "rules-1"}, "turns": 1, "memories": []}	\N	rules-1	\N	1	0	\N	\N	0	\N	2026-11-28 16:05:59.931034+00	2026-11-28 16:05:59.931034+00	2026-11-28 16:05:59.987738+00
\.
COPY public.schedules (tenant_id, scope_id, job, due_at, missed) FROM stdin;
1	1	decay	2026-11-29 14:49:58+00	0
1	1	end_sessions	2026-11-29 16:05:57.700757+00	0
1	1	sleep	2026-11-29 14:49:58+00	0
1	1	synthesize_deep	2026-11-29 14:49:58+00	0
1	2	decay	2026-11-29 05:39:56+00	0
1	2	end_sessions	2026-11-29 16:05:58.569241+00	0
1	2	sleep	2026-11-29 05:39:56+00	0
1	2	synthesize_deep	2026-11-29 05:39:56+00	0
3	4	decay	2026-11-29 11:19:52+00	0
3	4	end_sessions	2026-11-29 16:06:00.388707+00	0
3	4	sleep	2026-11-29 11:19:52+00	0
3	4	synthesize_deep	2026-11-29 11:19:52+00	0
\.
COPY public.scope_models (tenant_id, scope_id, model, is_indexed) FROM stdin;
1	1	hash-16	f
1	2	hash-16	f
3	4	hash-16	f
\.
COPY public.scopes (id, tenant_id, agent_id, user_id, created_at, seeded_at) FROM stdin;
1	1	1	1	2026-11-28 16:05:57.382056+00	2026-11-28 16:05:57.800502+00
2	1	1	\N	2026-11-28 16:05:58.540812+00	\N
4	3	5	3	2026-11-28 16:06:00.32502+00	2026-11-28 16:06:00.375105+00
\.
COPY public.sessions (id, tenant_id, scope_id, name, next_seq, extracted_seq, fence, lease_until, due_at, pending_since, starts, failures, refusals, failing_since, parked_reason, replay_seqs, created_at, last_activity_at, ended_at, summary, summary_id, synthesized_seq) FROM stdin;
1	1	1	chat-1	4	3	1	\N	\N	\N	0	0	0	\N	\N	{}	2026-11-28 16:05:57.382056+00	2026-11-28 16:05:57.382056+00	2026-11-28 16:05:59.748823+00	\N	\N	0
3	1	1	chat-2	3	1	1	\N	2026-11-28 16:06:00.273934+00	2026-11-28 16:06:00.273934+00	0	0	0	\N	\N	{}	2026-11-28 16:05:59.792573+00	2026-11-28 16:06:00.273934+00	\N	\N	\N	0
\.
COPY public.speakers (tenant_id, scope_id, name) FROM stdin;
1	1	ada
1	1	mira
\.
COPY public.tenants (id, name, created_at) FROM stdin;
1	acme	2026-11-28 16:05:57.174861+00
3	globex	2026-11-28 16:05:57.337969+00
\.
COPY public.terms (tenant_id, scope_id, term, row_count) FROM stdin;
1	1	126370332	1
1	1	129418885	1
1	1	135997757	1
1	1	162418051	1
1	1	268165705	1
1	1	321707575	1
1	1	424213861	1
1	1	550317352	1
1	1	612426964	1
1	1	952950245	1
1	1	0	15
1	1	49037443	1
1	1	159862482	1
1	1	362379229	12
1	1	185620494	2
1	1	246911860	2
1	1	279213920	3
1	1	449636305	2
1	1	359730336	2
1	1	679957907	2
1	1	524404310	2
1	1	846850705	2
1	1	591091939	2
1	1	743165498	2
1	1	770550713	3
1	1	914530026	1
1	1	999058039	3
1	1	854122915	2
1	2	0	1
1	2	415922873	1
1	2	743165498	1
1	2	800338179	1
1	1	21561489	4
1	1	37684011	4
1	1	662232657	4
1	1	828824946	4
1	1	884733302	4
1	1	287466703	4
1	1	483512396	1
1	1	501818008	4
1	1	545390579	5
1	1	737751773	1
1	1	808921545	4
1	1	951345711	4
1	1	978205876	1
3	4	0	1
3	4	198534147	1
3	4	426559248	1
3	4	618469873	1
3	4	999058039	1
\.
COPY public.turns (id, tenant_id, scope_id, session_id, seq, role, speaker, text, at, accepted_at, emotional_tone, tools_used, metadata, idempotency_key, request_hash, lease_until, starts, failures, indexed_at, extracted_at, reason, failed_at, failed_reason, embedding, embedding_model, keywords, terms, traits) FROM stdin;
01a222e7-f837-74f8-8f3e-5b6188c16bbc	1	1	1	1	user	mira	I moved to Lisbon last month and I have a dog called Bruno.	2026-11-28 16:05:57.382056+00	2026-11-28 16:05:57.382056+00	\N	{}	{}	first	\\x5526205978f26a76b8918068332403e1eafbd9a62413dc5e8b1ac053cbaee597	\N	1	0	2026-11-28 16:05:57.700757+00	2026-11-28 16:05:57.957822+00	\N	\N	\N	[0.052093506,-0.41674805,0.10418701,-0.10418701,0.10418701,0.36450195,-0.32836914,0.10418701,0.17224121,-0.26049805,-0.15625,-0.052093506,-0.3125,-0.36450195,0.10418701,0.41674805]	hash-16	{129418885:1.7426,135997757:1.9448,246911860:1.7426,279213920:1.7426,359730336:1.7426,362379229:1.7426,501818008:1.7426,545390579:1.7426,770550713:1.7426,808921545:1.7426,951345711:1.7426,952950245:1.7426,999058039:1.7426}/1000000000	{129418885,135997757,246911860,279213920,359730336,362379229,501818008,545390579,770550713,808921545,951345711,952950245,999058039}	16
01a222e7-f837-7b89-a134-7b4e450004ee	1	1	1	2	assistant	ada	Lisbon must be lovely in spring. How old is Bruno?	2026-11-28 16:05:57.382056+00	2026-11-28 16:05:57.382056+00	\N	{}	{}	\N	\N	\N	1	0	2026-11-28 16:05:57.700757+00	2026-11-28 16:05:57.957822+00	not said by the user	\N	\N	[0.31982422,0.31982422,-0.12792969,0.063964844,0.063964844,-0.31982422,-0.31982422,0.063964844,-0.04434204,-0.4477539,-0.12792969,-0.19189453,0.063964844,-0.31982422,0,0.4477539]	hash-16	{162418051:1.8238,268165705:1.8238,321707575:1.8238,501818008:1.8238,545390579:1.8238,550317352:1.8238,612426964:1.8238,770550713:1.8238,808921545:1.8238,951345711:1.8238,999058039:1.8238}/1000000000	{162418051,268165705,321707575,501818008,545390579,550317352,612426964,770550713,808921545,951345711,999058039}	1
01a222e7-f837-7bfd-8799-c5026ce19062	1	1	1	3	user	mira	He is four. My sister Clara works at the harbour museum.	2026-11-28 16:05:57.382056+00	2026-11-28 16:05:57.382056+00	\N	{}	{}	\N	\N	\N	1	0	2026-11-28 16:05:57.700757+00	2026-11-28 16:05:57.957822+00	\N	\N	\N	[0.20288086,-0.30444336,0.28881836,-0.35498047,0.050720215,-0.050720215,-0.2536621,-0.10144043,-0.28881836,-0.15222168,-0.15222168,-0.30444336,0.10144043,-0.40576172,-0.2536621,0.3395996]	hash-16	{126370332:1.7959,185620494:1.7959,287466703:1.7959,362379229:1.7959,424213861:1.7959,501818008:1.7959,524404310:1.7959,545390579:1.7959,591091939:1.7959,743165498:1.7959,808921545:1.7959,951345711:1.7959}/1000000000	{126370332,185620494,287466703,362379229,424213861,501818008,524404310,545390579,591091939,743165498,808921545,951345711}	8
01a222e8-0180-7b50-8e85-e1b1f12f8cc7	1	1	3	1	user	mira	Clara has a new boat, the Petrel.	2026-11-28 16:05:59.792573+00	2026-11-28 16:05:59.792573+00	\N	{}	{}	\N	\N	\N	1	0	2026-11-28 16:05:59.858648+00	2026-11-28 16:05:59.987738+00	nothing noteworthy	\N	\N	[0.1661377,-0.58154297,0.08306885,0.08306885,0.08306885,0.3322754,-0.24914551,0.08306885,0.1661377,-0.1661377,0.1661377,-0.24914551,-0.3322754,0.24914551,0.08306885,0.3322754]	hash-16	{287466703:1.8824,362379229:1.8824,483512396:1.8824,501818008:1.8824,545390579:1.8824,737751773:1.8824,808921545:1.8824,951345711:1.8824,978205876:1.8824}/1000000000	{287466703,362379229,483512396,501818008,545390579,737751773,808921545,951345711,978205876}	0
01a222e8-035f-73fa-9458-8186266fa050	1	1	3	2	user	mira	My office is in the Rua Augusta.	2026-11-28 16:06:00.273934+00	2026-11-28 16:06:00.273934+00	\N	{}	{}	\N	\N	\N	0	0	\N	\N	\N	\N	\N	\N	\N	\N	\N	0
\.
COPY public.usage (tenant_id, day, model, calls, tokens_in, tokens_out, cost_usd) FROM stdin;
1	2026-11-28	stub	1	120	30	0.010000
\.
COPY public.users (id, tenant_id, name, time_zone, created_at) FROM stdin;
1	1	mira	UTC	2026-11-28 16:05:57.382056+00
3	3	zoe	UTC	2026-11-28 16:06:00.32502+00
\.
SELECT pg_catalog.setval('public.agents_id_seq', 5, true);
SELECT pg_catalog.setval('public.api_keys_id_seq', 1, true);
SELECT pg_catalog.setval('public.entities_id_seq', 9, true);
SELECT pg_catalog.setval('public.feedback_id_seq', 2, true);
SELECT pg_catalog.setval('public.images_id_seq', 14, true);
SELECT pg_catalog.setval('public.scopes_id_seq', 4, true);
SELECT pg_catalog.setval('public.sessions_id_seq', 3, true);
SELECT pg_catalog.setval('public.tenants_id_seq', 3, true);
SELECT pg_catalog.setval('public.users_id_seq', 3, true);
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_tenant_id_id_key UNIQUE (tenant_id, id);
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_tenant_id_key UNIQUE (tenant_id, name);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (scope_id, id);
ALTER TABLE ONLY public.entities
    ADD CONSTRAINT entities_pkey PRIMARY KEY (scope_id, id);
ALTER TABLE ONLY public.entities
    ADD CONSTRAINT entities_scope_id_key UNIQUE (scope_id, key);
ALTER TABLE ONLY public.erasures
    ADD CONSTRAINT erasures_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.evidence
    ADD CONSTRAINT evidence_pkey PRIMARY KEY (scope_id, memory_id, turn_scope_id, turn_id);
ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_pkey PRIMARY KEY (scope_id, id);
ALTER TABLE ONLY public.images
    ADD CONSTRAINT images_pkey PRIMARY KEY (scope_id, id);
ALTER TABLE ONLY public.links
    ADD CONSTRAINT links_pkey PRIMARY KEY (scope_id, source_id, target_id, type);
ALTER TABLE ONLY public.memories
    ADD CONSTRAINT memories_pkey PRIMARY KEY (scope_id, id);
ALTER TABLE ONLY public.mentions
    ADD CONSTRAINT mentions_pkey PRIMARY KEY (scope_id, memory_id, entity_id);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.schedules
    ADD CONSTRAINT schedules_pkey PRIMARY KEY (scope_id, job);
ALTER TABLE ONLY public.scope_models
    ADD CONSTRAINT scope_models_pkey PRIMARY KEY (scope_id, model);
ALTER TABLE ONLY public.scopes
    ADD CONSTRAINT scopes_agent_user_key UNIQUE NULLS NOT DISTINCT (tenant_id, agent_id, user_id);
ALTER TABLE ONLY public.scopes
    ADD CONSTRAINT scopes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.scopes
    ADD CONSTRAINT scopes_tenant_id_key UNIQUE (tenant_id, id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (scope_id, id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_scope_id_key UNIQUE (scope_id, name);
ALTER TABLE ONLY public.speakers
    ADD CONSTRAINT speakers_pkey PRIMARY KEY (scope_id, name);
ALTER TABLE ONLY public.tenants
    ADD CONSTRAINT tenants_name_key UNIQUE (name);
ALTER TABLE ONLY public.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.terms
    ADD CONSTRAINT terms_pkey PRIMARY KEY (scope_id, term);
ALTER TABLE ONLY public.turns
    ADD CONSTRAINT turns_pkey PRIMARY KEY (scope_id, id);
ALTER TABLE ONLY public.turns
    ADD CONSTRAINT turns_scope_id_key UNIQUE (scope_id, session_id, seq);
ALTER TABLE ONLY public.usage
    ADD CONSTRAINT usage_pkey PRIMARY KEY (tenant_id, day, model);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_tenant_id_id_key UNIQUE (tenant_id, id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_tenant_id_key UNIQUE (tenant_id, name);
CREATE INDEX api_keys_tenant_id_idx ON public.api_keys USING btree (tenant_id);
CREATE INDEX entities_merged_into_idx ON public.entities USING btree (scope_id, merged_into) WHERE (merged_into IS NOT NULL);
CREATE INDEX erasures_tenant_id_idx ON public.erasures USING btree (tenant_id);
CREATE INDEX evidence_turn_idx ON public.evidence USING btree (turn_scope_id, turn_id);
CREATE INDEX feedback_memory_idx ON public.feedback USING btree (scope_id, memory_id);
CREATE INDEX feedback_turn_idx ON public.feedback USING btree (scope_id, turn_id);
CREATE INDEX images_run_idx ON public.images USING btree (run_id, id);
CREATE INDEX links_target_idx ON public.links USING btree (scope_id, target_id);
CREATE INDEX memories_canonical_idx ON public.memories USING btree (scope_id, canonical_key);
CREATE UNIQUE INDEX memories_current_key ON public.memories USING btree (scope_id, session_id, kind, canonical_key) NULLS NOT DISTINCT WHERE ((valid_until IS NULL) AND (retired_at IS NULL));
CREATE INDEX memories_id_idx ON public.memories USING btree (id);
CREATE INDEX memories_kind_idx ON public.memories USING btree (scope_id, kind, pinned DESC, importance DESC) WHERE (retired_at IS NULL);
CREATE INDEX memories_prominent_idx ON public.memories USING btree (scope_id, importance DESC, id DESC) WHERE ((pinned OR (importance >= 9)) AND (retired_at IS NULL));
CREATE INDEX memories_run_idx ON public.memories USING btree (run_id) WHERE (run_id IS NOT NULL);
CREATE INDEX memories_session_idx ON public.memories USING btree (scope_id, session_id) WHERE (session_id IS NOT NULL);
CREATE UNIQUE INDEX memories_single_valued_key ON public.memories USING btree (scope_id, session_id, kind, subject_key, relation) NULLS NOT DISTINCT WHERE (single_valued AND (valid_until IS NULL) AND (retired_at IS NULL));
CREATE INDEX memories_subject_idx ON public.memories USING btree (scope_id, subject_key, relation, valid_from) WHERE (subject_key IS NOT NULL);
CREATE INDEX memories_successor_idx ON public.memories USING btree (scope_id, successor) WHERE (successor IS NOT NULL);
CREATE INDEX mentions_entity_idx ON public.mentions USING btree (scope_id, entity_id, memory_id);
CREATE INDEX runs_due_idx ON public.runs USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE UNIQUE INDEX runs_extract_key ON public.runs USING btree (session_id, from_seq) WHERE ((name = 'extract'::text) AND (state = 'running'::text));
CREATE UNIQUE INDEX runs_period_key ON public.runs USING btree (tenant_id, name, scope_id, period) NULLS NOT DISTINCT WHERE (period IS NOT NULL);
CREATE INDEX runs_scope_idx ON public.runs USING btree (scope_id, created_at);
CREATE INDEX runs_session_idx ON public.runs USING btree (scope_id, session_id);
CREATE INDEX runs_tenant_idx ON public.runs USING brin (tenant_id);
CREATE INDEX schedules_due_idx ON public.schedules USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX scopes_tenant_user_idx ON public.scopes USING btree (tenant_id, user_id);
CREATE INDEX sessions_due_idx ON public.sessions USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX sessions_id_idx ON public.sessions USING btree (id);
CREATE INDEX turns_failed_idx ON public.turns USING btree (tenant_id, id) WHERE (failed_at IS NOT NULL);
CREATE INDEX turns_fresh_idx ON public.turns USING btree (scope_id, id) WHERE ((indexed_at IS NULL) AND (failed_at IS NULL));
CREATE INDEX turns_id_idx ON public.turns USING btree (id);
CREATE UNIQUE INDEX turns_idempotency_key ON public.turns USING btree (tenant_id, idempotency_key) WHERE (idempotency_key IS NOT NULL);
CREATE INDEX turns_unindexed_idx ON public.turns USING btree (id) WHERE ((indexed_at IS NULL) AND (failed_at IS NULL));
CREATE TRIGGER keep_image AFTER INSERT OR DELETE OR UPDATE ON public.evidence FOR EACH ROW WHEN ((current_setting('memory.run'::text, true) <> ''::text)) EXECUTE FUNCTION public.keep_image();
CREATE TRIGGER keep_image AFTER INSERT OR DELETE OR UPDATE ON public.links FOR EACH ROW WHEN ((current_setting('memory.run'::text, true) <> ''::text)) EXECUTE FUNCTION public.keep_image();
CREATE TRIGGER keep_image AFTER INSERT OR DELETE OR UPDATE ON public.memories FOR EACH ROW WHEN ((current_setting('memory.run'::text, true) <> ''::text)) EXECUTE FUNCTION public.keep_image();
CREATE TRIGGER keep_image AFTER INSERT OR DELETE OR UPDATE ON public.mentions FOR EACH ROW WHEN ((current_setting('memory.run'::text, true) <> ''::text)) EXECUTE FUNCTION public.keep_image();
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_tenant_id_fkey FOREIGN KEY (tenant_id, scope_id) REFERENCES public.scopes(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.entities
    ADD CONSTRAINT entities_merged_into_fkey FOREIGN KEY (scope_id, merged_into) REFERENCES public.entities(scope_id, id);
ALTER TABLE ONLY public.entities
    ADD CONSTRAINT entities_tenant_id_fkey FOREIGN KEY (tenant_id, scope_id) REFERENCES public.scopes(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.erasures
    ADD CONSTRAINT erasures_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.evidence
    ADD CONSTRAINT evidence_memory_id_fkey FOREIGN KEY (scope_id, memory_id) REFERENCES public.memories(scope_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.evidence
    ADD CONSTRAINT evidence_tenant_id_fkey FOREIGN KEY (tenant_id, scope_id) REFERENCES public.scopes(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.evidence
    ADD CONSTRAINT evidence_turn_id_fkey FOREIGN KEY (turn_scope_id, turn_id) REFERENCES public.turns(scope_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_memory_id_fkey FOREIGN KEY (scope_id, memory_id) REFERENCES public.memories(scope_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_tenant_id_fkey FOREIGN KEY (tenant_id, scope_id) REFERENCES public.scopes(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_turn_id_fkey FOREIGN KEY (scope_id, turn_id) REFERENCES public.turns(scope_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.images
    ADD CONSTRAINT images_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.images
    ADD CONSTRAINT images_tenant_id_fkey FOREIGN KEY (tenant_id, scope_id) REFERENCES public.scopes(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.links
    ADD CONSTRAINT links_source_id_fkey FOREIGN KEY (scope_id, source_id) REFERENCES public.memories(scope_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.links
    ADD CONSTRAINT links_target_id_fkey FOREIGN KEY (scope_id, target_id) REFERENCES public.memories(scope_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.links
    ADD CONSTRAINT links_tenant_id_fkey FOREIGN KEY (tenant_id, scope_id) REFERENCES public.scopes(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.memories
    ADD CONSTRAINT memories_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.memories
    ADD CONSTRAINT memories_session_id_fkey FOREIGN KEY (scope_id, session_id) REFERENCES public.sessions(scope_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.memories
    ADD CONSTRAINT memories_successor_fkey FOREIGN KEY (scope_id, successor) REFERENCES public.memories(scope_id, id) ON DELETE SET NULL (successor);
ALTER TABLE ONLY public.memories
    ADD CONSTRAINT memories_tenant_id_fkey FOREIGN KEY (tenant_id, scope_id) REFERENCES public.scopes(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.mentions
    ADD CONSTRAINT mentions_entity_id_fkey FOREIGN KEY (scope_id, entity_id) REFERENCES public.entities(scope_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.mentions
    ADD CONSTRAINT mentions_memory_id_fkey FOREIGN KEY (scope_id, memory_id) REFERENCES public.memories(scope_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.mentions
    ADD CONSTRAINT mentions_tenant_id_fkey FOREIGN KEY (tenant_id, scope_id) REFERENCES public.scopes(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_scope_fkey FOREIGN KEY (tenant_id, scope_id) REFERENCES public.scopes(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_session_id_fkey FOREIGN KEY (scope_id, session_id) REFERENCES public.sessions(scope_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.schedules
    ADD CONSTRAINT schedules_tenant_id_fkey FOREIGN KEY (tenant_id, scope_id) REFERENCES public.scopes(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.scope_models
    ADD CONSTRAINT scope_models_tenant_id_fkey FOREIGN KEY (tenant_id, scope_id) REFERENCES public.scopes(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.scopes
    ADD CONSTRAINT scopes_tenant_id_fkey FOREIGN KEY (tenant_id, agent_id) REFERENCES public.agents(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.scopes
    ADD CONSTRAINT scopes_tenant_id_user_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_tenant_id_fkey FOREIGN KEY (tenant_id, scope_id) REFERENCES public.scopes(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.speakers
    ADD CONSTRAINT speakers_tenant_id_fkey FOREIGN KEY (tenant_id, scope_id) REFERENCES public.scopes(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.terms
    ADD CONSTRAINT terms_tenant_id_fkey FOREIGN KEY (tenant_id, scope_id) REFERENCES public.scopes(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.turns
    ADD CONSTRAINT turns_session_id_fkey FOREIGN KEY (scope_id, session_id) REFERENCES public.sessions(scope_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.turns
    ADD CONSTRAINT turns_tenant_id_fkey FOREIGN KEY (tenant_id, scope_id) REFERENCES public.scopes(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.usage
    ADD CONSTRAINT usage_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id) ON DELETE CASCADE;
ALTER TABLE public.agents ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.checkpoints ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.entities ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.erasures ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.evidence ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.feedback ENABLE ROW LEVEL SECURITY;
CREATE POLICY finder ON public.agents TO memory_finder USING (true);
CREATE POLICY finder ON public.api_keys TO memory_finder USING (true) WITH CHECK (true);
CREATE POLICY finder ON public.runs TO memory_finder USING (true) WITH CHECK (true);
CREATE POLICY finder ON public.schedules TO memory_finder USING (true);
CREATE POLICY finder ON public.scope_models TO memory_finder USING (true);
CREATE POLICY finder ON public.scopes TO memory_finder USING (true);
CREATE POLICY finder ON public.sessions TO memory_finder USING (true) WITH CHECK (true);
CREATE POLICY finder ON public.tenants TO memory_finder USING (true);
CREATE POLICY finder ON public.terms TO memory_finder USING (true);
CREATE POLICY finder ON public.turns TO memory_finder USING (true) WITH CHECK (true);
ALTER TABLE public.images ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.links ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.memories ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.mentions ENABLE ROW LEVEL SECURITY;
CREATE POLICY operator ON public.api_keys TO postgres USING (true) WITH CHECK (true);
CREATE POLICY operator ON public.tenants TO postgres USING (true) WITH CHECK (true);
ALTER TABLE public.runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.schedules ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.scope_models ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.scopes ENABLE ROW LEVEL SECURITY;
CREATE POLICY search ON public.memories TO memory_search USING (true);
CREATE POLICY search ON public.turns TO memory_search USING (true);
ALTER TABLE public.sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.speakers ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON public.agents USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.api_keys USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.checkpoints USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.entities USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.erasures USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.evidence USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.feedback USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.images USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.links USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.memories USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.mentions USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.runs USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.schedules USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.scope_models USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.scopes USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.sessions USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.speakers USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.tenants USING ((id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.terms USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.turns USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.usage USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
CREATE POLICY tenant ON public.users USING ((tenant_id = ( SELECT (NULLIF(current_setting('memory.tenant'::text, true), ''::text))::bigint AS "nullif")));
ALTER TABLE public.tenants ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.terms ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.turns ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.users ENABLE ROW LEVEL SECURITY;
GRANT USAGE ON SCHEMA public TO memory_app;
GRANT USAGE ON SCHEMA public TO memory_finder;
GRANT USAGE ON SCHEMA public TO memory_search;
REVOKE ALL ON FUNCTION public.authenticate(key_digest bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION public.authenticate(key_digest bytea) TO memory_app;
REVOKE ALL ON FUNCTION public.big_scopes(least_rows integer, model text, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.big_scopes(least_rows integer, model text, most integer) TO memory_app;
REVOKE ALL ON FUNCTION public.claim_run(wanted uuid, lease interval, shared boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION public.claim_run(wanted uuid, lease interval, shared boolean) TO memory_app;
REVOKE ALL ON FUNCTION public.claim_session(wanted bigint, lease interval, shared boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION public.claim_session(wanted bigint, lease interval, shared boolean) TO memory_app;
REVOKE ALL ON FUNCTION public.claim_turns(batch integer, lease interval) FROM PUBLIC;
GRANT ALL ON FUNCTION public.claim_turns(batch integer, lease interval) TO memory_app;
REVOKE ALL ON FUNCTION public.due_runs(most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.due_runs(most integer) TO memory_app;
REVOKE ALL ON FUNCTION public.due_scopes(at timestamp with time zone, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.due_scopes(at timestamp with time zone, most integer) TO memory_app;
REVOKE ALL ON FUNCTION public.due_sessions(most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.due_sessions(most integer) TO memory_app;
REVOKE ALL ON FUNCTION public.has_live_key() FROM PUBLIC;
GRANT ALL ON FUNCTION public.has_live_key() TO memory_app;
REVOKE ALL ON FUNCTION public.idle_sessions(idle interval, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.idle_sessions(idle interval, most integer) TO memory_app;
REVOKE ALL ON FUNCTION public.keyword_hits(source text, wanted_scope bigint, anchors text[], query public.sparsevec, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.keyword_hits(source text, wanted_scope bigint, anchors text[], query public.sparsevec, most integer) TO memory_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.memories TO memory_app;
GRANT SELECT(id) ON TABLE public.memories TO memory_search;
GRANT SELECT(tenant_id) ON TABLE public.memories TO memory_search;
GRANT SELECT(scope_id) ON TABLE public.memories TO memory_search;
GRANT SELECT(keywords) ON TABLE public.memories TO memory_search;
GRANT SELECT(terms) ON TABLE public.memories TO memory_search;
REVOKE ALL ON FUNCTION public.note_key_use(used_key_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION public.note_key_use(used_key_id bigint) TO memory_app;
REVOKE ALL ON FUNCTION public.pipeline_state() FROM PUBLIC;
GRANT ALL ON FUNCTION public.pipeline_state() TO memory_app;
REVOKE ALL ON FUNCTION public.stale_scopes(current_model text, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.stale_scopes(current_model text, most integer) TO memory_app;
REVOKE ALL ON FUNCTION public.tenant_named(wanted text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.tenant_named(wanted text) TO memory_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agents TO memory_app;
GRANT SELECT(id) ON TABLE public.agents TO memory_finder;
GRANT SELECT(policy) ON TABLE public.agents TO memory_finder;
GRANT USAGE ON SEQUENCE public.agents_id_seq TO memory_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.alembic_version TO memory_app;
GRANT SELECT ON TABLE public.api_keys TO memory_app;
GRANT SELECT ON TABLE public.api_keys TO memory_finder;
GRANT UPDATE(last_used_at) ON TABLE public.api_keys TO memory_finder;
GRANT USAGE ON SEQUENCE public.api_keys_id_seq TO memory_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.checkpoints TO memory_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.entities TO memory_app;
GRANT USAGE ON SEQUENCE public.entities_id_seq TO memory_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.erasures TO memory_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.evidence TO memory_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.feedback TO memory_app;
GRANT USAGE ON SEQUENCE public.feedback_id_seq TO memory_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.images TO memory_app;
GRANT USAGE ON SEQUENCE public.images_id_seq TO memory_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.links TO memory_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.mentions TO memory_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.runs TO memory_app;
GRANT SELECT(id) ON TABLE public.runs TO memory_finder;
GRANT SELECT(tenant_id) ON TABLE public.runs TO memory_finder;
GRANT SELECT(scope_id) ON TABLE public.runs TO memory_finder;
GRANT SELECT(session_id) ON TABLE public.runs TO memory_finder;
GRANT SELECT(name) ON TABLE public.runs TO memory_finder;
GRANT SELECT(period) ON TABLE public.runs TO memory_finder;
GRANT SELECT(state),UPDATE(state) ON TABLE public.runs TO memory_finder;
GRANT SELECT(fence),UPDATE(fence) ON TABLE public.runs TO memory_finder;
GRANT SELECT(lease_until),UPDATE(lease_until) ON TABLE public.runs TO memory_finder;
GRANT SELECT(due_at) ON TABLE public.runs TO memory_finder;
GRANT SELECT(starts),UPDATE(starts) ON TABLE public.runs TO memory_finder;
GRANT UPDATE(started_at) ON TABLE public.runs TO memory_finder;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.schedules TO memory_app;
GRANT SELECT(tenant_id) ON TABLE public.schedules TO memory_finder;
GRANT SELECT(scope_id) ON TABLE public.schedules TO memory_finder;
GRANT SELECT(job) ON TABLE public.schedules TO memory_finder;
GRANT SELECT(due_at) ON TABLE public.schedules TO memory_finder;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.scope_models TO memory_app;
GRANT SELECT ON TABLE public.scope_models TO memory_finder;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.scopes TO memory_app;
GRANT SELECT(id) ON TABLE public.scopes TO memory_finder;
GRANT SELECT(tenant_id) ON TABLE public.scopes TO memory_finder;
GRANT SELECT(agent_id) ON TABLE public.scopes TO memory_finder;
GRANT USAGE ON SEQUENCE public.scopes_id_seq TO memory_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.sessions TO memory_app;
GRANT SELECT(id) ON TABLE public.sessions TO memory_finder;
GRANT SELECT(tenant_id) ON TABLE public.sessions TO memory_finder;
GRANT SELECT(scope_id) ON TABLE public.sessions TO memory_finder;
GRANT SELECT(next_seq) ON TABLE public.sessions TO memory_finder;
GRANT SELECT(extracted_seq) ON TABLE public.sessions TO memory_finder;
GRANT SELECT(fence),UPDATE(fence) ON TABLE public.sessions TO memory_finder;
GRANT SELECT(lease_until),UPDATE(lease_until) ON TABLE public.sessions TO memory_finder;
GRANT SELECT(due_at) ON TABLE public.sessions TO memory_finder;
GRANT SELECT(starts),UPDATE(starts) ON TABLE public.sessions TO memory_finder;
GRANT SELECT(last_activity_at) ON TABLE public.sessions TO memory_finder;
GRANT SELECT(ended_at) ON TABLE public.sessions TO memory_finder;
GRANT SELECT(synthesized_seq) ON TABLE public.sessions TO memory_finder;
GRANT USAGE ON SEQUENCE public.sessions_id_seq TO memory_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.speakers TO memory_app;
GRANT SELECT ON TABLE public.tenants TO memory_app;
GRANT SELECT(id) ON TABLE public.tenants TO memory_finder;
GRANT SELECT(name) ON TABLE public.tenants TO memory_finder;
GRANT USAGE ON SEQUENCE public.tenants_id_seq TO memory_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.terms TO memory_app;
GRANT SELECT(scope_id) ON TABLE public.terms TO memory_finder;
GRANT SELECT(term) ON TABLE public.terms TO memory_finder;
GRANT SELECT(row_count) ON TABLE public.terms TO memory_finder;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.turns TO memory_app;
GRANT SELECT(id) ON TABLE public.turns TO memory_finder;
GRANT SELECT(id) ON TABLE public.turns TO memory_search;
GRANT SELECT(tenant_id) ON TABLE public.turns TO memory_finder;
GRANT SELECT(tenant_id) ON TABLE public.turns TO memory_search;
GRANT SELECT(scope_id) ON TABLE public.turns TO memory_finder;
GRANT SELECT(scope_id) ON TABLE public.turns TO memory_search;
GRANT SELECT(session_id) ON TABLE public.turns TO memory_finder;
GRANT SELECT(accepted_at) ON TABLE public.turns TO memory_finder;
GRANT SELECT(lease_until),UPDATE(lease_until) ON TABLE public.turns TO memory_finder;
GRANT SELECT(starts),UPDATE(starts) ON TABLE public.turns TO memory_finder;
GRANT SELECT(indexed_at) ON TABLE public.turns TO memory_finder;
GRANT SELECT(extracted_at) ON TABLE public.turns TO memory_finder;
GRANT SELECT(failed_at) ON TABLE public.turns TO memory_finder;
GRANT SELECT(keywords) ON TABLE public.turns TO memory_search;
GRANT SELECT(terms) ON TABLE public.turns TO memory_search;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.usage TO memory_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.users TO memory_app;
GRANT USAGE ON SEQUENCE public.users_id_seq TO memory_app;
