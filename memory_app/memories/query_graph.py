"""The personal query graph: what the user asks, counted over repeats, linked to what is like it and to its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from memory_app.db.db import transaction
from memory_app.errors import InvalidInput
from memory_app.language.questions import question_of
from memory_app.language.text import clean_given
from memory_app.memories.rows import queries
from memory_app.providers.embedders.embedder import embed_queries
from memory_app.records.records import Mention, Origin, Role, Statement, Turn
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.redaction import with_redaction_of
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_scopes_shard

LIMIT_MAX = 100

TEXT_LIMIT = 8_000
"""Longest text to search with, in characters."""


class Source(StrEnum):
    """Where a similar question was asked: in the session going on, or elsewhere with the agent."""

    SESSION = "session"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class SimilarQuery:
    """``score`` is the similarity with the bias to the session, at most 1; ``repeats`` how often it was asked."""

    id: UUID
    score: float
    similarity: float
    text: str
    canonical_key: str
    source: Source
    session: str | None
    repeats: int


def questions(turns: Sequence[Turn], mentions: Mapping[UUID, Sequence[Mention]]) -> tuple[Statement, ...]:
    """A `query` statement for each user turn that asks something, with the entities that the turn mentions."""
    # What the assistant asks says nothing about what the user wants to know.
    questions = ((turn, question_of(turn.text)) for turn in turns if turn.role is Role.USER)
    return tuple(
        _query(turn, question, mentions.get(turn.id, ()))
        for turn, question in questions
        if question is not None
    )


def _query(turn: Turn, question: str, mentions: Sequence[Mention]) -> Statement:
    return Statement(
        kind="query",
        text=question,
        origin=Origin.EXTRACTED,
        valid_from=turn.at,
        mentions=tuple(mentions),
        evidence=(turn.id,),
        source=f"{turn.role.value}:{turn.speaker}",
    )


@in_scopes_shard
def search(
    runtime: Runtime, tenant_id: int, scope: Scope, *, text: str, limit: int = 10
) -> tuple[SimilarQuery, ...]:
    """Questions of the scope that are like ``text``, best first; those of the scope's session are preferred a little.

    Embeds the text; writes nothing. Raises `InvalidInput` naming the field, `NotFound` for an unknown scope.
    """
    question = clean_given(text, field="text")[0].strip()
    if not question:
        raise InvalidInput("text: empty; say which question to compare with", field="text")
    if len(question) > TEXT_LIMIT:
        raise InvalidInput(f"text: at most {TEXT_LIMIT} characters", field="text")
    if not 1 <= limit <= LIMIT_MAX:
        raise InvalidInput(f"limit: 1 to {LIMIT_MAX}", field="limit")
    # Before the transaction, since none is open while a provider is called.
    embedder = with_redaction_of(runtime, tenant_id, scope.agent).embedder
    vector = embed_queries(embedder, [question])[0].tolist()
    bias = runtime.settings.queries.session_bias
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        rows = queries.similar(
            connection,
            row.id,
            vector=vector,
            model=runtime.embedder.model,
            session=scope.session,
            bias=bias,
            limit=limit,
        )
    return tuple(_similar_query(row, bias=bias) for row in rows)


def _similar_query(row: queries.Similar, *, bias: float) -> SimilarQuery:
    # The same sum as in the statement, which ordered the rows by it.
    score = row.similarity + (bias if row.in_session else 0.0)
    return SimilarQuery(
        id=row.id,
        # A scale from 0 to 1 is promised, and the bias would carry a repeat beyond it.
        score=min(score, 1.0),
        similarity=row.similarity,
        text=row.text,
        canonical_key=row.canonical_key,
        source=Source.SESSION if row.in_session else Source.AGENT,
        session=row.session,
        repeats=row.repeat_count,
    )
