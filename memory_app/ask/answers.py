"""What a question over memory is answered with."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field

from memory_app.web.answers import Answer


class SentenceAnswer(Answer):
    text: str
    ids: list[UUID] = Field(description="Memories and turns that it rests on.")


class AskAnswer(Answer):
    known: bool
    text: str = Field(description="All sentences, or `not known`.")
    sentences: list[SentenceAnswer]
    looks: int = Field(description="How often memory was searched and the model asked.")
    calls: int
    tokens: int
    seconds: float
    stopped: str | None = Field(description="The bound that ended the search: looks, seconds or tokens.")
    dropped: dict[str, int] = Field(description="Sentences of the model that did not stand, by reason.")
    degraded: list[str] = Field(description="What could not be searched.")
