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

DEPTH_LIMIT = 100
"""Brackets within brackets. No schema of ours needs ten; a model that opens so many is caught in a loop."""

_THOUGHT_TAGS = "think|thinking|thought|reasoning"
_THOUGHT = re.compile(
    rf"<({_THOUGHT_TAGS})>.*?</\1>|\[THINK\].*?\[/THINK\]",
    re.DOTALL | re.IGNORECASE,
)
# Where the template of a prompt opens the thought, only its end stands in the answer.
_OPEN_THOUGHT = re.compile(
    # Channels: what is said before the last one was thought.
    rf"^.*(?:</(?:{_THOUGHT_TAGS})>|\[/THINK\]|<\|channel\|>final[^<]*<\|message\|>)",
    re.DOTALL | re.IGNORECASE,
)
_MARKS = re.compile(r"<\|[a-z_]+\|>|</?tool_call>")
"""Marks of a model's template that a server left in its text."""

_FENCE = re.compile(r"```[\w-]*\s*\n?(.*?)```", re.DOTALL)
# Possessive: a string without an end would be tried again from each of its characters otherwise.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|$)|[{}\[\]]', re.DOTALL)
_BRACKET = re.compile(r"[{\[]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_CLOSING = {"{": "}", "[": "]"}
_ARGUMENTS = frozenset({"arguments", "parameters"})
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
    for value in _values(text, shape, complete=complete):
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
    raise Unreadable(_reason(reasons, complete=complete))


def _reason(reasons: Sequence[str], *, complete: bool) -> str:
    """Why nothing could be read, where ``reasons`` say why each value did not fit."""
    if reasons:
        return f"the answer does not fit the schema: {reasons[0]}"
    if complete:
        return "there is no JSON in the answer"
    return "the answer was cut off"


def _values(text: str, shape: Shape[Any], *, complete: bool) -> Iterator[object]:
    """What may be the answer, in each of its variants, the last one first. Raises `Unreadable`."""
    candidates = list(_candidates(text, complete=complete))
    for candidate in reversed(candidates):
        yield from _variants(normal_keys(candidate), shape)


def _candidates(text: str, *, complete: bool) -> Iterator[object]:
    """Everything in ``text`` that is a JSON object or list, in the order in which it stands there."""
    answer = _without_thoughts(text)
    if _is_deeper(answer, DEPTH_LIMIT):
        # It would fall into the same loop again, so that a repair is money for nothing.
        raise Unreadable("the answer is nested too deeply", repairable=False)
    whole = _loaded(answer)
    if whole is not None:
        yield whole
        return
    # What a model puts into fences is its answer; what stands around them explains it.
    values = _fenced(answer) or list(_scattered(answer))
    yield from values
    # What was cut off by its limit may lack more than brackets, so it is not closed.
    if values or not complete:
        return
    closed = closed_json(answer)
    if closed is not None:
        yield closed


def _without_thoughts(text: str) -> str:
    """What a model answers, without what it thought before."""
    answer = _THOUGHT.sub("", text)
    answer = _OPEN_THOUGHT.sub("", answer)
    answer = _MARKS.sub(" ", answer)
    # The byte order mark, which some servers put first, is no JSON.
    return answer.strip().lstrip("\ufeff")


def _fenced(text: str) -> list[object]:
    """The objects and lists between fences of Markdown."""
    values: list[object] = []
    for match in _FENCE.finditer(text):
        value = _loaded(match[1].strip())
        if value is not None:
            values.append(value)
    return values


def _loaded(text: str) -> object | None:
    """The object or list that ``text`` is as a whole, or None."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except ValueError:
        return None
    # A number or a text alone is JSON as well, and no answer.
    if not isinstance(value, dict | list):
        return None
    return value


def _refuse_constant(name: str) -> object:
    """Refuse NaN and Infinity, which Python reads and PostgreSQL does not."""
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
        except ValueError:
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


def _is_deeper(text: str, limit: int) -> bool:
    """Whether more than ``limit`` brackets are open at one place of ``text``."""
    depth = 0
    for _, bracket in _brackets(text, 0):
        if bracket in _CLOSING:
            depth += 1
        else:
            # Brackets of a sentence may close what none opened.
            depth = max(depth - 1, 0)
        if depth > limit:
            return True
    return False


def _closing(text: str, start: int) -> int | None:
    """The place behind the bracket that closes the one at ``start``; None when the text ends before."""
    depth = 0
    for place, bracket in _brackets(text, start):
        if bracket in _CLOSING:
            depth += 1
        else:
            depth -= 1
        if depth == 0:
            return place + 1
    return None


def _open_brackets(text: str) -> list[str] | None:
    """Brackets left open at the end of ``text``; None when they do not nest."""
    stack: list[str] = []
    for _, bracket in _brackets(text, 0):
        if bracket in _CLOSING:
            stack.append(bracket)
            continue
        # It closes nothing.
        if not stack:
            return None
        # It closes a bracket of the other sort.
        if _CLOSING[stack.pop()] != bracket:
            return None
    return stack


def _brackets(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Brackets outside strings, each with its place."""
    for match in _TOKEN.finditer(text, start):
        token = match[0]
        is_string = token.startswith('"')
        if not is_string:
            yield match.start(), token


def normal_keys(value: object) -> object:
    """Return the same JSON with every key in snake case: "turnId", "Turn ID" and "turn-id" are ``turn_id``.

    Half an emoji in a text becomes the replacement character; it could be neither checked nor stored.
    """
    if isinstance(value, Mapping):
        return {_snake(str(key)): normal_keys(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [normal_keys(inner) for inner in value]
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    return value


def _snake(key: str) -> str:
    """The key in snake case. A capital letter within begins a word: "turnId" is two."""
    words = _WORDS.sub("_", key.strip())
    return re.sub(r"[\W_]+", "_", words).strip("_").lower()


def _variants(value: object, shape: Shape[Any]) -> Iterator[object]:
    """``value`` as it is, taken out of a wrapping, or put into the one list it can be."""
    if isinstance(value, list):
        yield from _variants_of_list(value, shape)
    elif isinstance(value, Mapping):
        yield value
        yield from _variants_of_object(value, shape)


def _variants_of_list(items: list[object], shape: Shape[Any]) -> Iterator[object]:
    """The one answer in the list, and the list under its name in the answer."""
    is_wrapping = len(items) == 1 and isinstance(items[0], Mapping)
    if is_wrapping:
        yield items[0]
    yield from _wrapped(items, shape)


def _variants_of_object(value: Mapping[object, object], shape: Shape[Any]) -> Iterator[object]:
    """The objects in ``value``, where it and what is in it have only one key, or the list under its only key.

    Or the arguments of a call of a tool that nobody offered, written as text.
    """
    if value.keys() & _ARGUMENTS and "name" in value:
        for name in _ARGUMENTS & value.keys():
            arguments = value[name]
            called = _loaded(arguments) if isinstance(arguments, str) else arguments
            if isinstance(called, Mapping):
                yield normal_keys(called)
    # Two wrappings are seen, such as {"result": {"data": …}}; more is another schema.
    inner = first = _only_value(value)
    for _ in range(2):
        if isinstance(inner, Mapping):
            yield inner
        inner = _only_value(inner)
    # An empty list under another name answers another question.
    if isinstance(first, list) and first:
        yield from _wrapped(first, shape)


def _only_value(value: object) -> object | None:
    """What stands under the only key of an object; None for anything else."""
    if not isinstance(value, Mapping):
        return None
    if len(value) != 1:
        return None
    inner: object = next(iter(value.values()))
    return inner


def _wrapped(items: Sequence[object], shape: Shape[Any]) -> Iterator[object]:
    """A bare list as the object of the shape that has it under the one name it can have; nothing where it has none."""
    name = _name_of_list(items, shape)
    if name is None:
        return
    answer: dict[str, object] = {other: [] for other in shape.lists}
    answer[name] = list(items)
    yield answer


def _name_of_list(items: Sequence[object], shape: Shape[Any]) -> str | None:
    """The list of the shape that holds more of the items than any other."""
    names = list(shape.lists)
    # The only one may be an empty one, too.
    if len(names) == 1:
        return names[0]
    counts = {name: shape.count_fitting(name, items) for name in names}
    highest = max(counts.values(), default=0)
    # Into none of them anything fits.
    if highest == 0:
        return None
    fitting = [name for name in names if counts[name] == highest]
    # Two lists that it fits equally well: which one was meant would be a guess.
    if len(fitting) > 1:
        return None
    return fitting[0]
