"""The table of commands, and a group that imports the module of a command when that command runs.

The help texts stand here once more, since `memory --help` shows them without importing anything;
`tests/unit/main/test_cli_lazy.py` keeps them equal to those of the commands.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, slots=True)
class Entry:
    """A command or a group of commands: its module below `memory_app`, and what `memory --help` says of it."""

    module: str
    help: str
    is_group: bool = False


COMMANDS = {
    "up": Entry(
        "main.up_commands",
        "Run everything on this machine until Ctrl-C: servers, worker, Beat, finder, API and Flower.",
    ),
    "demo": Entry(
        "main.demo_command",
        "Play a conversation through real servers and workers, and show what is remembered.",
    ),
    "stop": Entry(
        "main.up_commands",
        "Stop what runs in the data folder: ``memory up`` if there is one, and the embedded servers.",
    ),
    "migrate": Entry("ops.migrate_command", "Bring the database to the newest schema, as its owner."),
    "record": Entry("recall.commands", "Record one turn; workers turn it into memory."),
    "remember": Entry(
        "recall.commands",
        "Store one statement, about a person or with --for-all for every person of the agent.",
    ),
    "recall": Entry("recall.commands", "Find what is remembered."),
    "context": Entry("recall.commands", "The context window for the next reply."),
    "ask": Entry(
        "ask.commands",
        "Have the agent's language model answer a question from memory, each sentence with what it rests on.",
    ),
    "list": Entry(
        "memories.commands",
        "List what is remembered with the time in which it is true, in the order in which it became so.",
    ),
    "show": Entry(
        "memories.commands", "Show a memory with its fields, and what it replaced or was replaced by."
    ),
    "why": Entry(
        "memories.commands",
        "Tell why a memory is there: the turns behind it, what it was made of and how, and what becomes of it.",
    ),
    "correct": Entry(
        "memories.commands", "Put other words in place of a memory's; the wrong ones stay in its history."
    ),
    "pin": Entry("memories.change_commands", "Let a memory never fade, and consider it always."),
    "unpin": Entry("memories.change_commands", "Take the pin off a memory."),
    "invalidate": Entry(
        "memories.change_commands", "Say that a memory is no longer true; it is kept as history."
    ),
    "revive": Entry("memories.change_commands", "Bring back a memory that expired or was evicted."),
    "unmerge": Entry(
        "memories.change_commands",
        "Take a merged memory apart: its parts are current again, and it is gone.",
    ),
    "feedback": Entry("memories.change_commands", "Rate an answer or a memory: up, down or retry."),
    "fact": Entry(
        "memories.fact_command",
        "Add a fact with subject, relation and object; what it ends is closed: `memory fact Mira lives_in Porto`.",
    ),
    "facts": Entry("memories.graph_commands", "List facts that hold now, or held at a time."),
    "entities": Entry("memories.graph_commands", "List people, places and things, most mentioned first."),
    "entity": Entry(
        "memories.entity_command",
        "Show what is known of a person, place or thing, or merge it into another that is the same.",
    ),
    "links": Entry("memories.graph_commands", "List what a memory is linked with."),
    "link": Entry("memories.graph_commands", "Link two memories; drawn again the link takes the new weight."),
    "unlink": Entry("memories.graph_commands", "Remove a link; both memories stay."),
    "turns": Entry("turns.session_commands", "Show the latest turns of a session, oldest first."),
    "sessions": Entry(
        "turns.session_commands", "List the sessions of an agent and a user, latest activity first."
    ),
    "queries": Entry("recall.state_commands", "Find questions that a person asked and that are like a text."),
    "stats": Entry(
        "recall.state_commands", "Count what is held of a person with an agent, beside what may be held."
    ),
    "expression": Entry(
        "recall.state_commands",
        "Show how an agent speaks with a person now: persona, what tunes it, and the tone of the last interaction.",
    ),
    "agents": Entry("agents.list_commands", "List the agents by name, with how many people each knows."),
    "users": Entry("agents.list_commands", "List the users by name, with the zone in which each speaks."),
    "user": Entry(
        "agents.user_commands",
        "Show a person's names and time zone, or change them; what is not given stays.",
    ),
    "agent": Entry(
        "agents.commands",
        "Show an agent's policy and persona, or change single fields of them, or replace them as a whole.",
    ),
    "usage": Entry("memories.commands", "Calls, tokens and money by day (UTC) and model."),
    "estimate": Entry(
        "ops.estimate_command",
        "Estimate calls, tokens and money of a language model per 1,000 turns, beside what was counted.",
    ),
    "trial": Entry("ops.trial_command", "Try parts of an installation on invented data.", is_group=True),
    "doctor": Entry(
        "ops.commands", "Check servers, settings, workers and due work; exit status 1 when something fails."
    ),
    "status": Entry(
        "ops.commands",
        "Backlog, workers, what waits and why, failed turns, the jobs of the last day and cost; live in a terminal.",
    ),
    "trace": Entry(
        "ops.trace_command",
        "Follow a turn from the request to its memories, or back, by any id on the way: ids and times, no text.",
    ),
    "health": Entry(
        "ops.health_command",
        "Check one part of this machine or container, lightly; exit status 1 when it is not well.",
    ),
    "events": Entry(
        "events.commands",
        "Tell what changed, in the order in which it became visible: ids only, no text. --json is one object a line.",
    ),
    "failed": Entry(
        "turns.commands", "List turns that were set aside, with the reason and without what was said."
    ),
    "refused": Entry(
        "turns.commands",
        "List messages of the broker that were refused for an erasure or a limit; never what they say.",
    ),
    "replay": Entry("turns.commands", "Index and extract failed turns once more, once the cause is mended."),
    "discard": Entry("turns.commands", "Give a failed turn up: it stays readable and has no effects."),
    "forget": Entry(
        "forget.forget_command",
        "Delete a person with all agents, or a session, a turn or a memory, with what was derived from it alone.",
    ),
    "forget-agent": Entry(
        "forget.commands",
        "Delete an agent with all that it knows of everybody; the people stay, with what other agents know of them.",
    ),
    "forget-tenant": Entry(
        "forget.commands",
        "Delete everybody and every agent of a tenant, and revoke its keys. Each person and agent has a receipt.",
    ),
    "reembed": Entry(
        "recall.reembed_command",
        "Embed again every row of another model than the settings name. Stop it at any time; it goes on where it "
        "was.",
    ),
    "sleep": Entry(
        "dispatch.commands",
        "Let what says the same become one, name patterns, link likenesses. `memory undo RUN` takes it back.",
    ),
    "synthesize": Entry(
        "dispatch.commands",
        "Have a language model make memories of turns, a session or some days. `memory undo RUN` takes it back.",
    ),
    "consolidate": Entry(
        "dispatch.commands",
        "Let all memories that say the same become one, firm ones too. `memory undo RUN` takes it back.",
    ),
    "decay": Entry(
        "dispatch.commands",
        "Retire memories that have faded or are too many, and delete those retired long ago, without waiting for Beat.",
    ),
    "session": Entry("dispatch.session_commands", "Sessions, one by one: end or clear them.", is_group=True),
    "undo": Entry("dispatch.commands", "Take back everything a run did, or nothing."),
    "export": Entry(
        "transfer.commands",
        "Write what is stored to a file. As jsonl: of a user, an agent with its users, or without both of the tenant.",
    ),
    "import": Entry(
        "transfer.commands",
        "Fill an empty agent and user from an own export, or add the chats and memories that another program exported.",
    ),
    "checkpoints": Entry(
        "transfer.checkpoint_commands",
        "Checkpoints: documents of the strongest memories at a moment.",
        is_group=True,
    ),
    "move": Entry(
        "main.move_command",
        "Copy the embedded database of a data folder to the empty one that the settings name; all of it or nothing.",
    ),
    "serve": Entry("main.part_commands", "Serve the HTTP API."),
    "worker": Entry(
        "main.part_commands",
        "Run a Celery worker: of the queue model with threads, of others with a process for each task.",
    ),
    "beat": Entry("main.part_commands", "Run Celery Beat; any number may run."),
    "finder": Entry(
        "main.part_commands", "Look for due work every few seconds and send hints; any number may run."
    ),
    "flower": Entry(
        "main.part_commands",
        "Run Flower, read-only and on loopback unless FLOWER_… says otherwise. It needs a login.",
    ),
    "mcp": Entry(
        "tools.commands",
        "Serve the agents' tools to MCP clients; over HTTP each request needs an API key.",
    ),
    "grants": Entry("agents.grant_commands", "What people let agents recall of other agents.", is_group=True),
    "webhooks": Entry("events.webhook_commands", "Webhooks: events posted to an address.", is_group=True),
    "keys": Entry("main.key_commands", "API keys.", is_group=True),
    "limits": Entry("main.limit_commands", "Limits of tenants and keys.", is_group=True),
    "audit": Entry("main.audit_commands", "The audit log: who did what.", is_group=True),
    "shards": Entry("transfer.shard_commands", "Shards of the database.", is_group=True),
    "erasures": Entry("forget.erasure_commands", "Receipts of what was forgotten.", is_group=True),
    "receipt": Entry("forget.receipt_commands", "Receipts of erasures, one by one.", is_group=True),
    "report": Entry("transfer.person_commands", "What is held about a person.", is_group=True),
    "bench": Entry("bench.commands", "Measure retrieval, latency, throughput and growth.", is_group=True),
}
"""In the order in which they are shown. `memory_app.main.cli.main` runs ``health`` without typer."""


class LazyGroup(TyperGroup):
    """Shows stand-ins with the help texts; imports the module of a command when it is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: TyperCommand(name=name, help=entry.help) for name, entry in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, stand_in, rest = super().resolve_command(ctx, args)
        # Only now: the help of the group and a mistyped name import no command.
        return name, stand_in and load(str(name)), rest


def load(name: str) -> Any:
    """The command itself, as typer makes it."""
    entry = COMMANDS[name]
    # Before the command's own modules: one of them may log while it is imported.
    import_module("memory_app.log").configure(level="WARNING", form="console")
    module = import_module(f"memory_app.{entry.module}")
    parent = typer.Typer(add_completion=False)
    parent.add_typer(module.app, name=name if entry.is_group else None)
    return typer.main.get_group(parent).commands[name]


app = typer.Typer(
    name="memory",
    help="Long-term memory for chat apps and AI agents.",
    cls=LazyGroup,
    no_args_is_help=True,
    # Typer's own would print local variables, which hold what people said.
    pretty_exceptions_enable=False,
)


@app.callback()
def _memory() -> None:
    """Without a callback of its own, a group without commands cannot be built."""
