"""The context window: what is remembered, laid out in ordered sections before the model.

Everything counts against the budget, labels included, and no budget is ever exceeded. Rows are whole: one
that does not fit is left out, or cut if it is long, and the window says so. All text from outside is
quoted. Breadth comes first: long rows are short until every row has had its chance; what is left makes them
longer again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory_app.errors import InvalidInput
from memory_app.language.budget import allocate, count_tokens
from memory_app.recall.lines import SHORT_CHARS, Line, section_lines
from memory_app.recall.parts import ContextParts, shared_vocabulary
from memory_app.records.layout import LAYOUT, PREFACE, Place
from memory_app.records.quote import quoted_label, shortened
from memory_app.records.records import Role, Turn

__all__ = [
    "ContextWindow",
    "Dropped",
    "WindowSection",
    "as_json",
    "as_messages",
    "render",
    "shared_vocabulary",
]


CUT_CHARS = (3200, 1600, 800)
"""Lengths between `SHORT_CHARS` and the whole that a long row may be cut to, longest first."""

CHARS_PER_TOKEN_MOST = 8
"""A text with more characters than this per token left is not worth counting: it cannot fit."""

SPOKEN_ROLES = (Role.USER, Role.ASSISTANT)
"""Roles that stand as messages of their own; a tool's message would need the call it answers."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """``rows`` of ``section`` that are not shown in full. Reason: ``budget``, ``limit`` or ``shortened``."""

    section: str
    rows: int
    reason: str


