"""Read a file to its end and say what an import of it would bring, before anything is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from memory_app.errors import InvalidInput
from memory_app.records.records import Role
from memory_app.records.reports import (
    ImportedConversation,
    ImportedSpeaker,
    ImportSurvey,
    LeftOut,
)
from memory_app.transfer.importers.plan import Planned, SessionTurn, planned
from memory_app.transfer.importers.records import Memory, Omission, Options, Source

CONVERSATIONS_SHOWN = 500
SPEAKERS_SHOWN = 50
PLACES_SHOWN = 100


@dataclass(slots=True)
class _Tally:
    """What was counted of one session."""

    session: str
    speakers: Counter[tuple[str | None, Role]] = field(default_factory=Counter)
    undated: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None

    def add(self, item: SessionTurn) -> None:
        self.speakers[item.turn.speaker, item.turn.role] += 1
        at = item.turn.at
        if at is None:
            self.undated += 1
            return
        self.first_at = at if self.first_at is None else min(self.first_at, at)
        self.last_at = at if self.last_at is None else max(self.last_at, at)

    def record(self) -> ImportedConversation:
        return ImportedConversation(
            session=self.session,
            turns=self.speakers.total(),
            undated=self.undated,
            first_at=self.first_at,
            last_at=self.last_at,
            speakers=tuple(
                ImportedSpeaker(name=name, role=role.value, turns=turns)
                for (name, role), turns in self.speakers.most_common(SPEAKERS_SHOWN)
            ),
        )


@dataclass(slots=True)
class _Survey:
    conversations: list[ImportedConversation] = field(default_factory=list)
    places: list[LeftOut] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    names: set[str] = field(default_factory=set)
    owners: set[str] = field(default_factory=set)
    conversation_count: int = 0
    turns: int = 0
    memories: int = 0
    speaks_freely: bool = False
    current: _Tally | None = None

    def add(self, item: Planned) -> None:
        if isinstance(item, SessionTurn):
            if self.current is None or self.current.session != item.session:
                self.close()
                self.current = _Tally(item.session)
            self.current.add(item)
            self.turns += 1
            self.speaks_freely = self.speaks_freely or item.speaks_freely
            if item.turn.speaker is not None:
                self.names.add(item.turn.speaker)
        elif isinstance(item, Memory):
            self.memories += 1
        if not isinstance(item, Omission):
            if item.owner is not None:
                self.owners.add(item.owner)
        else:
            self.left_out[item.reason.value] += 1
            if len(self.places) < PLACES_SHOWN:
                self.places.append(
                    LeftOut(place=item.place, reason=item.reason.value, detail=item.detail or None)
                )

    def close(self) -> None:
        """End the conversation that was counted."""
        if self.current is None:
            return
        self.conversation_count += 1
        if len(self.conversations) < CONVERSATIONS_SHOWN:
            self.conversations.append(self.current.record())
        self.current = None


def survey(source: Source, options: Options, *, format: str | None = None) -> ImportSurvey:
    """What the file holds: per conversation turns, dates and speakers, and what is left out and why.

    Raises `InvalidInput` as `planned` does.
    """
    name, items = planned(source, options, format=format)
    counts = _Survey()
    for item in items:
        counts.add(item)
    counts.close()
    return ImportSurvey(
        format=name,
        conversations=tuple(counts.conversations),
        conversation_count=counts.conversation_count,
        turns=counts.turns,
        memories=counts.memories,
        left_out=dict(counts.left_out),
        places=tuple(counts.places),
        missing=tuple(_missing(counts, options)),
    )


def check(survey: ImportSurvey) -> None:
    """Raise `InvalidInput` where the caller must say something first, which a dry run only reports."""
    for problem in survey.missing:
        raise InvalidInput(f"{problem}; nothing was imported", field=problem.partition(":")[0])


def _missing(counts: _Survey, options: Options) -> Iterator[str]:
    has_user = Role.USER in options.speakers.values()
    if counts.speaks_freely and not options.is_group and not has_user:
        yield (
            "speakers: who of those who speak is the user? A dry run lists them. Or switch `group` on in the agent's "
            "policy, where the user stands for a room"
        )
    strangers = options.speakers.keys() - counts.names
    if strangers:
        yield f"speakers: {len(strangers)} of the names speak nowhere in the file; a dry run lists who does"
    if len(counts.owners) > 1:
        yield "owner: the file holds what several people said; say whose comes in, by the id that the file has"
