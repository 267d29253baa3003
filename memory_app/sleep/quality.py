"""The quality gate: does a scope still find what its own questions found before a job changed its memories?

The questions are those the user asked last, and all they found counts. Where there are too few, memories that are about
to be merged are looked for by their own words, and only they count: so a wrong merge shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection

from memory_app.memories.guards import conflicting
from memory_app.memories.rows import queries
from memory_app.recall.query import Embedded, checked, embedded
from memory_app.recall.recall import RecallQuery, recall_within
from memory_app.records.records import Tier
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep.rows import sleeping
from memory_app.tenancy.rows.names import ScopeRow

FOUND = 10
"""Hits of each question that count."""


OWN_WORDS_MOST = 10
"""Memories that are looked for by their own words where questions are few."""


@dataclass(frozen=True, slots=True)
class ProbeQuestion:
    """A question made ready before the transaction begins; ``about`` is the one memory that is looked for, if any."""

    query: RecallQuery
    vectors: Embedded
    about: UUID | None = None


Found = Mapping[int, tuple[UUID, ...]]
"""Memories found for each question, by its place."""


def probes(
    runtime: Runtime, asked: Sequence[str], merged: Sequence[tuple[UUID, str]], *, most: int
) -> tuple[ProbeQuestion, ...]:
    """Questions to check with: ``asked`` first, filled up with memories spread evenly over ``merged``. Embeds them."""
    given: list[tuple[UUID | None, str]] = []
    given.extend((None, said) for said in list(dict.fromkeys(asked))[:most])
    room = min(most - len(given), OWN_WORDS_MOST)
    if room > 0 and merged:
        given.extend((id, said) for id, said in merged[:: -(-len(merged) // room)])
    return tuple(_probe(runtime, said, about) for about, said in given)


def _probe(runtime: Runtime, said: str, about: UUID | None) -> ProbeQuestion:
    longest = runtime.settings.recall.query_limit_chars
    query = checked(runtime, RecallQuery(said[:longest], limit=FOUND, tiers=(Tier.FACTS,)))
    return ProbeQuestion(query, embedded(runtime, query.text), about)


def recent_questions(connection: Connection, runtime: Runtime, scope_id: int) -> tuple[str, ...]:
    """What the user asked last."""
    return queries.recent(connection, scope_id, limit=runtime.settings.sleep.probes)


def found(
    connection: Connection,
    runtime: Runtime,
    tenant_id: int,
    row: ScopeRow,
    questions: Sequence[ProbeQuestion],
) -> Found:
    """What each question finds now, in this transaction."""
    scope = Scope(row.agent, row.user)
    return {
        place: tuple(
            hit.id
            for hit in recall_within(connection, runtime, tenant_id, scope, one.query, one.vectors).memories
            if isinstance(hit.id, UUID)
        )
        for place, one in enumerate(questions)
    }


def wanted(questions: Sequence[ProbeQuestion], before: Found) -> Found:
    """What of all that was found counts."""
    return {
        place: tuple(id for id in ids if questions[place].about in (None, id))
        for place, ids in before.items()
    }


def lost(
    connection: Connection, runtime: Runtime, row: ScopeRow, before: Found, after: Found
) -> tuple[tuple[int, UUID], ...]:
    """What was found before and is not found any more, by the place of the question: neither itself, nor the row it
    was merged into, where that row says the same."""
    ids_before = {id for ids in before.values() for id in ids}
    if not ids_before:
        return ()
    heirs = sleeping.heirs(connection, row.visible, list(ids_before))
    least = runtime.settings.remember.link_similarity
    holds = {id: heir.id for id, heir in heirs.items() if _says_the_same(id, heir, least)}
    return tuple(
        (place, id) for place, ids in before.items() for id in ids if holds.get(id) not in after[place]
    )


def _says_the_same(id: UUID, heir: sleeping.Heir, least: float) -> bool:
    if heir.id == id:
        return True
    return heir.cosine >= least and conflicting(heir.own_text, heir.text) is None
