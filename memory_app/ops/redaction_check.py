"""The doctor's look at redaction: how many agents take private parts out of what they hear, and where texts go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from sqlalchemy import Engine

from memory_app.db import db, inspection
from memory_app.errors import MemoryAppError
from memory_app.language.redaction import PrivateKind
from memory_app.ops.check import Check, fail, ok
from memory_app.settings import Settings
from memory_app.tenancy.policy import parse_policy
from memory_app.tenancy.redaction import LOCAL_EMBEDDERS


def look(settings: Settings, engine: Engine, tenants: Sequence[tuple[int, str]] | None) -> Iterator[Check]:
    """No check where there is no agent, or where tenants are not known. ``engine``: of the home shard.

    It never warns: whether an agent may hear private parts is for whoever runs it to say, and off is the default.
    """
    name = "redaction"
    agents = redacting = 0
    kinds: Counter[PrivateKind] = Counter()
    try:
        for tenant_id, _ in tenants or ():
            with db.transaction(engine, tenant_id) as connection:
                policies = inspection.redactions(connection)
            for policy, count in policies:
                agents += count
                rules = parse_policy(policy).redaction_rules
                if rules.is_on:
                    redacting += count
                    kinds.update(dict.fromkeys(rules.kinds, count))
    except MemoryAppError as error:
        yield fail(name, error.message, to_do="mend Postgres first")
        return
    if agents:
        yield ok(name, f"{_of_agents(agents, redacting, kinds)}; {_providers(settings)}")


def _of_agents(agents: int, redacting: int, kinds: Counter[PrivateKind]) -> str:
    if not redacting:
        return f"off for all of {agents} agents" if agents > 1 else "off for the one agent"
    if len(kinds) == len(PrivateKind) and set(kinds.values()) == {redacting}:
        return f"{redacting} of {agents} agents take out all kinds"
    shown = ", ".join(f"{kind} ({kinds[kind]})" for kind in PrivateKind if kinds[kind])
    return f"{redacting} of {agents} agents take out: {shown}"


def _providers(settings: Settings) -> str:
    """Who outside of this process reads what agents hear."""
    readers = []
    if settings.chat.base_url is not None:
        readers.append("the language model")
    if settings.embedding.provider not in LOCAL_EMBEDDERS:
        readers.append("the embedder")
    if not readers:
        return "no provider is set that texts would go to"
    return f"without it, texts go to {' and '.join(readers)} as they are"
