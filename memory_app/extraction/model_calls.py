"""Ask a language model for a tenant: count what it costs and what is dropped of its answers, and postpone work when the
tenant's cap is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial

import structlog

from memory_app import metrics
from memory_app.db.db import transaction
from memory_app.errors import CapReached, MemoryAppError, ProviderUnavailable
from memory_app.extraction.llm import Asking
from memory_app.hot import answer_drops
from memory_app.providers.chat import Cap, LanguageModel, Price, Usage, dollars, wait_for_cap
from memory_app.runtime import Chats, Runtime
from memory_app.settings import Settings
from memory_app.tenancy import quotas
from memory_app.tenancy.policy import Policy
from memory_app.tenancy.redaction import for_provider
from memory_app.tenancy.rows import usage

log = structlog.get_logger(__name__)

UNSET_RETRY_SECONDS = 60.0


def small(runtime: Runtime, tenant_id: int, policy: Policy) -> Asking:
    """The model for turns, with the instructions of the agent.

    Raises `CapReached` while the tenant must wait, `ProviderUnavailable` where none is set.
    """
    return _asking(runtime, tenant_id, _chats(runtime, tenant_id).small, policy)


def large(runtime: Runtime, tenant_id: int, policy: Policy) -> Asking:
    """The model for sessions and deep synthesis. Raises as `small`."""
    return _asking(runtime, tenant_id, _chats(runtime, tenant_id).large, policy)


def for_narratives(runtime: Runtime, tenant_id: int, policy: Policy) -> Asking:
    """The model for turns, whose questions are counted as "model (narrative)". Raises as `small`."""

    def note_apart(used: Usage) -> None:
        # Prices go by the beginning of a name, so that it has one all the same.
        note(runtime, tenant_id, replace(used, model=f"{used.model} (narrative)"))

    model = _chats(runtime, tenant_id).small
    return Asking(model, on_usage=note_apart, instructions=policy.instructions, redact=_redact(policy))


def _asking(runtime: Runtime, tenant_id: int, model: LanguageModel, policy: Policy) -> Asking:
    return Asking(
        model,
        on_usage=lambda used: note(runtime, tenant_id, used),
        instructions=policy.instructions,
        redact=_redact(policy),
    )


def _redact(policy: Policy) -> Callable[[str], str]:
    # Also of turns that were stored before the agent's redaction was switched on.
    return partial(for_provider, rules=policy.redaction_rules)


def note(runtime: Runtime, tenant_id: int, used: Usage) -> None:
    """Count a call at once, whether or not its answer can be used."""
    cost: Decimal = dollars(used, prices_of(runtime.settings))
    model = _label(runtime, used.model)
    metrics.model_tokens.labels(model, "in").inc(used.tokens_in)
    metrics.model_tokens.labels(model, "out").inc(used.tokens_out)
    metrics.model_dollars.labels(model).inc(float(cost))
    # In the home shard, so that a cap holds for all shards together.
    with transaction(runtime.directory.engine, tenant_id) as connection:
        usage.add(
            connection,
            tenant_id,
            model=used.model,
            tokens_in=used.tokens_in,
            tokens_out=used.tokens_out,
            cost_usd=cost,
        )


def _label(runtime: Runtime, model: str) -> str:
    """The model as a label. A server may answer with any name, so it must be one of the settings or begin with one."""
    settings = runtime.settings.chat
    names = [
        name for name in (settings.model, settings.large_model) if name is not None and model.startswith(name)
    ]
    return max(names, key=len, default="other")


def prices_of(settings: Settings) -> dict[str, Price]:
    """The price table of the settings, by model."""
    return {name: Price(price.tokens_in, price.tokens_out) for name, price in settings.chat.prices.items()}


def count_dropped(runtime: Runtime, dropped: Mapping[str, int]) -> None:
    """Count for the metrics what was dropped of an answer, by reason. Without Redis nothing is counted."""
    if not dropped:
        return
    try:
        answer_drops.note(runtime.hot, dropped)
    except MemoryAppError as error:
        log.warning("dropped_items_not_counted", error=error.kind)


def _chats(runtime: Runtime, tenant_id: int) -> Chats:
    if runtime.chat is None:
        # Waits instead of failing: the operator may be about to set one, and turns must not be lost for it.
        raise ProviderUnavailable(
            "no language model is set: name one with MEMORY_CHAT__BASE_URL and MEMORY_CHAT__MODEL, "
            "or set the agent's extraction to rules",
            retry_after=UNSET_RETRY_SECONDS,
        )
    wait = cap_wait(runtime, tenant_id)
    if wait > 0:
        raise CapReached("today's tokens or money of the tenant are spent", retry_after=wait)
    return runtime.chat


def cap_wait(runtime: Runtime, tenant_id: int) -> float:
    """Return the seconds until the tenant may ask a model again; 0 where its cap is not reached or none is set."""
    settings = runtime.settings.chat
    own = quotas.limits_of(runtime, tenant_id).tokens_per_day
    tokens = min((limit for limit in (own, settings.tokens_per_day) if limit is not None), default=None)
    cap = Cap(tokens, settings.dollars_per_day)
    if cap == Cap():
        return 0.0
    # In a transaction of its own, which is over before the model is asked.
    with transaction(runtime.directory.engine, tenant_id) as connection:
        spent = usage.today(connection, tenant_id)
    return wait_for_cap(spent.tokens, spent.cost_usd, cap, now=spent.now)
