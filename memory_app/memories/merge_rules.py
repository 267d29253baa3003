"""Unite several statements into one row, and compute how far it is then believed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
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

FREQUENCY_BONUS_LIMIT = 2
IMPORTANCE_LIMIT = 10

LOSS_ALLOWED = 0.2
"""Share of another text's words that may be missing from the longest before a model should word the union."""

# What a system message says was written by whoever runs the assistant, not by the user.
_TRUSTED = {
    "user": Trust.USER,
    "import": Trust.USER,
    "assistant": Trust.ASSISTANT,
    "system": Trust.ASSISTANT,
    "tool": Trust.TOOL,
    "web": Trust.TOOL,
}


def trust_of(origin: Origin, sources: Sequence[str]) -> Trust:
    """Return the trust of the best of ``sources``, which are named ``role:name``.

    Where none is named so, it follows ``origin``.
    """
    # A source without a role ("notes.txt") has no colon, and says nothing about trust.
    roles = {source.partition(":")[0] for source in sources if ":" in source}
    trusts = [_TRUSTED[role] for role in roles & _TRUSTED.keys()]
    if trusts:
        return max(trusts)
    return Trust.ASSISTANT if origin is Origin.SYNTHESIZED else Trust.USER


def corroborated(confidence: float, sources_before: Sequence[str], source: str | None) -> float:
    """Return the confidence after one more statement: raised only if ``source`` is another than those before.

    Where no source is known on one of the two sides, nothing says that they are independent.
    """
    before = set(map(normalise, sources_before))
    if source is None or not before:
        return confidence
    is_independent = normalise(source) not in before
    return _raised(confidence, 1) if is_independent else confidence


def _raised(confidence: float, times: int) -> float:
    # A declared certainty of 1 must not fall because somebody agrees.
    if confidence >= CEILING:
        return confidence
    return CEILING - (CEILING - confidence) * (1 - CORROBORATION) ** times


def needs_model(texts: Sequence[str]) -> bool:
    """Whether taking the longest of ``texts`` would lose more than `LOSS_ALLOWED` of the words of another."""
    longest = terms(_longest(texts)).keys()
    words_of_each = (terms(text).keys() for text in texts)
    return any(len(words - longest) > LOSS_ALLOWED * len(words) for words in words_of_each)


def merge(memories: Sequence[Neighbour], candidate: Candidate | None = None) -> MemoryRow:
    """Return the row that unites ``memories`` (at least one) and, if given, a new statement. It is not stored yet.

    The order of ``memories`` does not matter. Times are the oldest, counts are added, the most intense feeling
    wins, the longest text stands, and what repeats one source raises no confidence. A field that is not named below
    is that of the oldest row that has it.
    """
    rows: list[MemoryRow] = sorted(memories, key=lambda n: (n.memory.created_at, n.memory.id))
    if candidate is not None:
        # The statement is the newest of all, so it comes last whatever its own date.
        rows.append(row_of(candidate))
    parts = [row.memory for row in rows]
    text = _longest([memory.text for memory in parts])
    fact = _newest_fact(rows)
    valid_from, valid_until = _validity(rows)
    # Every field of the content goes through here first, so that a new field is never lost in a merge.
    oldest: dict[str, Any] = {
        name: _first(getattr(memory, name) for memory in parts) for name in content_of(parts[0])
    }
    memory = replace(
        replace(parts[0], **oldest),
        id=UNSTORED,
        text=text,
        subject=fact.memory.subject,
        relation=fact.memory.relation,
        object=fact.memory.object,
        importance=_importance(parts),
        confidence=_confidence(rows),
        tags=_united(memory.tags for memory in parts),
        pinned=any(memory.pinned for memory in parts),
        origin=min((memory.origin for memory in parts), key=_ORIGINS.index),
        emotional_state=_most_intense(parts),
        relational_context=_united_context(parts),
        valid_from=valid_from,
        valid_until=valid_until,
        created_at=min(memory.created_at for memory in parts),
        last_seen=max(memory.last_seen or memory.created_at for memory in parts),
        last_recalled=_latest(memory.last_recalled for memory in parts),
        repeat_count=sum(memory.repeat_count for memory in parts),
        recall_count=sum(memory.recall_count for memory in parts),
        # A mean stays within −1 and 1, which a sum would not.
        feedback_score=fmean(memory.feedback_score for memory in parts),
        embedding_model=None,
    )
    return MemoryRow(
        memory,
        canonical_key(text),
        subject_key=fact.subject_key,
        object_key=fact.object_key,
        single_valued=any(row.single_valued for row in rows),
        sources=_united(row.sources for row in rows),
        confirmed_at=max(row.confirmed_at or row.memory.valid_from for row in rows),
        first_confirmed_at=min(row.first_confirmed_at or row.memory.valid_from for row in rows),
    )


def reworded(row: MemoryRow, text: str) -> MemoryRow:
    """Return the row with another text, and with the key of that text."""
    return replace(row, memory=replace(row.memory, text=text), canonical_key=canonical_key(text))


def row_of(candidate: Candidate) -> MemoryRow:
    """Return the row that is inserted for a statement with which nothing is merged."""
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
        sources=tuple(filter(None, [statement.source])),
        confirmed_at=candidate.confirmed_at,
        first_confirmed_at=candidate.confirmed_at,
    )


