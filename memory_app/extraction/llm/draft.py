"""Turn a model's answer into statements that the write path can take. Pure.

Whatever a model got wrong in form (a relation without a subject, a label without letters or digits) is left out here,
so that one odd field never fails the batch.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

from memory_app.errors import InvalidInput
from memory_app.extraction.llm.answers import (
    FactAnswer,
    IdentityAnswer,
    InsightAnswer,
    NamedEntity,
    SynthesizeSession,
    SynthesizeTurn,
    ToneAnswer,
    TopicAnswer,
)
from memory_app.extraction.llm.flags import flagged
from memory_app.extraction.llm.guards import Draft, Ground, fault_of
from memory_app.extraction.llm.material import Transcript
from memory_app.extraction.llm.prompt_echo import repeats_prompt
from memory_app.extraction.rules import resolve_dates
from memory_app.language.secrets import holds_secret
from memory_app.language.text import canonical_key, clean, slug, terms
from memory_app.memories.forbidden import is_forbidden
from memory_app.memories.relations import normalise_relation
from memory_app.records.entity import entity_key
from memory_app.records.records import (
    VALENCES,
    EmotionalState,
    Mention,
    Origin,
    RelationalContext,
    Role,
    Statement,
    Turn,
)

ANCHOR_IMPORTANCE = 6
"""Insights below this are not kept as anchors."""

LONGEST_LIFE = timedelta(days=120 * 365)
"""How far back a fact of a person may have begun."""

PART_LIMIT = 500
PHRASES_LIMIT = 12

_USER = re.compile(r"^(?:the )?user\b(?=(?:'s)? )", re.IGNORECASE)
_USER_ALONE = re.compile(r"(?:the )?user|i|me", re.IGNORECASE)
_RELATIVE = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|this|past|previous|coming|ago|now)\b", re.IGNORECASE
)
"""Words that mean another day tomorrow; "on 5 May" of a birthday stays as it is."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What was shown to the model, and what its answer is held against."""

    transcript: Transcript
    ground: Ground


@dataclass(frozen=True, slots=True)
class Sifted:
    """Statements that passed every guard, each once; ``dropped`` counts those that a guard rejected, by its name."""

    statements: tuple[Statement, ...]
    dropped: dict[str, int]
    rejected: tuple[tuple[Draft, str], ...]

    @property
    def rejected_texts(self) -> tuple[tuple[str, str], ...]:
        """Each text that a guard rejected, with its reason."""
        return tuple((draft.statement.text, fault) for draft, fault in self.rejected)


def sift(drafts: Iterable[Draft], ground: Ground) -> Sifted:
    """Hold drafts against the conversation; suspect statements stay with a flag."""
    statements: dict[tuple[str, str], Statement] = {}
    rejected: list[tuple[Draft, str]] = []
    for draft in drafts:
        fault = fault_of(draft, ground)
        if fault is not None:
            rejected.append((draft, fault))
            continue
        key = (draft.statement.kind, canonical_key(draft.statement.text))
        statements.setdefault(key, flagged(draft.statement))
    return Sifted(
        statements=tuple(statements.values()),
        dropped=dict(Counter(fault for _, fault in rejected)),
        rejected=tuple(rejected),
    )


def draft_fact(answer: FactAnswer, scene: Scene) -> Draft:
    """Draft a fact; relative dates in it are resolved against the time of the turn."""
    turns = scene.transcript.referred(answer.evidence)
    zone = scene.ground.zone
    statement = Statement(
        kind="fact",
        text=dated(_named(answer.text, scene.ground), turns, zone),
        subtype=answer.subtype,
        importance=answer.importance,
        confidence=answer.confidence,
        # A fact was said; the drafts below are what the model concludes.
        origin=Origin.EXTRACTED,
        valid_from=_valid_from(answer.when, turns, zone),
        mentions=_mentions(answer.entities, answer.text, turns),
        **_rests_on(turns),
    )
    return Draft(_related(statement, answer, scene.ground, turns), turns)


