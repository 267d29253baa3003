"""Order candidates: best first, without repeats, cut to the limit, and why each was cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from memory_app.language.text import normalise
from memory_app.recall.near_duplicates import Ranked, Repeat, Vector, near_duplicates
from memory_app.recall.query import ScopedQuery
from memory_app.recall.records import Hit, Recalled
from memory_app.records.records import Tier
from memory_app.records.scoring import SIGNAL_NAMES, Signals, contributions

CONSIDERED_PER_HIT = 3
"""Times the limit: candidates looked through for repeats before the cut."""

REPEAT_LETTERS = 12
"""Letters from which a turn says by itself what it says, so that its repetition in another session adds nothing."""

BELOW_LIMIT = "below the limit"
"""Why a candidate is cut that would stand in a longer answer."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that may be shown. ``vector`` is its embedding, if it is to be compared with others; ``via`` says along
    which links graph expansion came to it."""

    hit: Hit
    signals: Signals
    vector: Vector | None = None
    via: tuple[Mapping[str, object], ...] = ()


def rank(scoped: ScopedQuery, candidates: Sequence[Candidate], *, considered: int | None = None) -> Recalled:
    """Order candidates best first, drop near duplicates, and cut to the limit; of equal scores the newest comes first.

    ``considered`` is how many are looked through for repeats; None takes what usually suffices.
    """
    explain = scoped.query.explain
    ordered = sorted(candidates, key=order)
    if not explain:
        # Comparing all with all is quadratic, and only the first of them can be shown.
        most = considered or CONSIDERED_PER_HIT * (scoped.query.limit + 1)
        ordered = ordered[: max(most, scoped.query.limit + scoped.further_turns)]
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
    hits: list[Hit] = []
    cut: list[Hit] = []
    further: list[Hit] = []
    for place, candidate in enumerate(ordered):
        # Repeats are removed before the limit is applied, so that they do not use it up.
        repeat = _repeat_reason(repeats.get(place), ordered)
        reason = repeat or _reason_to_cut(scoped, candidate, hit_count=len(hits))
        hit = _explained(scoped, candidate, reason) if explain else candidate.hit
        if reason is None:
            hits.append(hit)
        else:
            cut.append(hit)
        if reason == BELOW_LIMIT and hit.tier is Tier.DAILY_LOGS:
            further.append(hit)
    return Recalled(
        memories=tuple(hits),
        degraded=scoped.degraded,
        cut=tuple(cut) if explain else (),
        further=tuple(further[: scoped.further_turns]),
    )


def _repeat_reason(repeat: Repeat | None, ordered: Sequence[Candidate]) -> str | None:
    if repeat is None or not isinstance(repeat.of, int):
        return None
    nearly = "" if repeat.cosine is None else f" in other words (cosine {repeat.cosine:.2f})"
    return f"says the same as {ordered[repeat.of].hit.id}{nearly}"


def _reason_to_cut(scoped: ScopedQuery, candidate: Candidate, *, hit_count: int) -> str | None:
    # A query without a text lists everything, and pinned memories are candidates of every query.
    is_listed_anyway = scoped.query.text is None or candidate.signals.get("pinned", 0.0) > 0
    if candidate.hit.score <= 0 and not is_listed_anyway:
        return "nothing in common with the query"
    return BELOW_LIMIT if hit_count >= scoped.query.limit else None


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
    """Return a sort key: higher scores first, and of equal ones the newer."""
    hit = candidate.hit
    age = -hit.at.timestamp() if hit.at else 0.0
    return -hit.score, age


def _explained(scoped: ScopedQuery, candidate: Candidate, reason: str | None) -> Hit:
    explanation: dict[str, object] = {
        "signals": {name: candidate.signals.get(name, 0.0) for name in SIGNAL_NAMES},
        "contributions": contributions(candidate.signals, scoped.weights),
    }
    if candidate.via:
        explanation["via"] = list(candidate.via)
    if reason is not None:
        explanation["cut"] = reason
    return replace(candidate.hit, explain=explanation)
