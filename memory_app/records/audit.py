"""Entries of the audit log, and the chain that shows whether one was changed, taken out or put in. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID

BEGUN, DONE, BROKE = "begun", "done", "broke"
"""Outcomes. An action has an entry when it begins and another when it ends: ``done``, ``broke`` for a fault of ours, or
the kind of error that it was refused with. One that only begins ended with its process."""


class Action(StrEnum):
    """What is written down. The values are stored: never rename one."""

    KEY_CREATE = "key.create"
    KEY_ROTATE = "key.rotate"
    KEY_REVOKE = "key.revoke"
    LIMIT_KEY = "limit.key"
    LIMIT_TENANT = "limit.tenant"
    WEBHOOK_CREATE = "webhook.create"
    WEBHOOK_CHANGE = "webhook.change"
    WEBHOOK_ROTATE = "webhook.rotate"
    WEBHOOK_DELETE = "webhook.delete"
    GRANT_SET = "grant.set"
    GRANT_REVOKE = "grant.revoke"
    AGENT_CHANGE = "agent.change"
    ERASE_TURN = "erase.turn"
    ERASE_MEMORY = "erase.memory"
    ERASE_SESSION = "erase.session"
    ERASE_USER = "erase.user"
    ERASE_AGENT = "erase.agent"
    ERASE_TENANT = "erase.tenant"
    EXPORT_SCOPE = "export.scope"
    EXPORT_USER = "export.user"
    EXPORT_AGENT = "export.agent"
    EXPORT_TENANT = "export.tenant"
    REPORT_USER = "report.user"
    IMPORT = "import"
    REPLAY = "turn.replay"
    DISCARD = "turn.discard"
    UNDO = "run.undo"
    UNMERGE = "memory.unmerge"
    RETENTION = "retention.delete"


@dataclass(frozen=True, slots=True)
class Event:
    """What somebody does. ``key_id`` None: the operator, on the command line or in Python.

    ``subject`` is the digest of the person's name: the log outlives an erasure. ``target`` is an id, ``dry_run``, or
    how much of which class a run deleted.
    """

    action: Action
    key_id: int | None = None
    agent: str | None = None
    subject: bytes | None = None
    target: str | None = None
    request_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the log. ``seq`` counts from 1 in each tenant without a gap."""

    seq: int
    at: datetime
    key_id: int | None
    action: str
    agent: str | None
    subject: bytes | None
    target: str | None
    outcome: str
    request_id: UUID | None
    previous: bytes
    digest: bytes


def digest_of(entry: Entry) -> bytes:
    """SHA-256 over the digest of the entry before and all fields; the database computes the same (``add_audit``)."""
    fields = (
        entry.previous.hex(),
        entry.seq,
        entry.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        entry.key_id,
        entry.action,
        entry.agent,
        None if entry.subject is None else entry.subject.hex(),
        entry.target,
        entry.outcome,
        entry.request_id,
    )
    # Names have no line ends, so no two entries have the same text.
    text = "\n".join("" if field is None else str(field) for field in fields)
    return hashlib.sha256(text.encode()).digest()


@dataclass(frozen=True, slots=True)
class Chain:
    """What became of a walk along the chain. ``head`` is the digest of its last entry: kept elsewhere, it shows later
    that nothing was cut off. ``broken_at`` is the first number where something does not fit."""

    entries: int = 0
    head: bytes = b""
    broken_at: int | None = None


def follow(entries: Iterable[Entry]) -> Chain:
    """Walk along all entries of a tenant, in their order, from the first."""
    chain = Chain()
    for entry in entries:
        expected = chain.entries + 1
        if (entry.seq, entry.previous) != (expected, chain.head) or digest_of(entry) != entry.digest:
            return Chain(chain.entries, chain.head, broken_at=expected)
        chain = Chain(expected, entry.digest)
    return chain
