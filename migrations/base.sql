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
