"""Check an agent's instructions before they are stored: they stand in every question to its model, and cost tokens."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from memory_app.errors import InvalidInput, TooLarge
from memory_app.language.secrets import holds_secret
from memory_app.language.text import clean_given
from memory_app.records.instructions import Instructions
from memory_app.records.json_fields import Parser, one_of, parse_fields
from memory_app.records.records import ENTITY_TYPES

LINES_LIMIT = 20
"""Most lines of a part."""

LINE_LIMIT = 200
"""Longest line, in characters."""

TOTAL_LIMIT = 2_000
"""Characters of all lines together, about 500 tokens of every question."""

NAME_LIMIT = 40


def parse_instructions(value: object, path: str, *, relations: Parser[tuple[str, ...]]) -> Instructions:
    """The instructions ``value`` describes; null means none. ``relations`` parses names of relations.

    Raises `InvalidInput` or `TooLarge` whose field is the part that is wrong.
    """
    if value is None:
        return Instructions()
    parsers: dict[str, Parser[object]] = {
        "keep": _lines,
        "never": _lines,
        "entity_types": _entity_types,
        "relations": relations,
    }
    # Each parser gives the type of its field, which a mapping of parsers cannot say.
    instructions = Instructions(**parse_fields(value, path, parsers=parsers))  # type: ignore[arg-type]
    total = sum(map(len, (*instructions.lines, *instructions.relations)))
    if total > TOTAL_LIMIT:
        raise TooLarge(f"{path}: {total} characters in all; at most {TOTAL_LIMIT}", field=path)
    return instructions


def _lines(value: object, path: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or len(value) > LINES_LIMIT:
        raise InvalidInput(f"{path}: a list of at most {LINES_LIMIT} lines of text", field=path)
    lines = (_line(line, f"{path}[{place}]", limit=LINE_LIMIT) for place, line in enumerate(value))
    return tuple(dict.fromkeys(lines))


def _line(value: object, path: str, *, limit: int) -> str:
    text = " ".join(clean_given(value, field=path)[0].split())
    # Invisible characters and punctuation alone wish nothing.
    if not any(map(str.isalnum, text)):
        raise InvalidInput(f"{path}: empty; leave it out or write what is wished", field=path)
    if len(text) > limit:
        raise TooLarge(f"{path}: at most {limit} characters", field=path)
    # They are sent to the provider of the model with every question.
    if holds_secret(text):
        raise InvalidInput(f"{path}: names a secret; instructions are sent to the language model", field=path)
    return text


def _entity_types(value: object, path: str) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or len(value) > LINES_LIMIT:
        raise InvalidInput(f"{path}: an object of at most {LINES_LIMIT} entity types by name", field=path)
    parse_type = one_of(ENTITY_TYPES)
    types = {
        _line(name, f"{path}.{name}", limit=NAME_LIMIT): parse_type(type, f"{path}.{name}")
        for name, type in value.items()
    }
    return MappingProxyType(types)
