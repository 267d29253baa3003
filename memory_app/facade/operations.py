"""What operators and programs beside the chat ask for: tools, traces, usage, audit, keys, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_app.facade.base import Facade
from memory_app.ops import trace as trace_service
from memory_app.ops.trace import Trace
from memory_app.records.audit import Action, Chain, Entry
from memory_app.records.choice import choice_of
from memory_app.records.ids import checked_id
from memory_app.records.limits import Limits
from memory_app.records.scope import Scope
from memory_app.tenancy import audit as audit_service
from memory_app.tenancy import keys as key_service
from memory_app.tenancy import quotas
from memory_app.tenancy.quotas import Standing
from memory_app.tenancy.rows.keys import USUAL_RIGHTS, KeyRow, NewKey
from memory_app.tenancy.rows.usage import UsageDay
from memory_app.tenancy.usage import spending
from memory_app.tools import calls as tool_calls
from memory_app.tools.answers import ToolAnswer
from memory_app.tools.calls import ToolFormat


class Operations(Facade):
    """See `MemoryApp`."""

    __slots__ = ()

    def tools(self, format: str = "openai") -> list[dict[str, Any]]:
        """Definitions of the agents' tools for chat-completion APIs: ``openai`` or ``anthropic``."""
        return tool_calls.definitions(choice_of(ToolFormat, format, field="format"))

    def call_tool(self, scope: Scope, name: str, arguments: Mapping[str, Any] | str) -> ToolAnswer:
        """Call a tool for the person of the scope; ``arguments`` are a mapping, or JSON as a model wrote it.

        A wrong one is answered with ``is_error``, for the model to mend.
        """
        return tool_calls.call_tool(self.runtime, self.tenant_id, scope, name=name, arguments=arguments)

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
        key: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        cursor: int | None = None,
        limit: int = 100,
    ) -> tuple[Entry, ...]:
        """Who did what, newest first; ``cursor`` is the number of the last entry of the page before.

        ``until`` is exclusive.
        """
        return audit_service.entries(
            self.runtime,
            self.tenant_id,
            limit=limit,
            before=cursor,
            action=None if action is None else choice_of(Action, action, field="action"),
            user=user,
            key_id=key,
            since=since,
            until=until,
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
