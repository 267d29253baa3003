"""The page of all settings, `docs/configuration.md`, written from `memory_app.settings`.

    python -m benchmarks.settings_page > docs/configuration.md        or: make docs

A test compares the page with what this prints.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from memory_app.settings import Settings

PREFIX = "MEMORY_"

UNITS = {
    "seconds": "seconds",
    "minutes": "minutes",
    "hours": "hours",
    "days": "days",
    "weeks": "weeks",
    "ms": "milliseconds",
    "bytes": "bytes",
    "chars": "characters",
    "tokens": "tokens",
    "dollars": "US dollars",
}
"""By the word of a name that says the unit."""

HEADINGS = {"http": "HTTP"}
COUNTED_PER = re.compile(r"(requests|tokens|dollars)_per_(minute|day)$")

TYPES = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    Decimal: "number",
    str: "text",
    Path: "path",
    SecretStr: "secret text",
}

HEAD = """# Configuration

Settings are read from the environment, or from a file `.env` in the current folder. A wrong value ends the process with
one sentence that names the setting. A setting that is not given takes its default; None in a sentence means "unset".

This page is written by `make docs` from `memory_app/settings.py`.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A setting as the page shows it."""

    name: str
    type: str
    default: str
    unit: str
    sentence: str


def sections() -> Mapping[str, list[Row]]:
    """The rows by heading, in the order of `Settings`; what belongs to no section comes first."""
    rows: dict[str, list[Row]] = {"General": []}
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            rows[HEADINGS.get(name, name.capitalize())] = list(section_rows(name, field.annotation))
        else:
            rows["General"].append(row(PREFIX + name.upper(), name, field))
    return rows


def section_rows(section: str, model: type[BaseModel]) -> Iterator[Row]:
    for name, field in model.model_fields.items():
        yield row(f"{PREFIX}{section}__{name}".upper(), name, field)


def row(environment_name: str, name: str, field: FieldInfo) -> Row:
    return Row(
        name=environment_name,
        type=type_name(field.annotation),
        default=default_text(field.get_default()),
        unit=unit_of(name),
        sentence=field.description or "",
    )


def type_name(annotation: Any) -> str:
    """What may be written, in words."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return type_name(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return " or ".join(type_name(part) for part in get_args(annotation) if part is not type(None))
    if origin is Literal:
        return " · ".join(f"`{value}`" for value in get_args(annotation))
    if origin is dict:
        return "JSON object"
    if origin is frozenset:
        return "JSON list"
    return TYPES[annotation]


def default_text(value: Any) -> str:
    if value is None or value == "":
        return "unset"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, frozenset):
        return f"`{sorted(value)}`"
    if isinstance(value, SecretStr):
        return f"`{value.get_secret_value()}`"
    if isinstance(value, float) and value.is_integer():
        return f"`{int(value)}`"
    return f"`{value}`"


def unit_of(name: str) -> str:
    """The unit that the last words of a setting's name say, or nothing."""
    if name.endswith("rate_bytes"):
        return "bytes per second"
    if ending := COUNTED_PER.search(name):
        return f"{UNITS.get(ending[1], ending[1])} per {ending[2]}"
    for word in reversed(name.split("_")):
        if word in UNITS:
            return UNITS[word]
    return ""


def page() -> str:
    """The whole page, as Markdown."""
    parts = [HEAD]
    for heading, rows in sections().items():
        parts.append(f"## {heading}\n")
        parts.append("| setting | type | default | unit | what it does |\n|---|---|---|---|---|")
        parts += [
            f"| `{r.name}` | {r.type} | {r.default} | {r.unit} | {r.sentence.replace('|', chr(92) + '|')} |"
            for r in rows
        ]
        parts.append("")
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
