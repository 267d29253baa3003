"""Print the table statements of the initial migration.

After a change to the tables: ``python -m migrations.render > migrations/versions/0001_tables.sql``.
"""

from __future__ import annotations

import sys

from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from memory_app.store.tables import metadata


def statements() -> list[str]:
    """One CREATE statement per table and index, in an order that satisfies the foreign keys."""
    dialect = postgresql.dialect()
    found = []
    for table in metadata.sorted_tables:
        found.append(str(CreateTable(table).compile(dialect=dialect)).strip())
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        found += [str(CreateIndex(index).compile(dialect=dialect)).strip() for index in indexes]
    return found


if __name__ == "__main__":
    lines = [line.rstrip() for statement in statements() for line in f"{statement};\n".split("\n")]
    sys.stdout.write(
        "-- Rendered from memory_app/store/tables.py by python -m migrations.render; edit that file.\n\n"
    )
    sys.stdout.write("\n".join(lines).strip() + "\n")