def neighbour_of(
    row: MemoryRow, heirs: Mapping[str, str], *, similarity: float = 0.0, cohesion: float | None = None
) -> Neighbour:
    """Return a stored row as the ladder takes it.

    ``heirs`` leads from the slug of a merged alias to that of its heir; ``similarity`` and ``cohesion`` are cosines.
    """
    return Neighbour(
        row.memory,
        row.canonical_key,
        subject_key=heir_of(row.subject_key, heirs),
        object_key=heir_of(row.object_key, heirs),
        single_valued=row.single_valued,
        sources=row.sources,
        confirmed_at=row.confirmed_at,
        first_confirmed_at=row.first_confirmed_at,
        similarity=similarity,
        cohesion=cohesion,
        trust=trust_of(row.memory.origin, row.sources),
    )


def heir_of(slug: str | None, heirs: Mapping[str, str]) -> str | None:
    """Return the slug of what the entity was merged into, or the slug itself."""
    return slug and heirs.get(slug, slug)


def slugs_of(slug: str | None, heirs: Mapping[str, str]) -> list[str]:
    """Return every slug under which the entity is stored: its own and those of the aliases merged into it."""
    heir = heir_of(slug, heirs)
    # Rows keep the slug that they were stored under, so a merge of entities moves none of them.
    aliases = [alias for alias, target in heirs.items() if target == heir]
    return [] if heir is None else [heir, *aliases]


_ORIGINS = (Origin.DECLARED, Origin.IMPORTED, Origin.EXTRACTED, Origin.SYNTHESIZED)
"""From the most to the least reliable; a union has that of its most reliable part."""


def _newest_fact(rows: Sequence[MemoryRow]) -> MemoryRow:
    """The row that gives subject, relation and object; one without them where no row has a fact."""
    for row in reversed(rows):
        if row.subject_key and row.memory.relation:
            return row
    # A subject of one row and an object of another would make up a fact that nobody stated.
    memory = replace(rows[0].memory, subject=None, relation=None, object=None)
    return replace(rows[0], memory=memory, subject_key=None, object_key=None)


def _validity(rows: Sequence[MemoryRow]) -> tuple[datetime, datetime | None]:
    """Since when and until when the union holds; open where one of the rows that say it is."""
    memories = [row.memory for row in _dating(rows)]
    valid_from = min(memory.valid_from for memory in memories)
    ends = [memory.valid_until for memory in memories]
    # One row without an end says that it still holds, whatever the others say.
    return valid_from, None if None in ends else _latest(ends)


def _dating(rows: Sequence[MemoryRow]) -> Sequence[MemoryRow]:
    """The rows that say when it holds."""
    # A fact of a single-valued relation has neighbours in time: a remark that only sounds like it
    # must not stretch its interval over what is true before and after it.
    in_time = [row for row in rows if row.single_valued]
    facts = [row for row in rows if row.memory.relation is not None]
    return in_time or facts or rows


def _latest(instants: Iterable[datetime | None]) -> datetime | None:
    return max(filter(None, instants), default=None)


def _longest(texts: Sequence[str]) -> str:
    # Of two equally long ones the first in the alphabet, so that the order of the rows changes nothing.
    return min(texts, key=lambda text: (-len(text), text))


def _first(values: Iterable[T | None]) -> T | None:
    return next((value for value in values if value is not None), None)


def _united(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(groups)))


def _importance(memories: Sequence[Memory]) -> int:
    """The highest, and up to two more for what this union adds in frequency."""
    counts = [memory.repeat_count for memory in memories]
    # Only the gain counts: the whole bonus each time would carry everything to the top, merge by merge.
    gain = _frequency_bonus(sum(counts)) - _frequency_bonus(max(counts))
    return min(max(memory.importance for memory in memories) + gain, IMPORTANCE_LIMIT)


def _frequency_bonus(count: int) -> int:
    return min(count // 2, FREQUENCY_BONUS_LIMIT)


def _confidence(rows: Sequence[MemoryRow]) -> float:
    """The mean, raised for each source that the best supported row did not have yet."""
    mean = fmean(row.memory.confidence for row in rows)
    sources = [set(map(normalise, row.sources)) for row in rows if row.sources]
    if not sources:
        return mean
    # The best supported row has its own sources in its confidence already.
    further = len(set[str]().union(*sources)) - max(map(len, sources))
    return _raised(mean, further)


def _most_intense(memories: Sequence[Memory]) -> EmotionalState | None:
    states = filter(None, (memory.emotional_state for memory in memories))
    # Of two equally intense ones the first, so that of the oldest memory.
    return max(states, key=lambda state: state.intensity, default=None)


def _united_context(memories: Sequence[Memory]) -> RelationalContext | None:
    contexts = list(filter(None, (memory.relational_context for memory in memories)))
    if not contexts:
        return None
    # A strength of 0 is a statement, too: only an absent one is left out.
    strengths = (context.bond_strength for context in contexts if context.bond_strength is not None)
    return RelationalContext(
        bond_strength=max(strengths, default=None),
        communication_style=_united(context.communication_style for context in contexts),
        shared_references=_united(context.shared_references for context in contexts),
        user_values=_united(context.user_values for context in contexts),
        user_struggles=_united(context.user_struggles for context in contexts),
    )
