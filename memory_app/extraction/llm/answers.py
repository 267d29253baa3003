"""The shapes of a model's answers. What is sent as a JSON schema and what is read are the same classes.

Each item of a list is read alone: what is clear is brought into form (see `coerce`), an odd item is left out and
counted. Descriptions are for models; texts are checked against the conversation in `guards`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from memory_app.extraction.llm.coerce import amount, name_of, sentence, words
from memory_app.providers.chat import Items, unwrapped
from memory_app.records.kinds import FACT_SUBTYPES
from memory_app.records.records import ENTITY_TYPES, VALENCES, LinkType

LEAST_IMPORTANCE = 4
"""Models give 1–10, but 0–3 from outside counts as a coarse scale (2 would become 7), so nothing less is passed on."""

IDENTITY_TYPES = ("growth", "realization", "preference", "boundary")
CHANGES = ("new", "strengthened", "changed")


def _within(low: float, high: float, default: float | None = None) -> BeforeValidator:
    """A number from ``low`` to ``high``, and ``default`` for what is none; without a default that is a fault."""

    def bring(value: object) -> float:
        try:
            number = amount(value, 10 if high > 1 else 1)
        except ValueError:
            if default is None:
                raise
            return default
        return min(max(number, low), high)

    return BeforeValidator(bring)


def _whole(value: object) -> object:
    # Pydantic takes 7.0 for a whole number, but not 6.5.
    return round(value) if isinstance(value, float) else value


def _one_of(names: tuple[str, ...], default: str) -> BeforeValidator:
    def choose(value: object) -> object:
        name = name_of(value)
        return name if name in names else default

    return BeforeValidator(choose)


def _named(names: tuple[str, ...]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": list(names)})


def _separate(value: object) -> object:
    # "t1, t2" in place of a list.
    return re.split(r"[\s,;]+", value.strip()) if isinstance(value, str) else value


_FILLED = StringConstraints(strip_whitespace=True, min_length=1)
Text = Annotated[str, _FILLED, BeforeValidator(sentence)]
Label = Annotated[str, _FILLED, BeforeValidator(words)]
OptionalText = Annotated[str | None, BeforeValidator(words)]
Texts = Items[Label]
References = Annotated[Texts, BeforeValidator(_separate)]
Importance = Annotated[int, BeforeValidator(_whole), _within(LEAST_IMPORTANCE, 10, 5)]
RawImportance = Annotated[int, BeforeValidator(_whole), _within(1, 10)]
Confidence = Annotated[float, _within(0, 1, 0.8)]
Intensity = Annotated[float, _within(0, 1, 0.5)]
Subtype = Annotated[str, _one_of(FACT_SUBTYPES, "fact"), _named(FACT_SUBTYPES)]
Valence = Annotated[str, _one_of(VALENCES, "neutral"), _named(VALENCES)]

# An answer without one is poorer and no failure; null is not asked for all the same.
Summary = Annotated[str | None, BeforeValidator(sentence), WithJsonSchema({"type": "string"})]


class Part(BaseModel):
    """Base of all: unknown keys are ignored, and a field may come under its other names."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class Item(Part):
    """Base of what stands in lists. An object around an item is taken off."""

    main_field: ClassVar[str | None] = None
    """The field that is meant where an item comes as a text alone."""

    @model_validator(mode="before")
    @classmethod
    def _item(cls, value: Any) -> Any:
        if isinstance(value, str) and cls.main_field is not None:
            return {cls.main_field: value}
        inner = unwrapped(value)
        return inner if isinstance(inner, Mapping) else value


class NamedEntity(Item):
    main_field = "label"

    type: Annotated[str, _one_of(ENTITY_TYPES, "thing"), _named(ENTITY_TYPES)] = "thing"
    label: Label = Field(validation_alias=AliasChoices("label", "name", "entity"))


EVIDENCE = AliasChoices("evidence", "turns", "turn", "sources", "source", "turn_ids", "refs", "references")
IDENTITY = AliasChoices("identity_notes", "identity")
FACTS = AliasChoices("facts", "statements")
TONES = AliasChoices("tones", "tone", "expression")
TEXT = AliasChoices("text", "statement", "content", "fact", "insight", "note", "description", "memory")


