"""``export`` and ``import``: one agent and user as a JSON file, and back into an empty one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from memory_app.cli.connect import Tenant, connect
from memory_app.cli.find import Data
from memory_app.cli.output import AsJson, out, write_json
from memory_app.domain.scope import Scope
from memory_app.errors import InvalidInput

app = typer.Typer()

Agent = Annotated[str, typer.Option("--agent", help="The AI that remembers.")]
User = Annotated[str, typer.Option("--user", help="The person remembered.")]


@app.command("export")
def export_scope(
    path: Annotated[Path, typer.Argument(help="File to write.")],
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Write everything that is stored for an agent and a user to a file."""
    with connect(data, tenant) as memory:
        snapshot = memory.export(Scope(agent, user))
    path.write_text(json.dumps(snapshot, ensure_ascii=False), encoding="utf-8")
    _tell(snapshot["counts"], f"written to {path}", as_json=as_json)


@app.command("import")
def import_scope(
    path: Annotated[Path, typer.Argument(help="File that `memory export` wrote.")],
    agent: Agent = "assistant",
    user: User = "me",
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Fill an empty agent and user from a file; all of it, or nothing and why not."""
    try:
        snapshot = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror})", field="path") from error
    except ValueError as error:
        raise InvalidInput(f"{path}: is not JSON", field="path") from error
    with connect(data, tenant) as memory:
        done = memory.load(Scope(agent, user), snapshot)
    _tell(dict(done.counts), f"read from {path}", as_json=as_json)


def _tell(counts: dict[str, int], where: str, *, as_json: bool) -> None:
    if as_json:
        write_json(counts)
    else:
        told = ", ".join(f"{n} {name}" for name, n in counts.items() if n)
        out.print(f"{told or 'nothing'} {where}", markup=False, highlight=False)
