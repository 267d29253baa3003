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
    time_zone: str = Field(description="In which their times are read and shown.")
    zone_is_set: bool = Field(
        description="False: the offset of the times they sent last, or UTC where they have none."
    )
    created_at: datetime
