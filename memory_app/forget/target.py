"""What an erasure is of: a memory, a turn, a session, a person or an agent, by the names that the caller gave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Connection

from memory_app.errors import NotFound
from memory_app.forget.erasure import (
    NoteCounts,
    erase_memory,
    erase_session,
    erase_turn,
    erase_user,
    note_nothing,
)
from memory_app.forget.receipt import Subject
from memory_app.forget.settlement import Forgotten
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.digests import session_name
from memory_app.tenancy.shards import in_scopes_shard, in_users_shard, where_stored

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Target:
    """``names`` are the name of a person or an agent; agent, user and session; or the id of a turn or a memory."""

    of: Subject
    names: tuple[str, ...]

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Target:
        """That of a run which waits for its turn, from its `erasure_order`."""
        return cls(Subject(options["of"]), tuple(options["target"]))

    @property
    def digest_name(self) -> str:
        """What goes into the digest of the receipt."""
        return session_name(*self.names) if self.of is Subject.SESSION else self.names[0]

    @property
    def user(self) -> str | None:
        """The person, where the target names one."""
        match self.of:
            case Subject.USER:
                return self.names[0]
            case Subject.SESSION:
                return self.names[1]
        return None

    def erase(self, connection: Connection, tenant_id: int, *, note: NoteCounts = note_nothing) -> Forgotten:
        """Erase it in the caller's transaction: anything but an agent, which takes many (`agent_erasure`).

        `NotFound` for a turn or memory that is not in this shard.
        """
        match self.of:
            case Subject.USER:
                return erase_user(connection, tenant_id, self.names[0], note=note)
            case Subject.SESSION:
                return erase_session(connection, tenant_id, Scope(*self.names))
            case Subject.TURN:
                forgotten = erase_turn(connection, tenant_id, UUID(self.names[0]))
            case Subject.MEMORY:
                forgotten = erase_memory(connection, tenant_id, UUID(self.names[0]))
            case Subject.AGENT:
                raise AssertionError("an agent is not erased in one transaction")
        if forgotten is None:
            raise NotFound(f"no {self.of} {self.names[0]}", field="id")
        return forgotten

    def in_its_shard(self, runtime: Runtime, tenant_id: int, act: Callable[[Runtime], T]) -> T:
        """Act in the shard that has its rows."""
        match self.of:
            case Subject.USER:
                return in_users_shard(runtime, tenant_id, self.names[0], act)
            case Subject.SESSION:
                return in_scopes_shard(lambda here, _, __: act(here))(runtime, tenant_id, Scope(*self.names))
        return where_stored(lambda here, _, __: act(here))(runtime, tenant_id, UUID(self.names[0]))
