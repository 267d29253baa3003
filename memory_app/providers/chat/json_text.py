"""A language model's text, read as the JSON that was asked for. Tolerant of form, never of content.

Fences, preambles, thoughts, a list without its wrapping, keys in another style and missing brackets at the end are
understood. What would need a guess is not: then `Unreadable` says why, without repeating what the model wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from memory_app.providers.chat.shape import Shape, Unfit

T = TypeVar("T")

ATTEMPTS = 50
"""Places of a text at which JSON is looked for; more come from text that holds none."""

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPEN_THOUGHT = re.compile(r"^.*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```[\w-]*\s*\n?(.*?)```", re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|$)|[{}\[\]]', re.DOTALL)
_BRACKET = re.compile(r"[{\[]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Unreadable(ValueError):
    """``reason`` says what is wrong with an answer, in words that may be stored and shown."""

    def __init__(self, reason: str, *, repairable: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.repairable = repairable


def read_answer(text: str, shape: Shape[T], *, complete: bool = True) -> T:
    """The value of ``shape`` that ``text`` holds. Not ``complete``: the model was stopped before its end.

    Where several values fit, the last one counts: models think first. Raises `Unreadable`.
    """
    if not text.strip():
        raise Unreadable("the answer is empty")
    reasons: list[str] = []
    for candidate in reversed(list(_candidates(text, complete=complete))):
        try:
            variants = list(_variants(normal_keys(candidate), shape))
        except RecursionError:
            raise Unreadable("the answer is nested too deeply") from None
        for value in variants:
            try:
                return shape.validate(value)
            except Unfit as error:
                reasons.append(error.reason)
    if reasons:
        raise Unreadable(f"the answer does not fit the schema: {reasons[0]}")
    raise Unreadable("the answer was cut off" if not complete else "there is no JSON in the answer")


def _candidates(text: str, *, complete: bool) -> Iterator[object]:
    """Everything in ``text`` that is a JSON object or list, in the order in which it stands there."""
    said = _OPEN_THOUGHT.sub("", _THOUGHT.sub("", text)).strip().lstrip("\ufeff")
    whole = _loaded(said)
    if whole is not None:
        yield whole
        return
    fenced = [found for match in _FENCE.finditer(said) if (found := _loaded(match[1].strip())) is not None]
    if fenced:
        yield from fenced
        return
    found = list(_scattered(said))
    yield from found
    if complete and not found:
        closed = closed_json(said)
        if closed is not None:
            yield closed


def _loaded(text: str) -> object | None:
    """The object or list that ``text`` is as a whole."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _scattered(text: str) -> Iterator[object]:
    """Objects and lists between other words.

    What stands inside brackets is never looked at by itself, readable or not: a part of an answer that was cut
    must not pass for the answer.
    """
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    place = 0
    for _ in range(ATTEMPTS):
        match = _BRACKET.search(text, place)
        if match is None:
            return
        try:
            value, place = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            end = _closing(text, match.start())
            if end is None:
                return
            place = end
        else:
            yield value


def closed_json(text: str) -> object | None:
    """The JSON that begins in ``text`` and lacks only closing brackets, or None.

    A text that ends inside a string, a number or after a comma could go on in many ways, so it is not closed.
    """
    start = min((place for place in (text.find("{"), text.find("[")) if place >= 0), default=-1)
    if start < 0:
        return None
    cut = text[start:].rstrip()
    if not cut.endswith(("}", "]", '"', "true", "false", "null")):
        return None
    open_brackets = _open_brackets(cut)
    if open_brackets is None:
        return None
    return _loaded(cut + "".join("}" if bracket == "{" else "]" for bracket in reversed(open_brackets)))


def _closing(text: str, start: int) -> int | None:
    """The place behind the bracket that closes the one at ``start``; None when the text ends before."""
    depth = 0
    for place, bracket in _brackets(text, start):
        depth += 1 if bracket in "{[" else -1
        if depth == 0:
            return place + 1
    return None


def _open_brackets(text: str) -> list[str] | None:
    """Brackets left open at the end of ``text``; None when they do not nest."""
    stack: list[str] = []
    for _, bracket in _brackets(text, 0):
        if bracket in "{[":
            stack.append(bracket)
        elif not stack or stack.pop() + bracket not in ("{}", "[]"):
            return None
    return stack


def _brackets(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Brackets outside strings."""
    for match in _TOKEN.finditer(text, start):
        if match[0][0] != '"':
            yield match.start(), match[0]


def normal_keys(value: object) -> object:
    """The same JSON with every key in snake case: "turnId", "Turn ID" and "turn-id" are ``turn_id``.

    Half an emoji in a text becomes the replacement character; it could be neither checked nor stored.
    """
    if isinstance(value, Mapping):
        return {_snake(str(key)): normal_keys(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [normal_keys(inner) for inner in value]
    return _LONE_SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value


def _snake(key: str) -> str:
    return re.sub(r"[\W_]+", "_", _WORDS.sub("_", key.strip())).strip("_").lower()


def _variants(value: object, shape: Shape[Any]) -> Iterator[object]:
    """``value`` as it is, taken out of a wrapping, or put into the one list it can be."""
    if isinstance(value, Mapping):
        yield value
        yield from _unwrapped(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        yield from _wrapped(value, shape)
    elif isinstance(value, Mapping) and len(value) == 1:
        (inner,) = value.values()
        if isinstance(inner, list) and inner:  # an empty list under another name answers another question
            yield from _wrapped(inner, shape)


def _unwrapped(value: Mapping[object, object]) -> Iterator[object]:
    inner: object = value
    for _ in range(2):
        if not isinstance(inner, Mapping) or len(inner) != 1:
            return
        (inner,) = inner.values()
        if isinstance(inner, Mapping):
            yield inner


def _wrapped(items: Sequence[object], shape: Shape[Any]) -> Iterator[object]:
    """A bare list, where exactly one list of the shape can hold it. An empty one only if there is just one."""
    fitting = [name for name in shape.lists if len(shape.lists) == 1 or shape.fits(name, items)]
    if len(fitting) == 1 and (items or len(shape.lists) == 1):
        yield {**{name: [] for name in shape.lists}, fitting[0]: list(items)}
