"""What an agent lets the product do with what it hears: one validated document on the agent.

Unknown names are errors, so that a misspelt switch is never taken for the default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType

from memory_app.errors import InvalidInput
from memory_app.language.redaction import PrivateKind, Redaction, Rules
from memory_app.records.instructions import NO_INSTRUCTIONS, Instructions
from memory_app.records.json_fields import (
    Parser,
    is_number,
    nullable,
    one_of,
    parse_fields,
    parse_object,
    parse_switch,
)
from memory_app.records.retention import CLASSES, DAYS_LIMIT
from memory_app.records.scoring import PRESETS, SIGNAL_NAMES
from memory_app.tenancy.instructions import parse_instructions

RELATION_LIMIT = 80
"""Longest name of a relation, in characters."""

RELATIONS_LIMIT = 100
"""Most relations an agent may declare single-valued."""

WEIGHT_LIMIT = 10.0

_RELATION = re.compile(r"[^\W\d_]\w*(?::\w+)?")


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
    group: bool = False
    """On: a user stands for a room, and each name that signs its turns is a person. Off: all are names of the user."""
    strict: bool = False
    """On: a turn that cannot be extracted stops its session instead of leaving a visible gap."""
    preset: str | None = None
    weights: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Overrides of the preset's weights, by signal."""
    single_valued_relations: tuple[str, ...] = ()
    """Relations that hold one object at a time for this agent, beside the product's own table."""
    core_by_tool: bool = False
    """On: the agent may store directives (`core`) by its own tool, to which whatever it reads could move it."""
    redaction: Redaction = Redaction.OFF
    """What becomes of private parts (numbers of cards, passwords, …) before a text is stored or sent to a model."""
    redaction_kinds: tuple[PrivateKind, ...] = tuple(PrivateKind)
    """The kinds of private parts that ``redaction`` is about."""
    after_turns: int | None = None
    idle_seconds: float | None = None
    max_age_seconds: float | None = None
    max_memories: int | None = None
    max_links: int | None = None
    daily_log_limit_days: int | None = None
    """Turns accepted longer ago are not searched, whoever curated them or not. None: no such limit."""
    retention: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Days after which what is kept is deleted for good, by class (one of `CLASSES`); a class that is absent stays."""
    instructions: Instructions = NO_INSTRUCTIONS
    """What matters to this agent, and what it must never keep; given to its language model with every question."""

    @property
    def redaction_rules(self) -> Rules:
        return Rules(self.redaction, frozenset(self.redaction_kinds))

    def as_dict(self) -> dict[str, object]:
        """The policy as JSON; `parse_policy` of it is equal to this one."""
        return {
            **{f.name: getattr(self, f.name) for f in fields(self)},
            "extraction": self.extraction.value,
            "weights": dict(self.weights),
            "single_valued_relations": list(self.single_valued_relations),
            "redaction": self.redaction.value,
            "redaction_kinds": [kind.value for kind in self.redaction_kinds],
            "retention": dict(self.retention),
            "instructions": self.instructions.as_dict(),
        }


def parse_policy(value: Mapping[str, object]) -> Policy:
    """The policy ``value`` describes; absent fields take their defaults.

    Raises `InvalidInput` whose field is ``policy.<name>`` for an unknown name or a value that does not fit.
    """
    # Each parser gives the type of its field, which a mapping of parsers cannot say.
    return Policy(**parse_fields(value, "policy", parsers=_PARSERS))  # type: ignore[arg-type]  # each parser returns its field's


def _extraction(value: object, path: str) -> ExtractionMode:
    return ExtractionMode(one_of(tuple(ExtractionMode))(value, path))


def _redaction(value: object, path: str) -> Redaction:
    return Redaction(one_of(tuple(Redaction))(value, path))


def _redaction_kinds(value: object, path: str) -> tuple[PrivateKind, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise InvalidInput(f"{path}: a list of one or more of {', '.join(PrivateKind)}", field=path)
    parse = one_of(tuple(PrivateKind))
    kinds = {PrivateKind(parse(kind, f"{path}[{place}]")) for place, kind in enumerate(value)}
    return tuple(kind for kind in PrivateKind if kind in kinds)


def parse_weights(value: object, path: str) -> Mapping[str, float]:
    """Return the weights that ``value`` overrides, by signal; null leaves one as it is.

    Raises `InvalidInput` whose field begins with ``path``.
    """
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{path}: an object of numbers by signal", field=path)
    weights = {}
    parse = nullable(_number(low=-WEIGHT_LIMIT, high=WEIGHT_LIMIT))
    for name, weight in value.items():
        inner = f"{path}.{name}"
        if name not in SIGNAL_NAMES:
            raise InvalidInput(f"{inner}: unknown signal; one of {', '.join(SIGNAL_NAMES)}", field=inner)
        number = parse(weight, inner)
        # Null: the preset's own weight.
        if number is not None:
            weights[str(name)] = number
    return MappingProxyType(weights)


def _retention(value: object, path: str) -> Mapping[str, int]:
    days = {}
    for name, limit in parse_object(value, path, names=CLASSES).items():
        number = nullable(_days)(limit, f"{path}.{name}")
        # Null: it is kept.
        if number is not None:
            days[name] = number
    return MappingProxyType(days)


def _days(value: object, path: str) -> int:
    if is_number(value) and isinstance(value, int) and 1 <= value <= DAYS_LIMIT:
        return value
    raise InvalidInput(f"{path}: a whole number of days from 1 to {DAYS_LIMIT}, or null", field=path)


def _relations(value: object, path: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or len(value) > RELATIONS_LIMIT:
        raise InvalidInput(f"{path}: a list of at most {RELATIONS_LIMIT} names", field=path)
    for place, name in enumerate(value):
        if not _is_relation(name):
            inner = f"{path}[{place}]"
            raise InvalidInput(f"{inner}: a relation is a snake case name such as lives_in", field=inner)
    return tuple(dict.fromkeys(value))


def _instructions(value: object, path: str) -> Instructions:
    return parse_instructions(value, path, relations=_relations)


def _is_relation(name: object) -> bool:
    if not isinstance(name, str) or len(name) > RELATION_LIMIT:
        return False
    return _RELATION.fullmatch(name) is not None


def _whole(*, low: int) -> Parser[int]:
    def parse(value: object, path: str) -> int:
        # The upper limit is that of an `integer` of PostgreSQL.
        if is_number(value) and isinstance(value, int) and low <= value < 2**31:
            return value
        raise InvalidInput(f"{path}: a whole number, {low} or more, or null", field=path)

    return parse


def _number(*, low: float, high: float) -> Parser[float]:
    def parse(value: object, path: str) -> float:
        if not is_number(value):
            raise InvalidInput(f"{path}: a number or null", field=path)
        # Written so that NaN, to which every comparison is false, is refused as well.
        if not low <= value <= high:
            raise InvalidInput(f"{path}: between {low:g} and {high:g}", field=path)
        return float(value)

    return parse


# Ten years: enough for every wait, and far from what a date cannot hold.
_seconds = nullable(_number(low=0, high=10 * 365 * 86_400))


_PARSERS: dict[str, Parser[object]] = {
    "extraction": _extraction,
    "memory": parse_switch,
    "daily_logs": parse_switch,
    "entity_extraction": parse_switch,
    "fact_curation": parse_switch,
    "query_graph": parse_switch,
    "group": parse_switch,
    "strict": parse_switch,
    "core_by_tool": parse_switch,
    "redaction": _redaction,
    "redaction_kinds": _redaction_kinds,
    "preset": nullable(one_of(PRESETS, unknown="unknown preset; ")),
    "weights": parse_weights,
    "single_valued_relations": _relations,
    "after_turns": nullable(_whole(low=1)),
    "idle_seconds": _seconds,
    "max_age_seconds": _seconds,
    "max_memories": nullable(_whole(low=1)),
    "max_links": nullable(_whole(low=0)),
    "daily_log_limit_days": nullable(_whole(low=1)),
    "retention": _retention,
    "instructions": _instructions,
}
