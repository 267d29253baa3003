"""One view over the shards for tests that look at rows: whatever shard a user is in, ``SELECT … FROM turns`` shows it.

With ``TEST_SHARDS=1`` the suite runs with three shards. The settings name a second server, which has shard 1 and is in
truth the same database: what is done there goes over connections of its own, in transactions of two phases. Tests that
read and change rows as the owner then go through these views, which stand before the tables in the owner's search path.
New users go to any shard where processes do the work, and to shard 1 in tests that call the steps of the work
themselves, which are led there.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from sqlalchemy import Connection, Engine, Table, create_engine, text
from sqlalchemy.pool import NullPool

from memory_app.db.shards import schema_of
from memory_app.db.tables import metadata
from memory_app.runtime import Runtime
from memory_app.settings import Database, Server, Settings
from memory_app.tenancy import schema
from memory_app.tenancy.shards import Place

IS_SHARDED = bool(os.environ.get("TEST_SHARDS"))

EAST = "east"
SHARDS = (0, 1, 2)
SCHEMAS = tuple(map(schema_of, SHARDS))
DIRECTORY = (
    "tenants",
    "api_keys",
    "agents",
    "users",
    "shards",
    "usage",
    "erasures",
    "erased_turns",
    "refused_messages",
    "audit",
)
"""Tables whose rows in the home shard are the ones that count."""

TWO_PHASES = {"max_prepared_transactions": "50", "wal_level": "logical"}
"""Settings of a server that can take part in transactions over several, and from which shards can move."""

PATH = "everything, public"

# A row is changed where it is; a new one comes to where its scope is.
_FUNCTION = """
CREATE FUNCTION everything.change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    place text;
    changed bigint;
BEGIN
    FOREACH place IN ARRAY CAST(ARRAY[{schemas}] AS text[]) LOOP
        IF TG_OP = 'DELETE' THEN
            EXECUTE format('DELETE FROM %I.%I t WHERE %s', place, TG_TABLE_NAME, TG_ARGV[0]) USING OLD;
        ELSIF TG_OP = 'UPDATE' THEN
            EXECUTE format('UPDATE %I.%I t SET %s WHERE %s', place, TG_TABLE_NAME, TG_ARGV[1], TG_ARGV[0])
            USING OLD, NEW;
        ELSE
            EXECUTE format('INSERT INTO %I.%I (%s) OVERRIDING SYSTEM VALUE SELECT %s WHERE %s', place, TG_TABLE_NAME,
                           TG_ARGV[2], TG_ARGV[3], format(TG_ARGV[4], place)) USING OLD, NEW;
        END IF;
        GET DIAGNOSTICS changed = ROW_COUNT;
        EXIT WHEN changed > 0;
    END LOOP;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END
$$
"""


def allow_two_phases(owner_url: str) -> None:
    """Let the server prepare transactions, from its next start on."""
    engine = create_engine(owner_url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("ALTER SYSTEM SET max_prepared_transactions = 50"))
    engine.dispose()


def with_servers(database: Database) -> Database:
    """The settings of a database, which name it a second time as another server where the suite runs over shards."""
    if not IS_SHARDED:
        return database
    server = Server(url=database.url, owner_url=database.owner_url)
    return database.model_copy(update={"servers": {EAST: server}})


def variables(settings: Settings) -> dict[str, str]:
    """The same as variables of a child process."""
    return {
        f"MEMORY_DATABASE__SERVERS__{name.upper()}__{part}": url.get_secret_value()
        for name, server in settings.database.servers.items()
        for part, url in (("URL", server.url), ("OWNER_URL", server.owner_url))
        if url is not None
    }


def add(settings: Settings) -> None:
    """Make the shards."""
    both = settings.model_copy(update={"database": with_servers(settings.database)})
    schema.add_shards(both, 1, server=EAST)
    schema.add_shards(both, len(SHARDS) - 2)


def copies(connection: Connection) -> Callable[[], tuple[Place, ...]]:
    """What a change of an agent in the home shard changes besides, all over the connection of a test."""
    return lambda: tuple(Place(connection, schema) for schema in SCHEMAS[1:] if IS_SHARDED)


def install(owner_url: str) -> None:
    """Make the views in a database with the shards."""
    engine = create_engine(owner_url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("CREATE SCHEMA everything"))
        connection.execute(text(_FUNCTION.format(schemas=", ".join(f"'{schema}'" for schema in SCHEMAS))))
        for name, table in metadata.tables.items():
            if name not in DIRECTORY:
                _make_view(connection, table)
    engine.dispose()


def owner_engine(owner_url: str) -> Engine:
    """The owner's engine of a test; with several shards it looks at all of them at once."""
    return engine_over_all(owner_url) if IS_SHARDED else create_engine(owner_url, poolclass=NullPool)


