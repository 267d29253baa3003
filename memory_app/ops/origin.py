"""What an id that is traced may belong to."""

from __future__ import annotations

from enum import StrEnum


class Origin(StrEnum):
    """What the id that was asked about belongs to."""

    TURN = "turn"
    MEMORY = "memory"
    RUN = "run"
    REQUEST = "request"
    TASK = "task"
