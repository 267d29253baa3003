"""Lay out the context window: what is remembered, in ordered sections that go before the model.

Everything counts against the budget, labels included, and no budget is ever exceeded. Rows are whole: one
that does not fit is left out, or cut if it is long, and the window says so. All text from outside is
quoted. What of each section is shown is chosen by `choice`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory_app.errors import InvalidInput
from memory_app.language.budget import count_tokens
from memory_app.language.marks import without_marks
from memory_app.recall.choice import Choice, Draft, Selection, first_choice, further_choice, heading
from memory_app.recall.lines import section_lines
from memory_app.recall.log_block import LogBlock, log_block
from memory_app.recall.parts import ContextParts
from memory_app.records.layout import PLACES, PREFACE
from memory_app.records.quote import quoted_label, shortened
from memory_app.records.records import Role, Turn

LOG_SECTION = "memories"
"""The section under whose rows the lines of the log stand."""

LOG_SHARE = 0.4
LOG_TOKENS = 400
"""Room for the best lines of the log before other sections get more than their share: so much of the budget, at most
so many tokens."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """``rows`` of ``section`` that are not shown in full. Reason: ``budget``, ``limit`` or ``shortened``."""

    section: str
    rows: int
    reason: str


@dataclass(frozen=True, slots=True)
class WindowSection:
    """A section of the window. ``tokens`` counts its heading and lines."""

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
    """Turns that are the last lines of the session section, oldest first, their text cut as in the window."""


LOG_HEADING_TOKENS = count_tokens(heading(PLACES[LOG_SECTION].title))


# --- rendering ----------------------------------------------------------------------------------------------


def render(parts: ContextParts, *, budget_tokens: int, now: datetime) -> ContextWindow:
    """Return the window of ``parts`` within ``budget_tokens``, of which 0 gives an empty one.

    Raises `InvalidInput` for a negative budget. A budget too small for a section is none: see ``dropped``.
    """
    if budget_tokens < 0:
        raise InvalidInput("budget_tokens: 0 or more", field="budget_tokens")
    preface = _preface(parts.degraded, budget_tokens)
    room = budget_tokens - count_tokens(preface)
    # Set aside for lines of the log, which hold more answers than anything else that could take it.
    aside = min(int(LOG_SHARE * room), LOG_TOKENS) if parts.log else 0
    choice = first_choice(section_lines(parts, now), room=room, aside=aside)
    # Without rows the lines stand under a heading of their own.
    own_heading = 0 if _has_rows(choice) else LOG_HEADING_TOKENS
    block = log_block(parts, room=room - choice.tokens - own_heading)
    left = room - block.tokens - (own_heading if block.lines else 0)
    choice = further_choice(choice, budget=left)
    chosen = list(zip(choice.drafts, choice.selections, strict=True))
    sections = tuple(
        section
        for draft, selection in chosen
        if (section := _section(draft, selection, block=block)) is not None
    )
    ids = dict.fromkeys(id for section in sections for id in section.ids)
    # What the text costs, since it is these lines and tokens add up over lines.
    tokens = count_tokens(preface) + sum(section.tokens for section in sections)
    return ContextWindow(
        text=_joined(preface, sections),
        sections=sections,
        ids=tuple(ids),
        tokens=tokens if sections else 0,
        budget_tokens=budget_tokens,
        degraded=parts.degraded,
        dropped=_dropped(chosen),
        preface=preface if sections else "",
        turns=_turns(chosen),
    )


def _has_rows(choice: Choice) -> bool:
    return any(
        selection.texts and draft.place.name == LOG_SECTION
        for draft, selection in zip(choice.drafts, choice.selections, strict=True)
    )


def as_messages(window: ContextWindow) -> list[dict[str, str]]:
    """Return chat messages: the window without its dialogue as a system message, then the dialogue, oldest first.

    What tools and systems said stays quoted in the system message. The contents stay within the budget;
    the few tokens a server adds for each message are its own.
    """
    sections, dialogue = _without_dialogue(window)
    system = _joined(window.preface, sections)
    # The budget is checked again, because messages have neither heads nor quotation marks.
    room = window.budget_tokens - count_tokens(system)
    messages: list[dict[str, str]] = []
    # The newest turns first, since they are what the next answer follows.
    for turn in reversed(dialogue):
        speech = _speech(turn)
        room -= count_tokens(speech)
        if room < 0:
            # A shorter, older turn may still fit, but skipping one would leave a gap in the dialogue.
            break
        messages.append({"role": turn.role.value, "content": speech})
    if system:
        messages.append({"role": Role.SYSTEM.value, "content": system})
    return messages[::-1]


def as_json(window: ContextWindow) -> dict[str, object]:
    """Return the window as JSON: text, sections, ids, tokens, degraded, dropped."""
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


# --- putting together ---------------------------------------------------------------------------------------


def _preface(degraded: Iterable[str], budget: int) -> str:
    missing = ", ".join(quoted_label(name) for name in degraded)
    if not missing:
        return PREFACE
    longer = f"{PREFACE}\nCould not be read just now: {missing}."
    # A warning must not take the room of what it warns about: a tenth of the budget at most.
    return longer if count_tokens(longer) <= budget // 10 else PREFACE


def _joined(preface: str, sections: Sequence[WindowSection]) -> str:
    if not sections:
        return ""
    # Only whole lines joined by newlines, because token counts add up over lines and over nothing else.
    lines = [preface]
    for section in sections:
        lines += [heading(section.title), *section.lines]
    return "\n".join(lines)


def _section(draft: Draft, selection: Selection, *, block: LogBlock) -> WindowSection | None:
    """A section of what was chosen, the lines of the log under the rows they belong to; None when it is empty."""
    if draft.place.name != LOG_SECTION:
        block = LogBlock()
    if not selection.texts and not block.lines:
        return None
    order = _display_order(draft, selection)
    row_ids = [id for place in order for id in draft.lines[place].ids_within(selection.chars[place])]
    return WindowSection(
        name=draft.place.name,
        title=draft.place.title,
        lines=(*(selection.texts[place] for place in order), *block.lines),
        ids=(*row_ids, *block.ids),
        tokens=selection.tokens + block.tokens + (0 if selection.texts else LOG_HEADING_TOKENS),
    )


def _display_order(draft: Draft, selection: Selection) -> list[int]:
    places = list(selection.texts)
    if not draft.is_dialogue:
        return places
    # The first line tells of the session; the turns below it run from the oldest to the newest.
    return places[:1] + places[:0:-1]


def _dropped(chosen: Iterable[tuple[Draft, Selection]]) -> tuple[Dropped, ...]:
    notes = []
    for draft, selection in chosen:
        shortened_count = sum(
            len(draft.lines[place].text) > chars for place, chars in selection.chars.items()
        )
        counts = {
            "limit": draft.over_limit,
            "budget": len(draft.lines) - len(selection.texts) - len(draft.repeated),
            "shortened": shortened_count,
        }
        notes += [Dropped(draft.place.name, rows, reason) for reason, rows in counts.items() if rows]
    return tuple(notes)


def _turns(chosen: Iterable[tuple[Draft, Selection]]) -> tuple[Turn, ...]:
    """The turns in the window, oldest first, their text cut as there."""
    turns = []
    for draft, selection in chosen:
        for place in _display_order(draft, selection):
            turn = draft.lines[place].turn
            if turn is not None:
                turns.append(replace(turn, text=shortened(turn.text, selection.chars[place])))
    return tuple(turns)


def _speech(turn: Turn) -> str:
    """What a turn says as a message of its own; empty where it is none."""
    if turn.role is Role.USER:
        return turn.text
    # A tool's message would need the call it answers. And a model that reads "[tool call: clock]" among its own words
    # writes that the next time, instead of calling the tool.
    return without_marks(turn.text).strip() if turn.role is Role.ASSISTANT else ""


def _without_dialogue(window: ContextWindow) -> tuple[list[WindowSection], list[Turn]]:
    """The sections without what becomes messages of its own, and the turns that do."""
    dialogue = [turn for turn in window.turns if _speech(turn)]
    if not dialogue:
        return list(window.sections), []
    # The session is the last place of the layout, and its turns are its last lines.
    *others, session = window.sections
    first_turn = len(session.lines) - len(window.turns)
    turn_lines = zip(session.lines[first_turn:], window.turns, strict=True)
    remarks = [line for line, turn in turn_lines if not _speech(turn)]
    lines = (*session.lines[:first_turn], *remarks)
    return [*others, replace(session, lines=lines)], dialogue
