"""A database of its own for each measurement of growth, and the figures that come of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from memory_app import MemoryApp, Scope
from memory_app.bench.rows.crowd import AGENT, Crowd, undisturbed
from memory_app.bench.stage import TENANT
from memory_app.db.db import transaction
from memory_app.db.meter import Cost, Meter
from memory_app.errors import MemoryAppError
from memory_app.local import embedded
from memory_app.local.servers import embedded_settings
from memory_app.local.stack.tenant import ensure_key
from memory_app.tenancy import schema
from memory_app.tenancy.rows import names

LONG_AGO = timedelta(days=60)
"""Older than a turn is searched, and than a run is kept."""

SCOPE = Scope(AGENT, "me")
LEASE = timedelta(seconds=45)

BIG = 100
"""Rows from which a scope gets indexes of its own where these are measured: the least that may be set."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What one call cost at one size. ``note`` says what else was counted, or why there is no figure."""

    call: str
    size: int
    of: str
    statements: int | None = None
    blocks: int | None = None
    rows: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredDatabase:
    """A migrated database with one tenant, and what is needed to fill it and to measure in it."""

    memory: MemoryApp
    crowd: Crowd
    meter: Meter

    def cost(self, call: str, act: Callable[[], object], *, size: int, of: str) -> Figure:
        """The figure of one call; what it gave up with where it did not come to an end."""
        cost = Cost()
        try:
            with self.meter.measured() as cost:
                act()
        except MemoryAppError as error:
            # Kept as a row: a call that is given up at 100,000 is what these measurements look for.
            return Figure(call, size, of, note=f"not done: {error.message}")
        return Figure(call, size, of, statements=cost.statements, blocks=cost.blocks, rows=cost.rows)

    def scope_id(self, scope: Scope) -> int:
        with transaction(self.memory.runtime.engine, self.memory.tenant_id) as connection:
            return names.ensure_scope(connection, self.memory.tenant_id, scope).id


Measure = Callable[[MeasuredDatabase, int], Iterator[Figure]]


@dataclass(frozen=True, slots=True)
class Group:
    """Measurements that share their rows, and the sizes they are made at."""

    name: str
    sizes: tuple[int, ...]
    measure: Measure
    sections: Mapping[str, dict[str, object]] = field(default_factory=dict)


@contextlib.contextmanager
def prepared_database(servers: embedded.Servers, folder: Path, *, group: Group) -> Iterator[MeasuredDatabase]:
    """A database of its own for one group of measurements at one size; dropped at the end."""
    # A database for each size: what the size before left in the statistics would change the plans of the next.
    name = f"growth_{uuid4().hex}"
    created = embedded.create_database(servers, name)
    try:
        settings = embedded_settings(created, **group.sections)
        schema.upgrade(settings)
        ensure_key(settings, folder / f"{name}.key", tenant=TENANT)
        with MemoryApp.connect(settings, tenant=TENANT) as memory:
            owner, embedder = memory.runtime.owner, memory.runtime.embedder
            assert owner is not None
            crowd = Crowd(owner, memory.tenant_id, model=embedder.model, dimensions=embedder.dimensions)
            with undisturbed(owner):
                yield MeasuredDatabase(memory, crowd, Meter(memory.runtime.engine, owner))
    finally:
        embedded.drop_database(servers, name)
