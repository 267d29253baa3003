"""Ask a model, and record in the run by which model and prompt a memory was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from memory_app.extraction.llm.prompts import Prompt
from memory_app.providers.chat import Answer, LanguageModel, Message, OnUsage
from memory_app.records.instructions import NO_INSTRUCTIONS, Instructions

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Provenance:
    """``prompt`` with its version; ``dropped`` counts what could not be read and what each guard rejected. No content.

    ``calls`` is 0 when nothing was asked.
    """

    prompt: str = ""
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    calls: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {
            "prompt": self.prompt,
            "model": self.model,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "seconds": round(self.seconds, 3),
            "calls": self.calls,
            "dropped": dict(self.dropped),
        }


@dataclass(frozen=True, slots=True)
class Asking:
    """The model that is asked, what is called with the cost of each call, and what the agent wishes to be kept.

    ``redact`` makes of a text what the model may read."""

    model: LanguageModel
    on_usage: OnUsage | None = None
    instructions: Instructions = NO_INSTRUCTIONS
    redact: Callable[[str], str] = str


def ask(
    asking: Asking, prompt: Prompt, material: Sequence[str], *, shape: type[Model], optional: bool = False
) -> Answer[Model]:
    """Return the model's answer to ``prompt`` about ``material``, which stands apart as a message of the user."""
    words = asking.redact("\n".join(part for part in material if part))
    messages = [Message("system", prompt.text), Message("user", words)]
    return asking.model.complete(messages, shape, on_usage=asking.on_usage, optional=optional)


def provenance_of(
    prompt: Prompt, answer: Answer[Any], dropped: Mapping[str, int] | None = None
) -> Provenance:
    return Provenance(
        prompt=prompt.name,
        model=answer.model,
        tokens_in=answer.tokens_in,
        tokens_out=answer.tokens_out,
        seconds=answer.seconds,
        calls=answer.calls,
        # What could not be read never came to a guard.
        dropped={**answer.dropped, **(dropped or {})},
    )
