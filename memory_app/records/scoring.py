"""The signals of ranking, the weights that an agent may choose, and relevance: their weighted sum. Pure.

Relevance is a weighted sum of signals, each scaled by something fixed, so that a score does not depend on
which other candidates happened to be found. (It beat reciprocal rank fusion on real conversations.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

RECENCY_HALF_LIFE = timedelta(days=14)


LINKED_WEIGHT = 0.5
"""What a full link from a row adds, as a share of that row's score: enough to stand beside it, never above it by the
link alone."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One thing that is known about a candidate for a query, 0–1 unless ``meaning`` says otherwise, and its weight in
    each preset. A signal that does not apply is 0."""

    name: str
    meaning: str
    balanced: float = 0.0
    entity_first: float = 0.0
    hybrid: float = 0.0
    keyword: float = 0.0
    vector: float = 0.0


SIGNAL_TABLE = (
    Signal(
        "similarity",
        "Cosine of the query and the row, clipped to 0–1.",
        balanced=0.42,
        entity_first=0.4,
        hybrid=0.7,
        vector=1.0,
    ),
    Signal(
        "keyword",
        "Keyword score divided by the best of any row for this query.",
        balanced=0.32,
        hybrid=0.3,
        keyword=1.0,
    ),
    Signal(
        "neighbour_similarity",
        "Similarity of the better of the two turns beside it in its session.",
        balanced=0.26,
    ),
    Signal("neighbour_keyword", "Keyword signal of the better of the two turns beside it.", balanced=0.16),
    Signal(
        "second_neighbour_keyword",
        "Keyword signal of the better of the turns two before and two after it, which mostly the same person says.",
        balanced=0.09,
    ),
    Signal("session_keyword", "The best keyword signal of any turn of its session.", balanced=0.31),
    Signal(
        "answers",
        "Keyword signal of the turn before, where that is a short question by somebody else and the user says this. No "
        "weight where the query is after what the assistant said, nor have the two other signs of how people talk.",
        balanced=0.24,
    ),
    Signal(
        "phrase",
        "Share, by weight, of the query's neighbouring words that stand beside each other in the row as well.",
        balanced=0.14,
    ),
    Signal(
        "addresses",
        "How much a turn speaks of who is spoken to, rather than of who speaks.",
        balanced=-0.12,
    ),
    Signal(
        "named_person",
        "1 when the query names the speaker (for a memory: its subject).",
        balanced=0.3,
    ),
    Signal(
        "user_role",
        "1 when the user said it, rather than the assistant or a tool; 0 for all when the query is about another "
        "speaker (names one, and is not in the first person).",
        balanced=0.2,
    ),
    Signal("asks", "1 when it ends with a question: `Trait.ASKS`.", balanced=-0.04),
    Signal("standing", "1 when it is an instruction for the future: `Trait.STANDING`.", balanced=0.25),
    Signal(
        "preference",
        "1 when it says what the user prefers. Has a weight only where the query asks for advice.",
        balanced=0.12,
    ),
    Signal(
        "quantity",
        "1 when it states a number. Has a weight only where the query asks how many.",
        balanced=0.15,
    ),
    Signal("moment", "1 when it names a time. Has a weight only where the query asks when.", balanced=0.21),
    Signal("recency", "See `recency`.", entity_first=0.3),
    Signal(
        "frequency",
        "Share of the scope's memories that mention the same entity, the commonest entity being 1.",
        entity_first=0.3,
    ),
    Signal(
        "same_session",
        "1 when it belongs to the session that is going on.",
        balanced=0.05,
        entity_first=0.05,
        hybrid=0.05,
    ),
    Signal("feedback", "Feedback score of the memory, −1…1.", balanced=0.1, entity_first=0.1, hybrid=0.1),
    Signal("importance", "Importance of the memory divided by 10."),
    Signal("pinned", "1 when the memory is pinned."),
    Signal(
        "mentions",
        "1 when the memory mentions an entity that the query names, half for one a strong memory links it with.",
        balanced=0.15,
    ),
    Signal(
        "in_time",
        "1 when it was said, or holds from, within a time that the query names.",
        balanced=0.4,
    ),
    Signal(
        "linked",
        "For a hit of graph expansion: weight of the link times the score of the row it leads from.",
        balanced=LINKED_WEIGHT,
    ),
)
"""The shares of similarity, keyword, recency and frequency are fixed for all presets but ``balanced``; the same session
and feedback come on top, and only where a blend is asked for.

``balanced`` was fitted on two sets at once (two people talking over months; long chats with an assistant) by the
softmax of the scores of a conversation's turns, in which those that answer are to stand out. Fitted without the
conversation that is scored, recall at ten is 0.78 and 0.64, with keywords alone 0.65 and 0.55, with vectors alone 0.45
and 0.58. Only the weights were held out: which signals there are, and the constants above, were settled with all nine
conversations in view, so expect a little less on new ones.

The weights of ``answers``, ``phrase``, ``addresses`` and ``second_neighbour_keyword`` were fitted beside those, which
stayed as they were. Fitted without the conversation that is scored, they raise recall at ten from 0.79 and 0.66 to 0.80
and 0.67, and the mean reciprocal rank from 0.61 and 0.64 to 0.65 and 0.66. See ``benchmarks/ranking.py``."""

SIGNAL_NAMES = tuple(signal.name for signal in SIGNAL_TABLE)

Signals = Mapping[str, float]
"""What is known about one candidate, by `SIGNAL_NAMES`; a name that is absent counts as 0."""

Weights = Mapping[str, float]
"""How much each signal counts; every one of `SIGNAL_NAMES` is there."""

PRESETS: Mapping[str, Weights] = {
    preset: {signal.name: getattr(signal, preset) for signal in SIGNAL_TABLE}
    for preset in ("balanced", "entity_first", "hybrid", "keyword", "vector")
}


def contributions(signals: Signals, weights: Weights) -> dict[str, float]:
    """What each signal adds to `relevance`, by name; those that add nothing are left out."""
    shares: dict[str, float] = {}
    for name in SIGNAL_NAMES:
        share = signals.get(name, 0.0) * weights[name]
        if share:
            shares[name] = share
    return shares


def relevance(signals: Signals, weights: Weights) -> float:
    """The weighted sum of the signals. Raises `KeyError` for a signal that is not in the table."""
    # Not `sum`, whose rounding depends on the order, so that equal rows could get different scores.
    return math.fsum(value * weights[name] for name, value in signals.items())


def recency(at: datetime, now: datetime) -> float:
    """1 now, half after `RECENCY_HALF_LIFE`; an instant in the future counts as now."""
    return retention(now - at, RECENCY_HALF_LIFE)


def retention(age: timedelta, half_life: timedelta) -> float:
    """1 at age 0, halved every ``half_life``; a negative age counts as 0."""
    return float(0.5 ** max(age / half_life, 0.0))
