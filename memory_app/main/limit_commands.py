"""``limits show``, ``limits set``: what a tenant or a key may use, as the database's owner."""

from __future__ import annotations

from typing import Annotated

import typer

from memory_app.console.output import AsJson, out, write_json, write_table
from memory_app.console.settings import Data, find_settings
from memory_app.errors import InvalidInput
from memory_app.records.audit import DONE, Action, Event
from memory_app.records.limits import LARGEST, NAMES, OF_KEYS, parse_limits
from memory_app.tenancy.access import owner_connection
from memory_app.tenancy.rows import audit, keys, limits

app = typer.Typer(help="Limits of tenants and keys.", no_args_is_help=True)

Tenant = Annotated[str, typer.Option(help="Whose limits.")]


@app.command()
def show(tenant: Tenant = "default", data: Data = None, as_json: AsJson = False) -> None:
    """The limits of a tenant and of its keys. What is not named has no limit."""
    with owner_connection(find_settings(data)) as connection:
        of_tenant = limits.of_named_tenant(connection, tenant).as_dict()
        of_keys = {row.id: row.limits for row in keys.listed(connection, tenant) if row.limits}
    if as_json:
        write_json({"tenant": tenant, "limits": of_tenant, "keys": of_keys})
        return
    rows = [("tenant", name, limit) for name, limit in of_tenant.items()]
    rows += [(f"key {key}", name, limit) for key, named in of_keys.items() for name, limit in named.items()]
    write_table(f"limits of {tenant}", ("of", "limit", "value"), rows)


@app.command("set")
def set_limits(
    changes: Annotated[
        list[str], typer.Argument(help=f"NAME=NUMBER, or NAME=none. Names: {', '.join(NAMES)}.")
    ],
    tenant: Tenant = "default",
    key: Annotated[
        int | None, typer.Option(help=f"Of this key of the tenant instead: {', '.join(OF_KEYS)}.")
    ] = None,
    data: Data = None,
) -> None:
    """Change limits; those that are not named stay. Processes follow within seconds."""
    names = NAMES if key is None else OF_KEYS
    values = dict(_change(change) for change in changes)
    # Named before anything is read, also where it is to be lifted.
    parse_limits(values, names=names)
    with owner_connection(find_settings(data)) as connection:
        keys.enter_tenant(connection, tenant)
        if key is None:
            new = limits.change_of_tenant(connection, tenant, values)
            action = Action.LIMIT_TENANT
        else:
            old = next((row.limits for row in keys.listed(connection, tenant) if row.id == key), {})
            new = parse_limits({**old, **values}, names=names)
            limits.set_of_key(connection, key, new)
            action = Action.LIMIT_KEY
        audit.add(connection, Event(action, target=None if key is None else str(key)), outcome=DONE)
    whose = f"tenant {tenant}" if key is None else f"key {key}"
    named = ", ".join(f"{name} {limit}" for name, limit in new.as_dict().items()) or "none"
    out.print(f"limits of {whose}: {named}", highlight=False)


def _change(change: str) -> tuple[str, int | None]:
    name, _, number = change.partition("=")
    if number == "none":
        return name, None
    # Not more digits than the greatest limit has, which `int` would take long to read.
    if not (number.isascii() and number.isdecimal() and len(number) <= len(str(LARGEST))):
        raise InvalidInput(f"{name}: NAME=NUMBER, or NAME=none", field=name)
    return name, int(number)
