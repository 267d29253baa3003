"""``agent``: how an agent speaks and what it does with what it hears."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json
from memory_app.console.settings import Data
from memory_app.errors import InvalidInput

app = typer.Typer()


@app.command()
def agent(
    name: Annotated[str, typer.Argument(help="The AI that remembers.")],
    policy: Annotated[
        str | None,
        typer.Option(
            help='Fields of the policy to change, as JSON or a file ("-": standard input); others stay.'
        ),
    ] = None,
    persona: Annotated[
        str | None, typer.Option(help="Fields of the persona to change, in the same way.")
    ] = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show an agent's policy and persona, or change single fields of them."""
    changes = {"policy": _fields(policy, "--policy"), "persona": _fields(persona, "--persona")}
    with connect(data, tenant) as memory:
        if any(fields is not None for fields in changes.values()):
            result = memory.amend_agent(name, **changes)
        else:
            result = memory.agent(name)
    shown: dict[str, Any] = {
        "agent": result.name,
        "policy": result.policy.as_dict(),
        "persona": result.persona.as_dict(),
        "default_memories": [dict(memory) for memory in result.default_memories],
    }
    if as_json:
        write_json(shown)
        return
    for part in ("policy", "persona"):
        for field, value in shown[part].items():
            # As it would be given, so that a line can be copied into a change.
            out.print(
                f"{part}.{field} = {json.dumps(value, ensure_ascii=False)}", markup=False, highlight=False
            )
    for memory_text in (memory["text"] for memory in shown["default_memories"]):
        out.print(f"default memory: {memory_text}", markup=False, highlight=False)


def _fields(given: str | None, option: str) -> Mapping[str, Any] | None:
    """The fields in JSON: as given, of a file, or of standard input."""
    if given is None:
        return None
    if given == "-":
        text = sys.stdin.read()
    elif given.lstrip().startswith("{"):
        text = given
    else:
        try:
            text = Path(given).read_text(encoding="utf-8")
        except OSError as error:
            raise typer.BadParameter(f"no such file: {given}", param_hint=option) from error
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"{option}: no valid JSON: {error}", field=option) from error
    if not isinstance(fields, dict):
        raise InvalidInput(f"{option}: a JSON object is required", field=option)
    return fields
