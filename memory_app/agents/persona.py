"""How an agent speaks: a validated document on the agent, and its rendering as text for the model.

Parsing is strict and names the field that is wrong. Four templates ship with the product.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from memory_app.errors import InvalidInput, TooLarge
from memory_app.records.json_fields import Parser, is_number, one_of, parse_fields, parse_object, parse_switch

STYLES = ("formal", "casual", "technical", "creative", "professional")
TONES = ("friendly", "professional", "playful", "empathetic", "direct")
LENGTHS = ("concise", "balanced", "detailed")
STRUCTURES = ("narrative", "bulleted", "step-by-step")

TEMPLATES = ("default", "professional", "casual", "creative")
DEFAULT_TEMPLATE = "default"

NAME_LIMIT = 100
"""Longest name of a persona or trait, in characters."""
DESCRIPTION_LIMIT = 2_000
"""Longest description, in characters."""
TRAITS_LIMIT = 20
INTENSITY_LIMIT = 10


@dataclass(frozen=True, slots=True)
class Trait:
    """One side of a character; ``intensity`` 0–10."""

    name: str
    description: str = ""
    intensity: float = 5


@dataclass(frozen=True, slots=True)
class Preferences:
    """How answers are built: ``length`` of `LENGTHS`, ``structure`` of `STRUCTURES`."""

    length: str = "balanced"
    structure: str = "narrative"
    examples: bool = True
    code_blocks: bool = True


@dataclass(frozen=True, slots=True)
class Persona:
    """How an agent speaks. ``style`` is one of `STYLES`, ``tone`` some of `TONES`."""

    name: str
    description: str = ""
    style: str = "professional"
    tone: tuple[str, ...] = ()
    traits: tuple[Trait, ...] = ()
    preferences: Preferences = Preferences()

    def as_dict(self) -> dict[str, object]:
        """The persona as JSON; `parse_persona` of it is equal to this one."""
        # By hand and not `asdict`: callers write ``codeBlocks``.
        return {
            "name": self.name,
            "description": self.description,
            "style": self.style,
            "tone": list(self.tone),
            "traits": [
                {"name": trait.name, "description": trait.description, "intensity": trait.intensity}
                for trait in self.traits
            ],
            "preferences": {
                "length": self.preferences.length,
                "structure": self.preferences.structure,
                "examples": self.preferences.examples,
                "codeBlocks": self.preferences.code_blocks,
            },
        }


@dataclass(frozen=True, slots=True)
class LoadedPersona:
    """A template, and what to log when another one than was asked for had to be taken."""

    persona: Persona
    note: str | None = None


# --- templates ----------------------------------------------------------------------------------------------


def load_template(name: str) -> LoadedPersona:
    """The shipped template ``name``; an unknown one gives the default and a note to log.

    Reads a file of the package, and nothing else: ``name`` is looked up, not made into a path.
    """
    if name in TEMPLATES:
        return LoadedPersona(_read_template(name))
    # Any length may have been given, and the note goes into a log.
    note = f"no persona {name[:NAME_LIMIT]!r} is shipped, taking {DEFAULT_TEMPLATE}"
    return LoadedPersona(_read_template(DEFAULT_TEMPLATE), note)


def _read_template(name: str) -> Persona:
    text = (resources.files("memory_app.agents") / "personas" / f"{name}.json").read_bytes()
    return parse_persona_json(text)


# --- rendering ----------------------------------------------------------------------------------------------


def persona_of(stored: Mapping[str, object] | None) -> Persona:
    """The persona as stored with an agent; None: the default one."""
    return load_template(DEFAULT_TEMPLATE).persona if stored is None else parse_persona(stored)


def render_persona(persona: Persona) -> str:
    """A few lines for the expression section, one idea each; not yet quoted."""
    tone = f"; tone: {', '.join(persona.tone)}" if persona.tone else ""
    return "\n".join(
        (
            f"Persona {_one_line(persona.name)}{_after_colon(persona.description)}",
            f"Style: {persona.style}{tone}.",
            *map(_trait_line, persona.traits),
            _preferences_line(persona.preferences),
        )
    )


def _trait_line(trait: Trait) -> str:
    description = _after_colon(trait.description)
    return f"Trait {trait.name}, {trait.intensity:g} of {INTENSITY_LIMIT}{description}"


def _after_colon(description: str) -> str:
    text = _one_line(description)
    return f": {text}" if text else ""


def _preferences_line(preferences: Preferences) -> str:
    # Both ways are said: a model gives examples and code blocks where nothing is said about them.
    examples = "with" if preferences.examples else "without"
    code = "code in blocks" if preferences.code_blocks else "no code blocks"
    return f"Answers: {preferences.length}, {preferences.structure}, {examples} examples, {code}."


def _one_line(text: str) -> str:
    return " ".join(text.split())


# --- parsing ------------------------------------------------------------------------------------------------


def parse_persona_json(text: str | bytes) -> Persona:
    """`parse_persona` of JSON text; no JSON is an error of field ``persona`` with line and column."""
    try:
        persona = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidInput(f"persona: not JSON, {error.msg} at {place}", field="persona") from error
    # The parser calls itself for each bracket, so that a file of brackets ends in a recursion error.
    except (UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput("persona: not JSON in UTF-8, or nested too deeply", field="persona") from error
    return parse_persona(persona)


def parse_persona(value: Mapping[str, object]) -> Persona:
    """The persona ``value`` describes; ``name`` is required, the rest has defaults.

    ``template`` names one that is shipped: its fields stand in for those that are absent. Raises `InvalidInput` whose
    field is the path of what is wrong, such as ``persona.traits[1].intensity``.
    """
    fields = dict(parse_object(value, "persona", names=(*_PERSONA, "template")))
    if "template" in fields:
        # Before the check for a name: the template has one.
        fields = {**_template_fields(fields.pop("template")), **fields}
    if "name" not in fields:
        raise InvalidInput("persona.name: a name is required", field="persona.name")
    # Here and below: each parser gives its field the right type, which mypy cannot see in a mapping.
    return Persona(**parse_fields(fields, "persona", parsers=_PERSONA))  # type: ignore[arg-type]


def _template_fields(name: object) -> dict[str, object]:
    if name not in TEMPLATES:
        raise InvalidInput(
            f"persona.template: unknown; one of {', '.join(TEMPLATES)}", field="persona.template"
        )
    return load_template(str(name)).persona.as_dict()


def _name(value: object, path: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{path}: a text that is not empty", field=path)
    return _text(value, path, limit=NAME_LIMIT).strip()


def _description(value: object, path: str) -> str:
    return _text(value, path, limit=DESCRIPTION_LIMIT)


def _text(value: object, path: str, *, limit: int) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{path}: a text", field=path)
    if len(value) > limit:
        raise TooLarge(f"{path}: at most {limit} characters", field=path)
    return value


def _intensity(value: object, path: str) -> float:
    if is_number(value) and 0 <= value <= INTENSITY_LIMIT:
        return value
    raise InvalidInput(f"{path}: a number from 0 to {INTENSITY_LIMIT}", field=path)


def _tone(value: object, path: str) -> tuple[str, ...]:
    parse = one_of(TONES)
    return tuple(parse(tone, inner) for tone, inner in _items(value, path, limit=len(TONES)))


def _traits(value: object, path: str) -> tuple[Trait, ...]:
    return tuple(_trait(trait, inner) for trait, inner in _items(value, path, limit=TRAITS_LIMIT))


def _items(value: object, path: str, *, limit: int) -> list[tuple[object, str]]:
    if not isinstance(value, list | tuple):
        raise InvalidInput(f"{path}: a list", field=path)
    if len(value) > limit:
        raise TooLarge(f"{path}: at most {limit} entries", field=path)
    return [(item, f"{path}[{place}]") for place, item in enumerate(value)]


def _trait(value: object, path: str) -> Trait:
    fields = parse_object(value, path, names=_TRAIT.keys())
    if "name" not in fields:
        raise InvalidInput(f"{path}.name: a name is required", field=f"{path}.name")
    return Trait(**parse_fields(fields, path, parsers=_TRAIT))  # type: ignore[arg-type]


def _preferences(value: object, path: str) -> Preferences:
    fields = parse_fields(value, path, parsers=_PREFERENCES)
    # Callers write it in JSON's way.
    if "codeBlocks" in fields:
        fields["code_blocks"] = fields.pop("codeBlocks")
    return Preferences(**fields)  # type: ignore[arg-type]


_PERSONA: dict[str, Parser[object]] = {
    "name": _name,
    "description": _description,
    "style": one_of(STYLES),
    "tone": _tone,
    "traits": _traits,
    "preferences": _preferences,
}
_TRAIT: dict[str, Parser[object]] = {
    "name": _name,
    "description": _description,
    "intensity": _intensity,
}
_PREFERENCES: dict[str, Parser[object]] = {
    "length": one_of(LENGTHS),
    "structure": one_of(STRUCTURES),
    "examples": parse_switch,
    "codeBlocks": parse_switch,
}
