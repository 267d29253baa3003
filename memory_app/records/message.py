"""What callers in Python may give as a turn, in process and over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from memory_app.records.records import NewTurn

Turn = NewTurn | Mapping[str, Any] | BaseModel
"""A turn, or a chat message as it is: a mapping, or an object of the OpenAI or Anthropic client."""

MessageContent = str | Sequence[Mapping[str, Any] | BaseModel] | None
"""What was said: text, the parts of a chat message, or None where the message has only calls of tools."""
