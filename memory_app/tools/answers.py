"""What a tool answers: data for the model, and a text for people to see. Both are bounded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import Field

from memory_app.errors import MemoryAppError, Transient
from memory_app.web.answers import Answer

TEXT_CHARS = 2_000
"""Longest text of one row in an answer; a longer one is cut, since it goes into a model's context."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer of a tool. ``data`` is ready for JSON and holds ``display_text``; an error stands under ``error``."""

    data: Mapping[str, Any]
    is_error: bool = False

    @property
    def text(self) -> str:
        """The answer for people to see."""
        return str(self.data["display_text"])

    @property
    def content(self) -> str:
        """The answer as JSON: what a chat-completion API takes as the content of a tool's message."""
        return json.dumps(self.data, ensure_ascii=False)


def tool_error(error: MemoryAppError) -> ToolAnswer:
    """The answer that lets a model mend its call, or go on without memory."""
    message = error.message
    if isinstance(error, Transient):
        message = f"{message}; memory cannot be used right now: go on without it"
    details: Json = {"type": error.kind, "message": message}
    if error.field is not None:
        details["field"] = error.field
    return ToolAnswer({"error": details, "display_text": message}, is_error=True)


def short(text: str) -> str:
    """The text, cut where it is too long for an answer."""
    return text if len(text) <= TEXT_CHARS else f"{text[: TEXT_CHARS - 1]}…"


def day(at: datetime | None) -> str:
    """The day as people read it; empty for none."""
    return "" if at is None else f"{at:%Y-%m-%d}"


def instant(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


class ToolsAnswer(Answer):
    tools: list[dict[str, Any]] = Field(description="As the parameter `tools` of a chat-completion API.")


class ToolCallAnswer(Answer):
    data: dict[str, Any] = Field(description="For the model; an error stands under `error`.")
    text: str = Field(description="For people to see.")
    is_error: bool = Field(description="The call was wrong, and `data` says how to mend it.")

    @property
    def content(self) -> str:
        """The answer as JSON: what a chat-completion API takes as the content of a tool's message."""
        return json.dumps(self.data, ensure_ascii=False)
