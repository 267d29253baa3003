"""What a database needs before its schema can be made: pgvector and our roles.

Each is made where the role that migrates may make it. Where it may not, `Misconfigured` says which statements an
administrator has to run. Roles belong to the cluster, so they may be there already, made by somebody else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from memory_app.errors import Misconfigured

APPLICATION = "memory_app"
FUNCTION_OWNERS = ("memory_finder", "memory_search")
BOUND = "memory_bound"
"""What the application's role becomes for the transactions of a key that is for one agent or one person."""
ATTRIBUTES = {APPLICATION: "LOGIN", **dict.fromkeys((*FUNCTION_OWNERS, BOUND), "NOLOGIN")}

DEFAULT_SCHEMA = "public"

PREPARED_WANTED = 64
"""Transactions over several servers that may be between their two phases at once; each takes milliseconds."""

INSUFFICIENT_PRIVILEGE = "42501"

_BECOME_BOUND = f"GRANT {BOUND} TO {APPLICATION} WITH INHERIT FALSE, SET TRUE"

_VECTOR_SCHEMA = text(
    """SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector'"""
)
_OWNER = text(
    """SELECT quote_ident(current_user) AS name, r.rolsuper AS is_superuser, r.rolcreaterole AS may_create_roles,
           quote_ident(current_database()) AS database, quote_ident(pg_get_userbyid(n.nspowner)) AS schema_owner,
           pg_has_role(n.nspowner, 'USAGE') AS owns_schema,
           (SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_class WHERE oid = to_regclass('public.tenants'))
               AS table_owner
    FROM pg_roles r, pg_namespace n WHERE r.rolname = current_user AND n.nspname = 'public'"""
)
_ROLES = text(
    """SELECT w.name, r.oid IS NOT NULL AS is_there, r.rolsuper OR r.rolbypassrls AS has_power,
           r.rolcanlogin AS may_log_in,
           pg_has_role(r.oid, 'USAGE') AND pg_has_role(r.oid, 'SET') AS is_member,
           pg_has_role(r.oid, 'MEMBER WITH ADMIN OPTION') AS is_admin
    FROM unnest(CAST(:names AS text[])) WITH ORDINALITY w(name, place) LEFT JOIN pg_roles r ON r.rolname = w.name
    ORDER BY w.place"""
)
# It may become the role, and is not held by its policies before that.
_MAY_BECOME_BOUND = text(
    """SELECT pg_has_role(a.oid, b.oid, 'SET') AND NOT pg_has_role(a.oid, b.oid, 'USAGE')
    FROM pg_roles a, pg_roles b WHERE a.rolname = :application AND b.rolname = :bound"""
)
_WITHOUT_USAGE = text(
    """SELECT r.rolname FROM pg_roles r, pg_extension e
    WHERE r.rolname = ANY(:names) AND e.extname = 'vector' AND NOT has_schema_privilege(r.oid, e.extnamespace, 'USAGE')
    ORDER BY 1"""
)
_PREPARED_MOST = text("SELECT CAST(current_setting('max_prepared_transactions') AS integer)")
_SEES_VECTOR = text(
    """SELECT n.nspname = ANY(current_schemas(false)) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector'"""
)


@dataclass(frozen=True, slots=True)
class Owner:
    """The role that migrates. Names are quoted as SQL wants them."""

    name: str
    is_superuser: bool
    may_create_roles: bool
    database: str
    schema_owner: str
    owns_schema: bool
    table_owner: str | None


def ensure(connection: Connection) -> None:
    """Make what is missing, in the transaction of the connection. Raises `Misconfigured`."""
    owner = Owner(*connection.execute(_OWNER).one())
    _check_owner(owner)
    _ensure_vector(connection, owner)
    _ensure_roles(connection, owner)
    _ensure_bound(connection)
    _ensure_usage(connection, owner)
    _ensure_path(connection, owner)


def check_two_phases(connection: Connection, server: str) -> None:
    """Raise `Misconfigured` for a server that cannot take part in a transaction over several servers."""
    if connection.execute(_PREPARED_MOST).scalar_one() == 0:
        raise Misconfigured(
            f"server {server!r} has max_prepared_transactions = 0, and what changes rows on two servers at once needs "
            f"some; let an administrator run ALTER SYSTEM SET max_prepared_transactions = {PREPARED_WANTED} there, and "
            "restart it"
        )


def vector_schema(connection: Connection) -> str:
    """Where the types and operators of pgvector are, quoted as SQL wants it."""
    return str(connection.execute(_VECTOR_SCHEMA).scalar_one_or_none() or DEFAULT_SCHEMA)


def search_path(connection: Connection, *, schema: str = DEFAULT_SCHEMA) -> str:
    """The schemas of a shard, of the home shard and of pgvector, as ``search_path`` takes them."""
    return ", ".join(dict.fromkeys((schema, DEFAULT_SCHEMA, vector_schema(connection))))


def run(connection: Connection, statement: str) -> None:
    """Run a statement of DDL, in which names may hold any character."""
    connection.exec_driver_sql(statement.replace("%", "%%"))


def _check_owner(owner: Owner) -> None:
    if owner.table_owner is not None and owner.table_owner != owner.name:
        raise Misconfigured(
            f"the tables belong to role {owner.table_owner}, not to {owner.name}; "
            f"let MEMORY_DATABASE__OWNER_URL log in as {owner.table_owner}, "
            f"or restore the dump with --no-owner --role={owner.name}"
        )
    if not owner.owns_schema:
        # Since PostgreSQL 15 schema public belongs to whoever owns the database, unless somebody changed that.
        is_default = owner.schema_owner == "pg_database_owner"
        thing = f"DATABASE {owner.database}" if is_default else "SCHEMA public"
        raise _administrator(
            f"role {owner.name} does not own schema public", [f"ALTER {thing} OWNER TO {owner.name}"]
        )


