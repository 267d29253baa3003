"""``health``: check one part of this machine or container, for supervisors that ask every few seconds.

`memory doctor` checks the whole.
"""

from __future__ import annotations

# Only the standard library: importing typer costs more than the check, and supervisors ask often.
import argparse
import http.client
import os
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NoReturn

from memory_app import life

DESCRIPTION = "Check one part of this machine or container, lightly; exit status 1 when it is not well."
HOST = "127.0.0.1"
TIMEOUT_SECONDS = 5.0
QUEUES = ("ingest", "model", "maintenance")


def check(arguments: Sequence[str]) -> None:
    """Write one line about the part that ``arguments`` name. Exits with 1 when it is not well, 2 for a wrong usage."""
    options = _parser().parse_args(arguments)
    if options.part == "api":
        _ask(options.port, "/health/live", "the API")
    elif options.part == "flower":
        _ask(options.port, "/healthcheck", "Flower")
    elif options.part == "worker":
        kinds = [f"worker-{name}" for name in QUEUES if options.queue in (None, name)]
        _look("worker" if options.queue is None else kinds[0], kinds, options.folder)
    else:
        _look(options.part, [options.part], options.folder)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memory health", description=DESCRIPTION)
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    _add_port(parts.add_parser("api", help="it answers"), "MEMORY_HTTP__PORT", 8321)
    worker = parts.add_parser("worker", help="every worker takes tasks and its pool does them")
    worker.add_argument("--queue", choices=QUEUES, help="only workers of this queue; default: all")
    _add_folder(worker)
    _add_folder(parts.add_parser("beat", help="it goes on"))
    _add_folder(parts.add_parser("finder", help="it goes on"))
    _add_port(parts.add_parser("flower", help="it answers"), "FLOWER_PORT", 5555)
    return parser


def _add_port(parser: argparse.ArgumentParser, variable: str, default: int) -> None:
    parser.add_argument(
        "--port",
        type=int,
        default=os.environ.get(variable) or default,
        help=f"default: {variable}, else {default}",
    )


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--folder",
        type=Path,
        default=os.environ.get("MEMORY_LIFE_FOLDER") or None,
        help="where processes leave their signs of life; default: MEMORY_LIFE_FOLDER, else memory-life-UID in the "
        "folder for temporary files",
    )


def _look(name: str, kinds: Sequence[str], folder: Path | None) -> None:
    signs = [sign for sign in life.read(folder) if sign.kind in kinds]
    if not signs:
        _fail(f"no {name} of this user runs here, or it has not started yet")
    # The oldest sign decides, so that a process that hangs is not hidden by another that works.
    oldest = max(signs, key=lambda sign: sign.age_seconds)
    if oldest.is_silent:
        _fail(f"{oldest.kind} (process {oldest.pid}) has not gone on for {oldest.age_seconds:.0f} s")
    sys.stdout.write(f"{name} goes on; its last sign is {oldest.age_seconds:.1f} s old\n")


def _ask(port: int, path: str, name: str) -> None:
    with closing(http.client.HTTPConnection(HOST, port, timeout=TIMEOUT_SECONDS)) as connection:
        try:
            connection.request("GET", path)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            _fail(f"{name} does not answer at {HOST}:{port} ({type(error).__name__})")
    if status != 200:
        _fail(f"{name} answers {status} at {HOST}:{port}{path}")
    sys.stdout.write(f"{name} answers at {HOST}:{port}\n")


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"memory: {message}\n")
    sys.exit(1)
