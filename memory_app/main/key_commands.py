"""``keys create``, ``list``, ``rotate``, ``revoke``: tenants and their API keys, as the database's owner."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from sqlalchemy import Connection

from memory_app.console.output import AsJson, out, write_json, write_table
from memory_app.console.settings import Data, find_settings
from memory_app.records.audit import DONE, Action, Event
from memory_app.tenancy.access import owner_connection
from memory_app.tenancy.rows import audit, keys

app = typer.Typer(help="API keys.", no_args_is_help=True)


@app.command()
def create(
    tenant: Annotated[str, typer.Option(help="Whose key; the tenant is made when it is new.")] = "default",
    rights: Annotated[
        list[str] | None,
        typer.Option(
            "--right", help=f"{', '.join(keys.RIGHTS)}; may be given several times. Default: all but admin."
        ),
    ] = None,
    label: Annotated[str | None, typer.Option(help="What the key is for.")] = None,
    days: Annotated[int | None, typer.Option(min=1, help="Days until it expires; without, never.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only for this agent.", show_default=False)] = None,
    user: Annotated[
        str | None, typer.Option(help="Only for this person, as on their device.", show_default=False)
    ] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Make a key. It is shown this once: only a digest is stored."""
    with owner_connection(find_settings(data)) as connection:
        number, key = keys.create(
            connection,
            tenant,
            rights=tuple(rights or keys.USUAL_RIGHTS),
            label=label,
            expires_at=None if days is None else datetime.now(UTC) + timedelta(days=days),
            agent=agent,
            user=user,
        )
        _note(connection, Action.KEY_CREATE, number)
    if as_json:
        write_json({"id": number, "tenant": tenant, "key": key})
    else:
        # Alone, so that a script can take the line as it is.
        out.print(key, markup=False, highlight=False)


@app.command("list")
def list_keys(
    tenant: Annotated[str | None, typer.Option(help="Only this tenant's.")] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List keys, never the keys themselves."""
    with owner_connection(find_settings(data)) as connection:
        rows = keys.listed(connection, tenant)
    if as_json:
        write_json(rows)
        return
    columns = (
        "id",
        "tenant",
        "key",
        "rights",
        "agent",
        "user",
        "label",
        "created",
        "expires",
        "revoked",
        "last used",
    )
    write_table(
        "API keys",
        columns,
        [
            (r.id, r.tenant, f"{r.prefix}…", ", ".join(r.rights), r.agent_name, r.user_name, r.label, r.created_at,
             r.expires_at, r.revoked_at, r.last_used_at)
            for r in rows
        ],
    )  # fmt: skip


@app.command()
def rotate(
    key: Annotated[int, typer.Argument(help="Id, as listed.")],
    overlap_hours: Annotated[
        float, typer.Option(min=0, max=8_760, help="Hours for which the old key goes on beside the new one.")
    ] = 24,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Make a key like another one, which ends after a while. It is shown this once."""
    with owner_connection(find_settings(data)) as connection:
        keys.enter_tenant_of(connection, key)
        new = keys.rotate(connection, key, overlap=timedelta(hours=overlap_hours))
        _note(connection, Action.KEY_ROTATE, key)
    if as_json:
        write_json({"id": new.id, "key": new.key})
    else:
        out.print(new.key, markup=False, highlight=False)


@app.command()
def revoke(key: Annotated[int, typer.Argument(help="Id, as listed.")], data: Data = None) -> None:
    """End a key at once; processes that know it follow within seconds."""
    with owner_connection(find_settings(data)) as connection:
        keys.enter_tenant_of(connection, key)
        keys.revoke(connection, key)
        _note(connection, Action.KEY_REVOKE, key)
    out.print(f"key {key} opens nothing any more", highlight=False)


def _note(connection: Connection, action: Action, key: int) -> None:
    """Write it down in the transaction that does it: here both are of one database."""
    audit.add(connection, Event(action, target=str(key)), outcome=DONE)
