"""An agent's own wishes about what is remembered: part of its policy, and given to every question to a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Instructions:
    """What matters to this agent, and what it must never keep; short lines in plain words."""

    keep: tuple[str, ...] = ()
    """What matters here, such as "doses and times of medicines"."""
    never: tuple[str, ...] = ()
    """Subjects of which nothing is kept, such as "salary, debts". What a comma separates are subjects of their own."""
    entity_types: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Sorts of things of this field, each with the entity type it is stored as: "medicine" is a "thing"."""
    relations: tuple[str, ...] = ()
    """Names of relations to prefer, such as "takes_medicine"."""

    def __bool__(self) -> bool:
        return bool(self.keep or self.never or self.entity_types or self.relations)

    @property
    def lines(self) -> tuple[str, ...]:
        """All texts, for whoever must tell them from what somebody said."""
        return (*self.keep, *self.never, *self.entity_types)

    def as_dict(self) -> dict[str, object]:
        return {
            "keep": list(self.keep),
            "never": list(self.never),
            "entity_types": dict(self.entity_types),
            "relations": list(self.relations),
        }


NO_INSTRUCTIONS = Instructions()
