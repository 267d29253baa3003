"""Synthesize memories by a language model: unite those that say the same, note patterns, link what belongs together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from uuid import UUID
from zoneinfo import ZoneInfo

from memory_app.extraction.llm.answers import ConsolidatedAnswer, LinkAnswer, PatternAnswer, SynthesizeDeep
from memory_app.extraction.llm.draft import feeling_state
from memory_app.extraction.llm.flags import flagged
from memory_app.extraction.llm.guards import LONGEST, SAMPLE, TOO_LONG
from memory_app.extraction.llm.instructions import FROM_INSTRUCTIONS, instructed, repeats_instructions
from memory_app.extraction.llm.material import numbered_memories, plain_reference, show_memories
from memory_app.extraction.llm.numbers import invents_numbers
from memory_app.extraction.llm.prompt_echo import repeats_prompt
from memory_app.extraction.llm.prompts import load_prompt
from memory_app.extraction.llm.provenance import Asking, Provenance, ask, provenance_of
from memory_app.extraction.llm.unions import NAMES, NUMBERS, PINNED, fault_of_union, has_new_names, names_in
from memory_app.memories.decisions import MERGE_LIMIT
from memory_app.memories.forbidden import FORBIDDEN, is_forbidden
from memory_app.memories.guards import SUBSTITUTION, conflicting, content_words, words_only_in
from memory_app.records.instructions import Instructions
from memory_app.records.records import (
    LinkType,
    Memory,
    Origin,
    Statement,
    SynthesisType,
)

TOO_FEW = "fewer than two memories"
TOO_MANY = f"more than {MERGE_LIMIT} memories"
MIXED = "memories of several kinds"
CONFLICT = "memories that contradict each other"
UNFOUNDED = "nothing the memories say"


@dataclass(frozen=True, slots=True)
class DeepLink:
    """A link to write between two memories. ``weight`` 0–1."""

    source: UUID
    target: UUID
    type: LinkType
    weight: float


@dataclass(frozen=True, slots=True)
class Union:
    """A sentence that may stand for two or more memories, as far as its words and theirs tell."""

    text: str
    memories: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class DeepSynthesis:
    """What a model proposes. Of ``unions`` each memory is in one at most; ``patterns`` are artifacts beside theirs."""

    unions: tuple[Union, ...]
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
            unions=(),
            patterns=(),
            links=(),
            provenance=Provenance(),
        )
    prompt = instructed(load_prompt("synthesize_deep"), asking.instructions)
    by_reference = numbered_memories(memories)
    answer = ask(asking, prompt, [show_memories(by_reference, zone=time_zone)], shape=SynthesizeDeep)
    dropped: Counter[str] = Counter()
    unions = tuple(_unions(answer.value.consolidated, by_reference, dropped))
    patterns = tuple(
        _patterns(answer.value.patterns, by_reference, dropped, instructions=asking.instructions)
    )
    links = _links(answer.value.links, by_reference)
    return DeepSynthesis(
        unions=unions,
        patterns=patterns,
        links=links,
        provenance=provenance_of(prompt, answer, dropped),
    )


def _referred(references: Iterable[str], memories: Mapping[str, Memory]) -> tuple[Memory, ...]:
    named = set(map(plain_reference, references))
    # In the order in which they were shown, whatever the order of the answer.
    return tuple(memory for reference, memory in memories.items() if reference in named)


def _unions(
    answers: Sequence[ConsolidatedAnswer], memories: Mapping[str, Memory], dropped: Counter[str]
) -> Iterable[Union]:
    """Each memory goes into one union at most, the first that is sound."""
    free = dict(memories)
    for answer in answers:
        parents = _referred(answer.memories, free)
        fault = _fault(answer.text, parents)
        if fault is not None:
            dropped[fault] += 1
            continue
        # Parents retire, so none may be a parent twice.
        free = {reference: memory for reference, memory in free.items() if memory not in parents}
        yield Union(answer.text, tuple(parent.id for parent in parents))


def _fault(text: str, parents: Sequence[Memory]) -> str | None:
    if len(parents) < 2:
        return TOO_FEW
    if len(parents) > MERGE_LIMIT:
        return TOO_MANY
    if any(parent.pinned for parent in parents):
        return PINNED
    # The kind decides where a memory is shown and how fast it fades, so one text cannot stand for two.
    if len({(parent.kind, parent.subtype) for parent in parents}) > 1:
        return MIXED
    texts = [parent.text for parent in parents]
    # Words put in place of others are what a union is for: whether it may say both is decided by how alike they are.
    faults = {conflicting(first, second) for first, second in combinations(texts, 2)}
    if not faults <= {None, SUBSTITUTION}:
        return CONFLICT
    return fault_of_union(text, texts)


def _patterns(
    answers: Sequence[PatternAnswer],
    memories: Mapping[str, Memory],
    dropped: Counter[str],
    *,
    instructions: Instructions,
) -> Iterable[Statement]:
    for answer in answers:
        parents = _referred(answer.memories, memories)
        texts = [parent.text for parent in parents]
        if len(parents) < 2:
            dropped[TOO_FEW] += 1
            continue
        fault = _fault_of_pattern(answer.text, texts, instructions)
        if fault is not None:
            dropped[fault] += 1
            continue
        yield _pattern(answer, parents)


def _fault_of_pattern(text: str, texts: Sequence[str], instructions: Instructions) -> str | None:
    """A pattern may leave words and numbers out, unlike a union, which takes the place of its parents."""
    if repeats_prompt(text, texts):
        return SAMPLE
    if len(text) > LONGEST:
        return TOO_LONG
    if is_forbidden(text, instructions.never):
        return FORBIDDEN
    if repeats_instructions(text, texts, instructions):
        return FROM_INSTRUCTIONS
    if invents_numbers(text, texts):
        return NUMBERS
    if has_new_names(text, texts):
        return NAMES
    # It says in words of its own what several memories show, and still speaks of what they speak of. That it names the
    # person is not enough.
    telling = content_words(text) - content_words(" ".join(names_in(text, texts)))
    return None if telling - words_only_in(text, " ".join(texts)) else UNFOUNDED


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
