"""Answer a question over memory: recall, have the model answer from the rows, and look again where it needs others.

Bounded in looks, seconds and tokens. What the model says stands only as far as the rows say it (see
`extraction.llm.question`); where nothing stands, the answer is that it is not known. Nothing is written but the cost.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID
from zoneinfo import ZoneInfo

from memory_app.db.db import transaction
from memory_app.errors import BadModelOutput, Conflict, InvalidInput, ProviderUnavailable
from memory_app.extraction import model_calls
from memory_app.extraction.llm import Asking, Look, Row, Sentence, look
from memory_app.language.text import clean_given
from memory_app.language.zones import zone_of
from memory_app.recall.recall import recall
from memory_app.recall.records import Hit, RecallQuery
from memory_app.records.records import Tier
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import ExtractionMode, Policy, parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.tenancy.shards import in_scopes_shard

QUESTION_CHARS = 2_000

NOT_KNOWN = "not known"

_TIERS = (Tier.FACTS, Tier.DAILY_LOGS)
"""What says something by itself; an entity is only a name."""


@dataclass(frozen=True, slots=True)
class Answered:
    """``sentences`` are empty where nothing is known. ``dropped`` counts by reason what did not stand.

    ``stopped`` names the bound that ended the search, or None; ``degraded`` what could not be searched.
    """

    sentences: tuple[Sentence, ...] = ()
    looks: int = 0
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    stopped: str | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        return bool(self.sentences)

    @property
    def text(self) -> str:
        """The whole answer."""
        return " ".join(sentence.text for sentence in self.sentences) or NOT_KNOWN


def ask(runtime: Runtime, tenant_id: int, scope: Scope, *, question: str) -> Answered:
    """Answer the question from what the scope remembers.

    Raises `InvalidInput`, `NotFound` for an unknown scope or session, `Conflict` where the agent has no language model,
    `CapReached`, `CircuitOpen` or `ProviderUnavailable`. No transaction is open while a model works.
    """
    question = _checked(question)
    row = _need_scope(runtime, tenant_id, scope)
    policy = _need_model(runtime, row)
    search = _Search(runtime, tenant_id, scope, asking=model_calls.large(runtime, tenant_id, policy))
    return search.answered(question, zone=zone_of(row.time_zone), names=(row.user or "", row.agent))


def _checked(question: str) -> str:
    text = clean_given(question, field="question")[0].strip()
    if not any(map(str.isalnum, text)):
        raise InvalidInput("question: empty; say what you want to know", field="question")
    if len(text) > QUESTION_CHARS:
        raise InvalidInput(f"question: at most {QUESTION_CHARS} characters", field="question")
    return text


@in_scopes_shard
def _need_scope(runtime: Runtime, tenant_id: int, scope: Scope) -> ScopeRow:
    with transaction(runtime.engine, tenant_id) as connection:
        return names.need_scope(connection, tenant_id, Scope(scope.agent, scope.user))


def _need_model(runtime: Runtime, row: ScopeRow) -> Policy:
    policy = parse_policy(row.policy)
    # What people said goes to a provider only where the agent's policy says so.
    if policy.extraction is not ExtractionMode.LLM:
        raise Conflict(
            f"agent {row.agent!r} asks no language model: set its policy's extraction to llm to ask over memory"
        )
    if runtime.chat is None:
        raise Conflict("no language model is set: name one with MEMORY_CHAT__BASE_URL and MEMORY_CHAT__MODEL")
    return policy


class _Search:
    """The looks of one question: rows add up, and so does what was spent."""

    def __init__(self, runtime: Runtime, tenant_id: int, scope: Scope, *, asking: Asking) -> None:
        self._runtime, self._tenant_id, self._scope = runtime, tenant_id, scope
        self._asking = asking
        self._rows: dict[UUID, Row] = {}
        self._looks: list[Look] = []
        self._degraded: dict[str, None] = {}
        self._started = time.monotonic()

    def answered(self, question: str, *, zone: ZoneInfo, names: Sequence[str]) -> Answered:
        settings = self._runtime.settings.ask
        queries: tuple[str, ...] = (question,)
        while self._add_rows(queries):
            newest = self._look(question, zone=zone, names=names)
            queries = newest.search
            if newest.sentences or not queries:
                break
            if len(self._looks) >= settings.looks:
                return self._result("looks")
            if time.monotonic() - self._started >= settings.seconds:
                return self._result("seconds")
            if self._tokens() >= settings.tokens:
                return self._result("tokens")
        return self._result(None)

    def _add_rows(self, queries: Sequence[str]) -> bool:
        """Recall for each of ``queries``; whether a row came that no look has seen."""
        before = len(self._rows)
        # One search takes as many rows as several together.
        limit = max(1, self._runtime.settings.ask.rows // len(queries))
        for query in queries:
            recalled = recall(
                self._runtime,
                self._tenant_id,
                self._scope,
                query=RecallQuery(query, limit=limit, tiers=_TIERS, expand_graph=True),
            )
            self._degraded |= dict.fromkeys(recalled.degraded)
            # What links led to comes beside the limit of recall, but the rows of a look are counted together.
            for hit in recalled.memories[:limit]:
                if isinstance(hit.id, UUID):
                    self._rows.setdefault(hit.id, _row(hit.id, hit))
        return len(self._rows) > before

    def _look(self, question: str, *, zone: ZoneInfo, names: Sequence[str]) -> Look:
        try:
            newest = look(self._asking, question, list(self._rows.values()), zone=zone, names=names)
        except BadModelOutput as error:
            # Of our making neither the question nor the memory is wrong: the same may be asked again.
            raise ProviderUnavailable(f"the language model gave no answer of use: {error.message}") from error
        self._looks.append(newest)
        model_calls.count_dropped(self._runtime, newest.provenance.dropped)
        return newest

    def _tokens(self) -> int:
        return sum(item.provenance.tokens_in + item.provenance.tokens_out for item in self._looks)

    def _result(self, stopped: str | None) -> Answered:
        dropped: Counter[str] = Counter()
        for item in self._looks:
            dropped.update(item.provenance.dropped)
        return Answered(
            sentences=self._looks[-1].sentences if self._looks else (),
            looks=len(self._looks),
            calls=sum(item.provenance.calls for item in self._looks),
            tokens=self._tokens(),
            seconds=round(time.monotonic() - self._started, 3),
            stopped=stopped,
            dropped=dict(dropped),
            degraded=tuple(self._degraded),
        )


def _row(id: UUID, hit: Hit) -> Row:
    """A memory or a turn as the model is shown it."""
    label = f"{hit.speaker} ({hit.role})" if hit.tier is Tier.DAILY_LOGS else hit.kind or hit.tier.value
    return Row(id, hit.text, label, at=hit.at, until=hit.valid_until)
