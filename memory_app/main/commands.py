"""The table of commands, and a group that imports the module of a command when that command runs.

The help texts stand here once more, since `memory --help` shows them without importing anything;
`tests/unit/test_cli_lazy.py` keeps them equal to those of the commands.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, slots=True)
class Entry:
    """A command or a group of commands: where it is defined, and what `memory --help` says of it."""

    module: str
    help: str
    is_group: bool = False


COMMANDS = {
    "up": Entry(
        "servers",
        "Run everything on this machine until Ctrl-C: servers, worker, Beat, finder, API and Flower.",
    ),
    "demo": Entry(
        "servers", "Play a conversation through real servers and workers, and show what is remembered."
    ),
    "stop": Entry(
        "servers",
        "Stop what runs in the data folder: ``memory up`` if there is one, and the embedded servers.",
    ),
    "migrate": Entry("migrate", "Bring the database to the newest schema, as its owner."),
    "record": Entry("verbs", "Record one turn; workers turn it into memory."),
    "remember": Entry("verbs", "Store one statement."),
    "recall": Entry("verbs", "Find what is remembered."),
    "context": Entry("verbs", "The context window for the next reply."),
    "list": Entry(
        "look",
        "List what is remembered with the time in which it is true, in the order in which it became so.",
    ),
    "why": Entry(
        "look",
        "Tell why a memory is there: the turns behind it, what it was made of and how, and what becomes of it.",
    ),
    "usage": Entry("look", "Calls, tokens and money by day (UTC) and model."),
    "doctor": Entry(
        "check", "Check servers, settings, workers and due work; exit status 1 when something fails."
    ),
    "status": Entry(
        "check",
        "Sessions, turns by stage, memories by kind, periods that were missed, backlog and workers.",
    ),
    "health": Entry(
        "health",
        "Check one part of this machine or container, lightly; exit status 1 when it is not well.",
    ),
    "failed": Entry("failed", "List turns that were set aside, with the reason and without what was said."),
    "replay": Entry("failed", "Index and extract failed turns once more, once the cause is mended."),
    "discard": Entry("failed", "Give a failed turn up: it stays readable and has no effects."),
    "forget": Entry(
        "forget",
        "Delete a person with all agents: turns, memories, entities and what was derived from them alone.",
    ),
    "reembed": Entry(
        "reembed",
        "Embed again every row of another model than the settings name. Stop it at any time; it goes on where it "
        "was.",
    ),
    "sleep": Entry(
        "sleep",
        "Let what says the same become one, name patterns, link likenesses. `memory undo RUN` takes it back.",
    ),
    "undo": Entry("sleep", "Take back everything a run did, or nothing."),
    "export": Entry(
        "transfer",
        "Write what is stored to a file. As jsonl: of a user, an agent with its users, or without both of the tenant.",
    ),
    "import": Entry(
        "transfer",
        "Fill an empty agent and user from a snapshot, or a user's agents from jsonl: all of it, or nothing.",
    ),
    "move": Entry(
        "move",
        "Copy the embedded database of a data folder to the empty one that the settings name; all of it or nothing.",
    ),
    "serve": Entry("parts", "Serve the HTTP API."),
    "worker": Entry(
        "parts",
        "Run a Celery worker: of the queue model with threads, of others with a process for each task.",
    ),
    "beat": Entry("parts", "Run Celery Beat; any number may run."),
    "finder": Entry("parts", "Look for due work every few seconds and send hints; any number may run."),
    "flower": Entry(
        "parts", "Run Flower, read-only and on loopback unless FLOWER_… says otherwise. It needs a login."
    ),
    "keys": Entry("keys", "API keys.", is_group=True),
    "erasures": Entry("erasures", "Receipts of what was forgotten.", is_group=True),
    "bench": Entry("bench", "Measure retrieval, latency, throughput and growth.", is_group=True),
}
"""In the order in which they are shown. `memory_app.main.cli.main` runs ``health`` without typer."""


class LazyGroup(TyperGroup):
    """Shows stand-ins with the help texts; imports the module of a command when it is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: TyperCommand(name=name, help=entry.help) for name, entry in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, stand_in, rest = super().resolve_command(ctx, args)
        return name, stand_in and load(str(name)), rest


def load(name: str) -> Any:
    """The command itself, as typer makes it."""
    entry = COMMANDS[name]
    import_module("memory_app.log").configure(level="WARNING", form="console")
    module = import_module(f"memory_app.main.cli.{entry.module}")
    parent = typer.Typer(add_completion=False)
    parent.add_typer(module.app, name=name if entry.is_group else None)
    return typer.main.get_group(parent).commands[name]


app = typer.Typer(
    name="memory",
    help="Long-term memory for chat apps and AI agents.",
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


@app.callback()
def _memory() -> None:
    """Without a callback of its own, a group without commands cannot be built."""
