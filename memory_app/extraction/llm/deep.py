"""Looking back over memories: what says the same, what shows a pattern, what belongs together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from uuid import UUID
from zoneinfo import ZoneInfo

from memory_app.extraction.llm.answers import ConsolidatedAnswer, LinkAnswer, PatternAnswer, SynthesizeDeep
from memory_app.extraction.llm.guards import flagged
from memory_app.extraction.llm.material import numbered_memories, show_memories
from memory_app.extraction.llm.numbers import changes_numbers, invents_numbers
from memory_app.extraction.llm.prompts import load_prompt
from memory_app.extraction.llm.provenance import Asking, Made, ask, made_of
from memory_app.memories.guards import NEGATION, NUMBER, conflicting
from memory_app.records.records import (
    VALENCES,
    EmotionalState,
    LinkType,
    Memory,
    Origin,
    Statement,
    SynthesisType,
)

MOST_PARENTS = 5
"""Memories consolidated into one; as in the ladder."""

TOO_FEW = "fewer than two memories"
MIXED = "memories of several kinds"
CONFLICT = "memories that contradict each other"
NUMBERS = "numbers the memories do not have"


@dataclass(frozen=True, slots=True)
class DeepLink:
    """A link to write between two memories. ``weight`` 0–1."""

    source: UUID
    target: UUID
    type: LinkType
    weight: float


@dataclass(frozen=True, slots=True)
class DeepSynthesis:
    """``consolidated`` replace their parents, which retire as merged; ``patterns`` are artifacts beside theirs."""

    consolidated: tuple[Statement, ...]
    patterns: tuple[Statement, ...]
    links: tuple[DeepLink, ...]
    made: Made


def synthesize_deep(asking: Asking, memories: Sequence[Memory], *, time_zone: ZoneInfo) -> DeepSynthesis:
    """What ``memories`` (50 at most are sensible) show together. One question, none for fewer than two."""
    if len(memories) < 2:
        return DeepSynthesis((), (), (), Made())
    prompt = load_prompt("synthesize_deep")
    by_reference = numbered_memories(memories)
    answer = ask(asking, prompt, [show_memories(by_reference, zone=time_zone)], SynthesizeDeep)
    dropped: Counter[str] = Counter()
    consolidated = tuple(_consolidations(answer.value.consolidated, by_reference, dropped))
    patterns = tuple(_patterns(answer.value.patterns, by_reference, dropped))
    links = _links(answer.value.links, by_reference)
    return DeepSynthesis(consolidated, patterns, links, made_of(prompt, answer, dropped))


def _referred(references: Iterable[str], memories: Mapping[str, Memory]) -> tuple[Memory, ...]:
    wanted = {reference.strip().strip("[]").lower() for reference in references}
    return tuple(memory for reference, memory in memories.items() if reference in wanted)


def _consolidations(
    answers: Sequence[ConsolidatedAnswer], memories: Mapping[str, Memory], dropped: Counter[str]
) -> Iterable[Statement]:
    """Each memory goes into one consolidation at most, the first that is sound."""
    used: set[UUID] = set()
    for answer in answers:
        parents = tuple(m for m in _referred(answer.memories, memories) if m.id not in used)[:MOST_PARENTS]
        fault = _fault(answer.text, parents)
        if fault is not None:
            dropped[fault] += 1
            continue
        used |= {parent.id for parent in parents}
        yield _consolidated(answer.text, parents)


def _fault(text: str, parents: Sequence[Memory]) -> str | None:
    if len(parents) < 2:
        return TOO_FEW
    if len({(parent.kind, parent.subtype) for parent in parents}) > 1:
        return MIXED
    pairs = combinations((parent.text for parent in parents), 2)
    if any(conflicting(one, other) in (NEGATION, NUMBER) for one, other in pairs):
        return CONFLICT
    return NUMBERS if changes_numbers(text, [parent.text for parent in parents]) else None


def _consolidated(text: str, parents: Sequence[Memory]) -> Statement:
    first = parents[0]
    triples = {(parent.subject, parent.relation, parent.object) for parent in parents}
    subject, relation, value = triples.pop() if len(triples) == 1 else (None, None, None)
    return flagged(
        Statement(
            kind=first.kind,
            text=text,
            subtype=first.subtype,
            subject=subject,
            relation=relation,
            object=value,
            importance=max(4, *(parent.importance for parent in parents)),
            confidence=max(parent.confidence for parent in parents),
            tags=tuple(dict.fromkeys(tag for parent in parents for tag in parent.tags))[:32],
            pinned=any(parent.pinned for parent in parents),
            origin=Origin.SYNTHESIZED,
            valid_from=min(parent.valid_from for parent in parents),
            parents=tuple(parent.id for parent in parents),
            synthesis_type=SynthesisType.CONSOLIDATION,
        )
    )


def _patterns(
    answers: Sequence[PatternAnswer], memories: Mapping[str, Memory], dropped: Counter[str]
) -> Iterable[Statement]:
    for answer in answers:
        parents = _referred(answer.memories, memories)
        if len(parents) < 2:
            dropped[TOO_FEW] += 1
        elif invents_numbers(answer.text, [parent.text for parent in parents]):
            dropped[NUMBERS] += 1
        else:
            feeling = (answer.feeling or "").lower()
            yield flagged(
                Statement(
                    kind="artifact",
                    text=answer.text,
                    origin=Origin.SYNTHESIZED,
                    synthesis_type=SynthesisType.PATTERN,
                    emotional_state=EmotionalState(feeling) if feeling in VALENCES else None,
                    valid_from=max(parent.valid_from for parent in parents),
                    parents=tuple(parent.id for parent in parents),
                )
            )


def _links(answers: Sequence[LinkAnswer], memories: Mapping[str, Memory]) -> tuple[DeepLink, ...]:
    found: dict[tuple[UUID, UUID, LinkType], DeepLink] = {}
    for answer in answers:
        ends = [_referred([reference], memories) for reference in (answer.source, answer.target)]
        if all(ends) and ends[0][0].id != ends[1][0].id:
            source, target = ends[0][0].id, ends[1][0].id
            found.setdefault(
                (source, target, answer.type), DeepLink(source, target, answer.type, answer.weight)
            )
    return tuple(found.values())
