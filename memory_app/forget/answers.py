"""What routes that forget answer with."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field

from memory_app.web.answers import Answer


class ErasureAnswer(Answer):
    """A receipt: how much went, never what."""

    id: UUID
    state: str
    counts: dict[str, int] = Field(description="Rows by table; empty when there was nothing.")
    created_at: datetime
    finished_at: datetime | None
    receipt: str = Field(
        description="The same as one line, to keep; `memory receipt verify` tells whether it was altered."
    )
