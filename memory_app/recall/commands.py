"""``record``, ``remember``, ``recall``, ``context``: the verbs, by hand."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.instants import instant_option
from memory_app.console.json_option import object_option
from memory_app.console.output import AsJson, out, write_json, write_table
from memory_app.console.scope import Agent, ForAll, MaybeUser, User, scope_for
from memory_app.console.settings import Data
from memory_app.console.statement import Importance, ImportanceScale, SaidAt, ValidFrom, ValidUntil
from memory_app.errors import Permanent
from memory_app.memories.commands import stored_line
from memory_app.recall.sections import as_json as window_as_json
from memory_app.records.records import Role, Stage, Tier
from memory_app.records.scope import Scope

app = typer.Typer()

Expand = Annotated[
    bool, typer.Option("--expand-graph/--no-expand-graph", help="Add memories linked to those found.")
]
Depth = Annotated[int, typer.Option(min=1, max=3, help="How many links away.")]
Session = Annotated[str | None, typer.Option("--session", help="The conversation.")]


@app.command()
def record(
    content: Annotated[str, typer.Argument(help="What was said.")],
    agent: Agent = "assistant",
    user: User = "me",
    session: Annotated[str, typer.Option("--session", help="The conversation.")] = "cli",
    role: Annotated[Role, typer.Option(help="Who said it.")] = Role.USER,
    name: Annotated[str | None, typer.Option(help="The speaker's name.")] = None,
    at: Annotated[str | None, typer.Option(help="When it was said, as 2026-01-31T09:00:00+01:00.")] = None,
    emotional_tone: Annotated[
        str | None, typer.Option(help="How it was said, such as warm.", show_default=False)
    ] = None,
    tools_used: Annotated[
        list[str] | None, typer.Option("--tool", help="A tool that was used; may be given several times.")
    ] = None,
    metadata: Annotated[
        str | None,
        typer.Option(
            help='What else is known, as a JSON object or a file ("-": standard input).', show_default=False
        ),
    ] = None,
    replaces: Annotated[
        UUID | None,
        typer.Option(help="A turn of the session that is forgotten, and makes place.", show_default=False),
    ] = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option(help="With the same key again nothing is recorded twice.", show_default=False),
    ] = None,
    wait: Annotated[float, typer.Option(min=0, max=30, help="Seconds to wait for what comes of it.")] = 0,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Record one turn; workers turn it into memory."""
    turn_at = instant_option(at, "--at")
    turn_metadata = object_option(metadata, "--metadata")
    with connect(data, tenant) as memory:
        accepted = memory.record(
            Scope(agent, user, session),
            content,
            role=role,
            name=name,
            at=turn_at,
            emotional_tone=emotional_tone,
            tools_used=tuple(tools_used or ()),
            metadata=turn_metadata,
            replaces=replaces,
            idempotency_key=idempotency_key,
        )
        ticket = memory.ticket(accepted.id, wait_seconds=wait)
    if as_json:
        write_json(ticket)
    else:
        line = f"turn {ticket.id}: {ticket.stage}"
        if ticket.stage is Stage.EXTRACTED:
            line += f", {len(ticket.memory_ids)} memories"
        if ticket.reason:
            line += f" ({ticket.reason})"
        if ticket.waiting_for:
            line += f", waits for {ticket.waiting_for}"
        # A reason may contain brackets, which Rich takes for markup.
        out.print(line, markup=False, highlight=False)
    # Raised after the output, so that --json prints the ticket of a failed turn, too.
    if ticket.stage is Stage.FAILED:
        raise Permanent(f"turn {ticket.id} failed: {ticket.reason}")


