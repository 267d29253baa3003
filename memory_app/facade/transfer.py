"""Snapshots, exports and imports."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from memory_app.facade.base import Facade, cursor_of
from memory_app.jobs.rows.runs import Run
from memory_app.records.audit import Action
from memory_app.records.ids import checked_id
from memory_app.records.reports import ImportReport
from memory_app.records.scope import Scope
from memory_app.transfer import export as export_service
from memory_app.transfer import imports, snapshots
from memory_app.transfer.import_order import Order
from memory_app.transfer.import_source import source_of
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

    def import_file(
        self,
        scope: Scope,
        file: Path | str | bytes,
        *,
        format: str | None = None,
        dry_run: bool = False,
        time_zone: str | None = None,
        date_order: str | None = None,
        speakers: Mapping[str, str] | None = None,
        owner: str | None = None,
        on_progress: Callable[[ImportReport], None] | None = None,
    ) -> Run:
        """Import the chats or memories that another program exported, in this process: the run is done and has the
        report.

        ``file`` is its path, or its bytes. The scope's session names that of a file with one conversation. ``speakers``
        are roles, ``user`` or ``assistant``, by name; ``date_order`` is ``dmy`` or ``mdy``; ``owner`` is whose part
        comes in, by the id in the file. A dry run only reports. Importing it again stores nothing twice.
        """
        order = Order(
            format=format,
            dry_run=dry_run,
            session=scope.session,
            time_zone=time_zone,
            date_order=date_order,
            speakers=speakers or {},
            owner=owner,
        )
        with self._noting(Action.IMPORT, agent=scope.agent, user=scope.user, dry_run=dry_run):
            return imports.import_now(
                self.runtime,
                self.tenant_id,
                scope,
                order=order,
                source=source_of(file),
                on_progress=on_progress,
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
