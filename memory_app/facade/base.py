"""What all operations of the facade have: the runtime, the tenant, and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from memory_app.records.audit import Action
from memory_app.records.ids import checked_id
from memory_app.runtime import Runtime
from memory_app.tenancy.audit import Noting, noting


@dataclass(frozen=True, slots=True)
class Facade:
    """One tenant, in this process."""

    runtime: Runtime
    tenant_id: int

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


def cursor_of(value: UUID | str | None) -> UUID | None:
    return None if value is None else checked_id(value, field="cursor")


def tuple_of(values: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)