@app.command()
def remember(
    text: Annotated[str, typer.Argument(help="The statement, in words that stand alone.")],
    kind: Annotated[str, typer.Option(help="What sort of memory it is.")] = "fact",
    subtype: Annotated[
        str | None, typer.Option(help="What sort of that kind, such as preference.", show_default=False)
    ] = None,
    importance: Importance = None,
    importance_scale: ImportanceScale = None,
    subject: Annotated[
        str | None, typer.Option(help="Whom or what it is about; with --relation.", show_default=False)
    ] = None,
    relation: Annotated[str | None, typer.Option(help="Such as lives_in.", show_default=False)] = None,
    object: Annotated[
        str | None, typer.Option(help="The other end of the relation.", show_default=False)
    ] = None,
    valid_from: ValidFrom = None,
    valid_until: ValidUntil = None,
    said_at: SaidAt = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="May be given several times.")] = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="Never fades.")] = False,
    deduplicate: Annotated[bool, typer.Option(help="Look for the same statement first.")] = True,
    for_all: ForAll = False,
    agent: Agent = "assistant",
    user: MaybeUser = None,
    session: Session = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Store one statement, about a person or with --for-all for every person of the agent."""
    scope = scope_for(agent, user, session, for_all=for_all)
    since, until = instant_option(valid_from, "--valid-from"), instant_option(valid_until, "--valid-until")
    said = instant_option(said_at, "--said-at")
    with connect(data, tenant) as memory:
        remembered = memory.remember(
            scope,
            text,
            kind=kind,
            subtype=subtype,
            deduplicate=deduplicate,
            importance=importance,
            importance_scale=importance_scale,
            subject=subject,
            relation=relation,
            object=object,
            valid_from=since,
            said_at=said,
            valid_until=until,
            tags=tuple(tags or ()),
            pinned=pinned,
            shared=for_all,
        )
    if as_json:
        write_json(remembered)
    else:
        out.print(stored_line(remembered), markup=False, highlight=False)


@app.command()
def recall(
    query: Annotated[
        str | None, typer.Argument(help="What to look for; without it the strongest come.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most rows.")] = 10,
    kinds: Annotated[list[str] | None, typer.Option("--kind", help="Only memories of this kind.")] = None,
    tiers: Annotated[list[Tier] | None, typer.Option("--tier", help="Only this tier.")] = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="Only memories with this tag.")] = None,
    subtypes: Annotated[
        list[str] | None, typer.Option("--subtype", help="Only memories of this subtype.")
    ] = None,
    only_session: Annotated[
        str | None,
        typer.Option(
            help="Only rows of this conversation, and memories that belong to none.", show_default=False
        ),
    ] = None,
    min_importance: Annotated[
        int | None, typer.Option(min=1, max=10, help="Only memories at least this important.")
    ] = None,
    after: Annotated[
        str | None, typer.Option(help="Only what was said, or holds from, this time or later.")
    ] = None,
    before: Annotated[
        str | None, typer.Option(help="Only what was said, or holds from, before this time.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Scoring preset.")] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option("--weight", help="Weight of a signal, as keyword=0.5; may be given several times."),
    ] = None,
    min_score: Annotated[
        float | None, typer.Option(min=0, max=1, help="Only rows with at least this score.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(min=0, max=1, help="Only rows with at least this cosine.")
    ] = None,
    expand_graph: Expand = False,
    depth: Depth = 1,
    as_of: Annotated[str | None, typer.Option(help="What was true then.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Every signal of every candidate.")] = False,
    agent: Agent = "assistant",
    user: User = "me",
    session: Session = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Find what is remembered."""
    held_at = instant_option(as_of, "--as-of")
    said_after, said_before = instant_option(after, "--after"), instant_option(before, "--before")
    chosen_weights = _weights(weights)
    with connect(data, tenant) as memory:
        recalled = memory.recall(
            Scope(agent, user, session),
            query,
            limit=limit,
            kinds=tuple(kinds) if kinds else None,
            tiers=tuple(tiers) if tiers else None,
            tags=tuple(tags) if tags else None,
            subtypes=tuple(subtypes) if subtypes else None,
            session=only_session,
            min_importance=min_importance,
            after=said_after,
            before=said_before,
            preset=preset,
            weights=chosen_weights,
            min_score=min_score,
            threshold=threshold,
            expand_graph=expand_graph,
            depth=depth,
            as_of=held_at,
            explain=explain,
        )
    if as_json:
        write_json(recalled)
        return
    rows = [
        (f"{hit.score:.3f}", hit.tier, hit.kind, hit.at, hit.speaker, hit.text) for hit in recalled.memories
    ]
    write_table("recalled", ("score", "tier", "kind", "at", "speaker", "text"), rows)
    if recalled.degraded:
        out.print(f"left out: {', '.join(recalled.degraded)}", markup=False, highlight=False)


@app.command()
def context(
    query: Annotated[str | None, typer.Argument(help="What the user just said.")] = None,
    budget: Annotated[int | None, typer.Option("--budget", min=1, help="Most tokens.")] = None,
    turns: Annotated[int | None, typer.Option(min=0, help="Latest turns shown.")] = None,
    topic_limit: Annotated[
        int | None, typer.Option(min=1, help="Rows looked for that bear on the query.")
    ] = None,
    anchor_limit: Annotated[int | None, typer.Option(min=0, help="Relational anchors shown.")] = None,
    anchor_importance: Annotated[
        int | None, typer.Option(min=1, max=10, help="Least importance of an anchor.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Scoring preset.")] = None,
    expand_graph: Expand = True,
    depth: Depth = 1,
    agent: Agent = "assistant",
    user: User = "me",
    session: Session = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """The context window for the next reply."""
    with connect(data, tenant) as memory:
        window = memory.context(
            Scope(agent, user, session),
            query,
            budget_tokens=budget,
            turns=turns,
            topic_limit=topic_limit,
            anchor_limit=anchor_limit,
            anchor_importance=anchor_importance,
            preset=preset,
            expand_graph=expand_graph,
            depth=depth,
        )
    if as_json:
        write_json(window_as_json(window))
    else:
        out.print(window.text, markup=False, highlight=False)


def _weights(values: list[str] | None) -> dict[str, float] | None:
    if not values:
        return None
    weights = {}
    for value in values:
        name, _, number = value.partition("=")
        try:
            weights[name.strip()] = float(number)
        except ValueError as error:
            raise typer.BadParameter(f"{value}: write keyword=0.5", param_hint="--weight") from error
    return weights
