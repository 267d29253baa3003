"""Write the lines of each section, strongest first: the quoted text, what stands around it, and the ids in it.

A line is one row. Nothing is chosen or cut here; `sections` does that against the budget.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo

from memory_app.recall.parts import Card, ContextParts, ExpressionPart, SessionPart
from memory_app.recall.passages import Words, passage
from memory_app.recall.records import Hit
from memory_app.records.kinds import KINDS
from memory_app.records.quote import quoted, quoted_label, shortened
from memory_app.records.records import UNSTORED, Memory, Tier, Turn

SHORT_CHARS = 400
"""A text up to this long is shown whole or not at all; a longer one may be cut to it."""

PAST_CHARS = 80
"""Of what no longer holds, behind the turn that says it."""

LINKED_LIMIT = 8
"""Most entities named beside a card's own."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a section: ``text`` as stored, between a ``head`` and a ``tail`` of ours.

    Of a long text the passage with most of ``words`` is shown, without any the beginning. ``always``: it is shown
    before anything else is, as far as the budget allows.
    """

    head: str
    text: str
    tail: str = ""
    ids: tuple[str, ...] = ()
    turn: Turn | None = None
    words: Words = field(default_factory=dict)
    always: bool = False

    def cut_to(self, chars: int) -> str:
        """Return the line with at most ``chars`` characters of its text."""
        return f"{self.head}{quoted(passage(self.text, chars, self.words))}{self.tail}"


def section_lines(parts: ContextParts, now: datetime) -> dict[str, tuple[Line, ...]]:
    """Return lines by section name. The first one of the session says how long it has been going."""
    return {
        "core": _memory_lines(parts.core),
        "expression": _expression_lines(parts.expression),
        "relationship": _memory_lines(parts.anchors),
        "vocabulary": tuple(Line("- ", reference) for reference in parts.vocabulary),
        "insights": _memory_lines(parts.artifacts),
        "identity": _memory_lines(parts.identity),
        "entities": tuple(_card_line(card) for card in parts.cards),
        "memories": tuple(_row_line(row, parts) for row in parts.rows),
        "narrative": _narrative_lines(parts),
        "session": _session_lines(parts.session, parts.zone, now) if parts.session else (),
    }


def short_id(id: object) -> str:
    """The last eight digits of a memory's or turn's id, its random end; an entity's key whole.

    A whole id costs a model about 35 tokens; this one suffices to tell the rows of a window apart.
    """
    name = str(id)
    is_entity_key = ":" in name
    # A quotation mark would end the attribute in which the id stands.
    return quoted((name if is_entity_key else name[-8:]).replace('"', ""))


def span(length: timedelta) -> str:
    """Return ``length`` in words, at most two units: "3 days 4 hours".

    Below a minute, negative lengths included, it is "less than a minute".
    """
    # The clock of the app may be ahead of ours: a negative length counts as none.
    minutes = max(int(length.total_seconds()) // 60, 0)
    days, rest = divmod(minutes, 24 * 60)
    hours, minutes = divmod(rest, 60)
    if days:
        units = [(days, "day"), (hours, "hour")]
    else:
        units = [(hours, "hour"), (minutes, "minute")]
    words = [_counted(count, unit) for count, unit in units if count]
    return " ".join(words) or "less than a minute"


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def _memory_lines(memories: Iterable[Memory]) -> tuple[Line, ...]:
    return tuple(
        Line(
            head=f"- {KINDS[memory.kind].lead}",
            text=memory.text,
            tail=_relation_tail(memory),
            # A default of the agent that is not stored for this user yet has none.
            ids=() if memory.id == UNSTORED else (str(memory.id),),
        )
        for memory in memories
    )


def _relation_tail(memory: Memory) -> str:
    context = memory.relational_context
    if context is None:
        return ""
    remarks = []
    if context.bond_strength is not None:
        remarks.append(f"bond {context.bond_strength:.1f}")
    # Three of each, since a merged memory may have dozens.
    if context.communication_style:
        remarks.append(f"talks: {_labels(context.communication_style[:3])}")
    if context.user_values:
        remarks.append(f"values: {_labels(context.user_values[:3])}")
    if context.user_struggles:
        remarks.append(f"struggles: {_labels(context.user_struggles[:3])}")
    return f" ({'; '.join(remarks)})" if remarks else ""


def _expression_lines(part: ExpressionPart) -> tuple[Line, ...]:
    persona = tuple(Line("", line) for line in part.persona.splitlines() if quoted(line))
    order = list(KINDS)
    # Stable: within a kind the strongest stays first.
    by_kind = sorted(part.memories, key=lambda memory: order.index(memory.kind))
    return persona + _mood_lines(part) + _memory_lines(by_kind)


def _mood_lines(part: ExpressionPart) -> tuple[Line, ...]:
    remarks = []
    if part.mood is not None:
        remarks.append(f"{part.mood.valence} ({part.mood.intensity:.1f})")
    if part.last_tone:
        remarks.append(f"last tone {part.last_tone}")
    return (Line("Mood: ", ", ".join(remarks)),) if remarks else ()


def _card_line(card: Card) -> Line:
    statements = "; ".join(filter(None, (card.summary, *card.facts)))
    # Labels come from users as well: unquoted, one could look like a heading of the window.
    head = f"- {quoted_label(card.label)} ({quoted_label(card.type)})"
    if statements:
        head += ": "
    tail = f" (linked: {_labels(card.linked[:LINKED_LIMIT])})" if card.linked else ""
    return Line(head, statements, tail=tail, ids=(card.key,), always=card.is_own)


def _labels(labels: Iterable[str]) -> str:
    return ", ".join(map(quoted_label, labels))


def _row_line(row: Hit, parts: ContextParts) -> Line:
    pending = "" if row.indexed else ' indexed="no"'
    of_agent = "" if row.agent is None else f' agent="{quoted_label(row.agent)}"'
    head = f'<memory tier="{row.tier.value}" id="{short_id(row.id)}"{of_agent}{pending}>'
    if row.tier is Tier.DAILY_LOGS:
        head += _log_head(row.at, row.speaker, parts.zone)
    tail = f"{_past_tail(parts, row.id)}</memory>"
    return Line(head, row.text, tail=tail, ids=(str(row.id),), words=parts.words)


def log_line(turn: Turn, parts: ContextParts) -> Line:
    """A turn as a line of the log, with the time of day and no date."""
    head = f"[{local_time(turn.at, parts.zone)[11:]}] {quoted_label(turn.speaker)}: "
    return Line(head, turn.text, tail=_past_tail(parts, turn.id), ids=(str(turn.id),), words=parts.words)


def _past_tail(parts: ContextParts, id: object) -> str:
    """What the turn says that no longer holds: shown without a mark, it would contradict what replaced it."""
    past = parts.past.get(str(id))
    return f" (past: {quoted(shortened(past, PAST_CHARS))})" if past else ""


def _narrative_lines(parts: ContextParts) -> tuple[Line, ...]:
    if not quoted(parts.narrative):
        return ()
    return (Line("", parts.narrative, ids=tuple(str(id) for id in parts.narrative_ids)),)


def _session_lines(session: SessionPart, zone: tzinfo, now: datetime) -> tuple[Line, ...]:
    head = f'Session "{quoted_label(session.name)}": '
    head += f"{span(now - session.started_at)} so far." if session.started_at else "just begun."
    if session.last_interaction_at:
        head += f" Last interaction before it: {span(now - session.last_interaction_at)} ago."
    # Newest first: lines stand in the order of strength, and the oldest turn is dropped first.
    turns = (
        Line(
            head=_log_head(turn.at, turn.speaker, zone),
            text=turn.text,
            ids=(str(turn.id),),
            turn=turn,
        )
        for turn in reversed(session.turns)
    )
    return (Line(head, ""), *turns)


def _log_head(at: datetime | None, speaker: str | None, zone: tzinfo) -> str:
    when = f"[{local_time(at, zone)}] " if at else ""
    return f"{when}{quoted_label(speaker)}: " if speaker else when


def local_time(at: datetime, zone: tzinfo) -> str:
    """Return ``at`` as 2026-01-31 09:00 in the zone."""
    try:
        local = at.astimezone(zone)
    except OverflowError:
        # The first or last day that a calendar can hold.
        local = at
    return local.isoformat(sep=" ", timespec="minutes")[:16]
