"""Parse single fields of JSON that somebody wrote. A parser takes a value and its path, which its error names.

Unknown fields are refused, so that a misspelt one is never taken for the default.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeGuard, TypeVar

from memory_app.errors import InvalidInput

Value = TypeVar("Value")

Parser = Callable[[object, str], Value]
"""From a value and its path, such as ``persona.traits[1].intensity``, to what is stored. Raises `InvalidInput`."""


def parse_object(value: object, path: str, *, names: Collection[str]) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{path}: a JSON object is required", field=path)
    for name in value:
        if name not in names:
            inner = f"{path}.{name}"
            raise InvalidInput(f"{inner}: unknown field; one of {', '.join(names)}", field=inner)
    return value


def parse_fields(value: object, path: str, *, parsers: Mapping[str, Parser[object]]) -> dict[str, object]:
    """Each field of an object by its own parser."""
    fields = parse_object(value, path, names=parsers.keys())
    return {name: parsers[name](inner, f"{path}.{name}") for name, inner in fields.items()}


def parse_switch(value: object, path: str) -> bool:
    # Not what Python takes for true: "false" is a text that is not empty.
    if not isinstance(value, bool):
        raise InvalidInput(f"{path}: true or false", field=path)
    return value


def one_of(names: Collection[str], *, unknown: str = "") -> Parser[str]:
    """A parser of one of ``names``; ``unknown`` opens its message."""

    def parse(value: object, path: str) -> str:
        # The type first: a list or an object cannot be looked up.
        if isinstance(value, str) and value in names:
            return value
        raise InvalidInput(f"{path}: {unknown}one of {', '.join(names)}", field=path)

    return parse


def nullable(parse: Parser[Value]) -> Parser[Value | None]:
    """The same parser, for a field that may also be null."""
    return lambda value, path: None if value is None else parse(value, path)


def is_number(value: object) -> TypeGuard[int | float]:
    # To Python `True` is the number 1.
    return isinstance(value, int | float) and not isinstance(value, bool)
