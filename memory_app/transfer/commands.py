"""``export`` and ``import``: a snapshot of one agent and user, or JSON Lines of a person, an agent or a tenant."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from memory_app import MemoryApp
from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, say, write_json
from memory_app.console.scope import USUAL_AGENT, USUAL_USER
from memory_app.console.settings import Data
from memory_app.errors import InvalidInput
from memory_app.records.scope import Scope
from memory_app.transfer.export_lines import END, HEADER, HEADER_LIMIT, is_header, type_of
from memory_app.transfer.import_output import roles_of, shown_progress, tell_import
from memory_app.transfer.snapshot import FORMAT as SNAPSHOT
from memory_app.transfer.snapshots import Imported

app = typer.Typer()

_SNAPSHOT = re.compile(rf'\s*{{\s*"format"\s*:\s*"{SNAPSHOT}"')
"""How a snapshot begins."""

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
            write_document(path, snapshot)
            counts = snapshot["counts"]
        else:
            # Closed at once, also after a failure: the iterator holds a transaction.
            with closing(memory.export_lines(agent=agent, user=user, with_vectors=with_vectors)) as lines:
                counts = _write_lines(path, lines)
    tell_counts(counts, f"written to {path}", as_json=as_json)


class ImportForm(StrEnum):
    """What is imported: an export of this product, or of another program."""

    SNAPSHOT = "snapshot"
    JSONL = "jsonl"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    SILLYTAVERN = "sillytavern"
    WHATSAPP = "whatsapp"
    OPENAI = "openai"
    LANGCHAIN = "langchain"
    OPENWEBUI = "openwebui"
    MEM0 = "mem0"
    LETTA = "letta"


OWN = (ImportForm.SNAPSHOT, ImportForm.JSONL)

OF_OTHERS = "Of another program: "


@app.command("import")
def import_scope(
    path: Annotated[Path, typer.Argument(help="File that `memory export` or another program wrote.")],
    agent: Annotated[
        str, typer.Option("--agent", help="The AI that remembers; jsonl names it itself.")
    ] = USUAL_AGENT,
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            help=f"The person remembered: {USUAL_USER}; for jsonl as it says.",
            show_default=False,
        ),
    ] = None,
    tenant: Tenant = "default",
    new_consent: Annotated[
        bool, typer.Option("--new-consent", help="The person was erased once, and has agreed anew.")
    ] = False,
    form: Annotated[
        ImportForm | None, typer.Option("--format", help="Else the file tells.", show_default=False)
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help=OF_OTHERS + "report, and store nothing.")
    ] = False,
    speakers: Annotated[
        list[str] | None,
        typer.Option("--speaker", help=OF_OTHERS + "who a name is, as NAME=user or NAME=assistant."),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", help=OF_OTHERS + "name of the session of a single conversation."),
    ] = None,
    time_zone: Annotated[
        str | None,
        typer.Option("--time-zone", help=OF_OTHERS + "zone of dates without one; else the user's."),
    ] = None,
    date_order: Annotated[
        str | None, typer.Option("--date-order", help=OF_OTHERS + "dmy or mdy, where the file does not tell.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option("--owner", help=OF_OTHERS + "whose part comes in, by the id in the file.")
    ] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Fill an empty agent and user from an own export, or add the chats and memories that another program exported."""
    form = form or own_form(path)
    with connect(data, tenant) as memory:
        if form not in (ImportForm.JSONL, ImportForm.SNAPSHOT):
            with shown_progress(hidden=as_json or dry_run) as on_progress:
                run = memory.import_file(
                    Scope(agent, user or USUAL_USER, session),
                    path,
                    format=None if form is None else form.value,
                    dry_run=dry_run,
                    time_zone=time_zone,
                    date_order=date_order,
                    speakers=roles_of(speakers or ()),
                    owner=owner,
                    on_progress=on_progress,
                )
            tell_import(run.report, as_json=as_json)
            return
        done = _import_own(memory, form, path, agent=agent, user=user, new_consent=new_consent)
    tell_counts(dict(done.counts), f"read from {path}", as_json=as_json)


def _import_own(
    memory: MemoryApp, form: ImportForm, path: Path, *, agent: str, user: str | None, new_consent: bool
) -> Imported:
    """Fill an empty agent and user from a file that `memory export` wrote."""
    with _opened(path) as file:
        if form is ImportForm.JSONL:
            return memory.import_lines(file, user=user, new_consent=new_consent)
        snapshot = _snapshot(file.read(), path)
    return memory.load(Scope(agent, user or USUAL_USER), snapshot, new_consent=new_consent)


def own_form(path: Path) -> ImportForm | None:
    """Which of our own exports a file is, by its content and not its name: people rename files. None: of others."""
    try:
        with path.open("rb") as file:
            head = file.read(HEADER_LIMIT).decode("utf-8", "replace")
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror})", field="path") from error
    if is_header(head.partition("\n")[0]):
        return ImportForm.JSONL
    return ImportForm.SNAPSHOT if _SNAPSHOT.match(head) else None


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


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Write a snapshot or a checkpoint. Raises `InvalidInput` for a file that cannot be written."""
    try:
        path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be written ({error.strerror})", field="path") from error


def tell_counts(counts: Mapping[str, int], where: str, *, as_json: bool) -> None:
    """Show how many rows of each sort were written or read."""
    if as_json:
        write_json(counts)
    else:
        summary = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        out.print(f"{summary or 'nothing'} {where}", markup=False, highlight=False)
