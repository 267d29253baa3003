"""The body of a chat completion, taken apart: what the model said, why it stopped, what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memory_app.errors import ProviderUnavailable
from memory_app.providers.chat.json_text import Unreadable

BYTES_PER_TOKEN = 4
"""For estimates before a call and where a server counts nothing: about right for English, high for code."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a model. Not ``complete``: it was stopped at its limit of tokens."""

    text: str
    complete: bool
    model: str
    tokens_in: int
    tokens_out: int
    fault: Unreadable | None = None
    """Why there is nothing to read, where that is known before reading."""


def reply_of(body: Mapping[str, object], *, model: str, sent_tokens: int) -> Reply:
    """The reply in ``body``. Raises `ProviderUnavailable` for a body that is no chat completion at all."""
    choices = body.get("choices")
    if not isinstance(choices, list):
        raise ProviderUnavailable("the language model's server answered something that is no chat completion")
    choice = choices[0] if choices and isinstance(choices[0], Mapping) else {}
    message = choice.get("message")
    message = message if isinstance(message, Mapping) else {}
    fault = _refusal(message, choice.get("finish_reason"))
    text = ""
    try:
        text = _content(message)
    except Unreadable as error:
        fault = fault or error
    tokens_in, tokens_out = _tokens(body.get("usage"), sent_tokens, text)
    said_by = body.get("model")
    return Reply(
        text=text,
        complete=choice.get("finish_reason") != "length",
        model=said_by if isinstance(said_by, str) and said_by else model,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        fault=fault,
    )


def estimated_tokens(text: str) -> int:
    """Tokens of ``text``, roughly."""
    return len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN + 1


def _refusal(message: Mapping[str, object], finish: object) -> Unreadable | None:
    if message.get("refusal"):
        return Unreadable("the model refused", repairable=False)
    if finish == "content_filter":
        return Unreadable("the provider's filter stopped the answer", repairable=False)
    return None


def _content(message: Mapping[str, object]) -> str:
    """The text of a message: a string, a list of parts, or the arguments of a tool call nobody asked for."""
    content = message.get("content")
    if isinstance(content, str) and content.strip():
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "".join(part for part in parts if isinstance(part, str))
    return _arguments(message.get("tool_calls"))


def _arguments(calls: object) -> str:
    """One call repeated is one answer; different ones contradict each other."""
    if not isinstance(calls, list):
        return ""
    functions = [call.get("function") for call in calls if isinstance(call, Mapping)]
    found = {
        function["arguments"]
        for function in functions
        if isinstance(function, Mapping) and isinstance(function.get("arguments"), str)
    }
    if len(found) > 1:
        raise Unreadable("the model made several different tool calls")
    return found.pop() if found else ""


def _tokens(usage: object, sent_tokens: int, text: str) -> tuple[int, int]:
    counted = usage if isinstance(usage, Mapping) else {}
    return (
        _count(counted.get("prompt_tokens"), sent_tokens),
        _count(counted.get("completion_tokens"), estimated_tokens(text)),
    )


def _count(value: object, estimate: int) -> int:
    counted = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if counted and isinstance(value, int) else estimate
