"""``ask``: a question over memory, by hand."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json
from memory_app.console.settings import Data
from memory_app.records.scope import Scope

app = typer.Typer()


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="In plain words.")],
    agent: Annotated[str, typer.Option("--agent", help="The AI that remembers.")] = "assistant",
    user: Annotated[str, typer.Option("--user", help="The person remembered.")] = "me",
    session: Annotated[str | None, typer.Option("--session", help="The conversation.")] = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Have the agent's language model answer a question from memory, each sentence with what it rests on."""
    with connect(data, tenant) as memory:
        answered = memory.ask(Scope(agent, user, session), question)
    if as_json:
        write_json({"known": answered.known, "text": answered.text, **asdict(answered)})
        return
    for sentence in answered.sentences:
        ids = ", ".join(map(str, sentence.ids))
        out.print(f"{sentence.text}  [{ids}]", markup=False, highlight=False)
    if not answered.known:
        out.print(answered.text)
    for reason, count in answered.dropped.items():
        out.print(f"dropped: {count} ({reason})", markup=False, highlight=False)
