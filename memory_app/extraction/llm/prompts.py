"""Load prompts from files: the first line is the version, the rest what a model is told. A new text is a new version.

``{name}`` on a line of its own puts another prompt in its place. What stands in ``<sample>`` is an example, which
must never come back as something that was said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_INCLUDED = re.compile(r"^\{(\w+)\}$", re.MULTILINE)
_SAMPLE = re.compile(r"<sample>\n(.*?)</sample>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Prompt:
    """``name`` is kept with what was made by it, as "synthesize_turn-2.1": its version and those it includes."""

    name: str
    text: str
    samples: tuple[str, ...]


@cache
def load_prompt(name: str) -> Prompt:
    """Return the prompt of that name, with the prompts that it includes."""
    version, text = _read(name)
    versions = [version]

    def include(match: re.Match[str]) -> str:
        # One level only: what is included includes nothing itself.
        inner_version, inner_text = _read(match[1])
        versions.append(inner_version)
        return inner_text

    whole = _INCLUDED.sub(include, text)
    return Prompt(f"{name}-{'.'.join(versions)}", whole, tuple(_SAMPLE.findall(whole)))


def load_all_prompts() -> tuple[Prompt, ...]:
    """Return every prompt, and what they include as well."""
    paths = files("memory_app.extraction").joinpath("prompts").iterdir()
    names = sorted(path.name.removesuffix(".md") for path in paths if path.name.endswith(".md"))
    return tuple(map(load_prompt, names))


def _read(name: str) -> tuple[str, str]:
    whole = files("memory_app.extraction").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")
    first, _, text = whole.partition("\n")
    return first.removeprefix("version:").strip(), text.strip()
