"""Which revision of the schema a database has, and what that means for this code."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sqlalchemy import Connection, text

import migrations
from memory_app.db.shards import HOME, schema_of

VERSIONS = Path(migrations.__file__).parent / "versions"

_IS_THERE = text("SELECT to_regclass(:table) IS NOT NULL")


@cache
def known() -> tuple[str, ...]:
    """The revisions that this code knows, oldest first: their files are called ``0001_what_it_does.py``."""
    # Read from the names, since importing the files would load alembic into every part.
    return tuple(sorted(path.name.partition("_")[0] for path in VERSIONS.glob("[0-9]*_*.py")))


def newest() -> str:
    """The revision that this code expects."""
    return known()[-1]


def is_ahead(revision: str | None) -> bool:
    """Whether a later release migrated the database. This one works on it while the other takes over."""
    # Revisions are numbers of four digits: their order is that of the text.
    return revision is not None and revision.isdigit() and revision > newest()


def stored(connection: Connection, *, shard: int = HOME) -> str | None:
    """The one of a shard; None where it was never migrated."""
    table = f"{schema_of(shard)}.alembic_version"
    if not connection.execute(_IS_THERE, {"table": table}).scalar_one():
        return None
    revision: str | None = connection.execute(text(f"SELECT version_num FROM {table}")).scalar_one_or_none()
    return revision


def difference(revision: str | None) -> str | None:
    """What keeps this code from working on a database of this revision, and what to do; None: nothing does."""
    if revision == newest():
        return None
    if revision is None:
        return "the database has not been migrated yet; run `memory migrate`"
    if revision in known():
        return f"the schema is at revision {revision}, behind {newest()} of this code; run `memory migrate`"
    if not is_ahead(revision):
        return f"the schema is at revision {revision!r}, which no release has; restore the database from a backup"
    return (
        f"the schema is at revision {revision}, ahead of {newest()} of this code; run the release that migrated it, "
        "or a newer one"
    )
