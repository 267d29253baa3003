"""How candidates are ranked: relevance with a query, strength without one. Pure: no clock, no I/O.

Relevance is a weighted sum of signals, each scaled by something fixed, so that a score does not depend on
which other candidates happened to be found. (It beat reciprocal rank fusion on real conversations.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from itertools import combinations
from operator import attrgetter, mul

from memory_app.language.text import term_id
from memory_app.records.records import Memory

# --- keyword vectors ----------------------------------------------------------------------------------------

SATURATION = 1.2
"""BM25's k1: how fast a repeated word stops counting."""

LENGTH_PENALTY = 1.0
"""BM25's b: how much of the length is held against a long text. The usual 0.75 wins half a point of recall at
ten on short turns between people, and loses 4 on chats with long answers of an assistant."""

REFERENCE_LENGTH = 64
"""Terms of a text that gets neither bonus nor penalty. BM25 uses the collection's mean; a fixed number lets a
row keep its weights for ever, whatever is recorded after it. 48 to 96 score alike; the mean itself scores lower."""

MAX_KEYWORD_TERMS = 8_000
"""Most terms one row is found by; a `sparsevec` holds at most 16,000."""


def keyword_weights(counts: Mapping[str, int]) -> dict[int, float]:
    """Document side of BM25: weight by term id, 0 to k1 + 1, of at most `MAX_KEYWORD_TERMS` terms.

    The inner product with `query_weights` is the BM25 score.
    """
    length = sum(counts.values()) / REFERENCE_LENGTH
    damping = SATURATION * (1 - LENGTH_PENALTY + LENGTH_PENALTY * length)
    weights: dict[int, float] = {}
    strongest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    for term, count in strongest[:MAX_KEYWORD_TERMS]:
        weight = count * (SATURATION + 1) / (count + damping)
        weights[term_id(term)] = max(weight, weights.get(term_id(term), 0.0))
    return weights


def query_weights(
    counts: Mapping[str, int], document_counts: Mapping[int, int], total: int
) -> dict[int, float]:
    """Query side of BM25: inverse document frequency by term id.

    ``document_counts`` says in how many of the scope's ``total`` rows each term id occurs; terms of no row
    are left out, since no row can match them.
    """
    weights = {}
    for term in counts:
        occurrences = document_counts.get(term_id(term), 0)
        if occurrences > 0:
            rest = max(total - occurrences, 0)
            weights[term_id(term)] = math.log1p((rest + 0.5) / (occurrences + 0.5))
    return weights


ANCHOR_ROWS = 2_000
"""Rows the keyword index of a big scope may hand over: scoring them takes some 3 ms."""

ANCHOR_TERMS = 12
"""Terms of a query that are looked at for pairs; the commonest of a long query say the least."""


def anchor_terms(
    document_counts: Mapping[int, int], total: int, *, most_rows: int = ANCHOR_ROWS
) -> tuple[tuple[int, ...], ...]:
    """What the keyword index of a big scope is asked for: rows that hold all terms of any of these sets.

    First the rarest terms, each by itself, while their rows are few enough; then pairs of the commoner ones, counted as
    if they occurred independently of each other. One set at least, if the query has a term that any row holds.
    """
    known = sorted(
        ((count, term) for term, count in document_counts.items() if count > 0), key=lambda pair: pair[0]
    )[:ANCHOR_TERMS]
    chosen: list[tuple[int, ...]] = []
    rows = 0.0
    while known and rows + known[0][0] <= most_rows:
        count, term = known.pop(0)
        chosen.append((term,))
        rows += count
    for (first, one), (second, other) in combinations(known, 2):
        together = first * second / max(total, 1)
        if chosen and rows + together > most_rows:
            break
        chosen.append((one, other))
        rows += together
    return tuple(chosen) or tuple((term,) for _, term in known[:1])


# --- relevance ----------------------------------------------------------------------------------------------

RECENCY_HALF_LIFE = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Signals:
    """What is known about one candidate for one query. 0–1, ``feedback`` −1…1; what does not apply is 0."""

    similarity: float = 0.0
    """Cosine of the query and the row, clipped to 0–1."""
    keyword: float = 0.0
    """Keyword score divided by the best of any row for this query."""
    neighbour_similarity: float = 0.0
    """Similarity of the better of the two turns beside it in its session."""
    neighbour_keyword: float = 0.0
    """Keyword signal of the better of the two turns beside it."""
    session_keyword: float = 0.0
    """The best keyword signal of any turn of its session."""
    named_person: float = 0.0
    """1 when the query names who said it (for a memory: whom it is about)."""
    user_role: float = 0.0
    """1 when the user said it, rather than the assistant or a tool; 0 for all when the query is about another
    speaker (names one, and is not in the first person)."""
    asks: float = 0.0
    """1 when it ends by asking something: `traits.Trait.ASKS`. Its weight is below 0."""
    standing: float = 0.0
    """1 when it says how things are to be done from now on: `traits.Trait.STANDING`."""
    preference: float = 0.0
    """1 when it says what the user prefers. Weighs only where the query wants advice."""
    quantity: float = 0.0
    """1 when it states a number. Weighs only where the query asks how many."""
    moment: float = 0.0
    """1 when it names a time. Weighs only where the query asks when."""
    recency: float = 0.0
    frequency: float = 0.0
    """Share of the scope's memories that mention the same entity, the commonest entity being 1."""
    same_session: float = 0.0
    feedback: float = 0.0
    importance: float = 0.0
    pinned: float = 0.0
    mentions: float = 0.0
    """1 when the memory mentions an entity that the query names, half for one a strong memory links it with."""
    in_time: float = 0.0
    """1 when it was said, or holds from, within a time that the query names in relation to now."""
    linked: float = 0.0
    """For what graph expansion found: weight of the link times the score of the row it leads from, per link."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each of the `Signals` counts; the names are the same."""

    similarity: float = 0.0
    keyword: float = 0.0
    neighbour_similarity: float = 0.0
    neighbour_keyword: float = 0.0
    session_keyword: float = 0.0
    named_person: float = 0.0
    user_role: float = 0.0
    asks: float = 0.0
    standing: float = 0.0
    preference: float = 0.0
    quantity: float = 0.0
    moment: float = 0.0
    recency: float = 0.0
    frequency: float = 0.0
    same_session: float = 0.0
    feedback: float = 0.0
    importance: float = 0.0
    pinned: float = 0.0
    mentions: float = 0.0
    in_time: float = 0.0
    linked: float = 0.0


