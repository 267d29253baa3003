"""Ask the agent's model for one sentence in place of several memories, and check it against what they say.

Only agents with a model do so, and only where the longest text would lose much of the others. Without an answer that
passes the check the longest text stands. No transaction is open while the model or the embedder works.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog

from memory_app.db.db import transaction
from memory_app.errors import BadModelOutput, TooSlow
from memory_app.extraction import model_calls
from memory_app.extraction.llm import merge_texts
from memory_app.memories.decisions import MERGE_LIMIT
from memory_app.runtime import Runtime
from memory_app.sleep.plan import ClusterPlan
from memory_app.tenancy.policy import ExtractionMode, Policy, parse_policy
from memory_app.tenancy.redaction import with_redaction
from memory_app.tenancy.rows import names

log = structlog.get_logger(__name__)

LIMIT_SECONDS = 240.0
"""For all requests of one run: its lease and its time limit are longer than this and one request more."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The text of a merged row, and its vector."""

    text: str
    vector: tuple[float, ...]


def word(
    runtime: Runtime, tenant_id: int, scope_id: int, *, clusters: Sequence[ClusterPlan]
) -> Mapping[UUID, Wording]:
    """Word the clusters that need it and are merged in one operation; texts by anchor. Calls the agent's model.

    Raises `Transient` while the model is away or the tenant's day is spent: the work waits.
    """
    pending = [cluster for cluster in clusters if cluster.needs_model and len(cluster.members) <= MERGE_LIMIT]
    if not pending:
        return {}
    policy = _policy(runtime, tenant_id, scope_id)
    if policy is None or policy.extraction is not ExtractionMode.LLM:
        return {}
    texts: dict[UUID, str] = {}
    ends_at = time.monotonic() + LIMIT_SECONDS
    for cluster in pending:
        # The others keep their longest text: the run must end within its lease.
        if time.monotonic() > ends_at:
            break
        # One request for each cluster: an answer is checked against the texts of that cluster alone.
        sources = [member.memory.text for member in cluster.members]
        text = _sentence(runtime, tenant_id, scope_id, texts=sources, policy=policy)
        if text is not None:
            texts[cluster.anchor] = text
    if not texts:
        return {}
    # One call for all clusters, since each call of a provider takes as long as many texts in one.
    vectors = with_redaction(runtime, policy).embedder.embed(list(texts.values()))
    pairs = zip(texts.items(), vectors, strict=True)
    return {anchor: Wording(text, tuple(map(float, vector))) for (anchor, text), vector in pairs}


def _policy(runtime: Runtime, tenant_id: int, scope_id: int) -> Policy | None:
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.read_scope(connection, scope_id)
    return None if row is None else parse_policy(row.policy)


def _sentence(
    runtime: Runtime, tenant_id: int, scope_id: int, *, texts: Sequence[str], policy: Policy
) -> str | None:
    """Ask for the model's sentence; None where it fails the check."""
    try:
        return merge_texts(model_calls.small(runtime, tenant_id, policy), texts).text
    except (BadModelOutput, TooSlow) as error:
        log.warning("wording_refused", scope=scope_id, error=error.kind, reason=error.message)
        return None
