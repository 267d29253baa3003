"""``list``, ``show``, ``why``, ``correct``, ``usage``: what is remembered and why, and what language models cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Annotated
from uuid import UUID

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, line_of, out, shown, write_json, write_table
from memory_app.console.scope import Agent, ForAll, MaybeUser, scope_for
from memory_app.console.settings import Data
from memory_app.memories.lookup import Why
from memory_app.memories.remember import Remembered
from memory_app.records.records import Memory, Turn
from memory_app.records.retention import deletion_note
from memory_app.tenancy.rows.usage import UsageDay
from memory_app.tenancy.usage import DAYS_LIMIT, spending

app = typer.Typer()

MemoryId = Annotated[UUID, typer.Argument(help="The memory, as `memory list --ids` names it.")]

IN_LINE = ("id", "kind", "text", "valid_from", "valid_until", "retired_reason")
"""Fields that the line of a memory shows."""


@app.command("list")
def list_memories(
    kind: Annotated[
        str | None, typer.Option(help="Only memories of this kind, such as fact or anchor.")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Only memories with this tag.")] = None,
    history: Annotated[bool, typer.Option("--history", help="What is no longer true, too.")] = False,
    ids: Annotated[bool, typer.Option("--ids", help="Show ids, as `memory why` wants them.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Most memories.")] = 50,
    for_all: ForAll = False,
    agent: Agent = "assistant",
    user: MaybeUser = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List what is remembered with the time in which it is true, in the order in which it became so."""
    scope = scope_for(agent, user, for_all=for_all)
    with connect(data, tenant) as memory:
        rows = memory.memories(scope, kind=kind, tag=tag, history=history, limit=limit)
    # The limit takes the newest; here they are sorted by the time in which they are true.
    in_time = tuple(sorted(rows, key=lambda row: (row.kind, row.valid_from)))
    if as_json:
        write_json(in_time)
        return
    for row in in_time:
        # Plain, since a text in square brackets would be taken for markup.
        out.print(memory_line(row, with_id=ids), markup=False, highlight=False)


@app.command()
def show(memory_id: MemoryId, tenant: Tenant = "default", data: Data = None, as_json: AsJson = False) -> None:
    """Show a memory with its fields, and what it replaced or was replaced by."""
    with connect(data, tenant) as memory:
        row = memory.memory(memory_id)
        versions = memory.versions(memory_id)
    if as_json:
        write_json({"memory": row, "versions": versions})
        return
    lines = [memory_line(row, with_id=True), *_field_lines(row)]
    if len(versions) > 1:
        lines += ["versions, oldest first:", *(memory_line(version, with_id=True) for version in versions)]
    for line in lines:
        out.print(line, markup=False, highlight=False)


@app.command()
def why(
    memory_id: MemoryId,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Tell why a memory is there: the turns behind it, what it was made of and how, and what becomes of it."""
    with connect(data, tenant) as memory:
        explanation = memory.why(memory_id)
    if as_json:
        write_json(explanation)
        return
    for line in _reasons(explanation):
        out.print(line, markup=False, highlight=False)


@app.command()
def correct(
    memory_id: MemoryId,
    text: Annotated[str, typer.Argument(help="The right words.")],
    subject: Annotated[str | None, typer.Option(help="Whom or what they are about; else as it was.")] = None,
    relation: Annotated[str | None, typer.Option(help="Such as lives_in; else as it was.")] = None,
    object: Annotated[str | None, typer.Option(help="The other end of the relation; else as it was.")] = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Put other words in place of a memory's; the wrong ones stay in its history."""
    with connect(data, tenant) as memory:
        triple = {"subject": subject, "relation": relation, "object": object}
        corrected = memory.correct(memory_id, text, **{name: part for name, part in triple.items() if part})
    if as_json:
        write_json(corrected)
        return
    out.print(f"{corrected.outcome}: {corrected.id}", markup=False, highlight=False)


@app.command()
def usage(
    days: Annotated[int, typer.Option(min=1, max=DAYS_LIMIT, help="How far back.")] = 30,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Calls, tokens and money by day (UTC) and model."""
    with connect(data, tenant) as memory:
        rows = spending(memory.runtime, memory.tenant_id, days=days)
    if as_json:
        write_json([_named(row) for row in rows])
        return
    columns = ("day", "model", "calls", "tokens in", "tokens out", "dollars")
    write_table(f"usage of {tenant}", columns, [tuple(_named(row).values()) for row in rows])


def _named(row: UsageDay) -> dict[str, object]:
    return {
        "day": row.day.isoformat(),
        "model": row.model,
        "calls": row.calls,
        "tokens_in": row.tokens_in,
        "tokens_out": row.tokens_out,
        "cost_usd": f"{row.cost_usd:.4f}",
    }


def memory_line(memory: Memory, *, with_id: bool = False) -> str:
    until = f"{memory.valid_until:%Y-%m-%d}" if memory.valid_until else ""
    gone = f" ({memory.retired_reason})" if memory.retired_reason else ""
    id = f"{memory.id}  " if with_id else ""
    return f"{id}{memory.kind:<10} {memory.valid_from:%Y-%m-%d} … {until:<10}  {memory.text}{gone}"


def stored_line(remembered: Remembered) -> str:
    return " ".join([f"memory {remembered.id}: {remembered.outcome}", *remembered.notes])


def _field_lines(memory: Memory) -> Iterator[str]:
    for field in fields(memory):
        value = getattr(memory, field.name)
        # A count of 0 says something; a field that is not set says nothing.
        is_unset = value is None or value is False or value == ()
        if is_unset or field.name in IN_LINE:
            continue
        if isinstance(value, tuple):
            value = ", ".join(value)
        yield f"  {field.name}: {line_of(value) if is_dataclass(value) else shown(value)}"


def _evidence_line(turn: Turn) -> str:
    words = turn.text if turn.words_deleted_at is None else f"({deletion_note(turn.words_deleted_at)})"
    return f"  {turn.at:%Y-%m-%d %H:%M} {turn.speaker}: {words}"


def _reasons(explanation: Why) -> list[str]:
    # A job that asked no model followed rules, which the evidence shows.
    by_model = [run for run in explanation.runs if run.model]
    return [
        memory_line(explanation.memory),
        *map(_evidence_line, explanation.evidence),
        *(f"  made of: {parent.memory.text}" for parent in explanation.parents),
        *(f"  {run.name}: model {run.model}, prompt {run.prompt_version}" for run in by_model),
        *(f"  followed by: {successor.text}" for successor in filter(None, [explanation.successor])),
        f"  strength {explanation.strength:.2f}; {explanation.fate}",
    ]
