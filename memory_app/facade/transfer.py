"""Snapshots, exports and imports."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import Any
from uuid import UUID

from memory_app.facade.base import Facade, cursor_of
from memory_app.records.audit import Action
from memory_app.records.ids import checked_id
from memory_app.records.scope import Scope
from memory_app.transfer import export as export_service
from memory_app.transfer import snapshots
from memory_app.transfer.rows.checkpoints import CheckpointRow
from memory_app.transfer.snapshots import Imported


class Transfer(Facade):
    """See `MemoryApp`."""

    __slots__ = ()

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
            self.runtime, self.tenant_id, scope, limit=limit, before=cursor_of(cursor)
        )

    def read_checkpoint(self, scope: Scope, checkpoint_id: UUID | str) -> dict[str, Any]:
        """The document of a checkpoint, which `load` takes."""
        id = checked_id(checkpoint_id, field="checkpoint_id")
        return snapshots.read_checkpoint(self.runtime, self.tenant_id, scope, checkpoint_id=id)

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
