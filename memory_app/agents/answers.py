"""What routes of agents answer with."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from memory_app.web.answers import Answer


class AgentAnswer(Answer):
    agent: str
    persona: dict[str, Any]
    policy: dict[str, Any]
    default_memories: list[dict[str, Any]]
    created_at: datetime


class UserAnswer(Answer):
    user: str
    label: str | None = Field(description="What the app calls them.")
    aliases: list[str] = Field(description="Further names of theirs.")
    time_zone: str = Field(description="In which their times are read and shown.")
    zone_is_set: bool = Field(
        description="False: the offset of the times they sent last, or UTC where they have none."
    )
    created_at: datetime


class ListedAgentAnswer(Answer):
    agent: str
    created_at: datetime
    users: int = Field(description="People whom it knows; in each shard so many as 1,000 are counted.")


class AgentsAnswer(Answer):
    agents: list[ListedAgentAnswer]
    cursor: str | None = Field(description="Give it back for the next page; null on the last one.")


class UserCountsAnswer(Answer):
    agents: int = Field(description="Agents that know them.")
    sessions: int
    turns: int = Field(description="Recorded ones, those that were forgotten since included.")
    memories: int = Field(description="Current ones.")
    last_activity_at: datetime | None


class ListedUserAnswer(Answer):
    user: str
    label: str | None = Field(description="What the app calls them.")
    time_zone: str = Field(description="In which their times are read and shown.")
    created_at: datetime
    counts: UserCountsAnswer | None = Field(description="Null while the shard with their rows is away.")


class UsersAnswer(Answer):
    users: list[ListedUserAnswer]
    cursor: str | None = Field(description="Give it back for the next page; null on the last one.")


class GrantAnswer(Answer):
    agent: str = Field(description="Whose memories of the person they are.")
    to: str = Field(description="The agent that may recall them.")
    kinds: list[str]
    until: datetime | None = Field(description="When it ends; null: when it is revoked.")
    created_at: datetime
    is_active: bool = Field(description="False: it has run out.")


class GrantsAnswer(Answer):
    grants: list[GrantAnswer]