def engine_over_all(owner_url: str) -> Engine:
    """The owner's engine, which looks at all shards at once."""
    options = {"options": f"-c search_path={PATH.replace(' ', '')}"}
    return create_engine(owner_url, poolclass=NullPool, connect_args=options)


def tables(name: str) -> tuple[str, ...]:
    """The tables behind the view ``name``, for what can be done with a table only, such as a trigger."""
    return tuple(f"{schema}.{name}" for schema in (SCHEMAS if IS_SHARDED else SCHEMAS[:1]))


def at_work(runtime: Runtime) -> Runtime:
    """The runtime of a test that calls steps of the work itself: in shard 1, to which all new users come."""
    owner_url = runtime.settings.database.owner_url
    # Without the owner's login the database is one that cannot be reached.
    if not IS_SHARDED or owner_url is None:
        return runtime
    owner = create_engine(owner_url.get_secret_value(), poolclass=NullPool)
    with owner.begin() as connection:
        connection.execute(
            text("INSERT INTO public.shards (id, is_open) VALUES (0, false) ON CONFLICT DO NOTHING")
        )
        connection.execute(text("UPDATE public.shards SET is_open = id = 1"))
    owner.dispose()
    return runtime.at(1)


def _make_view(connection: Connection, table: Table) -> None:
    name = table.name
    parts = " UNION ALL ".join(f"SELECT * FROM {schema}.{name}" for schema in SCHEMAS)
    connection.execute(text(f"CREATE VIEW everything.{name} AS {parts}"))
    for column in table.columns:
        # What a view is not given would be NULL, where the table has a default.
        if column.server_default is not None and column.identity is None:
            default = column.server_default.arg.text  # type: ignore[attr-defined]
            connection.execute(
                text(f"ALTER VIEW everything.{name} ALTER {column.name} SET DEFAULT {default}")
            )
        if column.identity is not None:
            sequence = f"nextval(pg_get_serial_sequence('public.{name}', '{column.name}'))"
            connection.execute(
                text(f"ALTER VIEW everything.{name} ALTER {column.name} SET DEFAULT {sequence}")
            )
    keys = [column.name for column in table.primary_key]
    changed = [column.name for column in table.columns if column.identity is None]
    whole = [column.name for column in table.columns]
    arguments = (
        " AND ".join(f"t.{key} = ($1).{key}" for key in keys),
        ", ".join(f"{column} = ($2).{column}" for column in changed),
        ", ".join(whole),
        ", ".join(f"($2).{column}" for column in whole),
        _place_of(table),
    )
    quoted = ", ".join("'" + argument.replace("'", "''") + "'" for argument in arguments)
    connection.execute(
        text(
            f"CREATE TRIGGER change INSTEAD OF INSERT OR UPDATE OR DELETE ON everything.{name} "
            f"FOR EACH ROW EXECUTE FUNCTION everything.change({quoted})"
        )
    )


def _place_of(table: Table) -> str:
    """Whether a new row belongs to the shard whose schema is filled in."""
    if table.name == "scopes":
        return (
            "'%1$I' = coalesce((SELECT CASE u.shard WHEN 0 THEN 'public' "
            "ELSE 'shard_' || lpad(u.shard::text, 4, '0') END FROM public.users u WHERE u.id = ($2).user_id), 'public')"
        )
    if "scope_id" in table.columns:
        return "EXISTS (SELECT FROM %1$I.scopes c WHERE c.id = ($2).scope_id) OR ($2).scope_id IS NULL"
    return "true"
