"""``move``: from the embedded servers of a data folder to servers of one's own."""

from __future__ import annotations

from pathlib import Path

import typer

from memory_app.console.output import AsJson, out, say, write_json, write_table
from memory_app.console.settings import Data
from memory_app.errors import Conflict, Misconfigured
from memory_app.local import embedded
from memory_app.local.servers import embedded_settings
from memory_app.local.stack import folder as stack_folder
from memory_app.settings import Settings
from memory_app.transfer.move import Moved
from memory_app.transfer.move import move as move_rows

app = typer.Typer()

NEXT = """
What now:
 1. Give every part the addresses that this command had: MEMORY_DATABASE__URL, MEMORY_REDIS__URL, and
    MEMORY_DATABASE__OWNER_URL for the maintenance worker.
 2. Start them: memory serve, a worker of each queue, memory beat, memory finder.
 3. memory doctor says whether all is well. API keys work as before; hot memory is rebuilt as it is used.
{folder} was only read. It still holds everything: delete it once you are content.
"""


@app.command()
def move(data: Data = None, as_json: AsJson = False) -> None:
    """Copy the embedded database of a data folder to the empty one that the settings name; all of it or nothing."""
    target = _target()
    folder = (data or target.data_folder).expanduser().resolve()
    _check_source(folder)
    with embedded.running(folder, on_progress=say) as servers:
        moved = move_rows(embedded_settings(servers), target, say=say)
    if as_json:
        write_json(moved)
        return
    _show(moved)
    out.print(NEXT.format(folder=folder).strip("\n"), markup=False, highlight=False)


def _target() -> Settings:
    """Settings that name servers. Raises `Misconfigured` naming the one that is missing."""
    settings = Settings()
    named = {"database": ("url", "owner_url"), "redis": ("url",)}
    for section, names in named.items():
        for name in names:
            # A default does not count: it would lead to whatever runs on this machine.
            if name not in getattr(settings, section).model_fields_set:
                raise Misconfigured(
                    f"MEMORY_{section.upper()}__{name.upper()} is not set; it names where to move to",
                    field=f"{section}.{name}",
                )
    return settings


def _check_source(folder: Path) -> None:
    if not (folder / embedded.START_LOCK).exists():
        raise Misconfigured(
            f"{folder} holds no embedded database; name the folder of `memory up` with --data"
        )
    # What is written while rows are copied would stay behind.
    pid = stack_folder.holder(stack_folder.Folder(folder))
    if pid is not None:
        raise Conflict(
            f"`memory up` (process {pid}) works in {folder}; stop it first: memory stop --data {folder}"
        )


def _show(moved: Moved) -> None:
    rows = [(table, count) for table, count in sorted(moved.rows.items()) if count]
    write_table("copied and compared", ("table", "rows"), rows)
