"""What becomes of several statements that are united into one row, and how much they are then believed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import TypeVar
from uuid import UUID

from memory_app.language.text import normalise, terms
from memory_app.memories.decisions import Candidate, MergedFields, Neighbour, Trust
from memory_app.records.records import EmotionalState, Memory, Origin, RelationalContext

T = TypeVar("T")

CEILING = 0.99
"""No number of sources makes a statement certain; a declared certainty is left as it is."""

CORROBORATION = 0.2
"""Share of the way to `CEILING` that each further independent source adds."""

FREQUENCY_BONUS_MOST = 2
IMPORTANCE_MOST = 10

LOSS_ALLOWED = 0.2
"""Share of another text's words that may be missing from the longest before a model should word the union."""

_NOT_STORED = UUID(int=0)

_TRUSTED = {
    "user": Trust.USER,
    "import": Trust.USER,
    "assistant": Trust.ASSISTANT,
    "system": Trust.ASSISTANT,
    "tool": Trust.TOOL,
    "web": Trust.TOOL,
}


def trust_of(origin: Origin, sources: Sequence[str]) -> Trust:
    """Trust of the best of ``sources``, which are named ``role:name``; without such names it follows ``origin``."""
    named = [
        _TRUSTED[role] for role in (s.partition(":")[0] for s in sources if ":" in s) if role in _TRUSTED
    ]
    if named:
        return max(named)
    return Trust.ASSISTANT if origin is Origin.SYNTHESIZED else Trust.USER


def corroborated(confidence: float, sources_before: Sequence[str], source: str | None) -> float:
    """Confidence after one more statement: raised only if ``source`` is another than those before.

    Where no source is known on one of the two sides, nothing says that they are independent.
    """
    before = {normalise(s) for s in sources_before}
    if source is None or not before or normalise(source) in before:
        return confidence
    return _raised(confidence, 1)


def _raised(confidence: float, times: int) -> float:
    if confidence >= CEILING:
        return confidence
    return CEILING - (CEILING - confidence) * (1 - CORROBORATION) ** times


def needs_model(texts: Sequence[str]) -> bool:
    """Would taking the longest of ``texts`` lose more than `LOSS_ALLOWED` of the words of another?"""
    kept = set(terms(_longest(texts)))
    return any(len(words - kept) > LOSS_ALLOWED * len(words) for words in map(set, map(terms, texts)))


def merge(memories: Sequence[Neighbour], candidate: Candidate | None = None) -> MergedFields:
    """The fields of the row that unites ``memories`` (at least one) and, if given, a new statement.

    The order of ``memories`` does not matter. Times are the oldest, counts are added, the most intense feeling
    wins, the longest text stands, and what repeats one source raises no confidence.
    """
    stored = sorted(memories, key=lambda n: (n.memory.created_at, n.memory.id))
    parts = [*stored, *([_as_neighbour(candidate)] if candidate else [])]
    all_of = [part.memory for part in parts]
    texts = [memory.text for memory in all_of]
    fact = next((part for part in reversed(parts) if part.subject_key and part.memory.relation), None)
    dating = _dating(parts)
    ends = [part.memory.valid_until for part in dating]
    return MergedFields(
        kind=all_of[0].kind,
        text=_longest(texts),
        subtype=_first(memory.subtype for memory in all_of),
        subject=fact.memory.subject if fact else None,
        relation=fact.memory.relation if fact else None,
        object=fact.memory.object if fact else None,
        subject_key=fact.subject_key if fact else None,
        object_key=fact.object_key if fact else None,
        single_valued=any(part.single_valued for part in parts),
        importance=_importance(all_of),
        confidence=_confidence(parts),
        tags=_united(memory.tags for memory in all_of),
        pinned=any(memory.pinned for memory in all_of),
        origin=min((memory.origin for memory in all_of), key=_ORIGINS.index),
        sources=_united(part.sources for part in parts),
        emotional_state=_most_intense(all_of),
        relational_context=_united_context([m.relational_context for m in all_of if m.relational_context]),
        synthesis_type=_first(memory.synthesis_type for memory in all_of),
        session=all_of[0].session,
        valid_from=min(part.memory.valid_from for part in dating),
        valid_until=None if None in ends else max(end for end in ends if end),
        created_at=min(memory.created_at for memory in all_of),
        last_seen=max(memory.last_seen or memory.created_at for memory in all_of),
        last_recalled=max((m.last_recalled for m in all_of if m.last_recalled), default=None),
        confirmed_at=max(part.confirmed_at or part.memory.valid_from for part in parts),
        repeat_count=sum(memory.repeat_count for memory in all_of),
        recall_count=sum(memory.recall_count for memory in all_of),
        feedback_score=fmean(memory.feedback_score for memory in all_of),
        parents=tuple(part.memory.id for part in stored),
        needs_model=needs_model(texts),
    )


