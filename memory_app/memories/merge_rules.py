"""What becomes of several statements that are united into one row, and how much they are then believed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, TypeVar

from memory_app.language.text import canonical_key, normalise, terms
from memory_app.memories.decisions import Candidate, Neighbour, Trust
from memory_app.records.records import (
    UNSTORED,
    EmotionalState,
    Memory,
    MemoryRow,
    Origin,
    RelationalContext,
    content_of,
)

T = TypeVar("T")

CEILING = 0.99
"""No number of sources makes a statement certain; a declared certainty is left as it is."""

CORROBORATION = 0.2
"""Share of the way to `CEILING` that each further independent source adds."""

FREQUENCY_BONUS_MOST = 2
IMPORTANCE_MOST = 10

LOSS_ALLOWED = 0.2
"""Share of another text's words that may be missing from the longest before a model should word the union."""

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


def merge(memories: Sequence[Neighbour], candidate: Candidate | None = None) -> MemoryRow:
    """The row that unites ``memories`` (at least one) and, if given, a new statement. It is not stored yet.

    The order of ``memories`` does not matter. Times are the oldest, counts are added, the most intense feeling
    wins, the longest text stands, and what repeats one source raises no confidence. A field that is not named below
    is that of the oldest row that has it.
    """
    rows: list[MemoryRow] = sorted(memories, key=lambda n: (n.memory.created_at, n.memory.id))
    if candidate is not None:
        rows.append(row_of(candidate))
    united = [row.memory for row in rows]
    text = _longest([memory.text for memory in united])
    # Subject, relation and object come together from the newest row that has them, or from none.
    fact = next((row for row in reversed(rows) if row.subject_key and row.memory.relation), None)
    dating = _dating(rows)
    ends = [row.memory.valid_until for row in dating]
    oldest: dict[str, Any] = {
        name: _first(getattr(memory, name) for memory in united) for name in content_of(united[0])
    }
    memory = replace(
        replace(united[0], **oldest),
        id=UNSTORED,
        text=text,
        subject=fact.memory.subject if fact else None,
        relation=fact.memory.relation if fact else None,
        object=fact.memory.object if fact else None,
        importance=_importance(united),
        confidence=_confidence(rows),
        tags=_united(memory.tags for memory in united),
        pinned=any(memory.pinned for memory in united),
        origin=min((memory.origin for memory in united), key=_ORIGINS.index),
        emotional_state=_most_intense(united),
        relational_context=_united_context([m.relational_context for m in united if m.relational_context]),
        valid_from=min(row.memory.valid_from for row in dating),
        valid_until=None if None in ends else max(end for end in ends if end),
        created_at=min(memory.created_at for memory in united),
        last_seen=max(memory.last_seen or memory.created_at for memory in united),
        last_recalled=max((m.last_recalled for m in united if m.last_recalled), default=None),
        repeat_count=sum(memory.repeat_count for memory in united),
        recall_count=sum(memory.recall_count for memory in united),
        feedback_score=fmean(memory.feedback_score for memory in united),
        embedding_model=None,
    )
    return MemoryRow(
        memory,
        canonical_key(text),
        subject_key=fact.subject_key if fact else None,
        object_key=fact.object_key if fact else None,
        single_valued=any(row.single_valued for row in rows),
        sources=_united(row.sources for row in rows),
        confirmed_at=max(row.confirmed_at or row.memory.valid_from for row in rows),
    )


def reworded(row: MemoryRow, text: str) -> MemoryRow:
    """The row with another text, and the key of that text."""
    return replace(row, memory=replace(row.memory, text=text), canonical_key=canonical_key(text))


def row_of(candidate: Candidate) -> MemoryRow:
    """The row that is inserted for a statement which nothing is merged with."""
    statement = candidate.statement
    content = content_of(statement) | {"relation": candidate.relation, "valid_until": candidate.valid_until}
    memory = Memory(
        **content,
        created_at=candidate.now,
        valid_from=candidate.valid_from,
        importance=candidate.importance,
        session=candidate.session,
    )
    return MemoryRow(
        memory,
        candidate.canonical_key,
        subject_key=candidate.subject_key,
        object_key=candidate.object_key,
        single_valued=candidate.single_valued,
        sources=(statement.source,) if statement.source else (),
    )


def neighbour_of(
    row: MemoryRow, heirs: Mapping[str, str], *, similarity: float = 0.0, cohesion: float | None = None
) -> Neighbour:
    """A stored row as the ladder sees it; ``heirs`` leads from the slug of a merged alias to that of its heir."""
    return Neighbour(
        row.memory,
        row.canonical_key,
        subject_key=heirs.get(row.subject_key or "", row.subject_key),
        object_key=heirs.get(row.object_key or "", row.object_key),
        single_valued=row.single_valued,
        sources=row.sources,
        confirmed_at=row.confirmed_at,
        similarity=similarity,
        cohesion=cohesion,
        trust=trust_of(row.memory.origin, row.sources),
    )


_ORIGINS = (Origin.DECLARED, Origin.IMPORTED, Origin.EXTRACTED, Origin.SYNTHESIZED)


def _dating(rows: Sequence[MemoryRow]) -> Sequence[MemoryRow]:
    """The rows that say when it holds: a fact in time must not reach over what is true before and after it."""
    in_time = [row for row in rows if row.single_valued]
    facts = [row for row in rows if row.memory.relation is not None]
    return in_time or facts or rows


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


def _confidence(rows: Sequence[MemoryRow]) -> float:
    """The mean, raised for each source that the best supported row did not have yet."""
    mean = fmean(row.memory.confidence for row in rows)
    known = [{normalise(source) for source in row.sources} for row in rows if row.sources]
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
