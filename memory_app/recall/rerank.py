"""Have a reranker reorder the best rows of recall, where the settings name one.

The search returns more rows than are asked for; the model reads each with the query, and the limit is applied to its
order. A row keeps the score of our own signals, so that scores mean the same with and without a model. Where the model
is away, slow or answers nonsense, our own order stands and ``degraded`` names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import structlog

from memory_app import metrics
from memory_app.errors import MemoryAppError, Transient
from memory_app.recall.passages import passage
from memory_app.recall.query import ScopedQuery
from memory_app.recall.query_words import passage_words
from memory_app.recall.ranking import BELOW_LIMIT
from memory_app.recall.records import Hit, Recalled, RecallQuery
from memory_app.records.records import Tier
from memory_app.runtime import Runtime
from memory_app.tenancy.redaction import for_provider

log = structlog.get_logger(__name__)

DEGRADED = "rerank"


def is_reranked(runtime: Runtime, query: RecallQuery) -> bool:
    """Whether a reranker is to order the answer to ``query``: there must be a text to compare with."""
    return runtime.reranker is not None and query.text is not None


def with_more_rows(runtime: Runtime, query: RecallQuery) -> RecallQuery:
    """Return ``query`` with the limit that the reranker needs; without one it stays as it is."""
    if not is_reranked(runtime, query):
        return query
    return replace(query, limit=max(query.limit, runtime.settings.rerank.rows))


def rerank(
    runtime: Runtime, scoped: ScopedQuery, recalled: Recalled, *, limit: int, further_turns: int = 0
) -> Recalled:
    """Return the best ``limit`` of rows that were searched for by `with_more_rows`; call it with no transaction open.

    What links led to has a limit of its own, as in `ranking.rank`; turns below the limit become the first of
    ``further``, of which ``further_turns`` remain. Without a reranker the answer is returned as it is.
    """
    if not is_reranked(runtime, scoped.query):
        return recalled
    most = runtime.settings.rerank.rows
    first, rest = recalled.memories[:most], recalled.memories[most:]
    scores = _scores(runtime, scoped, first)
    if scores is None:
        recalled = replace(recalled, degraded=(*recalled.degraded, DEGRADED))
    else:
        first = _reordered(first, scores, is_explained=scoped.query.explain)
    return _cut(recalled, (*first, *rest), limit=limit, further_turns=further_turns)


def _scores(runtime: Runtime, scoped: ScopedQuery, hits: Sequence[Hit]) -> list[float] | None:
    """A score for each hit; None where the reranker gave none."""
    reranker, query = runtime.reranker, scoped.query.text
    assert reranker is not None and query is not None
    # Of one row there is no order.
    if len(hits) < 2:
        return [0.0] * len(hits)
    words, rules = passage_words(scoped), scoped.policy.redaction_rules
    texts = [_text(hit, chars=runtime.settings.rerank.text_chars, words=words) for hit in hits]
    try:
        with metrics.timed(metrics.recall_seconds, "rerank"):
            return reranker.score(for_provider(query, rules), [for_provider(text, rules) for text in texts])
    except Transient as error:
        log.warning("recall_not_reranked", model=reranker.model, error=error.kind)
    except MemoryAppError as error:
        log.error("recall_not_reranked", model=reranker.model, error=error.kind)
    return None


def _text(hit: Hit, *, chars: int, words: Mapping[str, float]) -> str:
    """What the model reads: of a long text the passage that bears on the query, of a turn who said it and when."""
    text = passage(hit.text, chars, words)
    if hit.tier is not Tier.DAILY_LOGS or hit.at is None:
        return text
    return f"{hit.speaker} ({hit.at.date().isoformat()}): {text}"


def _reordered(hits: Sequence[Hit], scores: Sequence[float], *, is_explained: bool) -> tuple[Hit, ...]:
    """Best first; of equal scores in our own order."""
    places = sorted(range(len(hits)), key=lambda place: -scores[place])
    if not is_explained:
        return tuple(hits[place] for place in places)
    explained = []
    for place in places:
        reranked = {"score": scores[place], "place_before": place + 1}
        explained.append(replace(hits[place], explain={**(hits[place].explain or {}), "rerank": reranked}))
    return tuple(explained)


def _cut(recalled: Recalled, ordered: Sequence[Hit], *, limit: int, further_turns: int) -> Recalled:
    kept: list[Hit] = []
    below: list[Hit] = []
    counts = dict.fromkeys((True, False), 0)
    for hit in ordered:
        if counts[hit.related] < limit:
            counts[hit.related] += 1
            kept.append(hit)
        else:
            below.append(hit)
    turns = [hit for hit in below if hit.tier is Tier.DAILY_LOGS]
    cut = [replace(hit, explain={**hit.explain, "cut": BELOW_LIMIT}) for hit in below if hit.explain]
    return replace(
        recalled,
        memories=tuple(kept),
        cut=(*cut, *recalled.cut),
        further=(*turns, *recalled.further)[:further_turns],
    )
