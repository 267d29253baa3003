"""Order candidates: best first, without repeats, cut to the limit, and why each was cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from memory_app.language.text import normalise
from memory_app.recall.near_duplicates import Ranked, Repeat, Vector, near_duplicates
from memory_app.recall.query import ScopedQuery
from memory_app.recall.records import Hit, Recalled
from memory_app.recall.score import Scale, bearing, full_relevance
from memory_app.records.records import Tier
from memory_app.records.scoring import SIGNAL_NAMES, Signals, contributions

CONSIDERED_PER_HIT = 3
"""Times the limit: candidates looked through for repeats before the cut."""

REPEAT_LETTERS = 12
"""Letters from which a turn says by itself what it says, so that its repetition in another session adds nothing."""

_OF_TEXT = (
    "similarity",
    "keyword",
    "neighbour_similarity",
    "neighbour_keyword",
    "second_neighbour_keyword",
    "session_keyword",
)
"""Signals that compare a row with the text of a query."""

BELOW_LIMIT = "below the limit"
"""Why a candidate is cut that would stand in a longer answer."""

LOW_SCORE = "below min_score"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that may be shown, before it has a score.

    ``coverage`` is its keyword score as a share of that of a row with every word of the query. ``vector`` is its
    embedding, if it is to be compared with others; ``via`` says along which links graph expansion came to it.
    """

    hit: Hit
    signals: Signals
    relevance: float
    coverage: float = 0.0
    vector: Vector | None = None
    via: tuple[Mapping[str, object], ...] = ()


@dataclass(slots=True)
class _Sorted:
    """Candidates that went through the cut: those that are shown, and the others with the reason, best first."""

    kept: list[Candidate] = field(default_factory=list)
    cut: list[tuple[Candidate, str]] = field(default_factory=list)


def rank(scoped: ScopedQuery, candidates: Sequence[Candidate], *, considered: int | None = None) -> Recalled:
    """Order candidates best first, drop near duplicates, and cut to the limit; of equal scores the newest comes first.

    What only links led to stands beside the limit, at most as many again. ``considered`` is how many are looked through
    for repeats; None takes what usually suffices.
    """
    limit = scoped.query.limit
    scale = _scale(scoped, candidates)
    ordered = sorted(candidates, key=order)
    direct = [candidate for candidate in ordered if not candidate.hit.related]
    if not scoped.query.explain:
        # Comparing all with all is quadratic, and only the first of them can be shown.
        most = considered or CONSIDERED_PER_HIT * (limit + 1)
        direct = direct[: max(most, limit + scoped.further_turns)]
    result = _sort(scoped, direct, scale=scale)
    linked = [candidate for candidate in ordered if candidate.hit.related]
    more = _sort(scoped, linked, scale=scale, before=result.kept) if linked else _Sorted()
    further = [
        candidate.hit
        for candidate, reason in result.cut
        if reason == BELOW_LIMIT and candidate.hit.tier is Tier.DAILY_LOGS
    ]
    cut = [*result.cut, *more.cut] if scoped.query.explain else []
    is_complete = any(reason == LOW_SCORE for _, reason in result.cut)
    return Recalled(
        memories=tuple(
            _scored(scoped, candidate, scale=scale)
            for candidate in sorted((*result.kept, *more.kept), key=order)
        ),
        degraded=scoped.degraded,
        cut=tuple(_scored(scoped, candidate, scale=scale, reason=reason) for candidate, reason in cut),
        further=tuple(further[: scoped.further_turns]),
        is_cut_short=len(result.kept) < limit and not is_complete,
    )


def _sort(
    scoped: ScopedQuery, candidates: Sequence[Candidate], *, scale: Scale, before: Sequence[Candidate] = ()
) -> _Sorted:
    """Decide who is shown of ``candidates``, best first; ``before`` are shown anyway and not repeated."""
    ordered = (*before, *candidates)
    entries = [
        Ranked(
            id=place,
            key=_repeat_key(candidate.hit),
            text=candidate.hit.text,
            vector=candidate.vector,
        )
        for place, candidate in enumerate(ordered)
    ]
    repeats = near_duplicates(entries, same=scoped.repeat_cosine)
    result = _Sorted()
    for place, candidate in enumerate(candidates, start=len(before)):
        # Repeats are removed before the limit is applied, so that they do not use it up.
        repeat = _repeat_reason(repeats.get(place), ordered)
        score = scale.score(candidate.relevance)
        reason = repeat or _reason_to_cut(scoped, candidate, score=score, hit_count=len(result.kept))
        if reason is None:
            result.kept.append(candidate)
        else:
            result.cut.append((candidate, reason))
    return result


