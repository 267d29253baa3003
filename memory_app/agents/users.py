"""Users: read and change by which names a person goes, and the time zone in which their "yesterday" is meant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from memory_app.agents.rows import users
from memory_app.agents.rows.users import UserRow
from memory_app.db.db import transaction
from memory_app.db.shards import HOME
from memory_app.errors import InvalidInput, NotFound
from memory_app.language.text import clean_given
from memory_app.language.zones import find_zone
from memory_app.memories.remember import drop_context, note_names
from memory_app.records.scope import check_name
from memory_app.records.unchanged import UNCHANGED, Unchanged
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names, user_details
from memory_app.tenancy.shards import in_users_shard

ALIASES_LIMIT = 20


@dataclass(frozen=True, slots=True)
class UserChange:
    """What to change about a user. A ``time_zone`` of None: the offset of their times counts; a ``label`` of None: the
    app calls them by their id."""

    time_zone: str | Unchanged | None = UNCHANGED
    label: str | Unchanged | None = UNCHANGED
    aliases: Sequence[str] | Unchanged = UNCHANGED


def user(runtime: Runtime, tenant_id: int, name: str) -> UserRow:
    """The user; `NotFound` for one of whom nothing was ever stored."""
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        row = users.read(connection, tenant_id, check_name(name, field="user"))
    if row is None:
        raise NotFound(f"no user {name!r}; PATCH makes one, and so does their first turn", field="user")
    return row


def change_user(runtime: Runtime, tenant_id: int, name: str, *, change: UserChange) -> UserRow:
    """Change a user, who is made when new. What is told of any of their names is told of them from then on.

    Names that were taken back go on leading to what was tied to them. Raises `InvalidInput` naming the field.
    """
    check_name(name, field="user")
    checked = _checked(change)
    scope_ids = in_users_shard(
        runtime, tenant_id, name, partial(_change, tenant_id=tenant_id, name=name, change=checked)
    )
    # The card of the person shows the label.
    for scope_id in scope_ids:
        drop_context(runtime, scope_id)
    return user(runtime, tenant_id, name)


def _checked(change: UserChange) -> UserChange:
    if change == UserChange():
        raise InvalidInput("user: name at least one of time_zone, label and aliases", field="user")
    zone = change.time_zone
    if isinstance(zone, str) and find_zone(zone) is None:
        raise InvalidInput(
            "time_zone: there is no such zone; name one as Europe/Lisbon, or an offset as +09:00",
            field="time_zone",
        )
    label = change.label
    if isinstance(label, str):
        label = _checked_name(label, field="label")
    return UserChange(zone, label, _checked_aliases(change.aliases))


def _checked_aliases(aliases: Sequence[str] | Unchanged) -> tuple[str, ...] | Unchanged:
    if isinstance(aliases, Unchanged):
        return aliases
    # A text is a sequence as well, and each of its letters would be a name.
    if isinstance(aliases, str):
        raise InvalidInput("aliases: a list of names", field="aliases")
    if len(aliases) > ALIASES_LIMIT:
        raise InvalidInput(f"aliases: at most {ALIASES_LIMIT} names", field="aliases")
    checked = (_checked_name(alias, field=f"aliases[{place}]") for place, alias in enumerate(aliases))
    return tuple(dict.fromkeys(checked))


def _checked_name(name: str, *, field: str) -> str:
    return check_name(clean_given(check_name(name, field=field), field=field)[0].strip(), field=field)


def _change(runtime: Runtime, *, tenant_id: int, name: str, change: UserChange) -> tuple[int, ...]:
    with transaction(runtime.engine, tenant_id) as connection:
        names.ensure_user(connection, tenant_id, name)
        zone = change.time_zone
        if not isinstance(zone, Unchanged):
            user_details.set_time_zone(
                connection, tenant_id, user=name, zone=zone or "UTC", is_set=zone is not None
            )
        if isinstance(change.label, Unchanged) and isinstance(change.aliases, Unchanged):
            return ()
        return _rename(connection, tenant_id, name, change)


def _rename(connection: Connection, tenant_id: int, name: str, change: UserChange) -> tuple[int, ...]:
    before = users.lock(connection, tenant_id, name)
    label = before.label if isinstance(change.label, Unchanged) else change.label
    aliases = before.aliases if isinstance(change.aliases, Unchanged) else change.aliases
    user_details.set_names(connection, tenant_id, user=name, label=label, aliases=aliases)
    scope_ids = users.scope_ids(connection, tenant_id, name)
    for scope_id in scope_ids:
        # An erasure takes the user and then the scopes, in the same order.
        row = names.read_scope(connection, scope_id)
        if row is not None and names.lock_scope(connection, tenant_id, scope_id):
            note_names(connection, tenant_id, row)
    return scope_ids
