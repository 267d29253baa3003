"""A run of background work, as routes answer with it."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from memory_app.web.answers import Answer


class RunStateAnswer(Answer):
    id: UUID
    name: str
    state: str = Field(description="`queued`, `running`, `done` or `failed`.")
    report: dict[str, Any] | None = Field(description="What was done: ids and counts, never a text.")
    reason: str | None = Field(description="Why it failed.")
    attempts: int
    created_at: datetime
    finished_at: datetime | None
