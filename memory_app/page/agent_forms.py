"""What the forms about an agent say, as the documents that the API takes. Pure.

Nothing is judged here: what is no number stays a text, so that the check of the document names the field. Rows that
were left blank are taken out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from memory_app.page.form import Form

SWITCHES: Final = (
    "memory",
    "daily_logs",
    "entity_extraction",
    "fact_curation",
    "query_graph",
    "group",
    "strict",
    "core_by_tool",
)
COUNTS: Final = ("after_turns", "max_memories", "max_links", "daily_log_limit_days")
SECONDS: Final = ("idle_seconds", "max_age_seconds")


def persona_of(form: Form) -> dict[str, Any]:
    """The persona of its form."""
    traits = [
        {"name": name, "description": description, "intensity": number(intensity)}
        for name, description, intensity in _rows(form, "trait_name", "trait_description", "trait_intensity")
        if name or description
    ]
    return {
        "name": _text(form, "name"),
        "description": _text(form, "description"),
        "style": _text(form, "style"),
        "tone": form.all("tone"),
        "traits": traits,
        "preferences": {
            "length": _text(form, "length"),
            "structure": _text(form, "structure"),
            "examples": form.is_ticked("examples"),
            "codeBlocks": form.is_ticked("codeBlocks"),
        },
    }


def policy_of(form: Form) -> dict[str, Any]:
    """The policy of its form; empty numbers are those of the settings."""
    return {
        **{name: form.is_ticked(name) for name in SWITCHES},
        **{name: number(form.optional(name)) for name in (*COUNTS, *SECONDS)},
        "extraction": _text(form, "extraction"),
        "preset": form.optional("preset"),
        "weights": _numbers(form, "weights."),
        "single_valued_relations": _lines(form, "single_valued_relations"),
        "redaction": _text(form, "redaction"),
        "redaction_kinds": form.all("redaction_kinds"),
        "retention": _numbers(form, "retention."),
        "instructions": {
            "keep": _lines(form, "keep"),
            "never": _lines(form, "never"),
            "entity_types": dict(map(_pair, _lines(form, "entity_types"))),
            "relations": _lines(form, "relations"),
        },
    }


def defaults_of(form: Form) -> list[dict[str, Any]]:
    """The default memories of their form."""
    pinned = set(form.all("pinned"))
    rows = _rows(form, "text", "kind", "subtype", "importance", "importance_scale", "tags")
    return [
        {
            "text": text,
            "kind": kind,
            "subtype": subtype or None,
            "importance": number(importance),
            "importance_scale": scale or None,
            "tags": [tag.strip() for tag in tags.split(",") if tag.strip()],
            "pinned": str(place) in pinned,
        }
        for place, (text, kind, subtype, importance, scale, tags) in enumerate(rows)
        if text
    ]


def number(text: str | None) -> float | str | None:
    """The number that a field holds; what is none stays a text, and an empty field is None."""
    if not text:
        return None
    # float() also reads "1_0", "infinity" and other digits, none of which anybody means.
    if not text.isascii() or text.strip("0123456789.-+e"):
        return text
    try:
        return int(text) if text.lstrip("-").isdecimal() and len(text) < 19 else float(text)
    except ValueError:
        return text


def _text(form: Form, name: str) -> str:
    return form.optional(name) or ""


def _numbers(form: Form, prefix: str) -> dict[str, float | str | None]:
    """The numbers of the fields whose names begin so, by the rest of the name; empty ones are left out."""
    fields = {
        name.removeprefix(prefix): form.optional(name) for name in form.fields if name.startswith(prefix)
    }
    return {name: number(text) for name, text in fields.items() if text is not None}


def _lines(form: Form, name: str) -> list[str]:
    return [line.strip() for line in _text(form, name).splitlines() if line.strip()]


def _rows(form: Form, *names: str) -> Iterator[tuple[str, ...]]:
    """The rows of a table of fields, each column of which has one name."""
    # A browser sends every column of every row; whoever sends less gets the rows that are whole.
    for row in zip(*(form.all(name) for name in names), strict=False):
        yield tuple(value.strip() for value in row)


def _pair(line: str) -> tuple[str, str]:
    """``medicine: thing`` as its two parts."""
    name, _, type = line.rpartition(":")
    return name.strip() or line, type.strip() if name else ""
