"""``audit list``, ``verify``, ``export``: who did what, and whether the log was changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.instants import instant_option
from memory_app.console.output import AsJson, out, write_json, write_table
from memory_app.console.settings import Data
from memory_app.errors import InvalidInput, Permanent
from memory_app.records.audit import Action, Entry, follow
from memory_app.tenancy import audit

app = typer.Typer(help="The audit log: who did what.", no_args_is_help=True)


@app.command("list")
def list_entries(
    action: Annotated[Action | None, typer.Option(help="Only this action.", show_default=False)] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="Only what was done about this person.", show_default=False)
    ] = None,
    key: Annotated[
        int | None,
        typer.Option(min=1, help="Only what was done with the key of this number.", show_default=False),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Only what was done then or later.", show_default=False)
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only what was done before.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Most entries.")] = 50,
    cursor: Annotated[
        int | None, typer.Option(min=1, help="The last number of the page before.", show_default=False)
    ] = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List entries, newest first. People stand in it by a digest of their name."""
    with connect(data, tenant) as memory:
        rows = memory.audit(
            limit=limit,
            cursor=cursor,
            action=action,
            user=user,
            key=key,
            since=instant_option(since, "--since"),
            until=instant_option(until, "--until"),
        )
    if as_json:
        write_json([_plain(row) for row in rows])
        return
    write_table(
        "audit log",
        ("number", "at", "key", "action", "agent", "about", "outcome", "request"),
        [
            (row.seq, row.at, row.key_id, row.action, row.agent, row.target, row.outcome, row.request_id)
            for row in rows
        ],
    )


@app.command()
def verify(
    head: Annotated[
        str | None,
        typer.Option(help="A digest that was kept: it must be that of an entry.", show_default=False),
    ] = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Tell whether an entry was changed, taken out or put in. Exit status 1 when one was.

    Keep the digest that this prints apart from the database: with it a later call notices that the end was cut off.
    """
    digests: set[str] = set()

    def noted(entries: Iterator[Entry]) -> Iterator[Entry]:
        for entry in entries:
            digests.add(entry.digest.hex())
            yield entry

    with connect(data, tenant) as memory:
        chain = follow(noted(audit.all_entries(memory.runtime, memory.tenant_id)))
    if chain.broken_at is not None:
        raise Permanent(f"the log is broken at entry {chain.broken_at}: it was changed, taken out or put in")
    if head is not None and head.lower() not in digests:
        raise Permanent(
            "no entry has the digest of --head: entries were cut off, or the log was written anew"
        )
    if as_json:
        write_json({"entries": chain.entries, "head": chain.head.hex()})
    else:
        out.print(f"{chain.entries} entries, unbroken; head {chain.head.hex() or '(none)'}", highlight=False)


@app.command()
def export(
    path: Annotated[Path, typer.Argument(help="File to write, for its owner only.")],
    tenant: Tenant = "default",
    data: Data = None,
) -> None:
    """Write the whole log as JSON Lines, oldest entry first."""
    count = 0
    try:
        path.touch(mode=0o600)
        with connect(data, tenant) as memory, path.open("w", encoding="utf-8") as file:
            for entry in audit.all_entries(memory.runtime, memory.tenant_id):
                file.write(json.dumps(_plain(entry), ensure_ascii=False) + "\n")
                count += 1
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be written ({error.strerror})", field="path") from error
    out.print(f"{count} entries written to {path}", markup=False, highlight=False)


def _plain(entry: Entry) -> dict[str, Any]:
    return {
        "seq": entry.seq,
        "at": entry.at.isoformat(),
        "key_id": entry.key_id,
        "action": entry.action,
        "agent": entry.agent,
        "subject": None if entry.subject is None else entry.subject.hex(),
        "target": entry.target,
        "outcome": entry.outcome,
        "request_id": None if entry.request_id is None else str(entry.request_id),
        "previous": entry.previous.hex(),
        "digest": entry.digest.hex(),
    }
