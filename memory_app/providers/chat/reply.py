"""Read the body of a chat completion: the text of the model, why it stopped, what it cost."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memory_app.errors import ProviderUnavailable
from memory_app.providers.chat.json_text import Unreadable

_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
"""Fields in which servers put what a model thought."""

_SENT = ("prompt_tokens", "input_tokens")
_ANSWERED = ("completion_tokens", "output_tokens")

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
    """Return the reply in ``body``.

    ``model`` and ``sent_tokens`` stand in for what a server does not name. Raises `ProviderUnavailable` for a body
    that is no chat completion at all.
    """
    choices = body.get("choices")
    if not isinstance(choices, list):
        raise ProviderUnavailable("the language model's server answered something that is no chat completion")
    choice = _mapping(choices[0]) if choices else {}
    message = _mapping(choice.get("message"))
    fault = _refusal(message, choice.get("finish_reason"))
    text = ""
    try:
        text = _content(message)
    except Unreadable as error:
        # A refusal says more than what was left of the answer.
        fault = fault or error
    usage = _mapping(body.get("usage"))
    # The server names the version behind an alias, and prices go by versions.
    model_of_server = body.get("model")
    return Reply(
        text=text,
        complete=choice.get("finish_reason") != "length",
        model=model_of_server if isinstance(model_of_server, str) and model_of_server else model,
        tokens_in=_count(usage, _SENT, estimate=sent_tokens),
        tokens_out=_count(usage, _ANSWERED, estimate=estimated_tokens(text)),
        fault=fault,
    )


def estimated_tokens(text: str) -> int:
    """Return the tokens of ``text``, roughly."""
    return len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN + 1


def _mapping(value: object) -> Mapping[str, object]:
    """``value`` where it is a JSON object; an empty one for what a server sent in its place."""
    return value if isinstance(value, Mapping) else {}


def _strings(values: Iterable[object]) -> Iterator[str]:
    return (value for value in values if isinstance(value, str))


def _refusal(message: Mapping[str, object], finish: object) -> Unreadable | None:
    # Neither is repaired: asked once more, the model would refuse again.
    if message.get("refusal"):
        return Unreadable("the model refused", repairable=False)
    if finish == "content_filter":
        return Unreadable("the provider's filter stopped the answer", repairable=False)
    return None


def _content(message: Mapping[str, object]) -> str:
    """The text of a message: a string, a list of parts, or the arguments of a tool call nobody asked for.

    Where there is none of these, it may be what stands as the model's thought: servers that take thoughts out of the
    text take all of it where the model never ended its thought.
    """
    content = message.get("content")
    if isinstance(content, str) and content.strip():
        return content
    if isinstance(content, list):
        return "".join(_strings(_mapping(part).get("text") for part in content))
    arguments = _arguments(message)
    if arguments:
        return arguments
    thoughts = _strings(message.get(name) for name in _THOUGHTS)
    return next((thought for thought in thoughts if thought.strip()), "")


def _arguments(message: Mapping[str, object]) -> str:
    """One call repeated is one answer; different ones contradict each other."""
    calls = message.get("tool_calls")
    functions = (
        [_mapping(_mapping(call).get("function")) for call in calls] if isinstance(calls, list) else []
    )
    # The way in which tools were called before there were several at once.
    functions.append(_mapping(message.get("function_call")))
    arguments = {_as_text(function.get("arguments")) for function in functions} - {""}
    if len(arguments) > 1:
        raise Unreadable("the model made several different tool calls")
    return arguments.pop() if arguments else ""


def _as_text(arguments: object) -> str:
    """Arguments as text, which some servers have taken apart already."""
    if isinstance(arguments, Mapping):
        return json.dumps(arguments)
    return arguments if isinstance(arguments, str) else ""


def _count(usage: Mapping[str, object], names: Sequence[str], *, estimate: int) -> int:
    for name in names:
        value = usage.get(name)
        # In Python True is a number; in JSON it is none.
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return estimate
