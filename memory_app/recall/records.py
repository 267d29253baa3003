"""What recall is asked and what it answers: records, and the check of a question before anything is looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from memory_app.errors import InvalidInput
from memory_app.language.text import clean_given
from memory_app.records.importance import HIGHEST
from memory_app.records.kinds import kind_of, subtypes
from memory_app.records.records import Tier
from memory_app.records.scoring import PRESETS
from memory_app.tenancy.policy import parse_weights

DEPTH_LIMIT = 3
"""Most steps along links; further away, everything is linked with everything."""


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """What is asked. Every filter narrows; None leaves it open, an empty one is an error.

    ``text`` None lists by strength of the other signals. ``as_of`` asks what held then; ``after`` and ``before`` bound
    when a turn was said or from when a memory holds (half-open). ``min_importance`` 1–10. ``min_score`` (0–1) cuts what
    scores lower, see `recall.score`. ``weights`` override those of the preset and of the agent, by signal.
    ``threshold`` (0–1) is a floor for the cosine of query and row; a row without an embedding has none.
    ``expand_graph`` adds memories up to ``depth`` links away from the hits, at most as many again as the limit.
    """

    text: str | None = None
    limit: int = 10
    kinds: tuple[str, ...] | None = None
    tiers: tuple[Tier, ...] | None = None
    tags: tuple[str, ...] | None = None
    session: str | None = None
    min_importance: int | None = None
    as_of: datetime | None = None
    preset: str | None = None
    expand_graph: bool = False
    explain: bool = False
    subtypes: tuple[str, ...] | None = None
    after: datetime | None = None
    before: datetime | None = None
    depth: int = 1
    min_score: float | None = None
    weights: Mapping[str, float | None] | None = field(default=None, hash=False)
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer. ``id`` is a memory's or turn's, or an entity's key; ``score`` 0–1, see `recall.score`; ``at`` when it
    was said or holds from."""

    id: UUID | str
    tier: Tier
    text: str
    score: float = 0.0
    at: datetime | None = None
    kind: str | None = None
    session: str | None = None
    seq: int | None = None
    speaker: str | None = None
    role: str | None = None
    importance: int | None = None
    tags: tuple[str, ...] = ()
    valid_until: datetime | None = None
    indexed: bool = True
    related: bool = False
    """A link of another hit led to it; the search alone would not have shown it."""
    explain: Mapping[str, object] | None = None
    agent: str | None = None
    """The agent whose memory it is, where the person lets this one recall it (`agents.grants`); None: its own."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """Best first. ``degraded`` names what was left out; ``cut`` (with ``explain``) the candidates that did not make it
    and why. ``further`` are turns below the limit, without a score, as many as the caller has room for.
    ``is_cut_short``: fewer than the limit, though less relevant rows might be shown."""

    memories: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()
    cut: tuple[Hit, ...] = ()
    further: tuple[Hit, ...] = ()
    is_cut_short: bool = False


def checked_query(query: RecallQuery, *, limit_most: int, query_limit_chars: int) -> RecallQuery:
    """Return the query with cleaned text. Raises `InvalidInput`, also for a filter that is unknown or empty."""
    text = _checked_text(query.text, query_limit_chars)
    _check_range("limit", query.limit, most=limit_most)
    for name in ("kinds", "subtypes", "tiers", "tags"):
        values = getattr(query, name)
        # An empty filter is a mistake of the caller; ignoring it would show everything.
        if values is not None and not values:
            raise InvalidInput(f"{name}: empty; leave it out to look everywhere", field=name)
    for kind in query.kinds or ():
        kind_of(kind, field="kinds")
    for subtype in query.subtypes or ():
        if subtype not in subtypes():
            raise InvalidInput(f"subtypes: unknown; of {', '.join(subtypes())}", field="subtypes")
    if query.preset is not None and query.preset not in PRESETS:
        raise InvalidInput(f"preset: one of {', '.join(PRESETS)}", field="preset")
    _check_range("min_importance", query.min_importance, most=HIGHEST)
    _check_range("depth", query.depth, most=DEPTH_LIMIT)
    for name in ("min_score", "threshold"):
        _check_share(name, getattr(query, name))
    _check_times(query)
    weights = None if query.weights is None else parse_weights(query.weights, "weights")
    return replace(query, text=text, weights=weights)


def _check_range(name: str, value: int | None, *, most: int) -> None:
    if value is not None and not 1 <= value <= most:
        raise InvalidInput(f"{name}: 1 to {most}", field=name)


def _check_share(name: str, value: float | None) -> None:
    # Written so that NaN, to which every comparison is false, is refused as well.
    if value is not None and not 0 <= value <= 1:
        raise InvalidInput(f"{name}: 0 to 1", field=name)


def _checked_text(text: str | None, limit_chars: int) -> str | None:
    if text is None:
        return None
    text, _ = clean_given(text, field="query")
    text = text.strip()
    if not text:
        raise InvalidInput("query: empty; say what to look for, or leave it out", field="query")
    if len(text) > limit_chars:
        raise InvalidInput(f"query: at most {limit_chars} characters", field="query")
    return text


def _check_times(query: RecallQuery) -> None:
    for name in ("as_of", "after", "before"):
        instant = getattr(query, name)
        # Without a zone it would be read in the zone of the server, which may be hours off.
        if instant is not None and instant.utcoffset() is None:
            raise InvalidInput(f"{name}: a time needs its zone, as in 2026-01-31T09:00:00+01:00", field=name)
    if query.after is None or query.before is None:
        return
    if query.before <= query.after:
        raise InvalidInput("before: must be later than after", field="before")
