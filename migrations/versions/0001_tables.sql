-- The tables of the first release, in an order that satisfies the foreign keys. Later ones: in revisions of their own.

CREATE TABLE tenants (
	id BIGINT GENERATED ALWAYS AS IDENTITY,
	name TEXT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	CONSTRAINT tenants_pkey PRIMARY KEY (id),
	CONSTRAINT tenants_name_key UNIQUE (name)
);

CREATE TABLE agents (
	id BIGINT GENERATED ALWAYS AS IDENTITY,
	tenant_id BIGINT NOT NULL,
	name TEXT NOT NULL,
	persona JSONB,
	policy JSONB DEFAULT '{}'::jsonb NOT NULL,
	default_memories JSONB DEFAULT '[]'::jsonb NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	CONSTRAINT agents_pkey PRIMARY KEY (id),
	CONSTRAINT agents_tenant_id_key UNIQUE (tenant_id, name),
	CONSTRAINT agents_tenant_id_id_key UNIQUE (tenant_id, id),
	CONSTRAINT agents_tenant_id_fkey FOREIGN KEY(tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);

CREATE TABLE api_keys (
	id BIGINT GENERATED ALWAYS AS IDENTITY,
	tenant_id BIGINT NOT NULL,
	prefix TEXT NOT NULL,
	digest BYTEA NOT NULL,
	rights TEXT[] NOT NULL,
	label TEXT,
	created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	expires_at TIMESTAMP WITH TIME ZONE,
	revoked_at TIMESTAMP WITH TIME ZONE,
	last_used_at TIMESTAMP WITH TIME ZONE,
	CONSTRAINT api_keys_pkey PRIMARY KEY (id),
	CONSTRAINT api_keys_tenant_id_fkey FOREIGN KEY(tenant_id) REFERENCES tenants (id) ON DELETE CASCADE,
	CONSTRAINT api_keys_digest_key UNIQUE (digest)
);

CREATE INDEX api_keys_tenant_id_idx ON api_keys (tenant_id);

CREATE TABLE erasures (
	id UUID DEFAULT uuidv7() NOT NULL,
	tenant_id BIGINT NOT NULL,
	subject_digest BYTEA NOT NULL,
	state TEXT NOT NULL,
	counts JSONB DEFAULT '{}'::jsonb NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	finished_at TIMESTAMP WITH TIME ZONE,
	CONSTRAINT erasures_pkey PRIMARY KEY (id),
	CONSTRAINT erasures_state_check CHECK (state IN ('queued', 'running', 'done', 'failed')),
	CONSTRAINT erasures_tenant_id_fkey FOREIGN KEY(tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);

CREATE INDEX erasures_tenant_id_idx ON erasures (tenant_id);

CREATE TABLE usage (
	tenant_id BIGINT NOT NULL,
	day DATE NOT NULL,
	model TEXT NOT NULL,
	calls BIGINT DEFAULT 0 NOT NULL,
	tokens_in BIGINT DEFAULT 0 NOT NULL,
	tokens_out BIGINT DEFAULT 0 NOT NULL,
	cost_usd NUMERIC(14, 6) DEFAULT 0 NOT NULL,
	CONSTRAINT usage_pkey PRIMARY KEY (tenant_id, day, model),
	CONSTRAINT usage_tenant_id_fkey FOREIGN KEY(tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);

CREATE TABLE users (
	id BIGINT GENERATED ALWAYS AS IDENTITY,
	tenant_id BIGINT NOT NULL,
	name TEXT NOT NULL,
	time_zone TEXT DEFAULT 'UTC' NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	CONSTRAINT users_pkey PRIMARY KEY (id),
	CONSTRAINT users_tenant_id_key UNIQUE (tenant_id, name),
	CONSTRAINT users_tenant_id_id_key UNIQUE (tenant_id, id),
	CONSTRAINT users_tenant_id_fkey FOREIGN KEY(tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);

CREATE TABLE scopes (
	id BIGINT GENERATED ALWAYS AS IDENTITY,
	tenant_id BIGINT NOT NULL,
	agent_id BIGINT NOT NULL,
	user_id BIGINT,
	created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	seeded_at TIMESTAMP WITH TIME ZONE,
	CONSTRAINT scopes_pkey PRIMARY KEY (id),
	CONSTRAINT scopes_tenant_id_key UNIQUE (tenant_id, id),
	CONSTRAINT scopes_agent_user_key UNIQUE NULLS NOT DISTINCT (tenant_id, agent_id, user_id),
	CONSTRAINT scopes_tenant_id_fkey FOREIGN KEY(tenant_id, agent_id) REFERENCES agents (tenant_id, id) ON DELETE CASCADE,
	CONSTRAINT scopes_tenant_id_user_fkey FOREIGN KEY(tenant_id, user_id) REFERENCES users (tenant_id, id) ON DELETE CASCADE
);

CREATE INDEX scopes_tenant_user_idx ON scopes (tenant_id, user_id);

CREATE TABLE checkpoints (
	id UUID DEFAULT uuidv7() NOT NULL,
	tenant_id BIGINT NOT NULL,
	scope_id BIGINT NOT NULL,
	session_name TEXT,
	content JSONB NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	CONSTRAINT checkpoints_pkey PRIMARY KEY (scope_id, id),
	CONSTRAINT checkpoints_tenant_id_fkey FOREIGN KEY(tenant_id, scope_id) REFERENCES scopes (tenant_id, id) ON DELETE CASCADE
);

CREATE TABLE entities (
	id BIGINT GENERATED ALWAYS AS IDENTITY,
	tenant_id BIGINT NOT NULL,
	scope_id BIGINT NOT NULL,
	key TEXT NOT NULL,
	type TEXT NOT NULL,
	label TEXT NOT NULL,
	aliases TEXT[] DEFAULT '{}'::text[] NOT NULL,
	summary TEXT,
	first_seen TIMESTAMP WITH TIME ZONE NOT NULL,
	last_seen TIMESTAMP WITH TIME ZONE NOT NULL,
	mention_count INTEGER DEFAULT 0 NOT NULL,
	merged_into BIGINT,
	CONSTRAINT entities_pkey PRIMARY KEY (scope_id, id),
	CONSTRAINT entities_scope_id_key UNIQUE (scope_id, key),
	CONSTRAINT entities_tenant_id_fkey FOREIGN KEY(tenant_id, scope_id) REFERENCES scopes (tenant_id, id) ON DELETE CASCADE,
	CONSTRAINT entities_merged_into_fkey FOREIGN KEY(scope_id, merged_into) REFERENCES entities (scope_id, id),
	CONSTRAINT entities_type_check CHECK (type IN ('person', 'place', 'org', 'project', 'thing', 'concept')),
	CONSTRAINT entities_merged_into_check CHECK (merged_into <> id)
);

CREATE INDEX entities_merged_into_idx ON entities (scope_id, merged_into) WHERE merged_into IS NOT NULL;

CREATE TABLE schedules (
	tenant_id BIGINT NOT NULL,
	scope_id BIGINT NOT NULL,
	job TEXT NOT NULL,
	due_at TIMESTAMP WITH TIME ZONE,
	missed INTEGER DEFAULT 0 NOT NULL,
	CONSTRAINT schedules_pkey PRIMARY KEY (scope_id, job),
	CONSTRAINT schedules_tenant_id_fkey FOREIGN KEY(tenant_id, scope_id) REFERENCES scopes (tenant_id, id) ON DELETE CASCADE
);

CREATE INDEX schedules_due_idx ON schedules (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE scope_models (
	tenant_id BIGINT NOT NULL,
	scope_id BIGINT NOT NULL,
	model TEXT NOT NULL,
	is_indexed BOOLEAN DEFAULT false NOT NULL,
	CONSTRAINT scope_models_pkey PRIMARY KEY (scope_id, model),
	CONSTRAINT scope_models_tenant_id_fkey FOREIGN KEY(tenant_id, scope_id) REFERENCES scopes (tenant_id, id) ON DELETE CASCADE
);

CREATE TABLE sessions (
	id BIGINT GENERATED ALWAYS AS IDENTITY,
	tenant_id BIGINT NOT NULL,
	scope_id BIGINT NOT NULL,
	name TEXT NOT NULL,
	next_seq INTEGER DEFAULT 1 NOT NULL,
	extracted_seq INTEGER DEFAULT 0 NOT NULL,
	fence BIGINT DEFAULT 0 NOT NULL,
	lease_until TIMESTAMP WITH TIME ZONE,
	due_at TIMESTAMP WITH TIME ZONE,
	pending_since TIMESTAMP WITH TIME ZONE,
	starts INTEGER DEFAULT 0 NOT NULL,
	failures INTEGER DEFAULT 0 NOT NULL,
	refusals INTEGER DEFAULT 0 NOT NULL,
	failing_since TIMESTAMP WITH TIME ZONE,
	parked_reason TEXT,
	replay_seqs INTEGER[] DEFAULT '{}'::integer[] NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	last_activity_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	ended_at TIMESTAMP WITH TIME ZONE,
	summary TEXT,
	summary_id UUID,
	synthesized_seq INTEGER DEFAULT 0 NOT NULL,
	CONSTRAINT sessions_pkey PRIMARY KEY (scope_id, id),
	CONSTRAINT sessions_scope_id_key UNIQUE (scope_id, name),
	CONSTRAINT sessions_tenant_id_fkey FOREIGN KEY(tenant_id, scope_id) REFERENCES scopes (tenant_id, id) ON DELETE CASCADE,
	CONSTRAINT sessions_next_seq_check CHECK (next_seq >= 1),
	CONSTRAINT sessions_extracted_seq_check CHECK (extracted_seq >= 0 AND extracted_seq < next_seq)
)
 WITH (fillfactor = 60);

CREATE INDEX sessions_due_idx ON sessions (due_at) WHERE due_at IS NOT NULL;

CREATE INDEX sessions_id_idx ON sessions (id);

CREATE TABLE speakers (
	tenant_id BIGINT NOT NULL,
	scope_id BIGINT NOT NULL,
	name TEXT NOT NULL,
	CONSTRAINT speakers_pkey PRIMARY KEY (scope_id, name),
	CONSTRAINT speakers_tenant_id_fkey FOREIGN KEY(tenant_id, scope_id) REFERENCES scopes (tenant_id, id) ON DELETE CASCADE
);

CREATE TABLE terms (
	tenant_id BIGINT NOT NULL,
	scope_id BIGINT NOT NULL,
	term INTEGER NOT NULL,
	row_count INTEGER NOT NULL,
	CONSTRAINT terms_pkey PRIMARY KEY (scope_id, term),
	CONSTRAINT terms_tenant_id_fkey FOREIGN KEY(tenant_id, scope_id) REFERENCES scopes (tenant_id, id) ON DELETE CASCADE
)
 WITH (fillfactor = 70);

CREATE TABLE runs (
	id UUID DEFAULT uuidv7() NOT NULL,
	tenant_id BIGINT NOT NULL,
	scope_id BIGINT,
	session_id BIGINT,
	name TEXT NOT NULL,
	period TEXT,
	state TEXT NOT NULL,
	options JSONB DEFAULT '{}'::jsonb NOT NULL,
	from_seq INTEGER,
	to_seq INTEGER,
	answer JSONB,
	report JSONB,
	reason TEXT,
	model TEXT,
	prompt_version TEXT,
	attempts INTEGER DEFAULT 0 NOT NULL,
	fence BIGINT DEFAULT 0 NOT NULL,
	lease_until TIMESTAMP WITH TIME ZONE,
	due_at TIMESTAMP WITH TIME ZONE,
	starts INTEGER DEFAULT 0 NOT NULL,
	failing_since TIMESTAMP WITH TIME ZONE,
	created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	started_at TIMESTAMP WITH TIME ZONE,
	finished_at TIMESTAMP WITH TIME ZONE,
	CONSTRAINT runs_pkey PRIMARY KEY (id),
	CONSTRAINT runs_scope_fkey FOREIGN KEY(tenant_id, scope_id) REFERENCES scopes (tenant_id, id) ON DELETE CASCADE,
	CONSTRAINT runs_session_id_fkey FOREIGN KEY(scope_id, session_id) REFERENCES sessions (scope_id, id) ON DELETE CASCADE,
	CONSTRAINT runs_state_check CHECK (state IN ('queued', 'running', 'done', 'failed')),
	CONSTRAINT runs_reason_check CHECK (state <> 'failed' OR reason IS NOT NULL),
	CONSTRAINT runs_tenant_id_fkey FOREIGN KEY(tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);

CREATE INDEX runs_due_idx ON runs (due_at) WHERE due_at IS NOT NULL;

CREATE UNIQUE INDEX runs_extract_key ON runs (session_id, from_seq) WHERE name = 'extract' AND state = 'running';

CREATE UNIQUE INDEX runs_period_key ON runs (tenant_id, name, scope_id, period) NULLS NOT DISTINCT WHERE period IS NOT NULL;

CREATE INDEX runs_scope_idx ON runs (scope_id, created_at);

CREATE INDEX runs_session_idx ON runs (scope_id, session_id);

CREATE INDEX runs_tenant_idx ON runs USING brin (tenant_id);

CREATE TABLE turns (
	id UUID DEFAULT uuidv7() NOT NULL,
	tenant_id BIGINT NOT NULL,
	scope_id BIGINT NOT NULL,
	session_id BIGINT NOT NULL,
	seq INTEGER NOT NULL,
	role TEXT NOT NULL,
	speaker TEXT NOT NULL,
	text TEXT NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	accepted_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	emotional_tone TEXT,
	tools_used TEXT[] DEFAULT '{}'::text[] NOT NULL,
	metadata JSONB DEFAULT '{}'::jsonb NOT NULL,
	idempotency_key TEXT,
	request_hash BYTEA,
	lease_until TIMESTAMP WITH TIME ZONE,
	starts SMALLINT DEFAULT 0 NOT NULL,
	failures SMALLINT DEFAULT 0 NOT NULL,
	indexed_at TIMESTAMP WITH TIME ZONE,
	extracted_at TIMESTAMP WITH TIME ZONE,
	reason TEXT,
	failed_at TIMESTAMP WITH TIME ZONE,
	failed_reason TEXT,
	embedding HALFVEC,
	embedding_model TEXT,
	keywords SPARSEVEC,
	terms INTEGER[],
	traits SMALLINT DEFAULT 0 NOT NULL,
	CONSTRAINT turns_pkey PRIMARY KEY (scope_id, id),
	CONSTRAINT turns_scope_id_key UNIQUE (scope_id, session_id, seq),
	CONSTRAINT turns_tenant_id_fkey FOREIGN KEY(tenant_id, scope_id) REFERENCES scopes (tenant_id, id) ON DELETE CASCADE,
	CONSTRAINT turns_session_id_fkey FOREIGN KEY(scope_id, session_id) REFERENCES sessions (scope_id, id) ON DELETE CASCADE,
	CONSTRAINT turns_role_check CHECK (role IN ('user', 'assistant', 'tool', 'system')),
	CONSTRAINT turns_failed_check CHECK ((failed_at IS NULL) = (failed_reason IS NULL)),
	CONSTRAINT turns_idempotency_check CHECK ((idempotency_key IS NULL) = (request_hash IS NULL)),
	CONSTRAINT turns_embedding_check CHECK ((embedding IS NULL) = (embedding_model IS NULL))
);

CREATE INDEX turns_failed_idx ON turns (tenant_id, id) WHERE failed_at IS NOT NULL;

CREATE INDEX turns_fresh_idx ON turns (scope_id, id) WHERE indexed_at IS NULL AND failed_at IS NULL;

CREATE INDEX turns_id_idx ON turns (id);

CREATE UNIQUE INDEX turns_idempotency_key ON turns (tenant_id, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE INDEX turns_unindexed_idx ON turns (id) WHERE indexed_at IS NULL AND failed_at IS NULL;

CREATE TABLE images (
	id BIGINT GENERATED ALWAYS AS IDENTITY,
	tenant_id BIGINT NOT NULL,
	scope_id BIGINT NOT NULL,
	run_id UUID NOT NULL,
	source TEXT NOT NULL,
	change TEXT NOT NULL,
	row_key JSONB NOT NULL,
	before JSONB,
	after JSONB,
	CONSTRAINT images_pkey PRIMARY KEY (scope_id, id),
	CONSTRAINT images_tenant_id_fkey FOREIGN KEY(tenant_id, scope_id) REFERENCES scopes (tenant_id, id) ON DELETE CASCADE,
	CONSTRAINT images_run_id_fkey FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE,
	CONSTRAINT images_change_check CHECK (change IN ('insert', 'update', 'delete'))
);

CREATE INDEX images_run_idx ON images (run_id, id);

CREATE TABLE memories (
	id UUID DEFAULT uuidv7() NOT NULL,
	tenant_id BIGINT NOT NULL,
	scope_id BIGINT NOT NULL,
	session_id BIGINT,
	run_id UUID,
	kind TEXT NOT NULL,
	subtype TEXT,
	text TEXT NOT NULL,
	canonical_key TEXT NOT NULL,
	subject TEXT,
	relation TEXT,
	object TEXT,
	subject_key TEXT,
	object_key TEXT,
	single_valued BOOLEAN DEFAULT false NOT NULL,
	importance SMALLINT NOT NULL,
	confidence REAL NOT NULL,
	pinned BOOLEAN DEFAULT false NOT NULL,
	origin TEXT NOT NULL,
	sources TEXT[] DEFAULT '{}'::text[] NOT NULL,
	emotional_state JSONB,
	relational_context JSONB,
	tags TEXT[] DEFAULT '{}'::text[] NOT NULL,
	synthesis_type TEXT,
	valid_from TIMESTAMP WITH TIME ZONE NOT NULL,
	valid_until TIMESTAMP WITH TIME ZONE,
	created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	stored_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	last_seen TIMESTAMP WITH TIME ZONE NOT NULL,
	confirmed_at TIMESTAMP WITH TIME ZONE NOT NULL,
	last_recalled TIMESTAMP WITH TIME ZONE,
	repeat_count INTEGER DEFAULT 1 NOT NULL,
	recall_count INTEGER DEFAULT 0 NOT NULL,
	feedback_score REAL DEFAULT 0 NOT NULL,
	successor UUID,
	retired_at TIMESTAMP WITH TIME ZONE,
	retired_reason TEXT,
	embedding HALFVEC,
	embedding_model TEXT,
	keywords SPARSEVEC,
	terms INTEGER[],
	traits SMALLINT DEFAULT 0 NOT NULL,
	CONSTRAINT memories_pkey PRIMARY KEY (scope_id, id),
	CONSTRAINT memories_tenant_id_fkey FOREIGN KEY(tenant_id, scope_id) REFERENCES scopes (tenant_id, id) ON DELETE CASCADE,
	CONSTRAINT memories_session_id_fkey FOREIGN KEY(scope_id, session_id) REFERENCES sessions (scope_id, id) ON DELETE CASCADE,
	CONSTRAINT memories_run_id_fkey FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE SET NULL,
	CONSTRAINT memories_successor_fkey FOREIGN KEY(scope_id, successor) REFERENCES memories (scope_id, id) ON DELETE SET NULL (successor),
	CONSTRAINT memories_validity_check CHECK (valid_until >= valid_from),
	CONSTRAINT memories_retired_check CHECK ((retired_at IS NULL) = (retired_reason IS NULL)),
	CONSTRAINT memories_retired_reason_check CHECK (retired_reason IN ('merged', 'superseded', 'evicted', 'expired', 'invalidated')),
	CONSTRAINT memories_importance_check CHECK (importance BETWEEN 1 AND 10),
	CONSTRAINT memories_confidence_check CHECK (confidence BETWEEN 0 AND 1),
	CONSTRAINT memories_feedback_score_check CHECK (feedback_score BETWEEN -1 AND 1),
	CONSTRAINT memories_origin_check CHECK (origin IN ('declared', 'extracted', 'synthesized', 'imported')),
	CONSTRAINT memories_embedding_check CHECK ((embedding IS NULL) = (embedding_model IS NULL)),
	CONSTRAINT memories_single_valued_check CHECK (NOT single_valued OR (subject_key IS NOT NULL AND relation IS NOT NULL))
);

CREATE INDEX memories_canonical_idx ON memories (scope_id, canonical_key);

CREATE UNIQUE INDEX memories_current_key ON memories (scope_id, session_id, kind, canonical_key) NULLS NOT DISTINCT WHERE valid_until IS NULL AND retired_at IS NULL;

CREATE INDEX memories_id_idx ON memories (id);

CREATE INDEX memories_kind_idx ON memories (scope_id, kind, pinned DESC, importance DESC) WHERE retired_at IS NULL;

CREATE INDEX memories_prominent_idx ON memories (scope_id, importance DESC, id DESC) WHERE (pinned OR importance >= 9) AND retired_at IS NULL;

CREATE INDEX memories_run_idx ON memories (run_id) WHERE run_id IS NOT NULL;

CREATE INDEX memories_session_idx ON memories (scope_id, session_id) WHERE session_id IS NOT NULL;

CREATE UNIQUE INDEX memories_single_valued_key ON memories (scope_id, session_id, kind, subject_key, relation) NULLS NOT DISTINCT WHERE single_valued AND valid_until IS NULL AND retired_at IS NULL;

CREATE INDEX memories_subject_idx ON memories (scope_id, subject_key, relation, valid_from) WHERE subject_key IS NOT NULL;

CREATE INDEX memories_successor_idx ON memories (scope_id, successor) WHERE successor IS NOT NULL;

CREATE TABLE evidence (
	tenant_id BIGINT NOT NULL,
	scope_id BIGINT NOT NULL,
	memory_id UUID NOT NULL,
	turn_scope_id BIGINT NOT NULL,
	turn_id UUID NOT NULL,
	CONSTRAINT evidence_pkey PRIMARY KEY (scope_id, memory_id, turn_scope_id, turn_id),
	CONSTRAINT evidence_tenant_id_fkey FOREIGN KEY(tenant_id, scope_id) REFERENCES scopes (tenant_id, id) ON DELETE CASCADE,
	CONSTRAINT evidence_memory_id_fkey FOREIGN KEY(scope_id, memory_id) REFERENCES memories (scope_id, id) ON DELETE CASCADE,
	CONSTRAINT evidence_turn_id_fkey FOREIGN KEY(turn_scope_id, turn_id) REFERENCES turns (scope_id, id) ON DELETE CASCADE
);

CREATE INDEX evidence_turn_idx ON evidence (turn_scope_id, turn_id);

CREATE TABLE feedback (
	id BIGINT GENERATED ALWAYS AS IDENTITY,
	tenant_id BIGINT NOT NULL,
	scope_id BIGINT NOT NULL,
	turn_id UUID,
	memory_id UUID,
	label TEXT NOT NULL,
	note TEXT,
	created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	CONSTRAINT feedback_pkey PRIMARY KEY (scope_id, id),
	CONSTRAINT feedback_tenant_id_fkey FOREIGN KEY(tenant_id, scope_id) REFERENCES scopes (tenant_id, id) ON DELETE CASCADE,
	CONSTRAINT feedback_memory_id_fkey FOREIGN KEY(scope_id, memory_id) REFERENCES memories (scope_id, id) ON DELETE CASCADE,
	CONSTRAINT feedback_turn_id_fkey FOREIGN KEY(scope_id, turn_id) REFERENCES turns (scope_id, id) ON DELETE CASCADE,
	CONSTRAINT feedback_label_check CHECK (label IN ('up', 'down', 'retry')),
	CONSTRAINT feedback_target_check CHECK ((turn_id IS NULL) <> (memory_id IS NULL))
);

CREATE INDEX feedback_memory_idx ON feedback (scope_id, memory_id);

CREATE INDEX feedback_turn_idx ON feedback (scope_id, turn_id);

CREATE TABLE links (
	tenant_id BIGINT NOT NULL,
	scope_id BIGINT NOT NULL,
	source_id UUID NOT NULL,
	target_id UUID NOT NULL,
	type TEXT NOT NULL,
	weight REAL NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	CONSTRAINT links_pkey PRIMARY KEY (scope_id, source_id, target_id, type),
	CONSTRAINT links_tenant_id_fkey FOREIGN KEY(tenant_id, scope_id) REFERENCES scopes (tenant_id, id) ON DELETE CASCADE,
	CONSTRAINT links_source_id_fkey FOREIGN KEY(scope_id, source_id) REFERENCES memories (scope_id, id) ON DELETE CASCADE,
	CONSTRAINT links_target_id_fkey FOREIGN KEY(scope_id, target_id) REFERENCES memories (scope_id, id) ON DELETE CASCADE,
	CONSTRAINT links_ends_check CHECK (source_id <> target_id)
);

CREATE INDEX links_target_idx ON links (scope_id, target_id);

CREATE TABLE mentions (
	tenant_id BIGINT NOT NULL,
	scope_id BIGINT NOT NULL,
	memory_id UUID NOT NULL,
	entity_id BIGINT NOT NULL,
	CONSTRAINT mentions_pkey PRIMARY KEY (scope_id, memory_id, entity_id),
	CONSTRAINT mentions_tenant_id_fkey FOREIGN KEY(tenant_id, scope_id) REFERENCES scopes (tenant_id, id) ON DELETE CASCADE,
	CONSTRAINT mentions_memory_id_fkey FOREIGN KEY(scope_id, memory_id) REFERENCES memories (scope_id, id) ON DELETE CASCADE,
	CONSTRAINT mentions_entity_id_fkey FOREIGN KEY(scope_id, entity_id) REFERENCES entities (scope_id, id) ON DELETE CASCADE
);

CREATE INDEX mentions_entity_idx ON mentions (scope_id, entity_id, memory_id);
