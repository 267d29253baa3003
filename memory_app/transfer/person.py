"""Report what is held about a person: with whom, how much, since when, and what is believed now.

For somebody who asks what is known of them. All shards are looked into; one that is away is an error, since a report
that leaves something out would be wrong. The whole, word for word, is an export.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from memory_app.agents.rows import grants
from memory_app.agents.rows.grants import Grant
from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.db.shards import HOME
from memory_app.records.scope import check_name
from memory_app.runtime import Runtime
from memory_app.tenancy.digests import USER, digests_of
from memory_app.tenancy.rows import erased
from memory_app.tenancy.shards import in_each
from memory_app.transfer.rows import person
from memory_app.transfer.rows.person import Held

MEMORIES_LIMIT = 2_000
LABELS_LIMIT = 500
"""Most of an agent's memories and entities that a report names; their counts are whole."""


@dataclass(frozen=True, slots=True)
class WithAgent:
    """What one agent holds about the person. ``counts`` are rows by table, ``memories`` the current ones.

    ``redacted`` counts by kind what was taken out of their turns before these were stored.
    """

    agent: str
    shard: int
    since: datetime
    first_turn_at: datetime | None
    last_turn_at: datetime | None
    counts: Mapping[str, int]
    redacted: Mapping[str, int]
    memories: tuple[Held, ...]
    entities: tuple[str, ...]
    grants: tuple[Grant, ...]
    """What other agents may recall of it."""


@dataclass(frozen=True, slots=True)
class PersonReport:
    """What is held about a person at a moment. ``erased_at``: when the name was erased last, if ever.

    ``memories_elsewhere`` are memories for all users of an agent that rest on something the person said.
    """

    user: str
    reported_at: datetime
    erased_at: datetime | None
    memories_elsewhere: int
    agents: tuple[WithAgent, ...]


def report_user(runtime: Runtime, tenant_id: int, user: str) -> PersonReport:
    """What is held about a person with all agents; nothing, for somebody whom nobody knows.

    Raises `InvalidInput` for what is no name, and `StoreUnavailable` where a shard is away.
    """
    check_name(user, field="user")
    parts = in_each(runtime, lambda here: _of_shard(here, tenant_id, user))
    digests = digests_of(runtime.settings).possible(tenant_id, USER, user)
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        erased_at, _ = erased.newest(connection, tenant_id, digests)
        now = clock.now(connection)
    return PersonReport(
        user=user,
        reported_at=now,
        erased_at=erased_at,
        memories_elsewhere=sum(elsewhere for _, elsewhere in parts),
        agents=tuple(chain.from_iterable(agents for agents, _ in parts)),
    )


def _of_shard(here: Runtime, tenant_id: int, user: str) -> tuple[tuple[WithAgent, ...], int]:
    with transaction(here.engine, tenant_id) as connection:
        scopes = person.scopes(connection, tenant_id, user)
        granted = grants.listed(connection, tenant_id, user)
        agents = []
        for scope in scopes:
            first_at, last_at = person.period(connection, scope.id)
            agents.append(
                WithAgent(
                    agent=scope.agent,
                    shard=here.shard,
                    since=scope.created_at,
                    first_turn_at=first_at,
                    last_turn_at=last_at,
                    counts=person.counts(connection, tenant_id, scope.id),
                    redacted=person.redacted(connection, scope.id),
                    memories=person.held(connection, scope.id, limit=MEMORIES_LIMIT),
                    entities=person.labels(connection, scope.id, limit=LABELS_LIMIT),
                    grants=tuple(row for row in granted if row.agent == scope.agent),
                )
            )
        elsewhere = person.memories_elsewhere(connection, [scope.id for scope in scopes])
    return tuple(agents), elsewhere


def as_text(report: PersonReport) -> str:
    """The report for people to read."""
    lines = [f"What is held about {report.user}, {report.reported_at:%Y-%m-%d %H:%M} UTC", ""]
    if not report.agents:
        lines.append("Nothing.")
    for agent in report.agents:
        lines += [*_agent_lines(agent), ""]
    if report.memories_elsewhere:
        lines.append(
            f"{report.memories_elsewhere} memories for all users of an agent rest on something this person said."
        )
    if report.erased_at is not None:
        lines.append(f"This name was erased on {report.erased_at:%Y-%m-%d %H:%M} UTC.")
    return "\n".join(lines).rstrip() + "\n"


def _agent_lines(agent: WithAgent) -> list[str]:
    lines = [f"With {agent.agent}, since {agent.since:%Y-%m-%d}"]
    if agent.first_turn_at is not None:
        lines.append(f"  said from {agent.first_turn_at:%Y-%m-%d} to {agent.last_turn_at:%Y-%m-%d}")
    if agent.redacted:
        kinds = ", ".join(f"{count} {kind}" for kind, count in agent.redacted.items())
        lines.append(f"  taken out before it was stored: {kinds}")
    lines.append("  rows: " + ", ".join(f"{count} {table}" for table, count in agent.counts.items()))
    if agent.memories:
        lines.append("  believed now:")
    # A text of several lines stays one line, so that it cannot pass for a line of the report.
    lines += [f"    {memory.kind}: {' '.join(memory.text.split())}" for memory in agent.memories]
    left_out = agent.counts.get("memories", 0) - len(agent.memories)
    if left_out:
        lines.append(
            f"    and {left_out} more: earlier beliefs, or beyond the length of this report; see the export"
        )
    if agent.entities:
        lines.append("  spoke of: " + ", ".join(agent.entities))
    for grant in agent.grants:
        until = "it is revoked" if grant.until is None else f"{grant.until:%Y-%m-%d %H:%M} UTC"
        lines.append(f"  may be recalled by {grant.to} until {until}: {', '.join(grant.kinds)}")
    return lines
