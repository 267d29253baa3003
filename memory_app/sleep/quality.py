"""Quality gate: check that recall still returns what it returned before a job changed a scope's memories.

The probes are the questions that the user asked last, and all their hits count. Where these are few, memories that are
about to be merged are searched by their own text, and only they count, so that a wrong merge shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection

from memory_app.memories.guards import conflicting
from memory_app.memories.rows import queries
from memory_app.recall import recall
from memory_app.recall.query import QueryVectors, check_query, embed_query, prepare_query
from memory_app.recall.records import RecallQuery
from memory_app.records.records import Tier
from memory_app.runtime import Runtime
from memory_app.sleep.rows import sleeping
from memory_app.tenancy.rows.names import ScopeRow

HITS = 10
"""Hits of each probe that count."""

OWN_TEXT_LIMIT = 10
"""Most memories that are searched by their own text where questions are few."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A query, embedded before the transaction begins. ``about`` is the memory whose own text it is, if any."""

    query: RecallQuery
    vectors: QueryVectors
    about: UUID | None = None


ProbeHits = Mapping[int, tuple[UUID, ...]]
"""Ids of the memories that each probe returns, by its place."""


def probes(
    runtime: Runtime, questions: Sequence[str], merged: Sequence[tuple[UUID, str]], *, limit: int
) -> tuple[Probe, ...]:
    """Probes to check with: ``questions`` first, then memories spread evenly over ``merged``. Calls the embedder."""
    distinct = list(dict.fromkeys(questions))[:limit]
    texts: list[tuple[UUID | None, str]] = [(None, text) for text in distinct]
    room = min(limit - len(texts), OWN_TEXT_LIMIT)
    if room > 0 and merged:
        # Rounded up, so that at most ``room`` memories are taken, spread evenly.
        step = -(-len(merged) // room)
        texts.extend(merged[::step])
    return tuple(_probe(runtime, text, about) for about, text in texts)


def _probe(runtime: Runtime, text: str, about: UUID | None) -> Probe:
    # A memory may be longer than a query is allowed to be.
    text = text[: runtime.settings.recall.query_limit_chars]
    query = check_query(runtime, RecallQuery(text, limit=HITS, tiers=(Tier.FACTS,)))
    return Probe(query, embed_query(runtime, query.text), about)


def recent_questions(connection: Connection, runtime: Runtime, scope_id: int) -> tuple[str, ...]:
    """Read what the user asked last."""
    return queries.recent(connection, scope_id, limit=runtime.settings.sleep.probes)


def search(connection: Connection, runtime: Runtime, row: ScopeRow, *, probes: Sequence[Probe]) -> ProbeHits:
    """Search for each probe in this transaction."""
    hits: dict[int, tuple[UUID, ...]] = {}
    for place, probe in enumerate(probes):
        # In the caller's transaction, which sees the changes that are not committed yet.
        scoped = prepare_query(connection, runtime, row, query=probe.query, vectors=probe.vectors)
        recalled = recall.search(connection, runtime, scoped)
        hits[place] = tuple(hit.id for hit in recalled.memories if isinstance(hit.id, UUID))
    return hits


def expected_hits(probes: Sequence[Probe], hits: ProbeHits) -> ProbeHits:
    """Return the hits that count: of a probe by a memory's own text, that memory alone."""
    return {
        place: tuple(id for id in ids if probes[place].about in (None, id)) for place, ids in hits.items()
    }


def missing_hits(
    connection: Connection, runtime: Runtime, row: ScopeRow, *, expected: ProbeHits, hits: ProbeHits
) -> tuple[tuple[int, UUID], ...]:
    """Return expected memories that are not among the hits, with the place of the probe.

    A memory that was merged counts as a hit by the row it was merged into, where that row says the same.
    """
    ids = {id for expected_ids in expected.values() for id in expected_ids}
    if not ids:
        return ()
    heirs = sleeping.heirs(connection, row.visible, list(ids))
    least = runtime.settings.remember.link_similarity
    # A memory whose heir says something else is not in ``same``, so it counts as missing.
    same = {id: heir.id for id, heir in heirs.items() if _says_the_same(id, heir, least)}
    pairs = [(place, id) for place, expected_ids in expected.items() for id in expected_ids]
    return tuple((place, id) for place, id in pairs if same.get(id) not in hits[place])


def _says_the_same(id: UUID, heir: sleeping.Heir, least: float) -> bool:
    if heir.id == id:
        return True
    return heir.cosine >= least and conflicting(heir.own_text, heir.text) is None