@dataclass(frozen=True, slots=True)
class WindowSection:
    """A section as shown. ``tokens`` counts its heading and lines."""

    name: str
    title: str
    lines: tuple[str, ...]
    ids: tuple[str, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """``text`` goes before the model; ``ids`` are the memories, turns and entity keys in it, in order."""

    text: str
    sections: tuple[WindowSection, ...]
    ids: tuple[str, ...]
    tokens: int
    budget_tokens: int
    degraded: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    preface: str = ""
    turns: tuple[Turn, ...] = ()
    """Turns shown as the last lines of the session section, oldest first, their text cut as it is shown."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """A section before the cut: rows strongest first, each in its short form with its tokens."""

    place: Place
    lines: tuple[Line, ...]
    shorts: tuple[str, ...]
    costs: tuple[int, ...]
    heading_cost: int
    over_limit: int

    @property
    def demand(self) -> int:
        return self.heading_cost + sum(self.costs)

    @property
    def is_dialogue(self) -> bool:
        """Shown oldest first, and without holes."""
        return any(line.turn for line in self.lines)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What of a draft is shown: text by the row's place in the draft, cut to ``chars``."""

    texts: Mapping[int, str]
    chars: Mapping[int, int]
    tokens: int


# --- rendering ----------------------------------------------------------------------------------------------


def render(parts: ContextParts, *, budget_tokens: int, now: datetime) -> ContextWindow:
    """The window of ``parts`` within ``budget_tokens``, of which 0 gives an empty one.

    Raises `InvalidInput` for a negative budget. A budget too small for a section is none: see ``dropped``.
    """
    if budget_tokens < 0:
        raise InvalidInput("budget_tokens: 0 or more", field="budget_tokens")
    drafts = _drafts(section_lines(parts, now))
    preface = _preface(parts.degraded, budget_tokens)
    shown = _choose(drafts, budget_tokens - count_tokens(preface))
    sections = tuple(_section(draft, s) for draft, s in zip(drafts, shown, strict=True) if s.texts)
    return ContextWindow(
        text=_joined(preface, sections),
        sections=sections,
        ids=tuple(dict.fromkeys(id for section in sections for id in section.ids)),
        # What the text costs, since it is these lines and tokens add up over lines.
        tokens=count_tokens(preface) + sum(section.tokens for section in sections) if sections else 0,
        budget_tokens=budget_tokens,
        degraded=parts.degraded,
        dropped=_dropped(drafts, shown),
        preface=preface if sections else "",
        turns=_shown_turns(drafts, shown),
    )


def as_messages(window: ContextWindow) -> list[dict[str, str]]:
    """Chat messages: the window without its dialogue as a system message, then the dialogue, oldest first.

    What tools and systems said stays quoted in the system message. The contents stay within the budget;
    the few tokens a server adds for each message are its own.
    """
    kept, spoken = _without_dialogue(window)
    system = _joined(window.preface, kept)
    left = window.budget_tokens - count_tokens(system)
    messages: list[dict[str, str]] = []
    for turn in reversed(spoken):
        left -= count_tokens(turn.text)
        if left < 0:
            break
        messages.append({"role": turn.role.value, "content": turn.text})
    if system:
        messages.append({"role": Role.SYSTEM.value, "content": system})
    return messages[::-1]


def as_json(window: ContextWindow) -> dict[str, object]:
    """The window as JSON: text, sections, ids, tokens, degraded, dropped."""
    return {
        "text": window.text,
        "sections": [
            {
                "name": section.name,
                "title": section.title,
                "lines": list(section.lines),
                "ids": list(section.ids),
                "tokens": section.tokens,
            }
            for section in window.sections
        ],
        "ids": list(window.ids),
        "tokens": window.tokens,
        "degraded": list(window.degraded),
        "dropped": [
            {"section": note.section, "rows": note.rows, "reason": note.reason} for note in window.dropped
        ],
    }


# --- choosing -----------------------------------------------------------------------------------------------


def _drafts(lines: Mapping[str, tuple[Line, ...]]) -> list[_Draft]:
    drafts = []
    for place in LAYOUT:
        given = lines[place.name]
        rows = given[: place.limit]
        shorts = tuple(row.shown(SHORT_CHARS) for row in rows)
        drafts.append(
            _Draft(
                place=place,
                lines=rows,
                shorts=shorts,
                costs=tuple(count_tokens(short) for short in shorts),
                heading_cost=count_tokens(_heading(place.title)) if rows else 0,
                over_limit=len(given) - len(rows),
            )
        )
    return drafts


def _choose(drafts: Sequence[_Draft], budget: int) -> list[_Shown]:
    granted = allocate(
        [draft.place.share for draft in drafts],
        [draft.demand for draft in drafts],
        max(budget, 0),
        floors=[draft.heading_cost + draft.costs[0] if _has_floor(draft) else 0 for draft in drafts],
    )
    shown = [_fill(draft, room) for draft, room in zip(drafts, granted, strict=True)]
    shown = _spend_rest(drafts, shown, budget, _fill_further)
    return _spend_rest(drafts, shown, budget, _lengthen)


def _has_floor(draft: _Draft) -> bool:
    return draft.place.always and bool(draft.lines)


def _fill(draft: _Draft, room: int) -> _Shown:
    tokens = draft.heading_cost
    texts = {}
    for place, (short, cost) in enumerate(zip(draft.shorts, draft.costs, strict=True)):
        if tokens + cost <= room:
            texts[place] = short
            tokens += cost
        elif draft.is_dialogue:
            break
    return _Shown(texts, dict.fromkeys(texts, SHORT_CHARS), tokens if texts else 0)


def _spend_rest(
    drafts: Sequence[_Draft],
    shown: Sequence[_Shown],
    budget: int,
    spend: Callable[[_Draft, _Shown, int], _Shown],
) -> list[_Shown]:
    """``spend`` what is left of the budget, section by section: those always there first, then by share."""
    left = budget - sum(s.tokens for s in shown)
    spent = list(shown)
    for place in sorted(range(len(drafts)), key=lambda i: _rank(drafts[i].place)):
        spent[place] = spend(drafts[place], shown[place], left)
        left -= spent[place].tokens - shown[place].tokens
    return spent


def _rank(place: Place) -> tuple[bool, float]:
    return not place.always, -place.share


def _fill_further(draft: _Draft, shown: _Shown, left: int) -> _Shown:
    return _fill(draft, shown.tokens + left)


def _lengthen(draft: _Draft, shown: _Shown, left: int) -> _Shown:
    texts, chars, tokens = dict(shown.texts), dict(shown.chars), shown.tokens
    for place in shown.texts:
        line, cost = draft.lines[place], draft.costs[place]
        for length in _longer_cuts(line, left + cost):
            text = line.shown(length)
            more = count_tokens(text) - cost
            if more <= left:
                texts[place], chars[place] = text, length
                tokens, left = tokens + more, left - more
                break
    return _Shown(texts, chars, tokens)


def _longer_cuts(line: Line, room: int) -> list[int]:
    whole = len(line.text)
    if whole <= SHORT_CHARS:
        return []
    cuts = [whole, *(chars for chars in CUT_CHARS if chars < whole)]
    return [chars for chars in cuts if chars <= room * CHARS_PER_TOKEN_MOST]


# --- putting together ---------------------------------------------------------------------------------------


def _heading(title: str) -> str:
    return f"\n[{title}]"


def _preface(degraded: Iterable[str], budget: int) -> str:
    missing = ", ".join(quoted_label(name) for name in degraded)
    if not missing:
        return PREFACE
    longer = f"{PREFACE}\nCould not be read just now: {missing}."
    return longer if count_tokens(longer) <= budget // 10 else PREFACE


def _joined(preface: str, sections: Sequence[WindowSection]) -> str:
    if not sections:
        return ""
    return "\n".join([preface, *("\n".join([_heading(s.title), *s.lines]) for s in sections)])


def _section(draft: _Draft, shown: _Shown) -> WindowSection:
    order = _display_order(draft, shown)
    return WindowSection(
        name=draft.place.name,
        title=draft.place.title,
        lines=tuple(shown.texts[place] for place in order),
        ids=tuple(id for place in order for id in draft.lines[place].ids),
        tokens=shown.tokens,
    )


def _display_order(draft: _Draft, shown: _Shown) -> list[int]:
    places = list(shown.texts)
    return places[:1] + places[:0:-1] if draft.is_dialogue else places


def _dropped(drafts: Sequence[_Draft], shown: Sequence[_Shown]) -> tuple[Dropped, ...]:
    notes = []
    for draft, s in zip(drafts, shown, strict=True):
        counts = {
            "limit": draft.over_limit,
            "budget": len(draft.lines) - len(s.texts),
            "shortened": sum(len(draft.lines[place].text) > chars for place, chars in s.chars.items()),
        }
        notes += [Dropped(draft.place.name, rows, reason) for reason, rows in counts.items() if rows]
    return tuple(notes)


def _shown_turns(drafts: Sequence[_Draft], shown: Sequence[_Shown]) -> tuple[Turn, ...]:
    turns = []
    for draft, s in zip(drafts, shown, strict=True):
        for place in _display_order(draft, s):
            turn = draft.lines[place].turn
            if turn is not None:
                turns.append(replace(turn, text=shortened(turn.text, s.chars[place])))
    return tuple(turns)


def _without_dialogue(window: ContextWindow) -> tuple[list[WindowSection], list[Turn]]:
    spoken = [turn for turn in window.turns if turn.role in SPOKEN_ROLES]
    if not spoken:
        return list(window.sections), []
    *others, session = window.sections
    head = session.lines[: -len(window.turns)]
    quoted_turns = zip(session.lines[-len(window.turns) :], window.turns, strict=True)
    lines = (*head, *(line for line, turn in quoted_turns if turn.role not in SPOKEN_ROLES))
    return [*others, replace(session, lines=lines)], spoken
