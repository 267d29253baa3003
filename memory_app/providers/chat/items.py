"""Read a list of an answer item by item: an odd item is left out and counted, the good ones are kept.

A shape says so by `Items` in place of `list`. The JSON schema of both is the same, so what is sent and what is read
agree. What a model meant by a list is understood: null, an object alone, a list inside an object or another list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from pydantic import ValidationError, ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator

T = TypeVar("T")

NOTHING = frozenset({"", "null", "none", "n/a"})
"""What models write in place of null."""

LEVELS = 3
"""Lists and objects around a value that are taken off; deeper ones are another schema."""


@dataclass(frozen=True, slots=True)
class Notes:
    """What could not be read of one answer, counted by the name of the list it stood in."""

    unread: Counter[str] = field(default_factory=Counter)


def is_nothing(value: object) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in NOTHING)


def unwrapped(value: object) -> object:
    """Return ``value`` without the list of one, or the object of one key, around it."""
    for _ in range(LEVELS):
        inner = _only(value)
        if inner is None:
            break
        value = inner
    return value


def _only(value: object) -> object | None:
    if isinstance(value, Mapping) and len(value) == 1:
        inner: object = next(iter(value.values()))
        return inner
    return value[0] if isinstance(value, list) and len(value) == 1 else None


def listed(value: object) -> list[object]:
    """Return the items that a model meant by ``value`` where a list is wanted."""
    return list(_items(value, LEVELS))


def _items(value: object, levels: int) -> Iterator[object]:
    if is_nothing(value):
        return
    inner = _inside(value) if levels else None
    if inner is None:
        yield value
        return
    for item in inner:
        # An object in a list is an item; what it means is for the shape of the items to say.
        if isinstance(value, list) and not isinstance(item, list):
            yield item
        else:
            yield from _items(item, levels - 1)


def _inside(value: object) -> list[object] | None:
    """What stands in a list, or in an object that is only there around items; None for what is an item itself."""
    if isinstance(value, list):
        return value
    if not isinstance(value, Mapping):
        return None
    values = list(value.values())
    # {"items": [...]}
    if len(values) == 1 and isinstance(values[0], list):
        return values
    # {"1": {...}, "2": {...}}
    return values if values and all(isinstance(inner, Mapping) for inner in values) else None


def _read_each(value: object, read: ValidatorFunctionWrapHandler, info: ValidationInfo) -> list[Any]:
    notes = info.context if isinstance(info.context, Notes) else Notes()
    items: list[Any] = []
    for item in listed(value):
        try:
            items += read([item])
        except ValidationError:
            notes.unread[info.field_name or "items"] += 1
    return items


Items = Annotated[list[T], WrapValidator(_read_each)]
"""A list whose odd items are left out and counted in the `Notes` that the reader hands over as context."""
