"""Apply an agent's redaction: to what is stored, and to what is sent to a provider; counted by kind, never logged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection

from memory_app import metrics
from memory_app.db.db import transaction
from memory_app.language.redaction import PrivateKind, Rules, redact
from memory_app.providers.embedders import Redacting
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import Policy, parse_policy
from memory_app.tenancy.rows import names

LOCAL_EMBEDDERS = frozenset({"wordllama", "hash", "minilm", "multilingual", "onnx"})
"""Embedders that compute in this process: what they read goes nowhere."""


@dataclass(slots=True)
class Redactor:
    """Takes private parts out of one thing's texts, and counts them."""

    rules: Rules
    counts: Counter[PrivateKind] = field(default_factory=Counter)

    def text(self, text: str) -> str:
        redacted = redact(text, self.rules)
        self.counts.update(redacted.counts)
        return redacted.text

    def optional(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)

    def texts(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        # Two texts may be the same without their private parts.
        return tuple(dict.fromkeys(map(self.text, texts)))

    def json(self, value: Any) -> Any:
        """The same value of JSON with its texts redacted; numbers as well, which may be those of a card."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self._named(key, inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.json(inner) for inner in value]
        if isinstance(value, int) and not isinstance(value, bool):
            text = self.text(str(value))
            return value if text == str(value) else text
        return value

    def _named(self, key: str, value: Any) -> Any:
        """The value of a field, whose name may say what it is: ``{"password": "sunshine"}``."""
        if isinstance(value, str | int) and not isinstance(value, bool):
            prefix = f"{key}: "
            redacted = redact(f"{prefix}{value}", self.rules)
            if redacted.counts and redacted.text.startswith(prefix):
                self.counts.update(redacted.counts)
                return redacted.text.removeprefix(prefix)
        return self.json(value)

    def by_kind(self) -> dict[str, int]:
        """How many parts were taken out, by kind; kinds of which there was none are absent."""
        return {kind.value: self.counts[kind] for kind in PrivateKind if self.counts[kind]}


def note(counts: Mapping[str, int], place: str) -> None:
    """Add what was taken out to the metrics; ``place`` is the sort of thing that held it."""
    for kind, number in counts.items():
        metrics.redactions.labels(kind, place).inc(number)


def for_provider(text: str, rules: Rules) -> str:
    """A text as a provider may see it: also what was stored before the redaction was switched on."""
    redactor = Redactor(rules)
    redacted = redactor.text(text)
    note(redactor.by_kind(), "provider")
    return redacted


def with_redaction(runtime: Runtime, policy: Policy) -> Runtime:
    """The same parts, with an embedder behind a network that is given redacted texts only."""
    rules = policy.redaction_rules
    if not rules.is_on or is_local(runtime) or isinstance(runtime.embedder, Redacting):
        return runtime
    return replace(
        runtime, embedder=Redacting(runtime.embedder, redact=lambda text: for_provider(text, rules))
    )


def with_redaction_of(runtime: Runtime, tenant_id: int, agent: str) -> Runtime:
    """As `with_redaction`, by the policy of a named agent. Reads it only where the embedder is behind a network."""
    if is_local(runtime):
        return runtime
    with transaction(runtime.directory.engine, tenant_id) as connection:
        start = names.agent_start(connection, tenant_id, agent)
    return runtime if start is None else with_redaction(runtime, parse_policy(start.policy))


def rules_by_scope(
    connection: Connection, runtime: Runtime, scope_ids: Collection[int]
) -> Mapping[int, Rules]:
    """What is taken out of texts of these scopes before they are embedded; nothing where they stay in this process."""
    if is_local(runtime):
        return {}
    policies = names.policies(connection, scope_ids)
    return {scope_id: parse_policy(policy).redaction_rules for scope_id, policy in policies.items()}


def is_local(runtime: Runtime) -> bool:
    """Whether what is embedded stays in this process."""
    return runtime.settings.embedding.provider in LOCAL_EMBEDDERS
