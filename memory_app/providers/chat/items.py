"""Read a list of an answer item by item: an odd item is left out and counted, the good ones are kept.

A shape says so by `Items` in place of `list`. The JSON schema of both is the same, so what is sent and what is read
agree. What a model meant by a list is understood: null, an object alone, a list inside an object or another list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
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
    """Whether ``value`` is null, or a word that models write in place of it."""
    if isinstance(value, str):
        return value.strip().lower() in NOTHING
    return value is None


def unwrapped(value: object) -> object:
    """Return ``value`` without the list of one, or the object of one key, around it.

    ``[8]``, ``{"value": 8}`` and ``[{"importance": {"value": 8}}]`` are 8.
    """
    for _ in range(LEVELS):
        inner = _only(value)
        if inner is None:
            break
        value = inner
    return value


def _only(value: object) -> object | None:
    """What stands in a list of one, or under the only key of an object; None for anything else."""
    contents: list[object] = []
    if isinstance(value, list):
        contents = value
    elif isinstance(value, Mapping):
        contents = list(value.values())
    return contents[0] if len(contents) == 1 else None


def listed(value: object) -> list[object]:
    """Return the items that a model meant by ``value`` where a list is wanted.

    An item alone is a list of one. Lists in lists are one list, and an object around items is taken off:
    ``{"items": [...]}`` or ``{"1": {...}, "2": {...}}``.
    """
    return _items(value, LEVELS)


def _items(value: object, levels: int) -> list[object]:
    """The items in ``value``, looked for so many lists and objects deep."""
    if is_nothing(value):
        return []
    if levels == 0:
        return [value]
    if isinstance(value, list):
        return _items_of_list(value, levels - 1)
    if isinstance(value, Mapping):
        return _items_of_object(value, levels - 1)
    return [value]


def _items_of_list(value: list[object], levels: int) -> list[object]:
    items: list[object] = []
    for inner in value:
        if isinstance(inner, list):
            items += _items(inner, levels)
        else:
            # An object in a list is an item; what it means is for the shape of the items to say.
            items.append(inner)
    return items


def _items_of_object(value: Mapping[str, object], levels: int) -> list[object]:
    """The items in an object that is only there around them, else the object itself, which is one."""
    types = set(map(type, value.values()))
    # {"items": [...]}
    holds_list = types == {list} and len(value) == 1
    # {"1": {...}, "2": {...}}
    holds_objects = types == {dict}
    if not holds_list and not holds_objects:
        return [value]
    items: list[object] = []
    for inner in value.values():
        items += _items(inner, levels)
    return items


def _read_each(value: object, read: ValidatorFunctionWrapHandler, info: ValidationInfo) -> list[Any]:
    """Read each item with ``read``, which takes and returns a list."""
    notes = _notes(info)
    list_name = info.field_name or "items"
    items: list[Any] = []
    for item in listed(value):
        # One at a time, so that an odd item takes no other along.
        try:
            items += read([item])
        except ValidationError:
            notes.unread[list_name] += 1
    return items


def _notes(info: ValidationInfo) -> Notes:
    if isinstance(info.context, Notes):
        return info.context
    # This reader does not ask what was left out.
    return Notes()


Items = Annotated[list[T], WrapValidator(_read_each)]
"""A list whose odd items are left out and counted in the `Notes` that the reader hands over as context."""
