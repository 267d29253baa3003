"""What of a text was put into it from elsewhere: a context window of ours, and lines that are quoted as in a letter.

An app may put a window into any message, and people paste it. Its lines are what is remembered already, so they are
nobody's words in this turn. Only our own form is known here: section headings, and the lines below them.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory_app.records.layout import PLACES, PREFACE

HEADINGS = frozenset(f"[{place.title}]" for place in PLACES.values())
FREE = frozenset(f"[{PLACES[name].title}]" for name in ("expression", "narrative"))
"""Sections whose lines have no mark; only an empty line ends them."""

MARKS = ("- ", "<memory", "</memory", "[", 'Session "')
"""How the lines of the other sections begin."""

QUOTED = ">"


@dataclass(frozen=True, slots=True)
class Parted:
    """``own`` is the text without what was put in, ``pasted`` are the lines that were."""

    own: str
    pasted: tuple[str, ...]


def parted(text: str) -> Parted:
    """``text`` as what its author wrote and what was put into it."""
    own: list[str] = []
    pasted: list[str] = []
    section = ""
    for line in text.splitlines():
        said = line.strip()
        section = _section(section, said)
        foreign = bool(section) or said.startswith((QUOTED, PREFACE))
        (pasted if foreign else own).append(line)
    lines = (line.strip().lstrip(f"{QUOTED}-").strip() for line in pasted)
    return Parted("\n".join(own), tuple(line for line in lines if line and line not in HEADINGS))


def _section(section: str, said: str) -> str:
    """The heading under which a line stands; empty for none."""
    if said in HEADINGS:
        return said
    goes_on = bool(said) and (section in FREE or said.startswith(MARKS))
    return section if goes_on else ""
