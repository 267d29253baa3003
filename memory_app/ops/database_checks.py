"""What `memory doctor` says of the database server: its version, the schema, the application's role, and durability."""

from __future__ import annotations

import time
from collections.abc import Sequence

from sqlalchemy import Engine

from memory_app.db import app_role, catalog, db, inspection, revision
from memory_app.db.app_role import Deviation
from memory_app.db.catalog import DIFFERENCES_SHOWN, Difference
from memory_app.db.inspection import Server
from memory_app.errors import MemoryAppError
from memory_app.ops.check import Check, clock, fail, failure, ok, version, warn
from memory_app.settings import Settings
from memory_app.tenancy import schema

VECTOR_VERSION = (0, 8)


def look(settings: Settings, engine: Engine) -> tuple[bool, list[Check]]:
    """Whether the database can be used by the other checks, and what is found."""
    start = time.time()
    deviations: Sequence[Deviation] = ()
    differences: Sequence[Difference] = ()
    try:
        with db.transaction(engine, None) as connection:
            server = inspection.server(connection)
            stored = revision.stored(connection)
            # Some of the settings are pgvector's, and unknown before it is installed.
            if server.vector_installed is not None:
                deviations = app_role.deviations(connection, schema.session_defaults(settings))
            # Only the newest schema is described; against it an older one differs everywhere.
            if stored == revision.newest():
                differences = catalog.differences_of(connection)
    except MemoryAppError as error:
        return False, [failure("postgres", error)]
    # The server answered somewhere between the two readings of our clock: half of them is the best guess.
    offset = server.now.timestamp() - (start + time.time()) / 2
    return stored is not None, [
        _postgres(server),
        _vector(server),
        _schema(stored, differences),
        _role(server),
        _isolation(server),
        _session(deviations),
        _durability(server),
        clock("postgres", offset),
    ]


def _postgres(server: Server) -> Check:
    major, minor = divmod(server.version, 10_000)
    way = ", through a pooler" if server.is_pooled else ""
    return ok("postgres", f"version {major}.{minor}{way}")


def _vector(server: Server) -> Check:
    minimum = ".".join(map(str, VECTOR_VERSION))
    if server.vector_installed is None and server.vector_available is None:
        to_do = f"install pgvector {minimum} or newer on the database server, then run `memory migrate`"
        return fail("pgvector", "not available on this server", to_do=to_do)
    if server.vector_installed is None:
        return fail("pgvector", "available, but not in this database", to_do="run `memory migrate`")
    if version(server.vector_installed) < VECTOR_VERSION:
        # A newer package alone changes nothing: the extension keeps the version that it was made with.
        to_do = f"install pgvector {minimum} or newer, then `ALTER EXTENSION vector UPDATE`"
        return fail("pgvector", f"version {server.vector_installed}", to_do=to_do)
    return ok("pgvector", f"version {server.vector_installed}")


def _schema(stored: str | None, differences: Sequence[Difference]) -> Check:
    difference = revision.difference(stored)
    if difference is not None:
        finding, _, to_do = difference.partition("; ")
        # During a rolling upgrade the old release goes on with the newer schema.
        judge = warn if revision.is_ahead(stored) else fail
        return judge("schema", finding, to_do=to_do)
    if differences:
        shown_differences = differences[:DIFFERENCES_SHOWN]
        finding = ", ".join(f"{row.name} is {row.state}" for row in shown_differences)
        more = len(differences) - len(shown_differences)
        if more:
            finding += f", and {more} more"
        # Most objects have the same remedy, which is said once.
        remedies = dict.fromkeys(row.remedy for row in shown_differences)
        return fail("schema", f"revision {stored}, but {finding}", to_do="; ".join(remedies))
    return ok("schema", f"revision {stored}, with every object as expected")


def _role(server: Server) -> Check:
    # Row-level security, which keeps tenants apart, does not hold for any of these.
    powers = {
        "a superuser": server.is_superuser,
        "bypasses row-level security": server.bypasses_rls,
        "owns tables": server.owned_tables > 0,
    }
    excess = ", ".join(power for power, has in powers.items() if has)
    if excess:
        to_do = "let MEMORY_DATABASE__URL name the role memory_app, which `memory migrate` makes"
        return fail("role", f"{server.role}: {excess}; tenants are not kept apart", to_do=to_do)
    return ok("role", f"{server.role} owns nothing and bypasses nothing")


def _isolation(server: Server) -> Check:
    if server.open_tables:
        to_do = "ENABLE and FORCE ROW LEVEL SECURITY on them, as the migrations do"
        return fail("isolation", f"open: {', '.join(server.open_tables)}", to_do=to_do)
    return ok("isolation", "row-level security holds on every table of tenants")


def _session(deviations: Sequence[Deviation]) -> Check:
    """Whether the connection that workers and the API get is as the settings say."""
    if deviations:
        finding = "; ".join(f"{d.name} is {d.value or 'unknown'}, not {d.default}" for d in deviations)
        # A pooler keeps connections that were opened with the old defaults.
        to_do = "run `memory migrate`, which makes them defaults of the role, then let a pooler reconnect"
        return fail("session", finding, to_do=to_do)
    return ok("session", "time-outs and search settings of the role are in force")


def _durability(server: Server) -> Check:
    if server.fsync != "on":
        finding = "fsync is off: a power cut loses data"
        return warn("durability", finding, to_do="only for trials; turn it on")
    # The API answers 202 after the commit, which must then be on the disk.
    if server.synchronous_commit == "off":
        to_do = "set synchronous_commit to on; an accepted turn must survive a crash"
        return fail("durability", "synchronous_commit is off", to_do=to_do)
    return ok("durability", f"synchronous_commit is {server.synchronous_commit}")
