"""Calls of agents and users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memory_app.agents.answers import (
    AgentAnswer,
    AgentsAnswer,
    GrantAnswer,
    GrantsAnswer,
    UserAnswer,
    UsersAnswer,
)
from memory_app.client.call import Call, answer_of, body_of, in_agent, json_of, nothing, path, query_of
from memory_app.records.scope import check_name
from memory_app.records.unchanged import UNCHANGED, Unchanged
from memory_app.transfer.answers import PersonReportAnswer


def agents(*, limit: int = 50, cursor: str | None = None) -> Call[AgentsAnswer]:
    """Agents by name with the number of people they know, a page at a time."""
    query = query_of(limit=limit, cursor=cursor)
    return Call("GET", path("v1", "agents"), answer_of(AgentsAnswer), query=query)


def users(*, limit: int = 50, cursor: str | None = None) -> Call[UsersAnswer]:
    """Users by name with what is stored of them, a page at a time."""
    query = query_of(limit=limit, cursor=cursor)
    return Call("GET", path("v1", "users"), answer_of(UsersAnswer), query=query)


def agent(agent: str) -> Call[AgentAnswer]:
    """An agent with its persona, policy and default memories, all defaults filled in."""
    return Call("GET", in_agent(agent), answer_of(AgentAnswer))


def change_agent(
    agent: str,
    *,
    persona: Mapping[str, Any] | Unchanged | None = UNCHANGED,
    policy: Mapping[str, Any] | Unchanged | None = UNCHANGED,
    default_memories: Sequence[Mapping[str, Any]] | Unchanged | None = UNCHANGED,
) -> Call[AgentAnswer]:
    """Replace parts as a whole; None puts one back to its default. The agent is made when it is new."""
    parts = {"persona": persona, "policy": policy, "default_memories": default_memories}
    body = {name: part for name, part in parts.items() if part is not UNCHANGED}
    return Call("PUT", in_agent(agent), answer_of(AgentAnswer), body=json_of(body))


def amend_agent(
    agent: str, *, policy: Mapping[str, Any] | None = None, persona: Mapping[str, Any] | None = None
) -> Call[AgentAnswer]:
    """Change single fields of policy and persona; the others stay, None puts one back to its default."""
    body = json_of({"policy": policy, "persona": persona})
    return Call("PATCH", in_agent(agent), answer_of(AgentAnswer), body=body)


def user(user: str) -> Call[UserAnswer]:
    """A user and the time zone in which their times are read and shown."""
    return Call("GET", _of(user), answer_of(UserAnswer))


def change_user(
    user: str,
    *,
    time_zone: str | Unchanged | None = UNCHANGED,
    label: str | Unchanged | None = UNCHANGED,
    aliases: Sequence[str] | Unchanged = UNCHANGED,
) -> Call[UserAnswer]:
    """Say in which zone a user speaks (``Europe/Lisbon``, ``+09:00``), and by which names they go.

    Without a zone the offset of their times counts. What is told of their ``label`` or an alias is told of them.
    """
    parts = {"time_zone": time_zone, "label": label, "aliases": aliases}
    body = {name: part for name, part in parts.items() if part is not UNCHANGED}
    return Call("PATCH", _of(user), answer_of(UserAnswer), body=json_of(body))


def set_grant(
    user: str, agent: str, *, to: str, kinds: Sequence[str], until: datetime | None = None
) -> Call[GrantAnswer]:
    """Let the agent ``to`` recall memories of ``kinds`` that ``agent`` has of the user, before ``until``; None: until
    it is revoked. A grant between the two is replaced."""
    body = body_of(kinds=list(kinds), until=until)
    address = _of(user, "grants", check_name(agent, field="agent"))
    return Call("PUT", address, answer_of(GrantAnswer), query=query_of(to=to), body=body)


def grants(user: str, *, agent: str | None = None) -> Call[GrantsAnswer]:
    """What a user lets agents recall of others: all, or what is from and to one agent."""
    rest = () if agent is None else (check_name(agent, field="agent"),)
    return Call("GET", _of(user, "grants", *rest), answer_of(GrantsAnswer))


def revoke_grant(user: str, agent: str, *, to: str | None = None) -> Call[None]:
    """Take back what ``to``, or every other agent, may recall of what ``agent`` knows of the user."""
    address = _of(user, "grants", check_name(agent, field="agent"))
    return Call("DELETE", address, nothing, query=query_of(to=to))


def report_user(user: str) -> Call[PersonReportAnswer]:
    """What is held about a person with all agents: how much, since when, and what is believed now."""
    return Call("GET", _of(user, "report"), answer_of(PersonReportAnswer))


def _of(user: str, *rest: str) -> str:
    return path("v1", "users", check_name(user, field="user"), *rest)
