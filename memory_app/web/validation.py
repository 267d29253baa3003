"""Say what pydantic found wrong: the path of the field as the caller wrote it, and a message without the value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from memory_app.errors import InvalidInput

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
# pydantic puts the branch of a union into a location; it is no part of what the caller sent.
TAGS = frozenset({"one", "batch", "history"})


def dotted(location: Sequence[int | str]) -> str:
    """A location as a path: ``turns[3].role``; empty for the value itself."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part not in TAGS:
            # An unknown field has the name that the caller sent; it is repeated only if it looks like a field's.
            name = part if _NAME.fullmatch(part) else "?"
            path += f".{name}" if path else name
    return path


def message_of(error: Mapping[str, Any]) -> str:
    """What is wrong, without the value that was sent."""
    kind = error["type"]
    if kind == "extra_forbidden":
        return "unknown; see /docs for the fields that are known"
    if kind == "missing":
        return "is required"
    # pydantic's own message names the class of the model.
    if kind in ("model_attributes_type", "model_type", "dict_type"):
        return "a JSON object is required"
    return str(error["msg"])


def invalid_input(error: ValidationError, *, place: str = "") -> InvalidInput:
    """The first error as ours. ``place`` stands before its path: ``turns[3]``."""
    first: dict[str, Any] = dict(error.errors(include_url=False, include_input=False)[0])
    path = dotted(first["loc"])
    # A path that begins with an index goes on without a dot.
    separator = "." if place and path and not path.startswith("[") else ""
    field = f"{place}{separator}{path}" or "turn"
    return InvalidInput(f"{field}: {message_of(first)}", field=field)


def refuse(location: tuple[str | int, ...], message: str) -> NoReturn:
    """Raise a `ValidationError` at ``location`` below the value that a validator reads."""
    error = PydanticCustomError("unreadable", "{message}", {"message": message})
    raise ValidationError.from_exception_data(
        "message", [InitErrorDetails(type=error, loc=location, input=None)]
    )
