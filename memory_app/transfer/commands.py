"""``export`` and ``import``: a snapshot of one agent and user, or JSON Lines of a person, an agent or a tenant."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, say, write_json
from memory_app.console.settings import Data
from memory_app.errors import InvalidInput
from memory_app.records.scope import Scope
from memory_app.transfer.export_lines import END, HEADER, is_header, type_of

app = typer.Typer()

USUAL_AGENT, USUAL_USER = "assistant", "me"
PROGRESS_LINES = 10_000


class Form(StrEnum):
    """How an export is written."""

    SNAPSHOT = "snapshot"
    JSONL = "jsonl"


@app.command("export")
def export_scope(
    path: Annotated[Path, typer.Argument(help="File to write.")],
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent", help=f"The AI that remembers. Snapshot: {USUAL_AGENT}; jsonl: all.", show_default=False
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", help=f"The person remembered. Snapshot: {USUAL_USER}; jsonl: all.", show_default=False
        ),
    ] = None,
    tenant: Tenant = "default",
    form: Annotated[
        Form,
        typer.Option("--format", help="One document of one agent and user, or a line of JSON for each row."),
    ] = Form.SNAPSHOT,
    with_vectors: Annotated[
        bool, typer.Option("--with-vectors", help="jsonl: with embeddings and search terms.")
    ] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Write what is stored to a file. As jsonl: of a user, an agent with its users, or without both of the tenant."""
    with connect(data, tenant) as memory:
        if form is Form.SNAPSHOT:
            if with_vectors:
                raise typer.BadParameter("a snapshot always has its vectors; --with-vectors is for jsonl")
            snapshot = memory.export(Scope(agent or USUAL_AGENT, user or USUAL_USER))
            path.write_text(json.dumps(snapshot, ensure_ascii=False), encoding="utf-8")
            counts = snapshot["counts"]
        else:
            # Closed at once, also after a failure: the iterator holds a transaction.
            with closing(memory.export_lines(agent=agent, user=user, with_vectors=with_vectors)) as lines:
                counts = _write_lines(path, lines)
    _tell(counts, f"written to {path}", as_json=as_json)


@app.command("import")
def import_scope(
    path: Annotated[Path, typer.Argument(help="File that `memory export` wrote.")],
    agent: Annotated[
        str, typer.Option("--agent", help="Snapshot: the AI that remembers; jsonl names it itself.")
    ] = USUAL_AGENT,
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            help=f"The person remembered. Snapshot: {USUAL_USER}; jsonl: as it says.",
            show_default=False,
        ),
    ] = None,
    tenant: Tenant = "default",
    new_consent: Annotated[
        bool, typer.Option("--new-consent", help="The person was erased once, and has agreed anew.")
    ] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Fill an empty agent and user from a snapshot, or a user's agents from jsonl: all of it, or nothing."""
    with _opened(path) as file, connect(data, tenant) as memory:
        # By its content, not its name: people rename files.
        is_lines = is_header(file.readline())
        file.seek(0)
        if is_lines:
            done = memory.import_lines(file, user=user, new_consent=new_consent)
        else:
            snapshot = _snapshot(file.read(), path)
            done = memory.load(Scope(agent, user or USUAL_USER), snapshot, new_consent=new_consent)
    _tell(dict(done.counts), f"read from {path}", as_json=as_json)


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """The file to read. Raises `InvalidInput` for one that cannot be read or is no text."""
    try:
        file = path.open(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror})", field="path") from error
    with file:
        try:
            yield file
        except UnicodeDecodeError as error:
            raise InvalidInput(f"{path}: is not UTF-8", field="path") from error


def _snapshot(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"{path}: is not JSON", field="path") from error


def _write_lines(path: Path, lines: Iterator[str]) -> dict[str, int]:
    """Write the lines to a file that only its owner may read. Counts of rows by type."""
    counts: Counter[str] = Counter()
    # Beside the file, which is replaced at the end: a part of an export must not pass for the whole. A pipe or a
    # terminal cannot be replaced.
    is_plain = not path.exists() or path.is_file()
    target = path.with_name(f"{path.name}.part") if is_plain else path
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            for number, line in enumerate(lines):
                file.write(line)
                counts[type_of(line)] += 1
                if number and number % PROGRESS_LINES == 0:
                    say(f"{number} rows")
        if is_plain:
            target.replace(path)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be written ({error.strerror})", field="path") from error
    return {name: count for name, count in counts.items() if name not in (HEADER, END)}


def _tell(counts: dict[str, int], where: str, *, as_json: bool) -> None:
    if as_json:
        write_json(counts)
    else:
        summary = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        out.print(f"{summary or 'nothing'} {where}", markup=False, highlight=False)
