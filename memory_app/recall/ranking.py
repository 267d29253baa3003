"""The order of what was found: best first, without what says the same again, cut to the limit, and why each was cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from memory_app.language.text import normalise
from memory_app.recall.near_duplicates import Ranked, Repeat, Vector, near_duplicates
from memory_app.recall.query import Question
from memory_app.recall.records import Hit, Recalled
from memory_app.records.records import Tier
from memory_app.records.scoring import Signals, contributions

TWINS_CONSIDERED = 3
"""Times the limit: candidates looked through for repeats before the cut."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that may be shown. ``vector`` is its embedding, if it is to be compared with others; ``via`` says along
    which links graph expansion came to it."""

    hit: Hit
    signals: Signals
    vector: Vector | None = None
    via: tuple[Mapping[str, object], ...] = ()


def ranked(question: Question, candidates: Sequence[Candidate], *, considered: int | None = None) -> Recalled:
    """Best first, without near twins, cut to the limit; equal scores in the order of time, newest first.

    ``considered`` is how many are looked through for repeats; None takes what usually suffices.
    """
    ordered = sorted(candidates, key=order)
    if not question.asked.explain:
        ordered = ordered[: considered or TWINS_CONSIDERED * (question.asked.limit + 1)]
    repeats = near_duplicates(
        [Ranked(place, _sameness(c.hit), c.hit.text, c.vector) for place, c in enumerate(ordered)],
        same=question.same,
    )
    kept: list[Hit] = []
    cut: list[Hit] = []
    for place, candidate in enumerate(ordered):
        reason = _reason_to_cut(question, candidate, ordered, repeats.get(place), len(kept))
        (kept if reason is None else cut).append(_explained(question, candidate, reason))
    return Recalled(tuple(kept), question.degraded, tuple(cut) if question.asked.explain else ())


def _reason_to_cut(
    question: Question,
    candidate: Candidate,
    ordered: Sequence[Candidate],
    repeat: Repeat | None,
    kept: int,
) -> str | None:
    if repeat is not None and isinstance(repeat.of, int):
        nearly = "" if repeat.cosine is None else f" in other words (cosine {repeat.cosine:.2f})"
        return f"says the same as {ordered[repeat.of].hit.id}{nearly}"
    if kept >= question.asked.limit:
        return "below the limit"
    if candidate.hit.score <= 0 and question.asked.text is not None and not candidate.signals.pinned:
        return "nothing in common with the query"
    return None


def _sameness(hit: Hit) -> str:
    """Equal for what need not be shown twice: the same words, of turns only within one session."""
    return f"{hit.session if hit.tier is Tier.DAILY_LOGS else ''}:{normalise(hit.text)}"


def order(candidate: Candidate) -> tuple[float, float]:
    hit = candidate.hit
    return (-hit.score, -(hit.at.timestamp() if hit.at else 0.0))


def _explained(question: Question, candidate: Candidate, reason: str | None) -> Hit:
    if not question.asked.explain:
        return candidate.hit
    signals = {name: getattr(candidate.signals, name) for name in Signals.__slots__}
    explanation: dict[str, object] = {
        "signals": signals,
        "contributions": contributions(candidate.signals, question.weights),
    }
    if candidate.via:
        explanation["via"] = list(candidate.via)
    if reason is not None:
        explanation["cut"] = reason
    return replace(candidate.hit, explain=explanation)
