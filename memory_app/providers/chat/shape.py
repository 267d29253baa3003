"""Describe the form an answer must have: a JSON schema to send, and the check of what comes back.

Both come from one pydantic model, so that they agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError

from memory_app.providers.chat.items import Notes

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)

Schema = Mapping[str, Any]

_NOT_SENT = frozenset({"default", "title", "examples", "minLength", "maxLength"})
"""Words of JSON Schema that servers with constrained output refuse; the check afterwards still holds them."""

# A reason is stored with the turn and shown to the model; a list of fifty odd items has fifty faults.
_FAULTS_NAMED = 3


class Unfit(ValueError):
    """A value that is not of the shape. ``reason`` names places and rules, never values."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """``value`` as far as an answer could be read; ``missing`` are the parts of it that were not there.

    ``dropped`` counts the items left out, by "unreadable" and the name of their list.
    """

    value: T
    dropped: Mapping[str, int]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shape(Generic[T]):
    """``schema`` is what is sent, ``read`` what takes it back: it raises `Unfit` where nothing could be read.

    ``lists`` are the names of its lists, for answers that are a bare list.
    """

    name: str
    schema: Schema
    read: Callable[[object], Reading[T]]
    lists: tuple[str, ...]
    count_fitting: Callable[[str, Sequence[object]], int]
    """How many of the items could be those of the list of that name."""


def shape_of(model: type[Model]) -> Shape[Model]:
    """Return the shape of a pydantic model; its name is the model's in snake case."""
    # By our own names: aliases are spellings that are accepted, not asked for.
    schema = model.model_json_schema(by_alias=False)
    adapters = {
        name: TypeAdapter(cast(Any, get_args(field.annotation)[0]))
        for name, field in model.model_fields.items()
        if schema["properties"][name].get("type") == "array"
    }

    def count_fitting(name: str, items: Sequence[object]) -> int:
        return sum(_fits(adapters[name], item) for item in items)

    def read(value: object) -> Reading[Model]:
        notes = Notes()
        try:
            answer = model.model_validate(value, context=notes)
        except ValidationError as error:
            # Without its cause, whose words quote the answer.
            raise Unfit(_reason(error)) from None
        parts = {name: getattr(answer, name) for name in model.model_fields}
        missing = tuple(
            name for name, part in parts.items() if part is None or name not in answer.model_fields_set
        )
        # Empty lists are an answer; silence is none. Items that cannot be read are not silence: they are counted.
        if missing and not any(parts.values()) and not notes.unread:
            raise Unfit(f"{missing[0]}: missing")
        dropped = {f"unreadable {name}": count for name, count in notes.unread.items()}
        return Reading(answer, dropped, missing)

    return Shape(
        name=_snake(model.__name__),
        schema=strict_schema(schema),
        read=read,
        lists=tuple(adapters),
        count_fitting=count_fitting,
    )


def _fits(adapter: TypeAdapter[Any], item: object) -> bool:
    try:
        adapter.validate_python(item)
    except ValidationError:
        return False
    return True


def strict_schema(schema: Schema) -> dict[str, Any]:
    """Return the schema as servers with constrained output want it: every key required, no others, no defaults."""
    strict = cast(dict[str, Any], _strict(deepcopy(dict(schema))))
    # "$defs" first, so that whoever searches a text for a schema knows its beginning.
    return {key: strict[key] for key in sorted(strict, key=lambda key: key != "$defs")}


def _strict(part: Any) -> Any:
    if isinstance(part, list):
        return [_strict(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    strict = {key: _strict_value(key, value) for key, value in part.items() if key not in _NOT_SENT}
    if "properties" not in strict:
        return strict
    return {"additionalProperties": False, **strict, "required": list(strict["properties"])}


def _strict_value(key: str, value: Any) -> Any:
    # The keys below these are names of fields, which may be those of a keyword.
    if key in ("properties", "$defs"):
        return {name: _strict(inner) for name, inner in value.items()}
    return _strict(value)


def _reason(error: ValidationError) -> str:
    """The first faults by place and rule. What stands in the answer is not repeated."""
    faults = error.errors(include_input=False, include_url=False, include_context=False)
    named = "; ".join(f"{_path(fault['loc'])}: {fault['type']}" for fault in faults[:_FAULTS_NAMED])
    more = len(faults) - _FAULTS_NAMED
    return f"{named} and {more} more" if more > 0 else named


def _path(parts: Sequence[object]) -> str:
    # Cut, since a key in it may be a sentence of the model.
    return ".".join(map(str, parts))[:80]


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
