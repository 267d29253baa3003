"""Write the lines of each section, strongest first: the quoted text, what stands around it, and the ids in it.

A line is one row, of several lines where the layout of its text says something. Nothing is chosen or cut here; `choice`
does that against the budget.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo

from memory_app.language.text import normalise
from memory_app.memories.rows.cards import CardFact
from memory_app.recall.parts import Card, ContextParts, ExpressionPart, SessionPart
from memory_app.recall.passages import Words, passage
from memory_app.recall.records import Hit
from memory_app.records.kinds import KINDS
from memory_app.records.quote import ELLIPSIS, quoted, quoted_label, quoted_lines, shortened
from memory_app.records.records import UNSTORED, Memory, Tier, Turn

SHORT_CHARS = 400
"""A text up to this long is shown whole or not at all; a longer one may be cut to it."""

PAST_CHARS = 80
"""Of what no longer holds, behind the turn that says it."""

LINKED_LIMIT = 8
"""Most entities named beside a card's own."""

LATEST_TURNS = 2
"""Turns of the session that come before any line of the log: an answer needs to see what it answers."""

_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a section: ``text`` as stored, between a ``head`` and a ``tail`` of ours.

    Of a long text the passage with most of ``words`` is shown, without any the beginning; of a card, whose ``text``
    is its ``facts``, as many of them as there is room for. ``always``: it is shown before anything else is, as far as
    the budget allows. ``is_statement``: it says nothing but its text, neither when it was said nor by whom.
    """

    head: str
    text: str
    tail: str = ""
    ids: tuple[str, ...] = ()
    turn: Turn | None = None
    words: Words = field(default_factory=dict)
    always: bool = False
    facts: tuple[CardFact, ...] = ()
    is_statement: bool = False

    def cut_to(self, chars: int) -> str:
        """Return the line with at most ``chars`` characters of its text."""
        if self.facts:
            return f"{self.head}{quoted(self._first_facts(chars))}{self.tail}"
        return f"{self.head}{quoted_lines(passage(self.text, chars, self.words))}{self.tail}"

    def _first_facts(self, chars: int) -> str:
        facts = self.facts_within(chars)
        if not facts:
            return shortened(self.text, chars)
        return _listed(facts) if len(facts) == len(self.facts) else f"{_listed(facts)} {ELLIPSIS}"

    def facts_within(self, chars: int) -> tuple[CardFact, ...]:
        """Return the facts of a card that stand whole in the line when it is cut to ``chars`` characters."""
        if len(self.text) <= chars:
            return self.facts
        # For the ellipsis behind them.
        lengths = (len(_listed(self.facts[:count])) + 2 for count in range(1, len(self.facts)))
        return self.facts[: sum(length <= chars for length in lengths)]

    def ids_within(self, chars: int) -> tuple[str, ...]:
        """Return the ids of what stands in the line when it is cut to ``chars`` characters."""
        return (*self.ids, *(str(fact.id) for fact in self.facts_within(chars) if fact.id))

    def without(self, texts: Container[str]) -> Line | None:
        """Return the line without the facts whose normalised words are among ``texts``; None when nothing is left."""
        if self.is_statement and normalise(self.text) in texts:
            return None
        rest = tuple(fact for fact in self.facts if normalise(fact.text) not in texts)
        if len(rest) == len(self.facts):
            return self
        return replace(self, text=_listed(rest), facts=rest) if rest else None


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


def _listed(facts: Iterable[CardFact]) -> str:
    """Sentences one after the other; what ends without a mark gets a semicolon before the next."""
    texts = [fact.text.strip() for fact in facts]
    ended = [text if text.endswith(_SENTENCE_ENDS) else f"{text};" for text in texts[:-1]]
    return " ".join([*ended, *texts[-1:]])


def _card_line(card: Card) -> Line:
    summary = (CardFact(card.summary),) if card.summary else ()
    facts = (*summary, *card.facts)
    # Labels come from users as well: unquoted, one could look like a heading of the window.
    head = f"- {quoted_label(card.label)} ({quoted_label(card.type)})"
    if facts:
        head += ": "
    tail = f" (linked: {_labels(card.linked[:LINKED_LIMIT])})" if card.linked else ""
    return Line(head, _listed(facts), tail=tail, ids=(card.key,), always=card.is_own, facts=facts)


def _labels(labels: Iterable[str]) -> str:
    return ", ".join(map(quoted_label, labels))


def _row_line(row: Hit, parts: ContextParts) -> Line:
    pending = "" if row.indexed else ' indexed="no"'
    of_agent = "" if row.agent is None else f' agent="{quoted_label(row.agent)}"'
    head = f'<memory tier="{row.tier.value}" id="{short_id(row.id)}"{of_agent}{pending}>'
    if row.tier is Tier.DAILY_LOGS:
        head += _log_head(row.at, row.speaker, parts.zone)
    return Line(
        head,
        row.text,
        tail=f"{_past_tail(parts, row.id)}</memory>",
        ids=(str(row.id),),
        words=parts.words,
        is_statement=row.tier is Tier.FACTS,
    )


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
            always=newer < LATEST_TURNS,
        )
        for newer, turn in enumerate(reversed(session.turns))
    )
    return (Line(head, "", always=True), *turns)


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
