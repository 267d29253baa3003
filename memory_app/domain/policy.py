"""What an agent lets the product do with what it hears: one validated document on the agent.

Unknown names are errors, so that a misspelt switch is never taken for the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType

from memory_app.domain.scoring import PRESETS, SIGNAL_NAMES
from memory_app.errors import InvalidInput

RELATION_LIMIT = 80
"""Longest name of a relation, in characters."""


class ExtractionMode(StrEnum):
    """Who turns conversation into statements: nobody, fixed rules, or a language model."""

    OFF = "off"
    RULES = "rules"
    LLM = "llm"


@dataclass(frozen=True, slots=True)
class Policy:
    """One agent's switches and limits. None means: as the settings say."""

    extraction: ExtractionMode = ExtractionMode.RULES
    memory: bool = True
    """Off: turns are neither recorded nor recalled for this agent."""
    daily_logs: bool = True
    """Off: turns are kept for their session but are not searchable."""
    entity_extraction: bool = True
    fact_curation: bool = True
    query_graph: bool = True
    strict: bool = False
    """On: a turn that cannot be extracted stops its session instead of leaving a visible gap."""
    preset: str | None = None
    weights: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Overrides of the preset's weights, by signal."""
    single_valued_relations: tuple[str, ...] = ()
    """Relations that hold one object at a time for this agent, beside the product's own table."""
    after_turns: int | None = None
    idle_seconds: float | None = None
    max_age_seconds: float | None = None
    max_memories: int | None = None
    max_links: int | None = None

    def as_dict(self) -> dict[str, object]:
        """The policy as JSON; `parse_policy` of it is equal to this one."""
        raise NotImplementedError


def parse_policy(given: Mapping[str, object]) -> Policy:
    """The policy ``given`` describes; absent fields take their defaults.

    Raises `InvalidInput` whose field is ``policy.<name>`` for an unknown name or a value that does not fit.
    """
    raise NotImplementedError
