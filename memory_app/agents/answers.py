"""What routes of agents answer with."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from memory_app.web.answers import Answer


class AgentAnswer(Answer):
    agent: str
    persona: dict[str, Any]
    policy: dict[str, Any]
    default_memories: list[dict[str, Any]]
    created_at: datetime
