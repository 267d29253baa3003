"""How an agent speaks: a validated document on the agent, and its rendering as text for the model.

Parsing is strict and names the field that is wrong. Four templates ship with the product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

STYLES = ("formal", "casual", "technical", "creative", "professional")
TONES = ("friendly", "professional", "playful", "empathetic", "direct")
LENGTHS = ("concise", "balanced", "detailed")
STRUCTURES = ("narrative", "bulleted", "step-by-step")
TEMPLATES = ("default", "professional", "casual", "creative")


@dataclass(frozen=True, slots=True)
class Trait:
    """One side of a character; ``intensity`` 0–10."""

    name: str
    description: str = ""
    intensity: float = 5


@dataclass(frozen=True, slots=True)
class Preferences:
    """How answers are built."""

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
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class LoadedPersona:
    """A template, and what to log when another one than was asked for had to be taken."""

    persona: Persona
    note: str | None = None


def parse_persona(given: Mapping[str, object]) -> Persona:
    """The persona ``given`` describes.

    Raises `InvalidInput` whose field is the path of what is wrong, such as ``persona.traits[1].intensity``.
    """
    raise NotImplementedError


def parse_persona_json(text: str | bytes) -> Persona:
    """`parse_persona` of JSON text; `InvalidInput` of field ``persona`` with line and column when it is none."""
    raise NotImplementedError


def render_persona(persona: Persona) -> str:
    """A few lines for the expression section, one idea each; not yet quoted."""
    raise NotImplementedError


def load_template(name: str) -> LoadedPersona:
    """The shipped template ``name``; an unknown one gives the default and a note to log. Reads a package file."""
    raise NotImplementedError
