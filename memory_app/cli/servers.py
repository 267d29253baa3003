"""``up``, ``demo``, ``stop``: the product as a whole on one machine."""

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

from memory_app import embedded, stack
from memory_app.cli import demo as demo_show
from memory_app.cli import story as demo_story
from memory_app.cli.find import Data
from memory_app.cli.output import err, out, say
from memory_app.errors import Misconfigured
from memory_app.log import configure
from memory_app.settings import Settings
from memory_app.stack import folder as stack_folder
from memory_app.stack.child import end_orphans

TEND_SECONDS = 0.25
STOP_SECONDS = 90.0

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
) -> None:
    """Run everything on this machine until Ctrl-C: servers, worker, Beat, finder, API and Flower."""
    where = data or Settings().data_folder
    found = stack_folder.read_addresses(where)
    if found is not None:
        out.print(f"memory is already running in {where} (process {found.pid}).", highlight=False)
        _show(stack_folder.Folder(where.expanduser().resolve()), found)
        return
    configure(level="INFO", form="console")
    options = stack.Options(where, port=port, embedded=use_embedded)
    with _until_told() as told, stack.running(options, say=_say_unless(told)) as running:
        _show(running.folder, running.addresses)
        while not told.wait(TEND_SECONDS):
            running.tend()


@app.command()
def demo(
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Keep the data here. Default: a temporary folder.", show_default=False),
    ] = None,
    story: Annotated[
        bool,
        typer.Option(
            "--story", help="Two sessions read by a language model: MEMORY_CHAT__BASE_URL, or a scripted one."
        ),
    ] = False,
) -> None:
    """Play a conversation through real servers and workers, and show what is remembered."""
    with _until_told() as told:
        if story:
            demo_story.show(data, say=_say_unless(told))
        else:
            demo_show.show(data, say=_say_unless(told), told=told)


@app.command()
def stop(data: Data = None) -> None:
    """Stop what runs in the data folder: ``memory up`` if there is one, and the embedded servers."""
    where = data or Settings().data_folder
    found = stack_folder.read_addresses(where)
    if found is not None:
        os.kill(found.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while stack_folder.read_addresses(where) is not None:
            if time.monotonic() > deadline:
                raise Misconfigured(f"process {found.pid} does not stop; see {where / 'logs'}")
            time.sleep(TEND_SECONDS)
    folder = stack_folder.Folder(where.expanduser().resolve())
    end_orphans(folder)
    embedded.stop(where)
    out.print(f"nothing runs in {where} any more", highlight=False)


def _show(folder: stack.Folder, addresses: stack.Addresses) -> None:
    key = folder.key.read_text()
    rows = {
        "API": addresses.api,
        "API docs": f"{addresses.api}/docs",
        "Flower": f"{addresses.flower}  login {addresses.flower_login}",
        "data": str(folder.path),
        "logs": str(folder.logs),
        "API key": f"{key}  (kept in {folder.key})",
    }
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


def _say_unless(told: Event) -> stack.Say:
    """Say each step, and stop starting as soon as one is told to stop."""

    def step(text: str) -> None:
        say(text)
        if told.is_set() and text.startswith(("starting", "bringing")):
            raise KeyboardInterrupt

    return step


@contextlib.contextmanager
def _until_told() -> Iterator[Event]:
    """An event that SIGINT and SIGTERM set. A second one changes nothing: stopping in order has time limits."""
    told = Event()

    def note(number: int, _: object) -> None:
        told.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told
    except KeyboardInterrupt:
        err.print("stopped before everything had started", highlight=False)
    finally:
        for number, former in before.items():
            signal.signal(number, former)
