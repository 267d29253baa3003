"""``health``: one part of this machine or container, looked at lightly, for supervisors that ask every few seconds.

Only the standard library and typer are imported here. `memory doctor` looks at the whole.
"""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from memory_app import life

HOST = "127.0.0.1"
TIMEOUT_SECONDS = 5.0
QUEUES = ("ingest", "model", "maintenance")

app = typer.Typer(
    help="Check one part of this machine or container, lightly; exit status 1 when it is not well.",
    no_args_is_help=True,
)

Folder = Annotated[
    Path | None,
    typer.Option(
        envvar="MEMORY_LIFE_FOLDER",
        help="Where processes leave their signs of life. Default: memory-life-UID in the folder for temporary files.",
        show_default=False,
    ),
]


@app.command()
def api(
    port: Annotated[int, typer.Option(envvar="MEMORY_HTTP__PORT", help="Port of the API.")] = 8321,
) -> None:
    """Whether the API of this machine answers."""
    _ask(port, "/health/live", "the API")


@app.command()
def flower(
    port: Annotated[int, typer.Option(envvar="FLOWER_PORT", help="Port of Flower.")] = 5555,
) -> None:
    """Whether Flower of this machine answers."""
    _ask(port, "/healthcheck", "Flower")


@app.command()
def worker(
    queue: Annotated[
        str | None, typer.Option(help=f"Only workers of this queue: {', '.join(QUEUES)}. Default: all.")
    ] = None,
    folder: Folder = None,
) -> None:
    """Whether every worker of this machine takes tasks and its pool does them."""
    if queue is not None and queue not in QUEUES:
        raise typer.BadParameter(f"unknown queue {queue}; one of {', '.join(QUEUES)}", param_hint="--queue")
    kinds = [f"worker-{name}" for name in QUEUES if queue in (None, name)]
    _look("worker" if queue is None else kinds[0], kinds, folder)


@app.command()
def beat(folder: Folder = None) -> None:
    """Whether Beat of this machine goes on."""
    _look("beat", ["beat"], folder)


@app.command()
def finder(folder: Folder = None) -> None:
    """Whether the finder of this machine goes on."""
    _look("finder", ["finder"], folder)


def _look(name: str, kinds: Sequence[str], folder: Path | None) -> None:
    """By the signs of all processes of these kinds: one that hangs is not hidden by another."""
    signs = [sign for sign in life.read(folder) if sign.kind in kinds]
    if not signs:
        _fail(f"no {name} of this user runs here, or it has not started yet")
    oldest = max(signs, key=lambda sign: sign.age_seconds)
    if oldest.is_silent:
        _fail(f"{oldest.kind} (process {oldest.pid}) has not gone on for {oldest.age_seconds:.0f} s")
    typer.echo(f"{name} goes on; its last sign is {oldest.age_seconds:.1f} s old")


def _ask(port: int, path: str, name: str) -> None:
    with closing(http.client.HTTPConnection(HOST, port, timeout=TIMEOUT_SECONDS)) as connection:
        try:
            connection.request("GET", path)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            _fail(f"{name} does not answer at {HOST}:{port} ({type(error).__name__})")
    if status != 200:
        _fail(f"{name} answers {status} at {HOST}:{port}{path}")
    typer.echo(f"{name} answers at {HOST}:{port}")


def _fail(message: str) -> NoReturn:
    typer.echo(f"memory: {message}", err=True)
    raise typer.Exit(1)
