"""Reports of jobs: what a run did, in ids and figures, never a text. They are stored with the run and shown over HTTP.

The name of a field is the key in the stored JSON, so a field may be added but never renamed: during an upgrade reports
are read by the version before, and a run may be undone long after the version that did it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

LEFT_OUT_WHEN_EMPTY: Mapping[str, bool] = {"left_out_when_empty": True}
"""Metadata of a field whose key is only stored where there is something to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What all reports have. ``version`` rises when a field comes to mean something else."""

    version: int = 1

    def as_json(self) -> str:
        """The report as it is stored; ids and instants as texts."""
        return json.dumps(self, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if is_dataclass(value):
        return _keys(value)
    # Better no report than a text in one: reports outlive the erasure of what was said.
    raise TypeError(f"a report holds ids and figures, not {type(value).__name__}")


def _keys(record: Any) -> dict[str, Any]:
    # Not `asdict`, which would keep the fields that are left out when empty.
    values: dict[str, Any] = {}
    for column in fields(record):
        value = getattr(record, column.name)
        is_optional = column.metadata.get("left_out_when_empty")
        if value or not is_optional:
            values[column.name] = value
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionReport(Report):
    """Of an extraction: how many turns were read, what was stored or reinforced, and how it was made."""

    turns: int
    memories: tuple[UUID, ...]
    made: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecayReport(Report):
    """Of decay. Ids are the first thousand of each sort; ``retired`` counts them all. Of what is to come, when next."""

    expired: tuple[UUID, ...]
    evicted: tuple[UUID, ...]
    unsupported: tuple[UUID, ...]
    retired: int
    purged: int
    links_trimmed: int
    turns_lapsed: int
    current: int
    next_purge_at: datetime | None
    next_fades_at: datetime | None
    next_lapse_at: datetime | None
    deleted: Mapping[str, int]
    """By class what the agent's retention deleted: turns that lost their words, and memories by kind."""
    next_deletion_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionProgress(Report):
    """Of decay that is under way: what it has deleted by class so far."""

    deleted: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeReport(Report):
    """Of a changed retention: in so many scopes decay was made due."""

    scopes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReport(Report):
    """Of the synthesis of a session, which has read it up to turn ``to_seq``."""

    statements: int
    changed: int
    summary: bool
    to_seq: int
    memories: tuple[UUID, ...]
    made: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMergeReport(Report):
    """Of the merge of entity ``entity`` into ``into``: all that its undo needs.

    ``moved`` are memories that mentioned the first alone, ``shared`` both; ``followers`` are entities that had been
    merged into the first. The last ``aliases_added`` of the heir's names, and its dates before.
    """

    entity: int
    into: int
    moved: tuple[UUID, ...]
    shared: tuple[UUID, ...]
    followers: tuple[int, ...]
    aliases_added: int
    first_seen: datetime
    last_seen: datetime

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> EntityMergeReport:
        """The report of a merge that is to be undone."""
        return cls(
            entity=stored["entity"],
            into=stored["into"],
            moved=tuple(map(UUID, stored["moved"])),
            shared=tuple(map(UUID, stored["shared"])),
            followers=tuple(stored["followers"]),
            aliases_added=stored["aliases_added"],
            first_seen=datetime.fromisoformat(stored["first_seen"]),
            last_seen=datetime.fromisoformat(stored["last_seen"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetReport(Report):
    """Of what was forgotten: rows by table. A dry run has no ``erasure``, which is the id of the receipt.

    ``digests`` stand for what went with a memory, in hexadecimal, the memory itself first.
    """

    erasure: UUID | None
    counts: Mapping[str, int]
    digests: tuple[str, ...] = field(default=(), metadata=LEFT_OUT_WHEN_EMPTY)


class ForgetStage(StrEnum):
    """How far an erasure is that a worker does."""

    WAITING = "waiting"
    """Others hold rows of what is to be erased."""
    ERASING = "erasing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetProgress(Report):
    """Of an erasure that is under way: the rows by table that are deleted, which take effect together at its end."""

    stage: ForgetStage
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSpeaker:
    """Who speaks in a conversation of a file: under a name, or as the role says, and how often."""

    name: str | None
    role: str
    turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedConversation:
    """A conversation of a file and the session that it becomes. ``undated`` turns count as said at the import."""

    session: str
    turns: int
    undated: int
    first_at: datetime | None
    last_at: datetime | None
    speakers: tuple[ImportedSpeaker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An item of a file that does not come in: where it stands, and why. ``detail`` names a field."""

    place: str
    reason: str
    detail: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSurvey:
    """What a file of another program holds. Conversations and places are the first ones; the counts are of all.

    ``missing`` is what the caller has to say before the file can be imported.
    """

    format: str
    conversations: tuple[ImportedConversation, ...]
    conversation_count: int
    turns: int
    memories: int
    left_out: Mapping[str, int]
    places: tuple[LeftOut, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportProgress:
    """How far an import is: so many ``items`` of the file are done, in their order.

    ``recorded`` and ``remembered`` are new, ``known`` were there already. ``refused`` counts what could not be stored,
    by reason.
    """

    items: int = 0
    recorded: int = 0
    remembered: int = 0
    known: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> ImportProgress:
        """The progress in the report of a run that goes on."""
        return cls(**{column.name: stored[column.name] for column in fields(cls)})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport(Report):
    """Of the import of a file: what it holds, and how far it is stored. Of a dry run nothing is."""

    dry_run: bool
    survey: ImportSurvey
    progress: ImportProgress
