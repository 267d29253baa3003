"""What routes for operators answer with."""

from __future__ import annotations

from memory_app.web.answers import Answer


class PartAnswer(Answer):
    ok: bool
    reason: str | None


class PipelineAnswer(Answer):
    unindexed: int
    oldest_unindexed_seconds: float
    due_sessions: int
    oldest_due_seconds: float
    failed: int


class ReadyAnswer(Answer):
    ok: bool
    parts: dict[str, PartAnswer]
    pipeline: PipelineAnswer | None


class LiveAnswer(Answer):
    ok: bool
