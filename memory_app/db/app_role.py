"""What the owner gives the role that the API and the workers log in as: its password, and how its sessions behave.

Time-outs and search settings are defaults of the role in this database, not options of a connection: a pooler refuses
options, and a ``SET`` would reach whoever gets the server connection next. `memory migrate` writes them; doctor
compares them with what a connection really has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import Connection, text

from memory_app.db import prerequisites

ROLE = "memory_app"

EF_SEARCH_LEAST, EF_SEARCH_MOST = 40, 1_000
"""pgvector's own default and its upper limit for ``hnsw.ef_search``."""

SEARCH_PATH = "search_path"

_STORED = text(
    """SELECT unnest(s.setconfig) FROM pg_db_role_setting s
    JOIN pg_roles r ON r.oid = s.setrole JOIN pg_database d ON d.oid = s.setdatabase
    WHERE r.rolname = :role AND d.datname = current_database()"""
)
_EFFECTIVE = text("SELECT name, setting FROM pg_settings WHERE name = ANY(:names)")


@dataclass(frozen=True, slots=True)
class Deviation:
    """A server setting that is ``value`` where ``default`` should be; None: the server does not know it."""

    name: str
    default: str
    value: str | None


def session_defaults(
    *,
    statement_timeout_ms: int,
    lock_timeout_ms: int,
    idle_transaction_timeout_ms: int,
    search_candidates: int,
) -> dict[str, str]:
    """Server setting → value, as `pg_settings` shows it; ``search_candidates`` is what a vector index looks at."""
    return {
        "statement_timeout": str(statement_timeout_ms),
        "lock_timeout": str(lock_timeout_ms),
        "idle_in_transaction_session_timeout": str(idle_transaction_timeout_ms),
        "TimeZone": "UTC",
        # Compiling a statement takes longer than any of ours runs.
        "jit": "off",
        # Without the iterative scan a filtered vector index gives too few rows.
        "hnsw.iterative_scan": "relaxed_order",
        "hnsw.ef_search": str(min(max(search_candidates, EF_SEARCH_LEAST), EF_SEARCH_MOST)),
    }


def write_defaults(owner: Connection, defaults: Mapping[str, str]) -> None:
    """Store those defaults that differ, and where pgvector is, for sessions that begin later. For the owner."""
    rows = owner.execute(_STORED, {"role": ROLE}).scalars()
    stored = dict(str(row).split("=", 1) for row in rows)
    values = {**defaults, SEARCH_PATH: prerequisites.search_path(owner)}
    missing = {name: value for name, value in values.items() if stored.get(name) != value}
    # A role belongs to all databases: what is not written cannot meet the migrator of another one.
    if not missing:
        return
    _load_vector(owner)
    database = str(owner.execute(text("SELECT current_database()")).scalar_one())
    for name, value in missing.items():
        statement = sql.SQL("ALTER ROLE {role} IN DATABASE {database} SET {name} TO {value}").format(
            role=sql.Identifier(ROLE),
            database=sql.Identifier(database),
            # One of an extension is written as two identifiers: hnsw.ef_search.
            name=sql.Identifier(*name.split(".")),
            # A list of quoted names is not one text.
            value=sql.SQL(value) if name == SEARCH_PATH else sql.Literal(value),
        )
        _driver(owner).execute(statement)


def write_password(owner: Connection, password: str) -> None:
    """Give the role its password, as the digest that the server would make of it: statements may be logged."""
    driver = _driver(owner)
    digest = driver.pgconn.encrypt_password(password.encode(), ROLE.encode(), b"scram-sha-256")
    driver.execute(
        sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(ROLE), sql.Literal(digest.decode()))
    )


def deviations(connection: Connection, defaults: Mapping[str, str]) -> tuple[Deviation, ...]:
    """Settings that this very connection does not have as the defaults say."""
    _load_vector(connection)
    expected = {**defaults, SEARCH_PATH: prerequisites.search_path(connection)}
    rows = connection.execute(_EFFECTIVE, {"names": list(expected)})
    effective = {str(row.name): str(row.setting) for row in rows}
    values = ((name, default, effective.get(name)) for name, default in expected.items())
    return tuple(Deviation(name, default, value) for name, default, value in values if value != default)


def _load_vector(connection: Connection) -> None:
    """Only a superuser may give a role settings of a library that is not loaded."""
    prerequisites.run(connection, f"SELECT CAST('[1]' AS {prerequisites.vector_schema(connection)}.vector)")


def _driver(owner: Connection) -> psycopg.Connection[Any]:
    """The driver's connection, in the same transaction: for statements that take no parameters."""
    driver = owner.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver
