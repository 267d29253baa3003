"""Agents and users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memory_app.agents import agents as agents_service
from memory_app.agents import counts
from memory_app.agents import grants as grants_service
from memory_app.agents import users as users_service
from memory_app.agents.agents import Agent, AgentChange
from memory_app.agents.counts import UserEntry
from memory_app.agents.rows.counts import ListedAgent
from memory_app.agents.rows.grants import Grant
from memory_app.agents.rows.users import UserRow
from memory_app.facade.base import Facade
from memory_app.records.audit import Action
from memory_app.records.scope import Scope
from memory_app.records.unchanged import UNCHANGED, Unchanged
from memory_app.transfer import person
from memory_app.transfer.person import PersonReport


class People(Facade):
    """See `MemoryApp`."""

    __slots__ = ()

    def agents(self, *, limit: int = 50, cursor: str | None = None) -> tuple[ListedAgent, ...]:
        """Agents by name with the number of people they know; ``cursor`` is the last name of the page before."""
        return counts.list_agents(self.runtime, self.tenant_id, limit=limit, cursor=cursor)

    def users(self, *, limit: int = 50, cursor: str | None = None) -> tuple[UserEntry, ...]:
        """Users by name with what is stored of them; ``cursor`` is the last name of the page before."""
        return counts.list_users(self.runtime, self.tenant_id, limit=limit, cursor=cursor)

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

    def change_user(
        self,
        user: str,
        *,
        time_zone: str | Unchanged | None = UNCHANGED,
        label: str | Unchanged | None = UNCHANGED,
        aliases: Sequence[str] | Unchanged = UNCHANGED,
    ) -> UserRow:
        """Say in which zone a user speaks (``Europe/Lisbon``, ``+09:00``), and by which names they go.

        Without a zone the offset of their times counts. What is told of their ``label`` or an alias is told of them.
        """
        change = users_service.UserChange(time_zone=time_zone, label=label, aliases=aliases)
        return users_service.change_user(self.runtime, self.tenant_id, user, change=change)

    def set_grant(
        self, user: str, agent: str, *, to: str, kinds: Sequence[str], until: datetime | None = None
    ) -> Grant:
        """Let the agent ``to`` recall memories of ``kinds`` that ``agent`` has of the user, before ``until``; None:
        until it is revoked. A grant between the two is replaced."""
        with self._noting(Action.GRANT_SET, agent=agent, user=user, target=to):
            return grants_service.grant(
                self.runtime, self.tenant_id, user, agent, to=to, kinds=kinds, until=until
            )

    def grants(self, user: str, *, agent: str | None = None) -> tuple[Grant, ...]:
        """What a user lets agents recall of others: all, or what is from and to one agent."""
        return grants_service.list_grants(self.runtime, self.tenant_id, user, agent=agent)

    def revoke_grant(self, user: str, agent: str, *, to: str | None = None) -> int:
        """Take back what ``to``, or every other agent, may recall of what ``agent`` knows of the user; how many
        grants."""
        with self._noting(Action.GRANT_REVOKE, agent=agent, user=user, target=to):
            return grants_service.revoke(self.runtime, self.tenant_id, user, agent, to=to)

    def report_user(self, user: str) -> PersonReport:
        """What is held about a person with all agents: how much, since when, and what is believed now."""
        with self._noting(Action.REPORT_USER, user=user):
            return person.report_user(self.runtime, self.tenant_id, user)
