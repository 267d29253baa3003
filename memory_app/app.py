"""The Python facade for producers in the same process: same words, same results as over HTTP."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from memory_app.agents import agents as agents_service
from memory_app.agents import users as users_service
from memory_app.agents.agents import Agent, AgentChange
from memory_app.agents.rows.users import UserRow
from memory_app.ask import ask as ask_service
from memory_app.ask.ask import Answered
from memory_app.db.db import transaction
from memory_app.errors import Misconfigured, NotFound
from memory_app.extraction.declared import read_text
from memory_app.forget import forget as forget_service
from memory_app.forget.rows.receipts import Erasure
from memory_app.jobs import jobs
from memory_app.jobs.rows.runs import Run
from memory_app.local import embedded
from memory_app.local.servers import embedded_settings
from memory_app.memories import correct as correct_service
from memory_app.memories import entities as entities_service
from memory_app.memories import facts as facts_service
from memory_app.memories import fate as fate_service
from memory_app.memories import feedback as feedback_service
from memory_app.memories import lookup
from memory_app.memories import query_graph as query_service
from memory_app.memories import remember as remember_service
from memory_app.memories.entities import Card, MergedEntity
from memory_app.memories.facts import FactQuery, Match
from memory_app.memories.feedback import Given
from memory_app.memories.lookup import MemoryFilter, Why
from memory_app.memories.query_graph import SimilarQuery
from memory_app.memories.remember import Remembered
from memory_app.memories.rows.entities import Entity
from memory_app.memories.rows.facts import FactHit
from memory_app.ops import trace as trace_service
from memory_app.ops.trace import Trace
from memory_app.recall import context as context_service
from memory_app.recall import recall as recall_service
from memory_app.recall.context import ContextRequest
from memory_app.recall.recall import Recalled, RecallQuery
from memory_app.recall.sections import ContextWindow
from memory_app.records.audit import Action, Chain, Entry
from memory_app.records.choice import choice_of
from memory_app.records.ids import checked_id
from memory_app.records.limits import Limits
from memory_app.records.message import MessageContent, Turn
from memory_app.records.records import (
    EmotionalState,
    Label,
    ListedTurn,
    Memory,
    Mention,
    NewTurn,
    RelationalContext,
    Role,
    Statement,
    Ticket,
    Tier,
)
from memory_app.records.scope import Scope
from memory_app.records.unchanged import UNCHANGED, Unchanged
from memory_app.runtime import Runtime, build
from memory_app.settings import Settings
from memory_app.sleep import consolidate as consolidate_service
from memory_app.sleep import cycle as sleep_service
from memory_app.sleep import decay as decay_service
from memory_app.sleep import report, session_end, undo
from memory_app.sleep import synthesis as synthesis_service
from memory_app.tenancy import audit as audit_service
from memory_app.tenancy import keys as key_service
from memory_app.tenancy import quotas
from memory_app.tenancy.audit import Noting, noting
from memory_app.tenancy.quotas import Standing
from memory_app.tenancy.rows import keys
from memory_app.tenancy.rows.erased import RefusedMessage
from memory_app.tenancy.rows.keys import USUAL_RIGHTS, KeyRow, NewKey
from memory_app.tenancy.rows.usage import UsageDay
from memory_app.tenancy.usage import spending
from memory_app.tools import calls as tool_calls
from memory_app.tools.answers import ToolAnswer
from memory_app.tools.calls import ToolFormat
from memory_app.transfer import export as export_service
from memory_app.transfer import person, snapshots
from memory_app.transfer.person import PersonReport
from memory_app.transfer.rows.checkpoints import CheckpointRow
from memory_app.transfer.snapshots import Imported
from memory_app.turns import erased as erased_service
from memory_app.turns import failed as failed_service
from memory_app.turns import record as record_service
from memory_app.turns import sessions as session_service
from memory_app.turns import statistics as statistics_service
from memory_app.turns import stream as stream_service
from memory_app.turns import tickets
from memory_app.turns.bodies import parse_turn
from memory_app.turns.rows.failed_turns import FailedTurn
from memory_app.turns.rows.sessions import SessionRow
from memory_app.turns.rows.stages import TicketRow
from memory_app.turns.statistics import Stats


@dataclass(frozen=True, slots=True)
class MemoryApp:
    """The verbs of one tenant. Make it with `connect`, after a fork; close it, or use it with ``with``."""

    runtime: Runtime
    tenant_id: int

    @classmethod
    def connect(cls, settings: Settings | None = None, *, tenant: str = "default") -> MemoryApp:
        """Connect as ``tenant``; settings come from the environment unless given.

        Raises `NotFound` when the tenant was never made (``memory keys create --tenant NAME`` makes it).
        """
        runtime = build(settings or Settings())
        try:
            with transaction(runtime.engine, None) as connection:
                tenant_id = keys.find_tenant(connection, tenant)
            if tenant_id is None:
                raise NotFound(f"tenant {tenant!r}: make it with `memory keys create --tenant {tenant}`")
        except BaseException:
            # Also where Ctrl-C comes in between: nobody else has the runtime yet.
            runtime.close()
            raise
        return cls(runtime, tenant_id)

    @classmethod
    def beside(cls, folder: Path | str = ".memory", *, tenant: str = "default") -> MemoryApp:
        """Connect to what ``memory up`` runs in ``folder``. Raises `Misconfigured` when nothing runs there."""
        servers = embedded.find(Path(folder))
        if servers is None:
            raise Misconfigured(f"no servers run in {folder}: start them with `memory up --data {folder}`")
        return cls.connect(embedded_settings(servers), tenant=tenant)

    def record(
        self,
        scope: Scope,
        content: MessageContent,
        *,
        role: Role | str = Role.USER,
        name: str | None = None,
        at: datetime | float | str | None = None,
        idempotency_key: str | None = None,
        emotional_tone: str | None = None,
        tools_used: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        tool_calls: Sequence[Mapping[str, Any] | BaseModel] | None = None,
        tool_call_id: str | None = None,
    ) -> Ticket:
        """Accept one turn of the scope's session.

        ``content`` is text, or the parts of a chat message; ``tool_calls`` and ``tool_call_id`` are those of a message.
        """
        fields = {
            "name": name,
            "at": at,
            "idempotency_key": idempotency_key,
            "emotional_tone": emotional_tone,
            "tools_used": list(tools_used) or None,
            "metadata": metadata,
            "tool_calls": tool_calls,
            "tool_call_id": tool_call_id,
        }
        given = {name: value for name, value in fields.items() if value is not None}
        (ticket,) = self.record_all(scope, [{"role": str(role), "content": content, **given}])
        return ticket

    def record_all(self, scope: Scope, turns: Sequence[Turn]) -> tuple[Ticket, ...]:
        """Accept turns of one session in order: all of them, or none and an error.

        A turn may be a chat message as it is: a mapping, or an object of the OpenAI or Anthropic client.
        """
        # Named as in the errors of what is checked afterwards.
        places = ["turn"] if len(turns) == 1 else [f"turns[{number}]" for number in range(len(turns))]
        new = [
            turn if isinstance(turn, NewTurn) else parse_turn(turn, place=place)
            for turn, place in zip(turns, places, strict=True)
        ]
        return record_service.record(self.runtime, self.tenant_id, scope, new=new)

    def ticket(self, turn_id: UUID | str, *, wait_seconds: float = 0) -> TicketRow:
        """How far a turn has come; waits until it is extracted or failed, for ``wait_seconds`` (at most 30)."""
        id = checked_id(turn_id, field="turn_id")
        return tickets.ticket(self.runtime, self.tenant_id, id, wait_seconds=wait_seconds)

    def turns(self, scope: Scope, *, limit: int = 20) -> tuple[ListedTurn, ...]:
        """The latest turns of the scope's session, oldest first."""
        return stream_service.latest_turns(self.runtime, self.tenant_id, scope, limit=limit)

    def sessions(
        self, scope: Scope, *, active: bool | None = None, limit: int = 100
    ) -> tuple[SessionRow, ...]:
        """Sessions, latest activity first; ``active`` tells those not yet ended from the others."""
        return session_service.list_sessions(self.runtime, self.tenant_id, scope, active=active, limit=limit)

    def clear_session(self, scope: Scope) -> None:
        """Begin the scope's session afresh: drop hot stream and cached context. No knowledge is lost."""
        stream_service.clear_hot(self.runtime, self.tenant_id, scope)

    def remember(
        self,
        scope: Scope,
        text: str,
        *,
        kind: str = "fact",
        subtype: str | None = None,
        importance: float | None = None,
        importance_scale: str | None = None,
        tags: Sequence[str] = (),
        emotional_state: EmotionalState | None = None,
        relational_context: RelationalContext | None = None,
        subject: str | None = None,
        relation: str | None = None,
        object: str | None = None,
        valid_from: datetime | None = None,
        said_at: datetime | None = None,
        valid_until: datetime | None = None,
        pinned: bool = False,
        deduplicate: bool = True,
        shared: bool = False,
        mentions: Sequence[Mention] = (),
    ) -> Remembered:
        """Store one statement. A fact of a text alone is read by rules: "Mira lives in Lisbon." ends "… in Porto."

        A scope with a session stores it as said there; one without a user holds what is about the agent itself, and
        ``shared`` lets all users see other kinds. ``deduplicate`` False stores what is known already once more.
        ``mentions`` are entities that it is about.
        """
        statement = Statement(
            kind,
            text,
            subtype=subtype,
            importance=importance,
            importance_scale=importance_scale,
            tags=tuple(tags),
            emotional_state=emotional_state,
            relational_context=relational_context,
            subject=subject,
            relation=relation,
            object=object,
            valid_from=valid_from,
            said_at=said_at,
            valid_until=valid_until,
            pinned=pinned,
            mentions=tuple(mentions),
        )
        return remember_service.remember(
            self.runtime,
            self.tenant_id,
            scope,
            statement=statement,
            deduplicate=deduplicate,
            shared=shared,
            read=read_text,
        )

    def correct(
        self,
        memory_id: UUID | str,
        text: str,
        *,
        subject: str | None = None,
        relation: str | None = None,
        object: str | None = None,
    ) -> Remembered:
        """Put other words in place of a memory's; a part of the fact that is not given stays as it was."""
        parts = {"subject": subject, "relation": relation, "object": object}
        triple = {name: part for name, part in parts.items() if part is not None}
        id = checked_id(memory_id, field="memory_id")
        return correct_service.correct(self.runtime, self.tenant_id, id, text=text, triple=triple)

    def memories(
        self,
        scope: Scope,
        *,
        kind: str | None = None,
        tag: str | None = None,
        history: bool = False,
        limit: int = 50,
        cursor: UUID | str | None = None,
    ) -> tuple[Memory, ...]:
        """Current memories, newest first, the agent's own included; ``history`` adds retired ones.

        ``cursor`` is the last id of the page before.
        """
        filters = MemoryFilter(kind=kind, tag=tag, limit=limit, before=_cursor(cursor), history=history)
        return lookup.list_memories(self.runtime, self.tenant_id, scope, filters=filters)

    def memory(self, memory_id: UUID | str) -> Memory:
        """One memory; retired ones too, with the reason."""
        return lookup.read_memory(self.runtime, self.tenant_id, checked_id(memory_id, field="memory_id"))

    def why(self, memory_id: UUID | str) -> Why:
        """Why a memory is there and how firmly: evidence, parents, successor, runs, strength, when it fades."""
        return lookup.why(self.runtime, self.tenant_id, checked_id(memory_id, field="memory_id"))

    def versions(self, memory_id: UUID | str) -> tuple[Memory, ...]:
        """The chain that a memory stands in, oldest first."""
        return lookup.versions(self.runtime, self.tenant_id, checked_id(memory_id, field="memory_id"))

    def pin(self, memory_id: UUID | str) -> Memory:
        """Pin: it never fades, is never evicted and is always considered."""
        id = checked_id(memory_id, field="memory_id")
        return lookup.pin(self.runtime, self.tenant_id, id, pinned=True)

    def unpin(self, memory_id: UUID | str) -> Memory:
        """Take the pin off."""
        id = checked_id(memory_id, field="memory_id")
        return lookup.pin(self.runtime, self.tenant_id, id, pinned=False)

    def invalidate(self, memory_id: UUID | str) -> Memory:
        """It is no longer true: close its interval now and keep it as history."""
        return lookup.invalidate(self.runtime, self.tenant_id, checked_id(memory_id, field="memory_id"))

    def revive(self, memory_id: UUID | str) -> Memory:
        """Bring back a memory that expired or was evicted."""
        return fate_service.revive(self.runtime, self.tenant_id, checked_id(memory_id, field="memory_id"))

    def unmerge(self, memory_id: UUID | str) -> tuple[Memory, ...]:
        """Take a merged memory apart: its parts are current again and it is gone."""
        id = checked_id(memory_id, field="memory_id")
        with self._noting(Action.UNMERGE, target=id):
            return undo.undo_merge(self.runtime, self.tenant_id, id)

    def add_fact(
        self,
        scope: Scope,
        subject: str,
        relation: str,
        object: str,
        *,
        text: str | None = None,
        subtype: str | None = None,
        subject_type: str | None = None,
        object_type: str | None = None,
        valid_from: datetime | None = None,
        said_at: datetime | None = None,
        valid_until: datetime | None = None,
        importance: float | None = None,
        importance_scale: str | None = None,
        confidence: float = 0.8,
        tags: Sequence[str] = (),
        pinned: bool = False,
        deduplicate: bool = True,
        shared: bool = False,
    ) -> Remembered:
        """Add a fact by hand; what it ends is closed, and entities are made of both ends where there are none yet.

        ``shared`` as for `remember`.
        """
        statement = Statement(
            "fact",
            text or "",
            subtype=subtype,
            subject=subject,
            relation=relation,
            object=object,
            valid_from=valid_from,
            said_at=said_at,
            valid_until=valid_until,
            importance=importance,
            importance_scale=importance_scale,
            confidence=confidence,
            tags=tuple(tags),
            pinned=pinned,
        )
        return facts_service.add_fact(
            self.runtime,
            self.tenant_id,
            scope,
            statement=statement,
            subject_type=subject_type,
            object_type=object_type,
            deduplicate=deduplicate,
            shared=shared,
        )

    def facts(
        self,
        scope: Scope,
        *,
        subject: str | None = None,
        relation: str | None = None,
        object: str | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        history: bool = False,
        query: str | None = None,
        match: str = "meaning",
        floor: bool = False,
        limit: int = 50,
        cursor: UUID | str | None = None,
    ) -> tuple[FactHit, ...]:
        """Facts that hold now, held ``as_of`` a time, or were known at one; the ``history`` of a subject; or a search.

        ``match`` is ``meaning`` or ``keyword``; ``floor`` leaves out what is not clearly similar to the ``query``.
        ``cursor`` is the last id of the page before.
        """
        fact_query = FactQuery(
            subject=subject,
            relation=relation,
            object=object,
            as_of=as_of,
            known_at=known_at,
            history=history,
            text=query,
            match=choice_of(Match, match, field="match"),
            floor=floor,
            limit=limit,
            before=_cursor(cursor),
        )
        return facts_service.find_facts(self.runtime, self.tenant_id, scope, query=fact_query)

    def agent(self, agent: str) -> Agent:
        """An agent with its persona, policy and default memories, all defaults filled in."""
        return agents_service.agent(self.runtime, self.tenant_id, Scope(agent))

    def change_agent(
        self,
        agent: str,
        *,
        persona: Mapping[str, Any] | Unchanged | None = UNCHANGED,
        policy: Mapping[str, Any] | Unchanged | None = UNCHANGED,
        default_memories: Sequence[Mapping[str, Any]] | Unchanged | None = UNCHANGED,
    ) -> Agent:
        """Replace parts as a whole; None puts one back to its default. The agent is made when it is new."""
        parts = {"persona": persona, "policy": policy, "default_memories": default_memories}
        given: dict[str, Any] = {name: part for name, part in parts.items() if part is not UNCHANGED}
        change = AgentChange(named=frozenset(given), **given)
        with self._noting(Action.AGENT_CHANGE, agent=agent):
            return agents_service.change_agent(self.runtime, self.tenant_id, Scope(agent), change=change)

    def amend_agent(
        self,
        agent: str,
        *,
        policy: Mapping[str, Any] | None = None,
        persona: Mapping[str, Any] | None = None,
    ) -> Agent:
        """Change single fields of policy and persona; the others stay, None puts one back to its default."""
        with self._noting(Action.AGENT_CHANGE, agent=agent):
            return agents_service.amend_agent(
                self.runtime, self.tenant_id, Scope(agent), policy=policy, persona=persona
            )

    def user(self, user: str) -> UserRow:
        """A user and the time zone in which their times are read and shown."""
        return users_service.user(self.runtime, self.tenant_id, user)

    def change_user(self, user: str, *, time_zone: str | None) -> UserRow:
        """Say in which zone a user speaks (``Europe/Lisbon``, ``+09:00``); None: the offset of their times counts."""
        return users_service.set_time_zone(self.runtime, self.tenant_id, user, zone=time_zone)

    def entities(self, scope: Scope, *, limit: int = 100) -> tuple[Entity, ...]:
        """Who and what is talked about, most mentioned first."""
        return entities_service.list_entities(self.runtime, self.tenant_id, scope, limit=limit)

    def entity(self, scope: Scope, key: str) -> Card:
        """The card of an entity; a merged key leads to what it was merged into."""
        return entities_service.card(self.runtime, self.tenant_id, scope, key=key)

    def merge_entities(self, scope: Scope, key: str, *, into: str) -> MergedEntity:
        """The entity ``key`` is the same thing as ``into``; undo it with the run that is named."""
        return entities_service.merge(self.runtime, self.tenant_id, scope, key=key, into=into)

    def consolidate(self, scope: Scope, *, kind: str | None = None, dry_run: bool = False) -> Run:
        """Ask a worker to unite what says the same; follow it with `run`."""
        return consolidate_service.ask(self.runtime, self.tenant_id, scope, kind=kind, dry_run=dry_run)

    def decay(self, scope: Scope) -> Run:
        """Ask a worker to retire what has faded or is too much now; follow it with `run`."""
        return decay_service.ask(self.runtime, self.tenant_id, scope)

    def synthesize(
        self,
        scope: Scope,
        type: str,
        *,
        max_memories: int | None = None,
        days: int | None = None,
        dry_run: bool = False,
    ) -> Run:
        """Have a language model say what the latest turns mean (``turn``), what remains of a session (``session``), or
        what some days show together (``deep``). The first two need a scope with a session. Follow it with `run`."""
        return synthesis_service.ask_for(
            self.runtime,
            self.tenant_id,
            scope,
            type=type,
            max_memories=max_memories,
            days=days,
            dry_run=dry_run,
        )

    def run(self, run_id: UUID | str, *, wait_seconds: float = 0) -> Run:
        """A background job and its report; waits until it is done or failed, for ``wait_seconds`` (at most 30)."""
        id = checked_id(run_id, field="run_id")
        run = jobs.read(self.runtime, self.tenant_id, id, wait_seconds=wait_seconds)
        return report.with_texts(self.runtime, self.tenant_id, run)

    def undo(self, run_id: UUID | str) -> Run:
        """Take back everything a run did, or nothing: `Conflict` says what stands on it."""
        id = checked_id(run_id, field="run_id")
        with self._noting(Action.UNDO, target=id):
            return undo.undo_run(self.runtime, self.tenant_id, id)

    def forget(self, user: str, *, dry_run: bool = False) -> Run:
        """Forget a person for good; the report counts rows by table and names the receipt.

        Where others work on the person's rows, the run is `queued`: a worker does it in turn. Follow it with `run`.
        """
        with self._noting(Action.ERASE_USER, user=user, dry_run=dry_run):
            return forget_service.forget_user(self.runtime, self.tenant_id, user, dry_run=dry_run)

    def forget_session(self, scope: Scope, *, dry_run: bool = False) -> Run:
        """Forget the scope's session, its turns and what came only from it."""
        with self._noting(Action.ERASE_SESSION, agent=scope.agent, user=scope.user, dry_run=dry_run):
            return forget_service.forget_session(self.runtime, self.tenant_id, scope, dry_run=dry_run)

    def forget_turn(self, turn_id: UUID | str) -> Run:
        """Forget one turn and what came only from it."""
        id = checked_id(turn_id, field="turn_id")
        with self._noting(Action.ERASE_TURN, target=id):
            return forget_service.forget_turn(self.runtime, self.tenant_id, id)

    def forget_memory(self, memory_id: UUID | str) -> Run:
        """Forget one memory for good, and what was made of it alone."""
        id = checked_id(memory_id, field="memory_id")
        with self._noting(Action.ERASE_MEMORY, target=id):
            return forget_service.forget_memory(self.runtime, self.tenant_id, id)

    def erasure(self, erasure_id: UUID | str) -> Erasure:
        """The receipt of something that was forgotten: how much went, never what."""
        id = checked_id(erasure_id, field="erasure_id")
        return forget_service.read_erasure(self.runtime, self.tenant_id, id)

    def recall(
        self,
        scope: Scope,
        query: str | None = None,
        *,
        limit: int = 10,
        kinds: Sequence[str] | None = None,
        tiers: Sequence[Tier | str] | None = None,
        tags: Sequence[str] | None = None,
        subtypes: Sequence[str] | None = None,
        session: str | None = None,
        min_importance: int | None = None,
        after: datetime | None = None,
        before: datetime | None = None,
        as_of: datetime | None = None,
        preset: str | None = None,
        weights: Mapping[str, float | None] | None = None,
        min_score: float | None = None,
        threshold: float | None = None,
        expand_graph: bool = False,
        depth: int = 1,
        explain: bool = False,
    ) -> Recalled:
        """The best rows for the query, or without one the strongest. Filters narrow; an empty one is an error.

        The scope's session is the conversation going on, whose rows are preferred a little; ``session`` shows its rows
        alone.
        """
        request = RecallQuery(
            query,
            limit=limit,
            kinds=_tuple(kinds),
            tiers=None if tiers is None else tuple(choice_of(Tier, tier, field="tiers") for tier in tiers),
            tags=_tuple(tags),
            subtypes=_tuple(subtypes),
            session=session,
            min_importance=min_importance,
            after=after,
            before=before,
            as_of=as_of,
            preset=preset,
            weights=weights,
            min_score=min_score,
            threshold=threshold,
            expand_graph=expand_graph,
            depth=depth,
            explain=explain,
        )
        return recall_service.recall(self.runtime, self.tenant_id, scope, query=request)

    def context(
        self,
        scope: Scope,
        query: str | None = None,
        *,
        budget_tokens: int | None = None,
        turns: int | None = None,
        topic_limit: int | None = None,
        anchor_limit: int | None = None,
        anchor_importance: int | None = None,
        expand_graph: bool = True,
        depth: int = 1,
        preset: str | None = None,
    ) -> ContextWindow:
        """The context window for the next reply in the scope's session.

        ``budget_tokens`` is never exceeded. What was slow or away is left out and named in ``degraded``.
        """
        request = ContextRequest(
            query,
            session=scope.session,
            budget_tokens=budget_tokens,
            turns=turns,
            preset=preset,
            topic_limit=topic_limit,
            anchor_limit=anchor_limit,
            anchor_importance=anchor_importance,
            expand_graph=expand_graph,
            depth=depth,
        )
        return context_service.context(self.runtime, self.tenant_id, scope, request=request)

    def ask(self, scope: Scope, question: str) -> Answered:
        """Have the agent's language model answer a question from memory, each sentence with the ids it rests on.

        `Conflict` for an agent without a model.
        """
        return ask_service.ask(self.runtime, self.tenant_id, scope, question=question)

    def tools(self, format: str = "openai") -> list[dict[str, Any]]:
        """Definitions of the agents' tools for chat-completion APIs: ``openai`` or ``anthropic``."""
        return tool_calls.definitions(choice_of(ToolFormat, format, field="format"))

    def call_tool(self, scope: Scope, name: str, arguments: Mapping[str, Any] | str) -> ToolAnswer:
        """Call a tool for the person of the scope; ``arguments`` are a mapping, or JSON as a model wrote it.

        A wrong one is answered with ``is_error``, for the model to mend.
        """
        return tool_calls.call_tool(self.runtime, self.tenant_id, scope, name=name, arguments=arguments)

    def feedback(
        self, scope: Scope, target: UUID | str, label: Label | str, *, note: str | None = None
    ) -> Given:
        """Rate a turn of the assistant or a memory: up, down or retry."""
        return feedback_service.give_feedback(
            self.runtime,
            self.tenant_id,
            scope,
            target=checked_id(target, field="target"),
            label=choice_of(Label, label, field="label"),
            note=note,
        )

    def stats(self, scope: Scope) -> Stats:
        """How much the scope holds and how much it may hold."""
        return statistics_service.stats(self.runtime, self.tenant_id, scope)

    def similar_queries(self, scope: Scope, text: str, *, limit: int = 10) -> tuple[SimilarQuery, ...]:
        """Questions the user asked that are like ``text``; those of the scope's session are preferred a little."""
        return query_service.search(self.runtime, self.tenant_id, scope, text=text, limit=limit)

    def failed(self, *, cursor: UUID | str | None = None, limit: int = 100) -> tuple[FailedTurn, ...]:
        """Turns that were set aside, newest first, with the reason and without their text.

        ``cursor`` is the last id of the page before.
        """
        return failed_service.failed(self.runtime, self.tenant_id, limit=limit, before=_cursor(cursor))

    def refused(self, *, cursor: UUID | str | None = None, limit: int = 100) -> tuple[RefusedMessage, ...]:
        """Messages of the broker that were refused for an erasure or a limit, newest first."""
        return erased_service.list_refused(self.runtime, self.tenant_id, limit=limit, before=_cursor(cursor))

    def replay(self, turn_id: UUID | str) -> None:
        """Index and extract a failed turn once more."""
        id = checked_id(turn_id, field="turn_id")
        with self._noting(Action.REPLAY, target=id):
            failed_service.replay(self.runtime, self.tenant_id, id)

    def discard(self, turn_id: UUID | str) -> None:
        """Give a failed turn up: it stays readable and has no effects."""
        id = checked_id(turn_id, field="turn_id")
        with self._noting(Action.DISCARD, target=id):
            failed_service.discard(self.runtime, self.tenant_id, id)

    def sleep(
        self,
        scope: Scope,
        *,
        max_clusters: int | None = None,
        max_inspected: int | None = None,
        min_cluster_size: int | None = None,
        similarity: float | None = None,
        min_strength: float | None = None,
        summary_chars: int | None = None,
        cool_down_seconds: float | None = None,
        force: bool = False,
        trigger: str | None = None,
        dry_run: bool = False,
    ) -> Run:
        """Ask for a sleep cycle: similar memories become one, patterns are named, likenesses linked. Follow it with
        `run`.

        What is not given takes the default of the settings; ``dry_run`` reports and changes nothing.
        """
        options = {
            "max_clusters": max_clusters,
            "max_inspected": max_inspected,
            "min_cluster_size": min_cluster_size,
            "similarity": similarity,
            "min_strength": min_strength,
            "summary_chars": summary_chars,
            "cool_down_seconds": cool_down_seconds,
            "force": force,
            "trigger": trigger,
            "dry_run": dry_run,
        }
        given = {name: value for name, value in options.items() if value is not None}
        return sleep_service.ask(self.runtime, self.tenant_id, scope, options=given)

    def end_session(
        self, scope: Scope, *, promote: bool = True, checkpoint: bool = True, carry: bool = True
    ) -> Run:
        """End the scope's session: promote what proved itself, keep a checkpoint, let the rest of its graph go."""
        return session_end.ask(
            self.runtime, self.tenant_id, scope, promote=promote, checkpoint=checkpoint, carry=carry
        )

    def checkpoint(self, scope: Scope, *, most: int | None = None) -> CheckpointRow:
        """Keep the strongest memories of the scope, or of its session, as a document."""
        return snapshots.make_checkpoint(self.runtime, self.tenant_id, scope, most=most)

    def export(self, scope: Scope) -> dict[str, Any]:
        """The whole scope as a snapshot, ready for JSON."""
        with self._noting(Action.EXPORT_SCOPE, agent=scope.agent, user=scope.user):
            return snapshots.export(self.runtime, self.tenant_id, scope)

    def load(self, scope: Scope, snapshot: Mapping[str, Any], *, new_consent: bool = False) -> Imported:
        """Fill an empty scope from a snapshot, or raise and import nothing.

        ``new_consent``: the person was erased once and has agreed anew.
        """
        with self._noting(Action.IMPORT, agent=scope.agent, user=scope.user):
            return snapshots.load(
                self.runtime, self.tenant_id, scope, document=snapshot, new_consent=new_consent
            )

    def checkpoints(
        self, scope: Scope, *, limit: int = 50, cursor: UUID | str | None = None
    ) -> tuple[CheckpointRow, ...]:
        """Checkpoints, newest first; ``cursor`` is the last id of the page before."""
        return snapshots.list_checkpoints(
            self.runtime, self.tenant_id, scope, limit=limit, before=_cursor(cursor)
        )

    def read_checkpoint(self, scope: Scope, checkpoint_id: UUID | str) -> dict[str, Any]:
        """The document of a checkpoint, which `load` takes."""
        id = checked_id(checkpoint_id, field="checkpoint_id")
        return snapshots.read_checkpoint(self.runtime, self.tenant_id, scope, checkpoint_id=id)

    def report_user(self, user: str) -> PersonReport:
        """What is held about a person with all agents: how much, since when, and what is believed now."""
        with self._noting(Action.REPORT_USER, user=user):
            return person.report_user(self.runtime, self.tenant_id, user)

    def export_lines(
        self, *, agent: str | None = None, user: str | None = None, with_vectors: bool = False
    ) -> Generator[str, None, None]:
        """Everything of a user, an agent or the tenant as lines of JSON; names that are absent widen it."""
        action = Action.EXPORT_TENANT if agent is None else Action.EXPORT_AGENT
        if user is not None:
            action = Action.EXPORT_USER
        with self._noting(action, agent=agent, user=user):
            yield from export_service.export_lines(
                self.runtime, self.tenant_id, agent=agent, user=user, with_vectors=with_vectors
            )

    def import_lines(
        self, lines: Iterable[str], *, user: str | None = None, new_consent: bool = False
    ) -> Imported:
        """Fill the empty scopes of a user from an export of that user, perhaps under another name.

        ``new_consent`` as for `load`.
        """
        with self._noting(Action.IMPORT, user=user):
            return export_service.import_lines(
                self.runtime, self.tenant_id, lines, user=user, new_consent=new_consent
            )

    def trace(self, id: UUID | str) -> Trace:
        """The way from the request to the memories, or back, by any id on it: ids and times, no text."""
        return trace_service.trace(self.runtime, self.tenant_id, checked_id(id))

    def usage(self, *, days: int = 30) -> tuple[UsageDay, ...]:
        """Calls, tokens and money by day (UTC) and model, newest first."""
        return spending(self.runtime, self.tenant_id, days=days)

    def audit(
        self,
        *,
        action: Action | str | None = None,
        user: str | None = None,
        cursor: int | None = None,
        limit: int = 100,
    ) -> tuple[Entry, ...]:
        """Who did what, newest first; ``cursor`` is the number of the last entry of the page before."""
        return audit_service.entries(
            self.runtime,
            self.tenant_id,
            limit=limit,
            before=cursor,
            action=None if action is None else choice_of(Action, action, field="action"),
            user=user,
        )

    def verify_audit(self) -> Chain:
        """Walk along the whole audit log and tell whether an entry was changed, taken out or put in."""
        return audit_service.verify(self.runtime, self.tenant_id)

    def keys(self) -> tuple[KeyRow, ...]:
        """The API keys of the tenant, ended ones too; never the keys themselves."""
        return key_service.list_keys(self.runtime, self.tenant_id)

    def make_key(
        self,
        *,
        rights: Sequence[str] = USUAL_RIGHTS,
        label: str | None = None,
        days: int | None = None,
        agent: str | None = None,
        user: str | None = None,
    ) -> NewKey:
        """Make a key of the tenant, perhaps for one ``agent`` or ``user`` only, which expires after ``days``."""
        with self._noting(Action.KEY_CREATE, agent=agent, user=user):
            return key_service.make_key(
                self.runtime, self.tenant_id, rights=rights, label=label, days=days, agent=agent, user=user
            )

    def rotate_key(self, key: int, *, overlap_hours: float = 24) -> NewKey:
        """Make a key like this one, which goes on for ``overlap_hours``."""
        with self._noting(Action.KEY_ROTATE, target=key):
            return key_service.rotate_key(self.runtime, self.tenant_id, key, overlap_hours=overlap_hours)

    def revoke_key(self, key: int) -> None:
        """End a key at once."""
        with self._noting(Action.KEY_REVOKE, target=key):
            key_service.revoke_key(self.runtime, self.tenant_id, key)

    def limits(self) -> Standing:
        """The limits of the tenant, which the operator sets, and how many turns it has stored."""
        return quotas.standing(self.runtime, self.tenant_id)

    def limit_key(
        self, key: int, *, requests_per_minute: int | None = None, bytes_per_minute: int | None = None
    ) -> Limits:
        """Set the limits of a key; None is none. Processes follow within seconds."""
        limits = {"requests_per_minute": requests_per_minute, "bytes_per_minute": bytes_per_minute}
        with self._noting(Action.LIMIT_KEY, target=key):
            return key_service.limit_key(self.runtime, self.tenant_id, key, limits=limits)

    def _noting(
        self,
        action: Action,
        *,
        agent: str | None = None,
        user: str | None = None,
        target: object = None,
        dry_run: bool = False,
    ) -> Noting:
        """For the audit log. Whoever works in this process is the operator."""
        name = "dry_run" if dry_run else None if target is None else str(target)
        return noting(self.runtime, self.tenant_id, action, agent=agent, user=user, target=name)

    def close(self) -> None:
        self.runtime.close()

    def __enter__(self) -> MemoryApp:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _cursor(value: UUID | str | None) -> UUID | None:
    return None if value is None else checked_id(value, field="cursor")


def _tuple(values: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)