class Told(Item):
    """Something that rests on turns."""

    main_field = "text"

    text: Text = Field(validation_alias=TEXT)
    # Without evidence it is left out by a guard, which says so.
    evidence: References = Field(default_factory=list, validation_alias=EVIDENCE)


class FactAnswer(Told):
    subtype: Subtype = Field("fact", validation_alias=AliasChoices("subtype", "type", "category", "kind"))
    subject: OptionalText = None
    relation: OptionalText = Field(None, validation_alias=AliasChoices("relation", "predicate"))
    object: OptionalText = None
    importance: Importance = 5
    confidence: Confidence = 0.8
    when: OptionalText = Field(None, validation_alias=AliasChoices("when", "time", "date"))
    entities: Items[NamedEntity] = Field(default_factory=list)


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


class TopicAnswer(Item):
    topic: Text
    feeling: OptionalText = Field(None, validation_alias=AliasChoices("feeling", "emotion", "mood"))
    conclusion: Text
    evidence: References = Field(default_factory=list, validation_alias=EVIDENCE)


class ToneAnswer(Told):
    """How to speak with the user."""


# Every list may be left out of an answer, but not all of them: see `shape_of`.
class SynthesizeTurn(Part):
    insights: Items[InsightAnswer] = Field(default_factory=list)
    identity_notes: Items[IdentityAnswer] = Field(default_factory=list, validation_alias=IDENTITY)
    topics: Items[TopicAnswer] = Field(default_factory=list)
    facts: Items[FactAnswer] = Field(default_factory=list, validation_alias=FACTS)
    tones: Items[ToneAnswer] = Field(default_factory=list, validation_alias=TONES)


class AnchorAnswer(InsightAnswer):
    change: Annotated[str, _one_of(CHANGES, "new"), _named(CHANGES)] = "new"
    of: OptionalText = None


class SynthesizeSession(Part):
    anchors: Items[AnchorAnswer] = Field(default_factory=list)
    topics: Items[TopicAnswer] = Field(default_factory=list)
    identity_notes: Items[IdentityAnswer] = Field(default_factory=list, validation_alias=IDENTITY)
    tones: Items[ToneAnswer] = Field(default_factory=list, validation_alias=TONES)
    facts: Items[FactAnswer] = Field(default_factory=list, validation_alias=FACTS)
    summary: Summary = None


LINK_TYPES = (
    LinkType.RELATED_TO,
    LinkType.CAUSES,
    LinkType.PART_OF,
    LinkType.FOLLOWS,
    LinkType.CONTRADICTS,
)
CONSOLIDATED = AliasChoices("consolidated", "consolidations", "consolidation")
MEMORIES = AliasChoices("memories", "evidence", "parents", "sources", "references", "refs", "ids")


class ConsolidatedAnswer(Item):
    main_field = "text"

    text: Text = Field(validation_alias=TEXT)
    memories: References = Field(default_factory=list, validation_alias=MEMORIES)


class PatternAnswer(ConsolidatedAnswer):
    feeling: OptionalText = None


class LinkAnswer(Item):
    source: Label = Field(validation_alias=AliasChoices("from", "source"))
    target: Label = Field(validation_alias=AliasChoices("to", "target"))
    type: Annotated[LinkType, _one_of(LINK_TYPES, LinkType.RELATED_TO), _named(LINK_TYPES)] = (
        LinkType.RELATED_TO
    )
    weight: Annotated[float, _within(0, 1, 0.5)] = 0.5


class SynthesizeDeep(Part):
    consolidated: Items[ConsolidatedAnswer] = Field(default_factory=list, validation_alias=CONSOLIDATED)
    patterns: Items[PatternAnswer] = Field(default_factory=list)
    links: Items[LinkAnswer] = Field(default_factory=list)


class MergeTexts(Part):
    text: Text = Field(validation_alias=TEXT)


class SentenceAnswer(Told):
    """A sentence of the answer to a question; its evidence are lines of memory."""


class AnswerQuestion(Part):
    sentences: Items[SentenceAnswer] = Field(
        default_factory=list, validation_alias=AliasChoices("sentences", "answer", "answers")
    )
    search: Texts = Field(
        default_factory=list, validation_alias=AliasChoices("search", "queries", "search_for")
    )


class Narrate(Part):
    sentences: Items[SentenceAnswer] = Field(
        default_factory=list, validation_alias=AliasChoices("sentences", "narrative", "summary")
    )
