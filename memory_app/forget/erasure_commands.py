"""``erasures list``, ``export``, ``replay``: receipts of what was forgotten, so that no backup brings it back."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from memory_app.console.output import AsJson, out, say, write_json, write_table
from memory_app.console.settings import Data, find_settings
from memory_app.errors import Permanent
from memory_app.forget import receipts
from memory_app.forget.receipts import Outcome, Replayed
from memory_app.runtime import build

app = typer.Typer(help="Receipts of what was forgotten.", no_args_is_help=True)

OfTenant = Annotated[
    str | None, typer.Option("--tenant", help="Only this tenant. Default: all.", show_default=False)
]

PROGRESS_LINES = 1_000


@app.command("list")
def list_receipts(
    limit: Annotated[int, typer.Option(min=1, help="Most receipts.")] = 50,
    tenant: OfTenant = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List receipts, newest first: when, of what kind, and how many rows went; never whose."""
    with closing(build(find_settings(data))) as runtime:
        rows = receipts.list_receipts(runtime, receipts.tenants_of(runtime, tenant), limit=limit)
    if as_json:
        write_json(
            [
                {
                    "id": row.id,
                    "tenant": row.tenant,
                    "of": row.of,
                    "erased_at": row.erased_at,
                    "counts": row.counts,
                }
                for row in rows
            ]
        )
        return
    write_table(
        "erasures",
        ("erased at", "tenant", "of", "rows", "receipt"),
        [(row.erased_at, row.tenant, row.of, sum(row.counts.values()), row.id) for row in rows],
    )


@app.command()
def export(
    path: Annotated[Path, typer.Argument(help="File to add to; it is made when it is new.")],
    tenant: OfTenant = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Add to a file every receipt that it lacks. Keep it beside the backups, apart from the database."""
    with closing(build(find_settings(data))) as runtime:
        total, new = receipts.export_receipts(runtime, receipts.tenants_of(runtime, tenant), path)
    if as_json:
        write_json({"receipts": total, "new": new})
    else:
        out.print(f"{path} has {total} receipts, {new} of them new", markup=False, highlight=False)


@app.command()
def replay(
    paths: Annotated[list[Path], typer.Argument(help="Files of receipts.", metavar="FILE...")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would go, and delete nothing.")
    ] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Erase again what a restored backup brought back: after the restore, before the service is opened.

    What is newer than its erasure stays. Exit status 1 when a line could not be read.
    """
    rows: list[Replayed] = []
    with closing(build(find_settings(data))) as runtime:
        # Always of all tenants: a restore brings back the people of each.
        tenants = receipts.tenants_of(runtime, None)
        for row in receipts.replay(runtime, tenants, paths, dry_run=dry_run):
            rows.append(row)
            if not as_json:
                _show(row, dry_run=dry_run)
            if len(rows) % PROGRESS_LINES == 0:
                say(f"{len(rows)} lines")
    counts = Counter(row.outcome for row in rows)
    if as_json:
        write_json({"lines": [_plain(row) for row in rows], "outcomes": counts})
    else:
        out.print(_summary(counts, dry_run=dry_run), markup=False, highlight=False)
    if counts[Outcome.UNREADABLE]:
        raise Permanent(f"{counts[Outcome.UNREADABLE]} lines could not be read; the others took effect")


def _show(row: Replayed, *, dry_run: bool) -> None:
    # A file holds the erasures of years, and nearly all are known; they are only counted.
    if row.outcome is Outcome.KNOWN:
        return
    outcome = str(row.outcome)
    if dry_run and row.outcome is Outcome.ERASED:
        outcome = "would be erased again"
    if row.receipt is None:
        text = f"{outcome}: {row.wrong}"
    else:
        subject = row.receipt.of or "erasure"
        text = f"{subject} of {row.receipt.tenant}, {row.receipt.erased_at:%Y-%m-%d %H:%M}: {outcome}"
    if row.counts:
        text += f", {sum(row.counts.values())} rows"
    out.print(f"{row.file}:{row.line}: {text}", markup=False, highlight=False)


def _summary(counts: Counter[Outcome], *, dry_run: bool) -> str:
    if not set(counts) - {Outcome.KNOWN}:
        return f"nothing to do: the database knows all {counts[Outcome.KNOWN]} erasures"
    parts = ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome])
    return f"dry run, nothing was deleted: {parts}" if dry_run else parts


def _plain(row: Replayed) -> dict[str, object]:
    return {
        "file": row.file,
        "line": row.line,
        "outcome": row.outcome,
        "erasure": None if row.receipt is None else row.receipt.id,
        "counts": row.counts,
        "wrong": row.wrong,
    }
