"""``agent``: how an agent speaks and what it does with what it hears."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.json_option import json_option
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
    default_memories: Annotated[
        str | None,
        typer.Option(help="With --replace: what the agent begins with for each person, as a JSON list."),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="What is given replaces the whole part; null is its default. A new agent is made.",
        ),
    ] = False,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show an agent's policy and persona, or change single fields of them, or replace them as a whole."""
    options = {"policy": policy, "persona": persona, "default_memories": default_memories}
    parts = {part: _part(text, part, replace=replace) for part, text in options.items() if text is not None}
    if replace and not parts:
        raise typer.BadParameter(
            "say what: --policy, --persona or --default-memories", param_hint="--replace"
        )
    if default_memories is not None and not replace:
        raise typer.BadParameter("always replaces all; add --replace", param_hint="--default-memories")
    with connect(data, tenant) as memory:
        if replace:
            result = memory.change_agent(name, **parts)
        elif parts:
            result = memory.amend_agent(name, **parts)
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


def _part(given: str, part: str, *, replace: bool) -> Any:
    """What a part of the agent is to be: an object, of default memories a list. Replaced, it may be null."""
    option = f"--{part.replace('_', '-')}"
    value = json_option(given, option)
    if value is None and replace:
        return None
    kind, name = (list, "list") if part == "default_memories" else (dict, "object")
    if not isinstance(value, kind):
        raise InvalidInput(f"{option}: a JSON {name} is required", field=option)
    return value
