"""Wording: one sentence for memories that say nearly the same, by the agent's model, held against what they say.

Only where the agent asks a model, and where the words of the longest would lose much of the others. Without an answer
that holds, the longest stands as ever. No transaction is open while the model or the embedder is asked.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog

from memory_app.db.db import transaction
from memory_app.errors import BadModelOutput, TooSlow
from memory_app.extraction import model_calls
from memory_app.extraction.llm import merge_texts
from memory_app.memories.guards import NEGATION, conflicting
from memory_app.memories.rows import merges
from memory_app.runtime import Runtime
from memory_app.sleep.clusters import Cluster
from memory_app.tenancy.policy import ExtractionMode, parse_policy
from memory_app.tenancy.rows import names

log = structlog.get_logger(__name__)

MOST_MEMBERS = 5
"""As many as the ladder unites in one step."""

MOST_SECONDS = 240.0
"""For all questions of one run: its lease and its time limit are longer than this and one question more."""

_NAME = re.compile(r"\b[^\W\d_a-z][\w'’-]*")
"""A word with a capital letter, at the beginning of a sentence too."""


@dataclass(frozen=True, slots=True)
class Worded:
    """A text for memories that are united, and its vector."""

    text: str
    vector: tuple[float, ...]


def word(
    runtime: Runtime, tenant_id: int, scope_id: int, clusters: Sequence[Cluster]
) -> Mapping[tuple[UUID, ...], Worded]:
    """Texts by members, for the clusters that need one and are united in one step. Calls the agent's model.

    Raises `Transient` while the model is away or the tenant's day is spent: the work waits.
    """
    wanted = [c for c in clusters if c.needs_model and len(c.members) <= MOST_MEMBERS]
    if not wanted or not _asks_model(runtime, tenant_id, scope_id):
        return {}
    sources = _texts(runtime, tenant_id, scope_id, [id for cluster in wanted for id in cluster.members])
    found: dict[tuple[UUID, ...], str] = {}
    ends_at = time.monotonic() + MOST_SECONDS
    for cluster in wanted:
        if time.monotonic() > ends_at:
            break
        # One question for each: the answers are held against the texts of one cluster alone.
        text = _sentence(
            runtime, tenant_id, scope_id, [sources[id] for id in cluster.members if id in sources]
        )
        if text is not None:
            found[cluster.members] = text
    if not found:
        return {}
    vectors = runtime.embedder.embed(list(found.values()))
    return {
        members: Worded(text, tuple(map(float, vector)))
        for (members, text), vector in zip(found.items(), vectors, strict=True)
    }


def holds(text: str, sources: Sequence[str]) -> bool:
    """Whether ``text`` names nobody whom no source names, and denies nothing that one of them does not."""
    said = {word.casefold() for source in sources for word in re.findall(r"[\w'’-]+", source)}
    names_known = all(name.casefold() in said for name in _NAME.findall(text))
    return names_known and not any(conflicting(text, source) == NEGATION for source in sources)


def _asks_model(runtime: Runtime, tenant_id: int, scope_id: int) -> bool:
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.read_scope(connection, scope_id)
    return row is not None and parse_policy(row.policy).extraction is ExtractionMode.LLM


def _texts(runtime: Runtime, tenant_id: int, scope_id: int, ids: Sequence[UUID]) -> Mapping[UUID, str]:
    with transaction(runtime.engine, tenant_id) as connection:
        return {row.memory.id: row.memory.text for row in merges.rows(connection, scope_id, ids)}


def _sentence(runtime: Runtime, tenant_id: int, scope_id: int, texts: Sequence[str]) -> str | None:
    """The model's sentence, or None where it does not hold."""
    try:
        text = merge_texts(model_calls.small(runtime, tenant_id), texts).text
    except (BadModelOutput, TooSlow) as error:
        log.warning("wording_refused", scope=scope_id, error=error.kind)
        return None
    if holds(text, texts):
        return text
    log.warning("wording_refused", scope=scope_id, error="not_in_sources")
    return None