def _ensure_vector(connection: Connection, owner: Owner) -> None:
    if connection.execute(_VECTOR_SCHEMA).scalar_one_or_none() is not None:
        return
    try:
        # A savepoint: a statement that fails would end the whole migration otherwise.
        with connection.begin_nested():
            run(connection, "CREATE EXTENSION vector SCHEMA public")
    except DBAPIError as error:
        state = getattr(error.orig, "sqlstate", None)
        if state == INSUFFICIENT_PRIVILEGE:
            raise _administrator(
                f"database {owner.database} lacks pgvector, and role {owner.name} may not add it",
                ["CREATE EXTENSION vector"],
            ) from error
        # The extension is not available, or its control file is not there.
        if state in ("0A000", "58P01"):
            raise Misconfigured(
                "this server has no pgvector; install pgvector 0.8 or newer on it, then run `memory migrate` again"
            ) from error
        raise


def _ensure_roles(connection: Connection, owner: Owner) -> None:
    for_administrator: list[str] = []
    for role in connection.execute(_ROLES, {"names": list(ATTRIBUTES)}):
        if not role.is_there and not owner.may_create_roles and not owner.is_superuser:
            for_administrator += _creation(role.name, owner)
        elif not role.is_there:
            run(connection, f"CREATE ROLE {role.name} {ATTRIBUTES[role.name]}")
            # Since PostgreSQL 16 who makes a role may administer it, and not act as it.
            if role.name in FUNCTION_OWNERS and not owner.is_superuser:
                run(connection, _membership(role.name, owner))
        else:
            # A role that somebody made before us may do more than row-level security holds against.
            if role.has_power or role.may_log_in != (role.name == APPLICATION):
                for_administrator.append(
                    f"ALTER ROLE {role.name} {ATTRIBUTES[role.name]} NOSUPERUSER NOBYPASSRLS"
                )
            if role.name == APPLICATION:
                for_administrator += _rights_over_application(owner, is_admin=role.is_admin)
            elif role.name in FUNCTION_OWNERS and not role.is_member and role.is_admin:
                run(connection, _membership(role.name, owner))
            elif role.name in FUNCTION_OWNERS and not role.is_member:
                for_administrator.append(_membership(role.name, owner))
    if for_administrator:
        raise _administrator(
            f"the roles of this cluster are not as they must be for role {owner.name} to go on",
            list(dict.fromkeys(for_administrator)),
        )


def _creation(role: str, owner: Owner) -> Iterator[str]:
    yield f"CREATE ROLE {role} {ATTRIBUTES[role]}"
    if role == APPLICATION:
        yield from _rights_over_application(owner, is_admin=False)
    elif role == BOUND:
        yield _BECOME_BOUND
    else:
        yield _membership(role, owner)


def _ensure_bound(connection: Connection) -> None:
    """Let the application's role become the bound one."""
    names = {"application": APPLICATION, "bound": BOUND}
    if connection.execute(_MAY_BECOME_BOUND, names).scalar_one():
        return
    try:
        with connection.begin_nested():
            run(connection, _BECOME_BOUND)
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != INSUFFICIENT_PRIVILEGE:
            raise
        raise _administrator(f"role {APPLICATION} may not become {BOUND}", [_BECOME_BOUND]) from error


def _membership(role: str, owner: Owner) -> str:
    """Who makes a role own functions must be able to act as that role."""
    return f"GRANT {role} TO {owner.name} WITH INHERIT TRUE, SET TRUE"


def _rights_over_application(owner: Owner, *, is_admin: bool) -> Iterator[str]:
    """What the owner needs to give the application's role its password and its defaults."""
    if owner.is_superuser:
        return
    if not is_admin:
        yield f"GRANT {APPLICATION} TO {owner.name} WITH ADMIN OPTION"
    if not owner.may_create_roles:
        yield f"ALTER ROLE {owner.name} CREATEROLE"


def _ensure_usage(connection: Connection, owner: Owner) -> None:
    """Let our roles see the types and operators of pgvector, wherever they are."""
    names = {"names": list(ATTRIBUTES)}
    missing = list(connection.execute(_WITHOUT_USAGE, names).scalars())
    if not missing:
        return
    schema = vector_schema(connection)
    try:
        with connection.begin_nested():
            run(connection, f"GRANT USAGE ON SCHEMA {schema} TO {', '.join(missing)}")
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != INSUFFICIENT_PRIVILEGE:
            raise
    # Who may use a schema but not pass that on gets a warning only.
    if list(connection.execute(_WITHOUT_USAGE, names).scalars()):
        raise _administrator(
            f"role {owner.name} may not let others use schema {schema}, which holds pgvector",
            [f"GRANT USAGE ON SCHEMA {schema} TO {owner.name} WITH GRANT OPTION"],
        )


def _ensure_path(connection: Connection, owner: Owner) -> None:
    """Let the owner's later sessions see pgvector, too: they build indexes."""
    if not connection.execute(_SEES_VECTOR).scalar_one():
        path = search_path(connection)
        run(connection, f"ALTER ROLE {owner.name} IN DATABASE {owner.database} SET search_path TO {path}")


def _administrator(reason: str, statements: list[str]) -> Misconfigured:
    return Misconfigured(f"{reason}; let an administrator run, in this database: {'; '.join(statements)}")
