"""Turns and sessions: record what was said, follow it, read it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from memory_app.facade.base import Facade, cursor_of
from memory_app.records.audit import Action
from memory_app.records.ids import checked_id
from memory_app.records.message import MessageContent, Turn
from memory_app.records.records import (
    ListedTurn,
    NewTurn,
    Role,
    Ticket,
)
from memory_app.records.scope import Scope
from memory_app.tenancy.rows.erased import RefusedMessage
from memory_app.turns import erased as erased_service
from memory_app.turns import failed as failed_service
from memory_app.turns import record as record_service
from memory_app.turns import sessions as session_service
from memory_app.turns import stream as stream_service
from memory_app.turns import tickets
from memory_app.turns.bodies import parse_turn
from memory_app.turns.replaced import replacing
from memory_app.turns.rows.failed_turns import FailedTurn
from memory_app.turns.rows.sessions import SessionRow
from memory_app.turns.rows.stages import TicketRow


class Turns(Facade):
    """See `MemoryApp`."""

    __slots__ = ()

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
        replaces: UUID | str | None = None,
    ) -> Ticket:
        """Accept one turn of the scope's session.

        ``content`` is text, or the parts of a chat message; ``tool_calls`` and ``tool_call_id`` are those of a message.
        ``replaces``: a turn of the session that is forgotten, and in whose place this one stands.
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
            "replaces": replaces,
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
        with replacing(self.runtime, self.tenant_id, scope, new):
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

    def failed(self, *, cursor: UUID | str | None = None, limit: int = 100) -> tuple[FailedTurn, ...]:
        """Turns that were set aside, newest first, with the reason and without their text.

        ``cursor`` is the last id of the page before.
        """
        return failed_service.failed(self.runtime, self.tenant_id, limit=limit, before=cursor_of(cursor))

    def refused(self, *, cursor: UUID | str | None = None, limit: int = 100) -> tuple[RefusedMessage, ...]:
        """Messages of the broker that were refused for an erasure or a limit, newest first."""
        return erased_service.list_refused(
            self.runtime, self.tenant_id, limit=limit, before=cursor_of(cursor)
        )

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
