"""What routes of events answer with."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field

from memory_app.web.answers import Answer


class EventAnswer(Answer):
    id: str = Field(description="Its place in the order: send it as `after` to go on from here.")
    type: str = Field(description="Such as `turn.extracted`; see docs/events.md.")
    at: datetime | None = None
    agent: str | None = None
    user: str | None = None
    session: str | None = None
    target: UUID | None = Field(None, description="Id of the turn, memory, run or receipt.")
    kind: str | None = Field(None, description="Kind of the memory, or what the run does.")
    successor: UUID | None = Field(None, description="The memory that took the place of this one.")


class EventsAnswer(Answer):
    events: list[EventAnswer]
    cursor: str = Field(
        description="Send it as `after` for what comes next, also where there were no events."
    )
