"""``up`` and ``stop``: the product as a whole on one machine.

The process of ``up`` runs for as long as the product does, so it imports no more than it needs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Annotated

import typer
from rich.markup import escape

from memory_app.console.output import out, say
from memory_app.console.settings import Data
from memory_app.errors import Misconfigured
from memory_app.local import embedded, stack
from memory_app.local.embedded.lifetime import Pause
from memory_app.local.stack import folder as stack_folder
from memory_app.local.stack.child import end_orphans
from memory_app.local.stack.parts import NEEDED, PARTS
from memory_app.log import configure
from memory_app.settings import Settings

TEND_SECONDS = 0.25
STOP_SECONDS = 600.0
"""More than all time limits of a stop in order."""

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

app = typer.Typer()

DataFolder = Annotated[
    Path | None,
    typer.Option("--data", help="Folder for data, logs and keys. Default: .memory", show_default=False),
]


@app.command()
def up(
    data: DataFolder = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port of the API.")] = None,
    use_embedded: Annotated[
        bool,
        typer.Option(
            "--embedded/--own-servers", help="Embedded Postgres and Valkey, or those that the settings name."
        ),
    ] = True,
    with_flower: Annotated[bool, typer.Option("--flower/--no-flower", help="Run Flower, too.")] = True,
) -> None:
    """Run everything on this machine until Ctrl-C: servers, worker, Beat, finder, API and Flower."""
    where = data or Settings().data_folder
    addresses = stack_folder.read_addresses(where)
    if addresses is not None:
        out.print(f"memory is already running in {where} (process {addresses.pid}).", highlight=False)
        _show(stack_folder.Folder(where.expanduser().resolve()), addresses)
        return
    configure(level="INFO", form="console")
    parts = PARTS if with_flower else NEEDED
    options = stack.Options(where, port=port, embedded=use_embedded, parts=parts)
    with until_stopped() as pause, stack.running(options, say=say, pause=pause) as running:
        _show(running.folder, running.addresses)
        while True:
            pause(TEND_SECONDS)
            running.tend()


@app.command()
def stop(data: Data = None) -> None:
    """Stop what runs in the data folder: ``memory up`` if there is one, and the embedded servers."""
    where = data or Settings().data_folder
    folder = stack_folder.Folder(where.expanduser().resolve())
    pid = stack_folder.holder(folder)
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        # Another process in its place was started by somebody who wants it to run.
        while stack_folder.holder(folder) == pid:
            if time.monotonic() > deadline:
                raise Misconfigured(f"process {pid} does not stop; see {folder.logs}")
            time.sleep(TEND_SECONDS)
    # Parts whose stack was killed have nobody who would stop them.
    end_orphans(folder)
    embedded.stop(where)
    out.print(f"nothing runs in {where} any more", highlight=False)


def _show(folder: stack.Folder, addresses: stack.Addresses) -> None:
    """Say where everything is. Secrets are named by their file, as terminals and their logs are read by others."""
    rows = {"API": addresses.api, "API docs": f"{addresses.api}/docs", "API key": f"in {folder.key}"}
    if addresses.flower is not None:
        rows["Flower"] = f"{addresses.flower}  (its login is in {folder.flower_login})"
    rows |= {"data": str(folder.path), "logs": str(folder.logs)}
    for name, value in rows.items():
        out.print(f"[bold]{name:<10}[/bold]{escape(value)}", highlight=False)
    out.print("\nRecord a turn, then ask for the context of the next reply:\n", highlight=False)
    out.print(example(addresses.api, folder.key), markup=False, highlight=False)
    out.print("\nCtrl-C stops everything.", highlight=False)


def example(api: str, key_file: Path) -> str:
    """Two calls that can be pasted into a shell."""
    user = f"{api}/v1/agents/ada/users/mira"
    start = f'curl -s -H "Authorization: Bearer $(cat {key_file})" -H "Content-Type: application/json"'
    turn = '{"role": "user", "content": "I moved to Lisbon last month and I started bouldering."}'
    query = '{"query": "Where does Mira live?", "session": "chat-1"}'
    return (
        f"{start} \\\n  {user}/sessions/chat-1/turns -d '{turn}'\n{start} \\\n  {user}/context -d '{query}'"
    )


@contextlib.contextmanager
def until_stopped() -> Iterator[Pause]:
    """A way to wait that ends as soon as we are to stop: by Ctrl-C, SIGTERM, or a terminal that was closed.

    A second signal changes nothing: stopping in order has time limits.
    """
    stopping = Event()

    def pause(seconds: float) -> None:
        if stopping.wait(seconds):
            raise _Stop

    before = {number: signal.signal(number, lambda *_: stopping.set()) for number in STOP_SIGNALS}
    try:
        yield pause
    except _Stop:
        pass
    finally:
        for number, former in before.items():
            signal.signal(number, former)


class _Stop(BaseException):
    """Passes whoever goes on after an `Exception`."""
