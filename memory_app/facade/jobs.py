"""Work that is done in the background, and erasures."""

from __future__ import annotations

from uuid import UUID

from memory_app.facade.base import Facade
from memory_app.forget import forget as forget_service
from memory_app.forget import tenant_erasure
from memory_app.forget.rows.receipts import Erasure
from memory_app.jobs import jobs
from memory_app.jobs.rows.runs import Run
from memory_app.records.audit import Action
from memory_app.records.ids import checked_id
from memory_app.records.scope import Scope
from memory_app.sleep import consolidate as consolidate_service
from memory_app.sleep import cycle as sleep_service
from memory_app.sleep import decay as decay_service
from memory_app.sleep import report, session_end, undo
from memory_app.sleep import synthesis as synthesis_service


class Jobs(Facade):
    """See `MemoryApp`."""

    __slots__ = ()

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

    def forget_agent(self, agent: str, *, dry_run: bool = False) -> Run:
        """Forget an agent with all that it knows of everybody; a worker does it. Follow it with `run`.

        The people stay, with what other agents know of them.
        """
        with self._noting(Action.ERASE_AGENT, agent=agent, dry_run=dry_run):
            return forget_service.forget_agent(self.runtime, self.tenant_id, agent, dry_run=dry_run)

    def forget_tenant(self, *, dry_run: bool = False) -> Run:
        """Forget everybody and every agent of this tenant; its keys end at once, and a worker does the rest.

        Each person and agent has a receipt. The audit log and the receipts stay.
        """
        with self._noting(Action.ERASE_TENANT, dry_run=dry_run):
            return tenant_erasure.forget_tenant(self.runtime, self.tenant_id, dry_run=dry_run)

    def forget_session(self, scope: Scope, *, dry_run: bool = False) -> Run:
        """Forget the scope's session, its turns and what came only from it."""
        with self._noting(Action.ERASE_SESSION, agent=scope.agent, user=scope.user, dry_run=dry_run):
            return forget_service.forget_session(self.runtime, self.tenant_id, scope, dry_run=dry_run)

    def forget_turn(self, turn_id: UUID | str) -> Run:
        """Forget one turn and what came only from it."""
        id = checked_id(turn_id, field="turn_id")
        with self._noting(Action.ERASE_TURN, target=id):
            return forget_service.forget_turn(self.runtime, self.tenant_id, id)

    def erasure(self, erasure_id: UUID | str) -> Erasure:
        """The receipt of something that was forgotten: how much went, never what."""
        id = checked_id(erasure_id, field="erasure_id")
        return forget_service.read_erasure(self.runtime, self.tenant_id, id)

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