def _scored(scoped: ScopedQuery, candidate: Candidate, *, scale: Scale, reason: str | None = None) -> Hit:
    explanation = None
    if scoped.query.explain:
        explanation = _explanation(scoped, candidate, scale=scale, reason=reason)
    return replace(candidate.hit, score=scale.score(candidate.relevance), explain=explanation)


def _repeat_reason(repeat: Repeat | None, ordered: Sequence[Candidate]) -> str | None:
    if repeat is None or not isinstance(repeat.of, int):
        return None
    nearly = "" if repeat.cosine is None else f" in other words (cosine {repeat.cosine:.2f})"
    return f"says the same as {ordered[repeat.of].hit.id}{nearly}"


def _scale(scoped: ScopedQuery, candidates: Sequence[Candidate]) -> Scale:
    """The scale of the scores of a query, which its candidates have in common."""
    query = scoped.query
    applies = {
        "named_person": bool(scoped.speakers),
        "in_time": bool(scoped.periods),
        "mentions": bool(scoped.mentioning),
        "same_session": scoped.current_session is not None,
        # It is a share of what another row has.
        "linked": False,
        # The best answer may stand without them.
        "answers": False,
        "phrase": False,
    }
    if query.text is None:
        # Nothing is compared, so nothing can be missing.
        applies |= dict.fromkeys(_OF_TEXT, False)
    full = full_relevance(scoped.weights, without=[name for name, does in applies.items() if not does])
    if query.text is None:
        return Scale(full, bearing=1.0)
    coverages = (candidate.coverage for candidate in candidates)
    similarities = (candidate.signals.get("similarity", 0.0) for candidate in candidates)
    return Scale(full, bearing(coverages, similarities))


def _reason_to_cut(scoped: ScopedQuery, candidate: Candidate, *, score: float, hit_count: int) -> str | None:
    # A query without a text lists everything, and pinned memories are candidates of every query.
    is_listed_anyway = scoped.query.text is None or candidate.signals.get("pinned", 0.0) > 0
    if not _has_something(scoped, candidate) and not is_listed_anyway:
        return "nothing in common with the query"
    if scoped.query.min_score is not None and score < scoped.query.min_score:
        return LOW_SCORE
    return BELOW_LIMIT if hit_count >= scoped.query.limit else None


def _has_something(scoped: ScopedQuery, candidate: Candidate) -> bool:
    """Whether it has anything in common with the query."""
    # What is held against a row, such as that it asks, says nothing of whether it bears on the query.
    return any(share > 0 for share in contributions(candidate.signals, scoped.weights).values())


def _repeat_key(hit: Hit) -> str:
    return repeat_key(hit.text, session=hit.session if hit.tier is Tier.DAILY_LOGS else None)


def repeat_key(text: str, *, session: str | None) -> str:
    """Return a key that is equal for repeats: the same words, of short turns only within their ``session``.

    ``session`` None: of whatever length.
    """
    words = normalise(text)
    # The same few words in another session are no repeat: "Yes." answers another question there.
    # Its beginning shows it: a message of many pages is not counted through.
    beginning = words[: 4 * REPEAT_LETTERS]
    is_answer = session is not None and sum(map(str.isalnum, beginning)) < REPEAT_LETTERS
    return f"{session if is_answer else ''}:{words}"


def order(candidate: Candidate) -> tuple[float, float]:
    """Return a sort key: the more relevant first, and of equal ones the newer."""
    at = candidate.hit.at
    return -candidate.relevance, -at.timestamp() if at else 0.0


def _explanation(
    scoped: ScopedQuery, candidate: Candidate, *, scale: Scale, reason: str | None
) -> Mapping[str, object]:
    explanation: dict[str, object] = {
        "signals": {name: candidate.signals.get(name, 0.0) for name in SIGNAL_NAMES},
        "contributions": contributions(candidate.signals, scoped.weights),
        "relevance": candidate.relevance,
        "full_relevance": scale.full,
        "bearing": scale.bearing,
    }
    if candidate.via:
        explanation["via"] = list(candidate.via)
    if reason is not None:
        explanation["cut"] = reason
    return explanation