_ORIGINS = (Origin.DECLARED, Origin.IMPORTED, Origin.EXTRACTED, Origin.SYNTHESIZED)


def _as_neighbour(candidate: Candidate) -> Neighbour:
    said = candidate.statement
    memory = Memory(
        id=_NOT_STORED,
        kind=said.kind,
        text=said.text,
        created_at=candidate.now,
        valid_from=candidate.valid_from,
        subtype=said.subtype,
        subject=said.subject,
        relation=candidate.relation,
        object=said.object,
        importance=candidate.importance,
        confidence=said.confidence,
        tags=said.tags,
        pinned=said.pinned,
        origin=said.origin,
        emotional_state=said.emotional_state,
        relational_context=said.relational_context,
        valid_until=candidate.valid_until,
        synthesis_type=said.synthesis_type,
        session=candidate.session,
    )
    return Neighbour(
        memory=memory,
        canonical_key=candidate.canonical_key,
        similarity=1.0,
        subject_key=candidate.subject_key,
        object_key=candidate.object_key,
        single_valued=candidate.single_valued,
        sources=(said.source,) if said.source else (),
        trust=candidate.trust,
    )


def _dating(parts: Sequence[Neighbour]) -> Sequence[Neighbour]:
    """The parts that say when it holds: a fact in time must not reach over what is true before and after it."""
    in_time = [part for part in parts if part.single_valued]
    facts = [part for part in parts if part.memory.relation is not None]
    return in_time or facts or parts


def _longest(texts: Sequence[str]) -> str:
    return min(texts, key=lambda text: (-len(text), text))


def _first(values: Iterable[T | None]) -> T | None:
    return next((value for value in values if value is not None), None)


def _united(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for group in groups for item in group))


def _importance(memories: Sequence[Memory]) -> int:
    """The highest, and up to two more for what this union adds in frequency.

    Only the gain counts, so that merge after merge does not carry everything to the top.
    """
    counts = [memory.repeat_count for memory in memories]
    gain = _frequency_bonus(sum(counts)) - _frequency_bonus(max(counts))
    return min(max(memory.importance for memory in memories) + gain, IMPORTANCE_MOST)


def _frequency_bonus(count: int) -> int:
    return min(count // 2, FREQUENCY_BONUS_MOST)


def _confidence(parts: Sequence[Neighbour]) -> float:
    """The mean, raised for each source that the best supported part did not have yet."""
    mean = fmean(part.memory.confidence for part in parts)
    known = [{normalise(source) for source in part.sources} for part in parts if part.sources]
    if not known:
        return mean
    independent = len(set[str]().union(*known)) - max(map(len, known))
    return _raised(mean, independent)


def _most_intense(memories: Sequence[Memory]) -> EmotionalState | None:
    felt = [memory.emotional_state for memory in memories if memory.emotional_state]
    return max(felt, key=lambda state: state.intensity, default=None)


def _united_context(contexts: Sequence[RelationalContext]) -> RelationalContext | None:
    if not contexts:
        return None

    def lists(read: Callable[[RelationalContext], tuple[str, ...]]) -> tuple[str, ...]:
        return _united(map(read, contexts))

    return RelationalContext(
        bond_strength=max((c.bond_strength for c in contexts if c.bond_strength is not None), default=None),
        communication_style=lists(lambda c: c.communication_style),
        shared_references=lists(lambda c: c.shared_references),
        user_values=lists(lambda c: c.user_values),
        user_struggles=lists(lambda c: c.user_struggles),
    )
