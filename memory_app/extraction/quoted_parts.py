"""Separate what the author of a text wrote from what was pasted into it: our context windows, and quoted lines.

An app may put a window into any message, and people paste it. Its lines are what is remembered already, so they
must not be remembered again as this turn's. Only our own form is recognised: section headings, and the lines below
them.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory_app.records.layout import PLACES, PREFACE


def _heading(section: str) -> str:
    return f"[{PLACES[section].title}]"


HEADINGS = frozenset(map(_heading, PLACES))
NO_CONTENT = HEADINGS | {""}
FREE = frozenset(map(_heading, ("expression", "narrative")))
"""Sections whose lines have no mark; only an empty line ends them."""

MARKS = ("- ", "<memory", "</memory", "[", 'Session "')
"""How the lines of the other sections begin."""

QUOTED = ">"


@dataclass(frozen=True, slots=True)
class TextParts:
    """``own`` is the text without what was pasted, ``pasted`` are the lines that were, without their marks."""

    own: str
    pasted: tuple[str, ...]


def split_pasted(text: str) -> TextParts:
    """Split ``text`` into what its author wrote and what was pasted into it."""
    own: list[str] = []
    pasted: list[str] = []
    section = ""
    for line in text.splitlines():
        stripped = line.strip()
        section = _section(section, stripped)
        if section or stripped.startswith((QUOTED, PREFACE)):
            pasted.append(stripped.lstrip(f"{QUOTED}-").strip())
        else:
            own.append(line)
    contents = (line for line in pasted if line not in NO_CONTENT)
    return TextParts("\n".join(own), tuple(contents))


def _section(section: str, line: str) -> str:
    """The heading under which ``line`` stands, given that of the line before; empty for none."""
    if line in HEADINGS:
        return line
    # A window ends at the first line that none of ours looks like: its author writes on below it.
    goes_on = line != "" if section in FREE else line.startswith(MARKS)
    return section if goes_on else ""
