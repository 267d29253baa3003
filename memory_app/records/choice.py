"""Names of an enumeration as callers give them."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from memory_app.errors import InvalidInput

Name = TypeVar("Name", bound=StrEnum)


def choice_of(names: type[Name], value: str, *, field: str) -> Name:
    """The member called ``value``; `InvalidInput` naming ``field`` and the choices for what is none."""
    try:
        return names(value)
    except ValueError:
        raise InvalidInput(f"{field}: one of {', '.join(names)}", field=field) from None
