"""List who is remembered, and by which agents."""

from __future__ import annotations

from itertools import chain

from memory_app.agents.rows import people
from memory_app.agents.rows.people import Person
from memory_app.db.db import transaction
from memory_app.errors import InvalidInput
from memory_app.records.scope import check_name
from memory_app.runtime import Runtime
from memory_app.tenancy.shards import in_usable

PAGE_LIMIT = 500


def list_people(
    runtime: Runtime,
    tenant_id: int,
    *,
    user: str | None = None,
    limit: int = 50,
    before: int | None = None,
) -> tuple[Person, ...]:
    """The agents of up to ``limit`` users of whom something is stored, the newest user first; or those of one user.

    ``before`` is the last number of the page before. A caller who may see one agent or one user sees only theirs.
    """
    if not 1 <= limit <= PAGE_LIMIT:
        raise InvalidInput(f"limit: 1 to {PAGE_LIMIT}", field="limit")
    if user is not None:
        check_name(user, field="user")

    def look(here: Runtime) -> tuple[Person, ...]:
        with transaction(here.engine, tenant_id) as connection:
            return people.listed(connection, tenant_id, user=user, limit=limit, before=before)

    rows = sorted(chain.from_iterable(in_usable(runtime, look)), key=lambda row: (-row.number, row.agent))
    numbers = list(dict.fromkeys(row.number for row in rows))[:limit]
    return tuple(row for row in rows if row.number in set(numbers))
