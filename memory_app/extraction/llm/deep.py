"""Synthesize memories by a language model: unite those that say the same, note patterns, link what belongs together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from uuid import UUID
from zoneinfo import ZoneInfo

from memory_app.extraction.llm.answers import ConsolidatedAnswer, LinkAnswer, PatternAnswer, SynthesizeDeep
from memory_app.extraction.llm.draft import feeling_state
from memory_app.extraction.llm.flags import flagged
from memory_app.extraction.llm.guards import SAMPLE
from memory_app.extraction.llm.material import numbered_memories, plain_reference, show_memories
from memory_app.extraction.llm.numbers import changes_numbers, invents_numbers
from memory_app.extraction.llm.prompt_echo import repeats_prompt
from memory_app.extraction.llm.prompts import load_prompt
from memory_app.extraction.llm.provenance import Asking, Provenance, ask, provenance_of
from memory_app.memories.guards import NEGATION, NUMBER, conflicting
from memory_app.records.records import (
    LinkType,
    Memory,
    Origin,
    Statement,
    SynthesisType,
)

PARENTS_LIMIT = 5
"""Memories consolidated into one; as in the ladder."""

TAGS_LIMIT = 32
LEAST_IMPORTANCE = 4
"""What several memories say is no trifle (1 to 10)."""

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
    provenance: Provenance


def synthesize_deep(asking: Asking, memories: Sequence[Memory], *, time_zone: ZoneInfo) -> DeepSynthesis:
    """Return what ``memories`` (50 at most are sensible) show together.

    Asks the model once, or not at all for fewer than two. Raises what `Chat.complete` does.
    """
    # One memory can neither be united nor linked, and a model that is asked would answer something.
    if len(memories) < 2:
        return DeepSynthesis(
            consolidated=(),
            patterns=(),
            links=(),
            provenance=Provenance(),
        )
    prompt = load_prompt("synthesize_deep")
    by_reference = numbered_memories(memories)
    answer = ask(asking, prompt, [show_memories(by_reference, zone=time_zone)], shape=SynthesizeDeep)
    dropped: Counter[str] = Counter()
    consolidated = tuple(_consolidations(answer.value.consolidated, by_reference, dropped))
    patterns = tuple(_patterns(answer.value.patterns, by_reference, dropped))
    links = _links(answer.value.links, by_reference)
    return DeepSynthesis(
        consolidated=consolidated,
        patterns=patterns,
        links=links,
        provenance=provenance_of(prompt, answer, dropped),
    )


def _referred(references: Iterable[str], memories: Mapping[str, Memory]) -> tuple[Memory, ...]:
    named = set(map(plain_reference, references))
    # In the order in which they were shown, whatever the order of the answer.
    return tuple(memory for reference, memory in memories.items() if reference in named)


def _consolidations(
    answers: Sequence[ConsolidatedAnswer], memories: Mapping[str, Memory], dropped: Counter[str]
) -> Iterable[Statement]:
    """Each memory goes into one consolidation at most, the first that is sound."""
    free = dict(memories)
    for answer in answers:
        # A text of more would lose what some of them say.
        parents = _referred(answer.memories, free)[:PARENTS_LIMIT]
        fault = _fault(answer.text, parents)
        if fault is not None:
            dropped[fault] += 1
            continue
        # Parents retire, so none may be a parent twice.
        free = {reference: memory for reference, memory in free.items() if memory not in parents}
        yield _consolidated(answer.text, parents)


def _fault(text: str, parents: Sequence[Memory]) -> str | None:
    if len(parents) < 2:
        return TOO_FEW
    # The kind decides where a memory is shown and how fast it fades, so one text cannot stand for two.
    if len({(parent.kind, parent.subtype) for parent in parents}) > 1:
        return MIXED
    texts = [parent.text for parent in parents]
    faults = {conflicting(first, second) for first, second in combinations(texts, 2)}
    # Other differences are what a consolidation is for: it says both.
    if not faults.isdisjoint((NEGATION, NUMBER)):
        return CONFLICT
    if repeats_prompt(text, texts):
        return SAMPLE
    return NUMBERS if changes_numbers(text, texts) else None


def _consolidated(text: str, parents: Sequence[Memory]) -> Statement:
    first = parents[0]
    triples = {(parent.subject, parent.relation, parent.object) for parent in parents}
    # Parents that state different triples have none in common.
    subject, relation, value = triples.pop() if len(triples) == 1 else (None, None, None)
    tags = dict.fromkeys(chain.from_iterable(parent.tags for parent in parents))
    return flagged(
        Statement(
            kind=first.kind,
            text=text,
            subtype=first.subtype,
            subject=subject,
            relation=relation,
            object=value,
            # What the strongest parent had: uniting must not make a memory easier to lose.
            importance=max(LEAST_IMPORTANCE, *(parent.importance for parent in parents)),
            confidence=max(parent.confidence for parent in parents),
            tags=tuple(tags)[:TAGS_LIMIT],
            pinned=any(parent.pinned for parent in parents),
            origin=Origin.SYNTHESIZED,
            # Since the first of them said so.
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
        texts = [parent.text for parent in parents]
        if len(parents) < 2:
            dropped[TOO_FEW] += 1
        elif repeats_prompt(answer.text, texts):
            dropped[SAMPLE] += 1
        # A pattern may leave numbers out, unlike a consolidation, which takes the place of its parents.
        elif invents_numbers(answer.text, texts):
            dropped[NUMBERS] += 1
        else:
            yield _pattern(answer, parents)


def _pattern(answer: PatternAnswer, parents: Sequence[Memory]) -> Statement:
    return flagged(
        Statement(
            kind="artifact",
            text=answer.text,
            origin=Origin.SYNTHESIZED,
            synthesis_type=SynthesisType.PATTERN,
            emotional_state=feeling_state(answer.feeling),
            # A pattern shows only with the last of the memories that it needs.
            valid_from=max(parent.valid_from for parent in parents),
            parents=tuple(parent.id for parent in parents),
        )
    )


def _links(answers: Sequence[LinkAnswer], memories: Mapping[str, Memory]) -> tuple[DeepLink, ...]:
    """The links between two known memories, each once; the first of several weights counts."""
    links: dict[tuple[UUID, UUID, LinkType], DeepLink] = {}
    for answer in answers:
        source = memories.get(plain_reference(answer.source))
        target = memories.get(plain_reference(answer.target))
        # A reference that was not shown is a slip of the model, and no reason to lose the other links.
        if source is None or target is None or source.id == target.id:
            continue
        link = DeepLink(
            source=source.id,
            target=target.id,
            type=answer.type,
            weight=answer.weight,
        )
        links.setdefault((link.source, link.target, link.type), link)
    return tuple(links.values())