def draft_insight(answer: InsightAnswer, scene: Scene) -> Draft | None:
    """An anchor, when it matters enough; None otherwise."""
    if answer.importance < ANCHOR_IMPORTANCE:
        return None
    turns = scene.transcript.referred(answer.evidence)
    relational = RelationalContext(
        communication_style=_phrases(answer.communication_style, turns, scene.ground),
        shared_references=_phrases(answer.shared_references, turns, scene.ground),
        user_values=_phrases(answer.user_values, turns, scene.ground),
        user_struggles=_phrases(answer.user_struggles, turns, scene.ground),
    )
    statement = _synthesized(
        "anchor",
        answer.text,
        turns=turns,
        ground=scene.ground,
        type="insight",
    )
    return Draft(
        replace(
            statement,
            importance=answer.importance,
            emotional_state=EmotionalState(answer.valence, answer.intensity),
            relational_context=relational,
        ),
        turns,
    )


def draft_topic(answer: TopicAnswer, scene: Scene) -> Draft:
    """An artifact: "Topic / Feeling / Conclusion"."""
    turns = scene.transcript.referred(answer.evidence)
    text = " / ".join(filter(None, (answer.topic, answer.feeling, answer.conclusion)))
    statement = _synthesized(
        "artifact",
        text,
        turns=turns,
        ground=scene.ground,
        type="insight",
    )
    return Draft(replace(statement, emotional_state=feeling_state(answer.feeling)), turns)


def feeling_state(feeling: str | None) -> EmotionalState | None:
    """The feeling as it can be stored, or None for one in words of the model's own, which the text keeps."""
    valence = (feeling or "").lower()
    return EmotionalState(valence) if valence in VALENCES else None


def draft_identity(answer: IdentityAnswer, scene: Scene) -> Draft:
    """How the assistant is changing; it may say so itself."""
    turns = scene.transcript.referred(answer.evidence)
    statement = _synthesized(
        "identity",
        answer.text,
        turns=turns,
        ground=scene.ground,
        type="learning",
    )
    return Draft(replace(statement, tags=(answer.type,)), turns, of_agent=True)


def draft_tone(answer: ToneAnswer, scene: Scene) -> Draft:
    """How to speak with the user."""
    turns = scene.transcript.referred(answer.evidence)
    statement = _synthesized(
        "expression",
        answer.text,
        turns=turns,
        ground=scene.ground,
        type="learning",
    )
    return Draft(statement, turns)


def draft_bond(answer: SynthesizeTurn | SynthesizeSession, scene: Scene) -> Iterator[Draft]:
    """What an answer says beside facts and anchors: topics, the assistant's own growth, how to speak."""
    for topic in answer.topics:
        yield draft_topic(topic, scene)
    for note in answer.identity_notes:
        yield draft_identity(note, scene)
    for tone in answer.tones:
        yield draft_tone(tone, scene)


def _synthesized(kind: str, text: str, *, turns: Sequence[Turn], ground: Ground, type: str) -> Statement:
    return Statement(
        kind=kind,
        text=dated(_named(text, ground), turns, ground.zone),
        origin=Origin.SYNTHESIZED,
        synthesis_type=type,
        valid_from=_speaking_turn(turns).at if turns else None,
        **_rests_on(turns),
    )


class _Footing(TypedDict, total=False):
    """Fields of a statement that say on what it rests."""

    evidence: tuple[UUID, ...]
    source: str


def _rests_on(turns: Sequence[Turn]) -> _Footing:
    if not turns:
        return {}
    return {"evidence": tuple(turn.id for turn in turns), "source": _speaking_turn(turns).speaker}


def _speaking_turn(turns: Sequence[Turn]) -> Turn:
    """The newest turn of the user, from which words for time are seen; else the newest of all."""
    return next((turn for turn in reversed(turns) if turn.role is Role.USER), turns[-1])


def _named(text: str, ground: Ground) -> str:
    """ "The user likes tea" with the user's name."""
    cleaned = clean(text)[0].strip()
    return _USER.sub(lambda _: ground.user_label, cleaned, count=1)


