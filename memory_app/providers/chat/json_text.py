"""Read a language model's text as the JSON that the request asked for. Tolerant of form, never of content.

Fences, preambles, thoughts, a list without its wrapping, keys in another style and missing brackets at the end are
understood. What would need a guess is not: where nothing can be read, `Unreadable` says why, without repeating what the
model wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from memory_app.providers.chat.shape import Reading, Shape, Unfit

T = TypeVar("T")

ATTEMPTS = 50
"""Places of a text at which JSON is looked for; more come from text that holds none."""

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
# Where the template of a prompt opens the thought, only its end stands in the answer.
_OPEN_THOUGHT = re.compile(r"^.*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```[\w-]*\s*\n?(.*?)```", re.DOTALL)
# Possessive: a string without an end would be tried again from each of its characters otherwise.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|$)|[{}\[\]]', re.DOTALL)
_BRACKET = re.compile(r"[{\[]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_CLOSING = {"{": "}", "[": "]"}
_COMPLETE_ENDINGS = ("}", "]", '"', "true", "false", "null")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Unreadable(ValueError):
    """``reason`` says what is wrong with an answer, in words that may be stored and shown."""

    def __init__(self, reason: str, *, repairable: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.repairable = repairable


def read_answer(text: str, shape: Shape[T], *, complete: bool = True) -> Reading[T]:
    """Return what ``text`` holds of ``shape``. Not ``complete``: the model was stopped before its end.

    Where several values fit, the last one counts: models think first. One without missing parts comes before one with
    them. Raises `Unreadable`.
    """
    if not text.strip():
        raise Unreadable("the answer is empty")
    reasons: list[str] = []
    partial: Reading[T] | None = None
    for candidate in reversed(list(_candidates(text, complete=complete))):
        try:
            variants = list(_variants(normal_keys(candidate), shape))
        except RecursionError:
            raise Unreadable("the answer is nested too deeply") from None
        for value in variants:
            try:
                reading = shape.read(value)
            except Unfit as error:
                reasons.append(error.reason)
                continue
            if not reading.missing:
                return reading
            partial = partial or reading
    if partial is not None:
        return partial
    if reasons:
        raise Unreadable(f"the answer does not fit the schema: {reasons[0]}")
    raise Unreadable("there is no JSON in the answer" if complete else "the answer was cut off")


def _candidates(text: str, *, complete: bool) -> Iterator[object]:
    """Everything in ``text`` that is a JSON object or list, in the order in which it stands there."""
    # The byte order mark, which some servers put first, is no JSON.
    answer = _OPEN_THOUGHT.sub("", _THOUGHT.sub("", text)).strip().lstrip("\ufeff")
    whole = _loaded(answer)
    if whole is not None:
        yield whole
        return
    # What a model puts into fences is its answer; what stands around them explains it.
    values = _fenced(answer) or list(_scattered(answer))
    yield from values
    # What was cut off by its limit may lack more than brackets, so it is not closed.
    closed = closed_json(answer) if complete and not values else None
    if closed is not None:
        yield closed


def _fenced(text: str) -> list[object]:
    """The objects and lists between fences of Markdown."""
    values = (_loaded(match[1].strip()) for match in _FENCE.finditer(text))
    return [value for value in values if value is not None]


def _loaded(text: str) -> object | None:
    """The object or list that ``text`` is as a whole, or None."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _refuse_constant(name: str) -> object:
    # NaN and Infinity, which Python reads and PostgreSQL does not.
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
            # The rest stands inside of a bracket that never closes.
            if end is None:
                return
            place = end
        else:
            yield value


def closed_json(text: str) -> object | None:
    """Return the JSON that begins in ``text`` and lacks only closing brackets, or None.

    A text that ends inside a string, a number or after a comma could go on in many ways, so it is not closed.
    """
    opening = _BRACKET.search(text)
    if opening is None:
        return None
    beginning = text[opening.start() :].rstrip()
    if not beginning.endswith(_COMPLETE_ENDINGS):
        return None
    open_brackets = _open_brackets(beginning)
    if open_brackets is None:
        return None
    closing = "".join(_CLOSING[bracket] for bracket in reversed(open_brackets))
    return _loaded(beginning + closing)


def _closing(text: str, start: int) -> int | None:
    """The place behind the bracket that closes the one at ``start``; None when the text ends before."""
    depth = 0
    for place, bracket in _brackets(text, start):
        depth += 1 if bracket in _CLOSING else -1
        if depth == 0:
            return place + 1
    return None


def _open_brackets(text: str) -> list[str] | None:
    """Brackets left open at the end of ``text``; None when they do not nest."""
    stack: list[str] = []
    for _, bracket in _brackets(text, 0):
        if bracket in _CLOSING:
            stack.append(bracket)
        elif not stack or _CLOSING[stack.pop()] != bracket:
            return None
    return stack


def _brackets(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Brackets outside strings."""
    for match in _TOKEN.finditer(text, start):
        if match[0][0] != '"':
            yield match.start(), match[0]


def normal_keys(value: object) -> object:
    """Return the same JSON with every key in snake case: "turnId", "Turn ID" and "turn-id" are ``turn_id``.

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
    if isinstance(value, list):
        # A list of one answer.
        if len(value) == 1 and isinstance(value[0], Mapping):
            yield value[0]
        yield from _wrapped(value, shape)
    elif isinstance(value, Mapping):
        yield value
        yield from _unwrapped(value)
        inner = _only_value(value)
        # An empty list under another name answers another question.
        if isinstance(inner, list) and inner:
            yield from _wrapped(inner, shape)


def _only_value(value: object) -> object | None:
    """What stands under the only key of an object; None for anything else."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    inner: object = next(iter(value.values()))
    return inner


def _unwrapped(value: Mapping[object, object]) -> Iterator[object]:
    """The objects in ``value``, where it and what is in it have only one key."""
    # Two wrappings are seen, such as {"result": {"data": …}}; more is another schema.
    inner = _only_value(value)
    for _ in range(2):
        if isinstance(inner, Mapping):
            yield inner
        inner = _only_value(inner)


def _wrapped(items: Sequence[object], shape: Shape[Any]) -> Iterator[object]:
    """A bare list, where one list of the shape holds more of it than any other. An empty one only if there is one."""
    if len(shape.lists) == 1:
        fitting = list(shape.lists)
    else:
        counts = {name: shape.count_fitting(name, items) for name in shape.lists}
        most = max(counts.values(), default=0)
        fitting = [name for name, count in counts.items() if count == most > 0]
    if len(fitting) == 1:
        empty: dict[str, object] = {name: [] for name in shape.lists}
        yield empty | {fitting[0]: list(items)}