SIGNAL_NAMES = tuple(field.name for field in fields(Signals))

LINKED_WEIGHT = 0.5
"""What a full link from a row adds, as a share of that row's score: enough to stand beside it, never above it by the
link alone."""

PRESETS: dict[str, Weights] = {
    "balanced": Weights(
        similarity=0.42,
        keyword=0.32,
        neighbour_similarity=0.26,
        neighbour_keyword=0.16,
        session_keyword=0.31,
        named_person=0.3,
        user_role=0.2,
        asks=-0.04,
        standing=0.25,
        preference=0.12,
        quantity=0.15,
        moment=0.21,
        same_session=0.05,
        feedback=0.1,
        mentions=0.15,
        in_time=0.2,
        linked=LINKED_WEIGHT,
    ),
    "entity_first": Weights(similarity=0.4, recency=0.3, frequency=0.3, same_session=0.05, feedback=0.1),
    "hybrid": Weights(similarity=0.7, keyword=0.3, same_session=0.05, feedback=0.1),
    "keyword": Weights(keyword=1.0),
    "vector": Weights(similarity=1.0),
}
"""The shares of similarity, keyword, recency and frequency are fixed for all but ``balanced``; being of the
same session and feedback come on top, and only where a blend is asked for.

``balanced`` was fitted on two sets at once (two people talking over months; long chats with an assistant) by the
softmax of the scores of a conversation's turns, in which those that answer are to stand out. Fitted without the
conversation that is scored, recall at ten is 0.78 and 0.64, with keywords alone 0.65 and 0.55, with vectors alone 0.45
and 0.58. Only the weights were held out: which signals there are, and the constants above, were settled with all nine
conversations in view, so expect a little less on new ones."""


def contributions(signals: Signals, weights: Weights) -> dict[str, float]:
    """What each signal adds to `relevance`, by name; those that add nothing are left out."""
    parts = {name: getattr(signals, name) * getattr(weights, name) for name in SIGNAL_NAMES}
    return {name: part for name, part in parts.items() if part}


def relevance(signals: Signals, weights: Weights) -> float:
    """The weighted sum of the signals."""
    return math.fsum(map(mul, _IN_ORDER(signals), _IN_ORDER(weights)))


_IN_ORDER = attrgetter(*SIGNAL_NAMES)
"""The values by name of signals or weights, in one call: candidates are many."""


def recency(at: datetime, now: datetime) -> float:
    """1 now, half after `RECENCY_HALF_LIFE`; an instant in the future counts as now."""
    return _retention(now - at, RECENCY_HALF_LIFE)


# --- strength -----------------------------------------------------------------------------------------------


def strength(memory: Memory, now: datetime, half_life: timedelta | None) -> float:
    """Rank of a memory without a query, 0–1: retention × worth; pinned is 1.

    Retention halves every ``half_life`` since it was last seen or recalled; None means that it never fades.
    """
    if memory.pinned:
        return 1.0
    retention = 1.0 if half_life is None else _retention(now - _last_touched(memory), half_life)
    return retention * _worth(memory)


def fades_at(memory: Memory, threshold: float, half_life: timedelta | None) -> datetime | None:
    """When strength falls to ``threshold`` if nothing happens; None: never, or after year 9999."""
    if memory.pinned or half_life is None or threshold <= 0:
        return None
    touched = _last_touched(memory)
    worth = _worth(memory)
    if worth <= threshold:
        return touched
    seconds = half_life.total_seconds() * math.log2(worth / threshold)
    if seconds >= (datetime.max.replace(tzinfo=touched.tzinfo) - touched).total_seconds():
        return None
    return touched + timedelta(seconds=seconds)


def _retention(age: timedelta, half_life: timedelta) -> float:
    return float(0.5 ** max(age / half_life, 0.0))


def _last_touched(memory: Memory) -> datetime:
    return max(at for at in (memory.created_at, memory.last_seen, memory.last_recalled) if at is not None)


def _worth(memory: Memory) -> float:
    """0–1. Importance counts half; used or corroborated three times is half way to that full share."""
    uses = memory.recall_count + max(memory.repeat_count - 1, 0)
    return (
        0.5 * memory.importance / 10
        + 0.2 * memory.confidence
        + 0.15 * uses / (uses + 3)
        + 0.15 * (memory.feedback_score + 1) / 2
    )
