"""The signals of ranking, the weights that an agent may choose, and relevance: their weighted sum. Pure.

Relevance is a weighted sum of signals, each scaled by something fixed, so that a score does not depend on
which other candidates happened to be found. (It beat reciprocal rank fusion on real conversations.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from operator import attrgetter, mul

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
    return retention(now - at, RECENCY_HALF_LIFE)


def retention(age: timedelta, half_life: timedelta) -> float:
    """1 at age 0, halved every ``half_life``; a negative age counts as 0."""
    return float(0.5 ** max(age / half_life, 0.0))
