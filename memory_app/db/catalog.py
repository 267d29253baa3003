"""The objects of the schema as the server's catalog shows them, and how they differ from those that the code expects.

An object is a name ("column turns.text") and a definition ("text NOT NULL"). What is expected stands in
``migrations/schema.txt``, one object a line, written from a fresh database. Definitions are the same on every version
of PostgreSQL, wherever pgvector is and whoever owns the tables; that role is called "owner" here.

Only what is ours is looked at: an index or a table that somebody added does no harm. A policy, a trigger or a right
that was added to our tables does, and so does a function of our roles. Any role may read the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, text

import migrations
from memory_app.db import prerequisites
from memory_app.db.prerequisites import DEFAULT_SCHEMA
from memory_app.db.shards import HOME, schema_of
from memory_app.db.tables import metadata

EXPECTED = Path(migrations.__file__).parent / "schema.txt"

TABLES = (*sorted(metadata.tables), "alembic_version")
ROLES = tuple(prerequisites.ATTRIBUTES)

MIGRATE = "run `memory migrate`"

# The server leaves the schema out of a name that the path leads to: another path would be another definition.
_SET_SEARCH_PATH = text("SELECT set_config('search_path', :path, true)")

_OBJECTS = text(Path(__file__).with_name("sql").joinpath("objects.sql").read_text(encoding="utf-8"))

_MENDED = ("role", "right", "policy", "trigger", "function", "table")
"""Kinds of objects that `memory migrate` makes again."""


DIFFERENCES_SHOWN = 10
"""Objects of the schema that are named when they are not as expected; the others are counted."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An object that is not as expected. ``actual`` None: it is missing; ``expected`` None: it should not be there."""

    name: str
    expected: str | None
    actual: str | None

    @property
    def kind(self) -> str:
        return self.name.partition(" ")[0]

    @property
    def state(self) -> str:
        """In one word: missing, unexpected or different."""
        if self.actual is None:
            return "missing"
        return "unexpected" if self.expected is None else "different"

    @property
    def remedy(self) -> str:
        """What an operator does about it."""
        if self.expected is None:
            return _removal(self.name)
        if self.kind not in _MENDED:
            return _repair(self.name, self.expected, is_missing=self.actual is None)
        # Its rows went with it; made anew and empty, it would look as if nothing were missing.
        if self.kind == "table" and self.actual is None:
            return f"restore {self.name} from a backup"
        if self.kind == "table" and "OWNER owner" not in (self.actual or ""):
            return f"ALTER {self.name} OWNER TO the role that owns the other tables"
        # Too much power over the whole cluster: only who gave it may take it.
        if self.kind == "role" and self.actual is not None:
            return f"let an administrator make {self.name} {self.expected} and nothing else"
        return MIGRATE


def _removal(name: str) -> str:
    kind, _, rest = name.partition(" ")
    if kind == "right":
        return MIGRATE
    if kind == "function":
        return f"DROP FUNCTION {rest}"
    table, _, part = rest.partition(".")
    return f"DROP {kind.upper()} {part} ON {table}"


def _repair(name: str, definition: str, *, is_missing: bool) -> str:
    kind, _, rest = name.partition(" ")
    table, _, part = rest.partition(".")
    if kind == "column":
        if is_missing:
            return (
                f"restore table {table} from a backup, or ALTER TABLE {table} ADD COLUMN {part} {definition}"
            )
        return f"ALTER TABLE {table} so that {part} is {definition}"
    if kind == "constraint":
        drop = "" if is_missing else f"DROP CONSTRAINT {part}, "
        return f"ALTER TABLE {table} {drop}ADD CONSTRAINT {part} {definition}"
    if kind == "storage":
        return f"ALTER TABLE {table} SET ({definition})"
    return definition if is_missing else f"DROP INDEX {rest}; {definition}"


def objects(connection: Connection, *, shard: int = HOME) -> dict[str, str]:
    """Definition by name of what is there in a shard. Sets the search path of the transaction.

    The schema of every shard is called "public" here: all have the same objects.
    """
    schema = schema_of(shard)
    path = prerequisites.search_path(connection, schema=schema)
    connection.execute(_SET_SEARCH_PATH, {"path": f"{path}, pg_temp"})
    rows = connection.execute(
        _OBJECTS,
        {
            "tables": list(TABLES),
            "roles": list(ROLES),
            "elsewhere": path.removeprefix(schema),
            "schema": schema,
        },
    )
    return {
        row.name.replace(schema, DEFAULT_SCHEMA): " ".join(
            row.definition.replace(schema, DEFAULT_SCHEMA).split()
        )
        for row in rows
    }


def read_expected() -> dict[str, str]:
    """Definition by name of what the code expects."""
    lines = EXPECTED.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines)


def differences_of(connection: Connection, *, shard: int = HOME) -> tuple[Difference, ...]:
    """How a shard differs from what the code expects. Sets the search path as `objects` does."""
    return differences(read_expected(), objects(connection, shard=shard))


def differences(expected: Mapping[str, str], actual: Mapping[str, str]) -> tuple[Difference, ...]:
    """What is missing, different, or there without being expected where that does harm; by name."""
    # One line for a table that is missing, instead of one for each of its columns, indexes and rights.
    gone = {
        name.removeprefix("table ") for name in expected if name.startswith("table ") and name not in actual
    }
    wrong = [
        name
        for name, definition in expected.items()
        if actual.get(name) != definition and _table_of(name, definition) not in gone
    ]
    added = [name for name in actual.keys() - expected.keys() if _does_harm(name, actual[name], expected)]
    return tuple(Difference(name, expected.get(name), actual.get(name)) for name in sorted([*wrong, *added]))


def _table_of(name: str, definition: str) -> str | None:
    """The table that the object is a part of, and with which it went when that is gone."""
    kind, _, rest = name.partition(" ")
    if kind in ("column", "constraint", "policy", "storage", "trigger"):
        return rest.partition(".")[0]
    if kind == "index":
        return definition.partition(" ON public.")[2].partition(" ")[0]
    if kind == "right" and " on table " in rest:
        return rest.partition(" on table ")[2]
    return None


def _does_harm(name: str, definition: str, expected: Mapping[str, str]) -> bool:
    """Whether an object that nobody expects changes who sees what, or what a write does."""
    kind = name.partition(" ")[0]
    if kind == "function":
        # It runs with the rights of our role, whoever calls it.
        return any(f"OWNER {role} " in definition for role in ROLES)
    if kind == "right":
        thing = name.partition(" on ")[2]
        # Rights on a function of somebody else's are theirs to give.
        return not thing.startswith("function ") or thing in expected
    return kind in ("policy", "trigger")


def render(definitions: Mapping[str, str]) -> str:
    """The text of ``schema.txt`` for these objects."""
    return "".join(f"{name}\t{definitions[name]}\n" for name in sorted(definitions))
