"""What packs and grammar share in making statements: the speaker, what is left out, and when a statement begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from zoneinfo import ZoneInfo

from memory_app.extraction.rules.packs.format import PackRule
from memory_app.extraction.rules.patterns import Rule, When
from memory_app.language.secrets import holds_secret
from memory_app.records.records import Mention, Statement, Turn

SHORTEST = 20
"""Characters below which a sentence may be that of somebody else by chance."""

EXPLICIT_IMPORTANCE = 7
"""Least importance (1 to 10) of what the user asked to be remembered."""

STATEMENTS_LIMIT = 24
"""Statements kept of one turn; more come from pasted text."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """The author of ``turn``, and the names by which statements about them are written.

    ``agent_text`` is what the assistant wrote before the turn, in lower case; ``earlier`` are the user's last turns
    before it. ``labels`` are those of the scope's entities (``label`` or ``type:label``), ``known_people`` the names of
    its people by these in lower case. ``is_asked``: the turn may answer a question of the assistant.
    """

    turn: Turn
    label: str
    agent: str
    agent_text: str
    zone: ZoneInfo
    people: frozenset[str]
    labels: tuple[str, ...]
    earlier: tuple[Turn, ...] = ()
    known_people: Mapping[str, str] = field(default_factory=dict)
    is_asked: bool = False

    @property
    def today(self) -> date:
        """The day of the turn in the speaker's zone, where it may be another than where the server stands."""
        return self.turn.at.astimezone(self.zone).date()


def told_apart(speaker: Speaker, name: str, term: str) -> str:
    """The name of somebody; with what they are to the speaker (``term``) where both have the same name."""
    return f"{name} ({term})" if name.lower() == speaker.label.lower() else name


def at_least_explicit(importance: int | None) -> int:
    """The importance of what the user asked to be remembered: not lowered where a rule rates it higher."""
    return max(importance or 0, EXPLICIT_IMPORTANCE)


def is_left_out(speaker: Speaker, sentence: str) -> bool:
    """Whether a sentence states nothing of the speaker's own, or nothing that may be kept."""
    # The whole sentence: what a rule made of the rest would still point at the secret.
    return _repeats_agent(speaker, sentence) or holds_secret(sentence)


def _repeats_agent(speaker: Speaker, sentence: str) -> bool:
    # A user who quotes the assistant does not state it. A short sentence may be the same by chance.
    return len(sentence) >= SHORTEST and sentence.lower() in speaker.agent_text


def distinct(statements: Iterable[Statement]) -> list[Statement]:
    """The first `STATEMENTS_LIMIT` statements, each triple once; what would come behind them is not computed."""
    by_triple: dict[tuple[object, ...], Statement] = {}
    for statement in statements:
        by_triple.setdefault(_triple(statement), statement)
        if len(by_triple) == STATEMENTS_LIMIT:
            break
    return list(by_triple.values())


def _triple(statement: Statement) -> tuple[object, ...]:
    value = (statement.object or "").lower()
    return (statement.kind, statement.subject, statement.relation, value)


def valid_from(speaker: Speaker, rule: Rule | PackRule, *, start: date, has_lasted: bool) -> datetime:
    """When a statement with a date became true: that day for events and beginnings, else the moment of the turn.

    ``has_lasted``: the date tells since when or for how long something is so.
    """
    marks_beginning = has_lasted or rule.starts or rule.when is When.EVENT
    if rule.when is When.PLAN or not marks_beginning:
        return speaker.turn.at
    midnight = datetime.combine(start, time(0), tzinfo=speaker.zone)
    # Never later than it was said, or the statement would not hold yet at the moment it was made.
    return min(speaker.turn.at, midnight)


def united(first: tuple[Mention, ...], second: tuple[Mention, ...]) -> tuple[Mention, ...]:
    """Both, without those of ``second`` whose label ``first`` has in any case."""
    # The rule knows better than a guess of what type a name is.
    labels = {mention.label.lower() for mention in first}
    return (*first, *(mention for mention in second if mention.label.lower() not in labels))
