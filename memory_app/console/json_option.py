"""JSON that is given on the command line: as it is, as a file, or on standard input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import typer

from memory_app.errors import InvalidInput


def json_option(given: str, option: str) -> Any:
    """The value that an option names. Raises `typer.BadParameter` for a file that is not there, and `InvalidInput`."""
    if given == "-":
        text = sys.stdin.read()
    elif given.lstrip().startswith(("{", "[")) or given.strip() == "null":
        text = given
    else:
        try:
            text = Path(given).read_text(encoding="utf-8")
        except OSError as error:
            raise typer.BadParameter(f"no such file: {given}", param_hint=option) from error
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"{option}: no valid JSON: {error}", field=option) from error


def object_option(given: str | None, option: str) -> dict[str, Any] | None:
    """The JSON object that an option names; None stays None."""
    if given is None:
        return None
    value = json_option(given, option)
    if not isinstance(value, dict):
        raise InvalidInput(f"{option}: a JSON object is required", field=option)
    return value
