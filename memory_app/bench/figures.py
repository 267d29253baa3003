"""What is computed from a ranking or from a list of times. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ranking:
    """How good one ranking, or the mean of several, is. ``questions`` says over how many.

    ``hit_at_1``: the first is relevant. ``session_hit_at_5``: one of the first five is of a session that holds a
    relevant one, which is what others publish where only sessions are labelled.
    """

    questions: int
    hit_at_1: float
    session_hit_at_5: float
    recall_at_5: float
    recall_at_10: float
    recall_at_20: float
    ndcg_at_10: float
    mrr: float


def rank_figures(
    ranked: Sequence[str], relevant: Collection[str], *, sessions: Mapping[str, str] | None = None
) -> Ranking:
    """Figures of one question. ``relevant`` must not be empty; an id that is ranked twice counts once.

    ``sessions`` is the session of each id; an id without one is a session of its own.
    """
    session_of = sessions or {}
    ranked = list(dict.fromkeys(ranked))
    hits = [place for place, id in enumerate(ranked, start=1) if id in relevant]
    # Relevance is 0 or 1: nobody graded the evidence of these data sets.
    gain = math.fsum(1 / math.log2(place + 1) for place in hits if place <= 10)
    # The best that ten places can hold, so that a question with twenty pieces of evidence can reach 1.
    ideal = math.fsum(1 / math.log2(place + 1) for place in range(1, min(len(relevant), 10) + 1))
    relevant_sessions = {session_of.get(id, id) for id in relevant}
    return Ranking(
        questions=1,
        hit_at_1=float(1 in hits),
        session_hit_at_5=float(any(session_of.get(id, id) in relevant_sessions for id in ranked[:5])),
        recall_at_5=_within(hits, 5) / len(relevant),
        recall_at_10=_within(hits, 10) / len(relevant),
        recall_at_20=_within(hits, 20) / len(relevant),
        ndcg_at_10=gain / ideal,
        mrr=1 / hits[0] if hits else 0.0,
    )


def mean_figures(rankings: Sequence[Ranking]) -> Ranking:
    """The mean over questions, each counting the same; zeros when there are none."""
    return Ranking(
        questions=len(rankings),
        hit_at_1=_mean(r.hit_at_1 for r in rankings),
        session_hit_at_5=_mean(r.session_hit_at_5 for r in rankings),
        recall_at_5=_mean(r.recall_at_5 for r in rankings),
        recall_at_10=_mean(r.recall_at_10 for r in rankings),
        recall_at_20=_mean(r.recall_at_20 for r in rankings),
        ndcg_at_10=_mean(r.ndcg_at_10 for r in rankings),
        mrr=_mean(r.mrr for r in rankings),
    )


@dataclass(frozen=True, slots=True)
class Times:
    """Of ``count`` calls, in milliseconds."""

    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    most_ms: float


def time_figures(seconds: Sequence[float]) -> Times:
    """Percentiles of the times of calls, given in seconds; at least one."""
    ordered = sorted(seconds)
    return Times(
        count=len(ordered),
        p50_ms=_percentile(ordered, 0.50),
        p95_ms=_percentile(ordered, 0.95),
        p99_ms=_percentile(ordered, 0.99),
        most_ms=round(ordered[-1] * 1000, 3),
    )


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Nearest rank: a time that did occur, never one in between."""
    return round(ordered[max(math.ceil(share * len(ordered)) - 1, 0)] * 1000, 3)


def _within(hits: Sequence[int], limit: int) -> int:
    return sum(place <= limit for place in hits)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return round(statistics.fmean(listed), 4) if listed else 0.0
