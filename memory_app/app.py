"""The Python facade for producers in the same process: same words, same results as over HTTP."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
from memory_app.errors import InvalidInput, Misconfigured, NotFound
from memory_app.extraction.declared import read_text
from memory_app.forget import forget as forget_service
from memory_app.jobs import jobs
from memory_app.jobs.rows.runs import Run
from memory_app.local import embedded
from memory_app.local.servers import embedded_settings
from memory_app.memories import correct as correct_service
from memory_app.memories import entities as entities_service
from memory_app.memories import facts as facts_service
from memory_app.memories import feedback as feedback_service
from memory_app.memories import query_graph as query_service
from memory_app.memories import remember as remember_service
from memory_app.memories.entities import Card, MergedEntity
from memory_app.memories.facts import FactQuery
from memory_app.memories.feedback import Given
from memory_app.memories.query_graph import SimilarQuery
from memory_app.memories.remember import Remembered
from memory_app.memories.rows.facts import FactHit
from memory_app.recall import context as context_service
from memory_app.recall import recall as recall_service
from memory_app.recall.context import ContextRequest
from memory_app.recall.recall import Recalled, RecallQuery
from memory_app.recall.sections import ContextWindow
from memory_app.records.audit import Action
from memory_app.records.records import Label, NewTurn, Role, Statement, Ticket
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Settings
from memory_app.sleep import consolidate as consolidate_service
from memory_app.sleep import cycle as sleep_service
from memory_app.sleep import report, session_end, undo
from memory_app.tenancy.audit import Noting, noting
from memory_app.tenancy.rows import keys
from memory_app.tenancy.rows.erased import RefusedMessage
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
from memory_app.turns import tickets
from memory_app.turns.bodies import parse_turn
from memory_app.turns.rows.failed_turns import FailedTurn
from memory_app.turns.rows.stages import TicketRow

MessageContent = str | Sequence[Mapping[str, Any] | BaseModel] | None
"""What was said: text, the parts of a chat message, or None where the message has only calls of tools."""


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
        self, scope: Scope, content: MessageContent, *, role: Role | str = Role.USER, **fields: Any
    ) -> Ticket:
        """Accept one turn of the scope's session; further fields as over HTTP (``name``, ``at``, ``tool_calls``, …).

        ``content`` is text, or the parts of a chat message.
        """
        (ticket,) = self.record_all(scope, [{"role": str(role), "content": content, **fields}])
        return ticket

    def record_all(
        self, scope: Scope, turns: Sequence[NewTurn | Mapping[str, Any] | BaseModel]
    ) -> tuple[Ticket, ...]:
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

    def ticket(self, turn_id: UUID, *, wait_seconds: float = 0) -> TicketRow:
        """How far a turn has come; waits until it is extracted or failed, for ``wait_seconds`` at most."""
        return tickets.ticket(self.runtime, self.tenant_id, turn_id, wait_seconds=wait_seconds)

    def remember(
        self,
        scope: Scope,
        text: str,
        *,
        kind: str = "fact",
        deduplicate: bool = True,
        shared: bool = False,
        **fields: Any,
    ) -> Remembered:
        """Store one statement; further fields as in `Statement`.

        A scope without a user holds what is about the agent itself; ``shared`` lets all users see other kinds.
        """
        statement = Statement(kind, text, **fields)
        return remember_service.remember(
            self.runtime,
            self.tenant_id,
            scope,
            statement=statement,
            deduplicate=deduplicate,
            shared=shared,
            read=read_text,
        )

    def correct(self, memory_id: UUID, text: str, **triple: str) -> Remembered:
        """Put other words in place of a memory's, perhaps with ``subject``, ``relation`` and ``object``."""
        unknown = triple.keys() - set(correct_service.TRIPLE)
        if unknown:
            name = min(unknown)
            raise InvalidInput(f"{name}: one of {', '.join(correct_service.TRIPLE)}", field=name)
        return correct_service.correct(self.runtime, self.tenant_id, memory_id, text=text, triple=triple)

    def add_fact(
        self, scope: Scope, subject: str, relation: str, object: str, *, text: str = "", **fields: Any
    ) -> Remembered:
        """Add a fact by hand; further fields as in `Statement`, and ``subject_type``, ``object_type``,
        ``deduplicate``, ``shared``."""
        options = {
            name: fields.pop(name)
            for name in ("subject_type", "object_type", "deduplicate", "shared")
            if name in fields
        }
        statement = Statement("fact", text, subject=subject, relation=relation, object=object, **fields)
        return facts_service.add_fact(self.runtime, self.tenant_id, scope, statement=statement, **options)

    def facts(self, scope: Scope, **query: Any) -> tuple[FactHit, ...]:
        """Facts that hold now, or as the ``query`` says; its parts as in `FactQuery` (``subject``, ``as_of``, …)."""
        return facts_service.find_facts(self.runtime, self.tenant_id, scope, query=FactQuery(**query))

    def agent(self, name: str) -> Agent:
        """An agent with its persona, policy and default memories, all defaults filled in."""
        return agents_service.agent(self.runtime, self.tenant_id, Scope(name))

    def change_agent(self, name: str, **parts: Any) -> Agent:
        """Replace ``persona``, ``policy`` or ``default_memories`` as a whole; the agent is made when it is new."""
        change = AgentChange(named=frozenset(parts), **parts)
        return agents_service.change_agent(self.runtime, self.tenant_id, Scope(name), change=change)

    def amend_agent(
        self,
        name: str,
        *,
        policy: Mapping[str, Any] | None = None,
        persona: Mapping[str, Any] | None = None,
    ) -> Agent:
        """Change single fields of policy and persona; the others stay, None puts one back to its default."""
        return agents_service.amend_agent(
            self.runtime, self.tenant_id, Scope(name), policy=policy, persona=persona
        )

    def user(self, name: str) -> UserRow:
        """A user and the time zone in which their times are read and shown."""
        return users_service.user(self.runtime, self.tenant_id, name)

    def set_time_zone(self, user: str, zone: str | None) -> UserRow:
        """Say in which zone a user speaks (``Europe/Lisbon``, ``+09:00``); None: the offset of their times counts."""
        return users_service.set_time_zone(self.runtime, self.tenant_id, user, zone=zone)

    def entity(self, scope: Scope, key: str) -> Card:
        """The card of an entity; a merged key leads to what it was merged into."""
        return entities_service.card(self.runtime, self.tenant_id, scope, key=key)

    def merge_entities(self, scope: Scope, key: str, *, into: str) -> MergedEntity:
        """The entity ``key`` is the same thing as ``into``; undo it with the run that is named."""
        return entities_service.merge(self.runtime, self.tenant_id, scope, key=key, into=into)

    def consolidate(self, scope: Scope, *, kind: str | None = None, dry_run: bool = False) -> Run:
        """Ask a worker to unite what says the same; follow it with `run`."""
        return consolidate_service.ask(self.runtime, self.tenant_id, scope, kind=kind, dry_run=dry_run)

    def run(self, run_id: UUID, *, wait_seconds: float = 0) -> Run:
        """A background job and its report; waits until it is done or failed, for ``wait_seconds`` at most."""
        run = jobs.read(self.runtime, self.tenant_id, run_id, wait_seconds=wait_seconds)
        return report.with_texts(self.runtime, self.tenant_id, run)

    def undo(self, run_id: UUID) -> Run:
        """Take back everything a run did, or nothing: `Conflict` says what stands on it."""
        with self._noting(Action.UNDO, target=run_id):
            return undo.undo_run(self.runtime, self.tenant_id, run_id)

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

    def forget_turn(self, turn_id: UUID) -> Run:
        """Forget one turn and what came only from it."""
        with self._noting(Action.ERASE_TURN, target=turn_id):
            return forget_service.forget_turn(self.runtime, self.tenant_id, turn_id)

    def forget_memory(self, memory_id: UUID) -> Run:
        """Forget one memory, and what was made of it alone."""
        with self._noting(Action.ERASE_MEMORY, target=memory_id):
            return forget_service.forget_memory(self.runtime, self.tenant_id, memory_id)

    def recall(self, scope: Scope, query: str | None = None, **options: Any) -> Recalled:
        """The best rows for the query; options as in `RecallQuery`."""
        request = RecallQuery(query, **options)
        return recall_service.recall(self.runtime, self.tenant_id, scope, query=request)

    def ask(self, scope: Scope, question: str) -> Answered:
        """Have the agent's language model answer a question from memory, each sentence with the ids it rests on.

        `Conflict` for an agent without a model.
        """
        return ask_service.ask(self.runtime, self.tenant_id, scope, question=question)

    def context(self, scope: Scope, query: str | None = None, **options: Any) -> ContextWindow:
        """The context window for the next reply; options as in `ContextRequest`."""
        request = ContextRequest(query, session=scope.session, **options)
        return context_service.context(self.runtime, self.tenant_id, scope, request=request)

    def tools(self, format: ToolFormat | str = ToolFormat.OPENAI) -> list[dict[str, Any]]:
        """Definitions of the agents' tools for the parameter ``tools`` of a chat-completion API."""
        return tool_calls.definitions(ToolFormat(format))

    def call_tool(self, scope: Scope, name: str, arguments: object) -> ToolAnswer:
        """Call a tool for the person of the scope; ``arguments`` are a mapping, or JSON as a model wrote it.

        Raises nothing: an answer with ``is_error`` says what the model can mend.
        """
        return tool_calls.call_tool(self.runtime, self.tenant_id, scope, name=name, arguments=arguments)

    def feedback(self, scope: Scope, target: UUID, label: Label | str, *, note: str | None = None) -> Given:
        """Rate a turn or a memory: up, down or retry."""
        return feedback_service.give_feedback(
            self.runtime, self.tenant_id, scope, target=target, label=Label(label), note=note
        )

    def similar_queries(self, scope: Scope, text: str, *, limit: int = 10) -> tuple[SimilarQuery, ...]:
        """Questions the user asked that are like ``text``; those of the scope's session are preferred a little."""
        return query_service.search(self.runtime, self.tenant_id, scope, text=text, limit=limit)

    def failed(self, *, limit: int = 100) -> tuple[FailedTurn, ...]:
        """Turns that were set aside, newest first, with the reason and without their text."""
        return failed_service.failed(self.runtime, self.tenant_id, limit=limit)

    def refused(self, *, limit: int = 100) -> tuple[RefusedMessage, ...]:
        """Messages of the broker that were refused because what they carry was erased, newest first."""
        return erased_service.list_refused(self.runtime, self.tenant_id, limit=limit)

    def replay(self, turn_id: UUID) -> None:
        """Index and extract a failed turn once more."""
        with self._noting(Action.REPLAY, target=turn_id):
            failed_service.replay(self.runtime, self.tenant_id, turn_id)

    def discard(self, turn_id: UUID) -> None:
        """Give a failed turn up: it stays readable and has no effects."""
        with self._noting(Action.DISCARD, target=turn_id):
            failed_service.discard(self.runtime, self.tenant_id, turn_id)

    def sleep(self, scope: Scope, **options: Any) -> Run:
        """Ask for a sleep cycle; options as in `SleepOptions`. Follow it with `run`."""
        return sleep_service.ask(self.runtime, self.tenant_id, scope, options=options)

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

    def load(self, scope: Scope, snapshot: Any, *, new_consent: bool = False) -> Imported:
        """Fill an empty scope from a snapshot, or raise and import nothing.

        ``new_consent``: the person was erased once and has agreed anew.
        """
        with self._noting(Action.IMPORT, agent=scope.agent, user=scope.user):
            return snapshots.load(
                self.runtime, self.tenant_id, scope, document=snapshot, new_consent=new_consent
            )

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
