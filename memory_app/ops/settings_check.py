"""What `memory doctor` says of variables that look like settings and are none: they are ignored without a word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from pydantic import BaseModel
from pydantic_settings import DotEnvSettingsSource

from memory_app.ops.check import Check, ok, warn
from memory_app.settings import PREFIX, Settings

ALIKE: Final = 0.85
"""Least similarity, 0 to 1, of a misspelt name to the right one: a letter or an underscore in twenty."""


def look(environment: Mapping[str, str], env_file: Path) -> Check:
    """Whether a variable is named almost as a setting. Values are not looked at.

    Other variables with the prefix are left alone: a `.env` file also holds those of a compose file. A misspelt name
    within a section is an error at the start of each part.
    """
    known = sorted(_names())
    sections = {PREFIX + name.upper() for name in Settings.model_fields}
    misspelt = {}
    for name in sorted({name.upper() for name in (*environment, *_in_file(env_file))}):
        if not name.startswith(PREFIX) or name.partition("__")[0] in sections:
            continue
        near = get_close_matches(name, known, n=1, cutoff=ALIKE)
        if near:
            misspelt[name] = near[0]
    if not misspelt:
        return ok("settings", "no variable is named almost as a setting")
    finding = ", ".join(f"{name} is no setting" for name in misspelt)
    return warn("settings", finding, to_do=f"write {', '.join(misspelt.values())}")


def _in_file(path: Path) -> Iterable[str]:
    try:
        # As the settings themselves are read; of no file there are none.
        return DotEnvSettingsSource(Settings, env_file=path).env_vars.keys()
    except (OSError, UnicodeError):
        return ()


def _names() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            yield from (f"{PREFIX}{name}__{inner}".upper() for inner in section.model_fields)
        else:
            yield f"{PREFIX}{name}".upper()