def dated(text: str, turns: Sequence[Turn], zone: ZoneInfo) -> str:
    """``text`` with "yesterday" and its kin as dates, seen from the turn that said so and in the user's zone."""
    if not turns:
        return text
    # From the last to the first, so that a change of the text leaves the spans before it right.
    for date in reversed(resolve_dates(text, _speaking_turn(turns).at, zone=zone)):
        start, end = date.span
        if _RELATIVE.search(text[start:end]):
            text = text[:start] + date.phrase + text[end:]
    return text


def _valid_from(when: str | None, turns: Sequence[Turn], zone: ZoneInfo) -> datetime | None:
    """When it became true: the date in the turn, never later than the turn; else the turn."""
    if not turns:
        return None
    turn_at = _speaking_turn(turns).at
    if not when or not _stands_in_turn(when, turns):
        return turn_at
    # "March" alone is no date for the rules; "in March" is.
    for wording in (when, f"in {when}"):
        dates = resolve_dates(wording, turn_at, zone=zone)
        if dates:
            start = datetime.combine(dates[0].start, time(0), tzinfo=zone)
            # What is older than anybody alive is the date of something else in the sentence.
            return min(turn_at, start) if turn_at - start <= LONGEST_LIFE else turn_at
    return turn_at


def _stands_in_turn(when: str, turns: Sequence[Turn]) -> bool:
    """Whether the words for time stand in a turn; a date that the model worked out, or invented, does not count."""
    words = _one_line(when)
    return any(words in _one_line(turn.text) for turn in turns)


def _one_line(text: str) -> str:
    return " ".join(text.lower().split())


def _related(statement: Statement, answer: FactAnswer, ground: Ground, turns: Sequence[Turn]) -> Statement:
    """With subject, relation and object, where they are whole and of what was said."""
    subject = _part(answer.subject)
    if subject and _USER_ALONE.fullmatch(subject):
        subject = ground.user_label
    relation = normalise_relation(answer.relation) if answer.relation else ""
    # Half a triple is no fact; the sentence is worth storing without it.
    if not subject or not 1 <= len(relation) <= PART_LIMIT:
        return statement
    value = _part(answer.object)
    # Parts that stand neither in the sentence nor in its turns would be found as facts that nobody stated.
    said = " ".join([statement.text, ground.user_label, *(turn.text for turn in turns)])
    if any(part and not _shares_word(part, said) for part in (subject, value)):
        return statement
    return replace(statement, subject=subject, relation=relation, object=value)


def _shares_word(part: str, said: str) -> bool:
    """Whether a word of ``part``, or all of it in a script without blanks, stands in ``said``."""
    return part.casefold() in said.casefold() or not terms(part).keys().isdisjoint(terms(said).keys())


def _part(value: str | None) -> str | None:
    """A name the write path can make a key of, or None."""
    if value is None or len(value) > PART_LIMIT:
        return None
    cleaned = clean(value)[0].strip()
    # Tried here, since the write path would refuse the whole statement for it.
    try:
        slug(cleaned)
    except InvalidInput:
        return None
    return cleaned


def _mentions(entities: Sequence[NamedEntity], text: str, turns: Sequence[Turn]) -> tuple[Mention, ...]:
    """Entities that stand in the statement or its turns; others were made up."""
    source_text = " ".join([text, *(turn.text for turn in turns)]).casefold()
    mentions: dict[str, Mention] = {}
    for entity in entities:
        label = clean(entity.label)[0].strip()
        # One odd label must not cost the statement.
        try:
            key = entity_key(entity.type, label)
        except InvalidInput:
            continue
        if label.casefold() in source_text:
            mentions.setdefault(key, Mention(entity.type, label))
    return tuple(mentions.values())


def _phrases(phrases: Sequence[str], turns: Sequence[Turn], ground: Ground) -> tuple[str, ...]:
    """Short phrases, each once, without secrets, what comes from a prompt and what the agent never keeps."""
    texts = [turn.text for turn in turns]
    cleaned = (clean(phrase)[0].strip()[:PART_LIMIT] for phrase in phrases)
    sound = (
        phrase
        for phrase in cleaned
        if phrase
        and not holds_secret(phrase)
        and not repeats_prompt(phrase, texts)
        and not is_forbidden(phrase, ground.instructions.never)
    )
    return tuple(dict.fromkeys(sound))[:PHRASES_LIMIT]
