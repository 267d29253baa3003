"""The shapes of a model's answers. Their lists must be there, empty or not: silence is no answer.

Numbers are brought into range and small variations of names understood; what is missing or of another kind is not.
Descriptions are for models; texts are checked against the conversation in `guards`.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
)

from memory_app.records.kinds import FACT_SUBTYPES
from memory_app.records.records import ENTITY_TYPES, VALENCES, LinkType

LEAST_IMPORTANCE = 4
"""Models give 1–10, but 0–3 from outside counts as a coarse scale (2 would become 7), so nothing less is passed on."""

IDENTITY_TYPES = ("growth", "realization", "preference", "boundary")
CHANGES = ("new", "strengthened", "changed")


def _within(low: float, high: float, default: float) -> BeforeValidator:
    def bring(value: object) -> object:
        if value is None:
            return default
        try:
            number = float(str(value).rstrip("%"))
        except ValueError:
            # Left to pydantic, which says what is wrong, so that the model can be asked again.
            return value
        # "80" or "80 %" on a scale of 0 to 1.
        if high <= 1 < number <= 100:
            number /= 100
        return default if math.isnan(number) else min(max(number, low), high)

    return BeforeValidator(bring)


def _whole(value: object) -> object:
    # Pydantic takes 7.0 for a whole number, but not 6.5.
    return round(value) if isinstance(value, float) else value


def _one_of(names: tuple[str, ...], default: str) -> BeforeValidator:
    def choose(value: object) -> object:
        name = value.strip().lower() if isinstance(value, str) else ""
        return name if name in names else default

    return BeforeValidator(choose)


def _named(names: tuple[str, ...]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": list(names)})


def _list(value: object) -> object:
    if value is None:
        return []
    # Models leave the brackets off a list of one.
    return [value] if isinstance(value, str) else value


def _empty_as_none(value: object) -> object:
    # What models write where they have nothing to write.
    is_empty = isinstance(value, str) and value.strip().lower() in ("", "null", "none", "n/a")
    return None if is_empty else value


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
OptionalText = Annotated[str | None, BeforeValidator(_empty_as_none)]
Texts = Annotated[list[str], BeforeValidator(_list)]
Importance = Annotated[int, BeforeValidator(_whole), _within(LEAST_IMPORTANCE, 10, 5)]
RawImportance = Annotated[int, BeforeValidator(_whole), _within(1, 10, 5)]
Confidence = Annotated[float, _within(0, 1, 0.8)]
Intensity = Annotated[float, _within(0, 1, 0.5)]
Subtype = Annotated[str, _one_of(FACT_SUBTYPES, "fact"), _named(FACT_SUBTYPES)]
Valence = Annotated[str, _one_of(VALENCES, "neutral"), _named(VALENCES)]


class Part(BaseModel):
    """Base of all: unknown keys are ignored, and a field may come under its other names."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class NamedEntity(Part):
    type: Annotated[str, _one_of(ENTITY_TYPES, "thing"), _named(ENTITY_TYPES)]
    label: Text = Field(validation_alias=AliasChoices("label", "name", "entity"))


EVIDENCE = AliasChoices("evidence", "turns", "turn", "sources", "source", "turn_ids", "refs", "references")
TEXT = AliasChoices("text", "statement", "content", "fact", "insight", "note", "description", "memory")


class Told(Part):
    """Something that rests on turns."""

    text: Text = Field(validation_alias=TEXT)
    evidence: Texts = Field(validation_alias=EVIDENCE)


class FactAnswer(Told):
    subtype: Subtype = Field("fact", validation_alias=AliasChoices("subtype", "type", "category", "kind"))
    subject: OptionalText = None
    relation: OptionalText = Field(None, validation_alias=AliasChoices("relation", "predicate"))
    object: OptionalText = None
    importance: Importance = 5
    confidence: Confidence = 0.8
    when: OptionalText = Field(None, validation_alias=AliasChoices("when", "time", "date"))
    entities: Annotated[list[NamedEntity], BeforeValidator(_list)] = Field(default_factory=list)


class InsightAnswer(Told):
    importance: RawImportance
    valence: Valence = "neutral"
    intensity: Intensity = 0.5
    shared_references: Texts = Field(default_factory=list)
    user_values: Texts = Field(default_factory=list)
    user_struggles: Texts = Field(default_factory=list)
    communication_style: Texts = Field(default_factory=list)


class IdentityAnswer(Told):
    type: Annotated[str, _one_of(IDENTITY_TYPES, "realization"), _named(IDENTITY_TYPES)] = Field(
        "realization", validation_alias=AliasChoices("type", "category", "kind")
    )


class TopicAnswer(Part):
    topic: Text
    feeling: OptionalText = Field(None, validation_alias=AliasChoices("feeling", "emotion", "mood"))
    conclusion: Text
    evidence: Texts = Field(validation_alias=EVIDENCE)


class ToneAnswer(Told):
    """How to speak with the user."""


class SynthesizeTurn(Part):
    insights: list[InsightAnswer]
    identity_notes: list[IdentityAnswer] = Field(validation_alias=AliasChoices("identity_notes", "identity"))
    topics: list[TopicAnswer]
    facts: list[FactAnswer] = Field(validation_alias=AliasChoices("facts", "statements"))
    tones: list[ToneAnswer] = Field(validation_alias=AliasChoices("tones", "tone", "expression"))


class AnchorAnswer(InsightAnswer):
    change: Annotated[str, _one_of(CHANGES, "new"), _named(CHANGES)] = "new"
    of: OptionalText = None


class SynthesizeSession(Part):
    anchors: list[AnchorAnswer]
    topics: list[TopicAnswer]
    identity_notes: list[IdentityAnswer] = Field(validation_alias=AliasChoices("identity_notes", "identity"))
    tones: list[ToneAnswer] = Field(validation_alias=AliasChoices("tones", "tone", "expression"))
    facts: list[FactAnswer] = Field(validation_alias=AliasChoices("facts", "statements"))
    summary: Text


LINK_TYPES = (
    LinkType.RELATED_TO,
    LinkType.CAUSES,
    LinkType.PART_OF,
    LinkType.FOLLOWS,
    LinkType.CONTRADICTS,
)
MEMORIES = AliasChoices("memories", "evidence", "parents", "sources", "references", "refs", "ids")


class ConsolidatedAnswer(Part):
    text: Text = Field(validation_alias=TEXT)
    memories: Texts = Field(validation_alias=MEMORIES)


class PatternAnswer(ConsolidatedAnswer):
    feeling: OptionalText = None


class LinkAnswer(Part):
    source: Text = Field(validation_alias=AliasChoices("from", "source"))
    target: Text = Field(validation_alias=AliasChoices("to", "target"))
    type: Annotated[LinkType, _one_of(LINK_TYPES, LinkType.RELATED_TO), _named(LINK_TYPES)] = (
        LinkType.RELATED_TO
    )
    weight: Annotated[float, _within(0, 1, 0.5)] = 0.5


class SynthesizeDeep(Part):
    consolidated: list[ConsolidatedAnswer] = Field(
        validation_alias=AliasChoices("consolidated", "consolidations", "consolidation")
    )
    patterns: list[PatternAnswer]
    links: list[LinkAnswer]


class MergeTexts(Part):
    text: Text = Field(validation_alias=TEXT)
