-- What the revisions stand on: uuidv7(), which PostgreSQL has since 18, and new_id(). Applied before them by every
-- `memory migrate`, once for each shard.

DO $$
DECLARE
    is_built_in CONSTANT boolean := current_setting('server_version_num')::integer >= 180000;
    entry record;
BEGIN
    IF NOT is_built_in THEN
        -- 48 bits of milliseconds, version 7, 12 bits of the fraction of the millisecond, variant and 62 random bits: the
        -- layout of PostgreSQL 18. So ids of one server order by time, to the microsecond.
        CREATE OR REPLACE FUNCTION public.uuidv7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $body$
            SELECT encode(
                overlay(
                    uuid_send(gen_random_uuid())
                    PLACING substring(int8send(micros / 1000) FROM 3)
                        || substring(int4send((28672 + micros % 1000 * 4096 / 1000)::integer) FROM 3)
                    FROM 1 FOR 8),
                'hex')::uuid
            FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS micros) now
        $body$;
    ELSIF to_regprocedure('public.uuidv7()') IS NOT NULL THEN
        -- Restored from a dump of an older server: let the columns use the function of this one.
        FOR entry IN
            SELECT d.adrelid::regclass AS relation, a.attname AS name FROM pg_attrdef d
            JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
            JOIN pg_depend uses ON uses.classid = 'pg_attrdef'::regclass AND uses.objid = d.oid
                AND uses.refclassid = 'pg_proc'::regclass AND uses.refobjid = 'public.uuidv7()'::regprocedure
        LOOP
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT pg_catalog.uuidv7()', entry.relation, entry.name);
        END LOOP;
        DROP FUNCTION public.uuidv7();
    END IF;
END
$$;

-- Ids of rows: uuidv7() with the number of the shard in the place of the fraction of the millisecond, which moves on to the
-- place of random bits. So ids of one shard order by time as before, and an id tells where to look for its row.
DO $$
BEGIN
    EXECUTE format($body$
        CREATE OR REPLACE FUNCTION %I.new_id() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $id$
            SELECT (substr(made.id, 1, 15) || %L || substr(made.id, 16, 3) || '-' || substr(made.id, 25, 12))::uuid
            FROM (SELECT uuidv7()::text AS id) made
        $id$
    $body$, current_schema(), lpad(to_hex(coalesce(nullif(current_setting('memory.shard', true), ''), '0')::integer), 3, '0') || '-8');
END
$$;

-- Numbers of transactions, by which memory_app/events tells the order of changes, all in schema public: the shards of a
-- database have one order.
--   xact_number()    that of this transaction
--   xact_horizon()   all with a smaller number are over, and what they changed is seen
--   xact_epoch()     another text whenever numbers may mean something else than before: in another cluster, in a restored
--                    database, after a standby took over
--   xact_offset()    what is added to the numbers of the cluster. A dump that is restored into a younger cluster holds
--                    larger numbers than that has come to.
--   xact_renumber()  raises the offset above the numbers of all rows
DO $$
BEGIN
    IF to_regprocedure('public.xact_offset()') IS NULL THEN
        CREATE FUNCTION public.xact_offset() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT 0::bigint';
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION public.xact_number() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT pg_catalog.pg_current_xact_id()::text::bigint + public.xact_offset()
$$;

CREATE OR REPLACE FUNCTION public.xact_horizon() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::text::bigint + public.xact_offset()
$$;

CREATE OR REPLACE FUNCTION public.xact_epoch() RETURNS text LANGUAGE sql STABLE AS $$
    SELECT left(md5(concat_ws(':', s.system_identifier,
        -- The timeline: the first part of the name of a WAL file.
        left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),
        (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()),
        to_regclass('public.turns')::oid)), 8)
    FROM pg_control_system() s
$$;

CREATE OR REPLACE FUNCTION public.xact_renumber() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    place regnamespace;
    tenant bigint;
    newest bigint;
    largest bigint := 0;
    current bigint;
BEGIN
    -- Tenant by tenant, as the indexes and row-level security have it. A shard that has no numbers yet is left out.
    FOR place IN
        SELECT c.relnamespace::regnamespace FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'settled_xact' AND NOT a.attisdropped
        WHERE c.relname = 'turns' AND (c.relnamespace = 'public'::regnamespace OR c.relnamespace::regnamespace::text ~ '^shard_\d{4}$')
    LOOP FOR tenant IN EXECUTE format('SELECT id FROM %s.tenants', place) LOOP
        PERFORM set_config('memory.tenant', tenant::text, true);
        EXECUTE format('SELECT greatest(
            (SELECT max(accepted_xact) FROM %1$s.turns WHERE tenant_id = $1),
            (SELECT max(indexed_xact) FROM %1$s.turns WHERE tenant_id = $1),
            (SELECT max(settled_xact) FROM %1$s.turns WHERE tenant_id = $1),
            (SELECT max(stored_xact) FROM %1$s.memories WHERE tenant_id = $1),
            (SELECT max(altered_xact) FROM %1$s.memories WHERE tenant_id = $1),
            (SELECT max(created_xact) FROM %1$s.runs WHERE tenant_id = $1 AND name <> ''extract''),
            (SELECT max(finished_xact) FROM %1$s.runs WHERE tenant_id = $1 AND name <> ''extract''),
            (SELECT max(created_xact) FROM %1$s.erasures WHERE tenant_id = $1))', place) INTO newest USING tenant;
        largest := greatest(largest, newest);
    END LOOP; END LOOP;
    PERFORM set_config('memory.tenant', '', true);
    current := public.xact_number();
    IF largest >= current THEN
        EXECUTE format('CREATE OR REPLACE FUNCTION public.xact_offset() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE '
                       'AS ''SELECT %s::bigint''', public.xact_offset() + largest - current + 1);
    END IF;
END
$$;
