"""``webhooks list``, ``create``, ``change``, ``pause``, ``resume``, ``rotate``, ``delete``, ``deliveries``, ``resend``,
``ping``: events posted to an address."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, TypeVar

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json, write_table
from memory_app.console.settings import Data
from memory_app.errors import InvalidInput
from memory_app.events.event import types_of
from memory_app.events.webhooks.records import Webhook
from memory_app.events.webhooks.send import Outcome
from memory_app.events.webhooks.webhooks import PAGE_LIMIT
from memory_app.records.unchanged import UNCHANGED, Unchanged

app = typer.Typer(help="Webhooks: events posted to an address.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(help="Id of the webhook, as listed.")]
Types = Annotated[
    str | None,
    typer.Option(help="Only these, such as turn.extracted,memory; a group stands for all of it."),
]
Description = Annotated[str | None, typer.Option(help="What it is for.")]
Agent = Annotated[str | None, typer.Option(help="Only of this agent.", show_default=False)]
User = Annotated[str | None, typer.Option(help="Only of this person.", show_default=False)]

T = TypeVar("T")


class Part(StrEnum):
    """What a webhook may be without. Without types it is sent all of them, without an agent those of any."""

    TYPES = "types"
    AGENT = "agent"
    USER = "user"
    DESCRIPTION = "description"


@app.command("list")
def list_webhooks(tenant: Tenant = "default", data: Data = None, as_json: AsJson = False) -> None:
    """List webhooks and how far each has come."""
    with connect(data, tenant) as memory:
        rows = memory.webhooks()
    if as_json:
        write_json(rows)
        return
    columns = ("id", "url", "types", "agent", "user", "state", "waiting since", "description")
    write_table(
        "webhooks",
        columns,
        [(r.id, r.url, _types(r), r.agent, r.user, _state(r), r.waiting_since, r.description) for r in rows],
    )


@app.command()
def create(
    url: Annotated[str, typer.Argument(help="Where messages are posted.")],
    types: Types = None,
    agent: Agent = None,
    user: User = None,
    description: Description = None,
    after: Annotated[
        str | None, typer.Option(help="Begin after this event, or with the `oldest`. Default: from now on.")
    ] = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Make a webhook. Its secret is shown this once."""
    with connect(data, tenant) as memory:
        new = memory.make_webhook(
            url, types=_listed(types), agent=agent, user=user, description=description, after=after
        )
    if as_json:
        write_json({"webhook": new.webhook, "secret": new.secret})
        return
    out.print(f"webhook {new.webhook.id}", highlight=False)
    _show_secret(new.secret)


@app.command()
def change(
    webhook: Id,
    url: Annotated[str | None, typer.Option(help="Another address.")] = None,
    types: Types = None,
    agent: Agent = None,
    user: User = None,
    description: Description = None,
    without: Annotated[
        list[Part] | None,
        typer.Option(help="Take this away: all types, any agent, anybody, no description. May be repeated."),
    ] = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Change a webhook; what is not given stays."""
    removed = frozenset(without or ())
    with connect(data, tenant) as memory:
        row = memory.change_webhook(
            webhook,
            url=UNCHANGED if url is None else url,
            types=_changed(Part.TYPES, _listed(types), removed),
            agent=_changed(Part.AGENT, agent, removed),
            user=_changed(Part.USER, user, removed),
            description=_changed(Part.DESCRIPTION, description, removed),
        )
    _show(row, as_json)


@app.command()
def pause(webhook: Id, tenant: Tenant = "default", data: Data = None, as_json: AsJson = False) -> None:
    """Send nothing until it is resumed."""
    with connect(data, tenant) as memory:
        row = memory.change_webhook(webhook, paused=True)
    _show(row, as_json)


@app.command()
def resume(webhook: Id, tenant: Tenant = "default", data: Data = None, as_json: AsJson = False) -> None:
    """Go on where it was, also after it was given up."""
    with connect(data, tenant) as memory:
        row = memory.change_webhook(webhook, paused=False)
    _show(row, as_json)


@app.command()
def rotate(
    webhook: Id,
    overlap_hours: Annotated[
        float, typer.Option(min=0, max=8_760, help="Hours for which the old secret signs, too.")
    ] = 24,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Give a webhook another secret. It is shown this once."""
    with connect(data, tenant) as memory:
        new = memory.rotate_webhook(webhook, overlap_hours=overlap_hours)
    if as_json:
        write_json({"webhook": new.webhook, "secret": new.secret})
    else:
        _show_secret(new.secret)


@app.command()
def delete(webhook: Id, tenant: Tenant = "default", data: Data = None) -> None:
    """Delete a webhook and its log."""
    with connect(data, tenant) as memory:
        memory.delete_webhook(webhook)
    out.print(f"webhook {webhook} was deleted", highlight=False)


@app.command()
def deliveries(
    webhook: Id,
    limit: Annotated[int, typer.Option(min=1, max=PAGE_LIMIT, help="Most tries.")] = 20,
    cursor: Annotated[
        str | None, typer.Option(help="Only those before the try with this id.", show_default=False)
    ] = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show the latest tries, the newest first."""
    with connect(data, tenant) as memory:
        rows = memory.webhook_deliveries(webhook, limit=limit, cursor=cursor)
    if as_json:
        write_json(rows)
        return
    columns = ("at", "outcome", "status", "events", "attempt", "ms", "from event", "to event")
    write_table(
        "deliveries",
        columns,
        [
            (r.at, r.outcome, r.status, r.events, r.attempt, r.duration_ms, r.from_event, r.to_event)
            for r in rows
        ],
    )


@app.command()
def resend(
    webhook: Id,
    after: Annotated[str, typer.Argument(help="Id of the last event that is not wanted again, or `oldest`.")],
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Send again what came after an event, in messages with new ids."""
    with connect(data, tenant) as memory:
        row = memory.resend_webhook(webhook, after=after)
    _show(row, as_json)


@app.command()
def ping(webhook: Id, tenant: Tenant = "default", data: Data = None, as_json: AsJson = False) -> None:
    """Send a message of the type `ping` now. Exit status 1 where it was not delivered."""
    with connect(data, tenant) as memory:
        row = memory.ping_webhook(webhook)
    if as_json:
        write_json(row)
    else:
        status = "" if row.status is None else f" ({row.status})"
        out.print(f"{row.outcome}{status} in {row.duration_ms} ms", highlight=False)
    if row.outcome is not Outcome.DELIVERED:
        raise typer.Exit(1)


def _changed(field: Part, value: T | None, removed: Collection[Part]) -> T | Unchanged | None:
    """What the field becomes: ``value``, nothing where it is taken away, else what it was."""
    if field not in removed:
        return UNCHANGED if value is None else value
    if value is not None:
        raise InvalidInput(f"{field}: --{field} or --without {field}, not both", field=field)
    return None


def _listed(types: str | None) -> list[str] | None:
    return None if types is None else sorted(types_of(types) or ())


def _show(row: Webhook, as_json: bool) -> None:
    if as_json:
        write_json(row)
    else:
        out.print(f"webhook {row.id}: {_state(row)}", highlight=False)


def _show_secret(secret: str) -> None:
    # Alone, so that a script can take the line as it is.
    out.print(secret, markup=False, highlight=False)


def _types(row: Webhook) -> str:
    return "all" if row.types is None else ", ".join(row.types)


def _state(row: Webhook) -> str:
    if row.paused_reason is not None:
        return f"paused ({row.paused_reason})"
    return "active" if row.failing_since is None else f"failing since {row.failing_since:%Y-%m-%d %H:%M}"
