"""Choose what of each section stands in the window: rows within the budget, and how long they are. Pure.

Breadth comes first: long rows are short until every row has had its chance; what is left makes them longer again.
What a card that is shown says is no row of its own; where the card has no room, the row stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from memory_app.language.budget import allocate, count_tokens
from memory_app.language.text import normalise
from memory_app.recall.lines import SHORT_CHARS, Line
from memory_app.records.layout import LAYOUT, Place

CUT_CHARS = (3200, 1600, 800)
"""Lengths between `SHORT_CHARS` and the whole that a long row may be cut to, longest first."""

CHARS_PER_TOKEN_LIMIT = 8
"""A text with more characters than this per token left is not worth counting: it cannot fit."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A section before the cut: rows strongest first, each in its short form with its tokens.

    ``repeated`` are places of rows that say what a card in the window says; they are not chosen.
    """

    place: Place
    lines: tuple[Line, ...]
    shorts: tuple[str, ...]
    costs: tuple[int, ...]
    heading_cost: int
    over_limit: int
    repeated: frozenset[int] = frozenset()

    @property
    def demand(self) -> int:
        return self.heading_cost + sum(self.costs)

    @property
    def is_dialogue(self) -> bool:
        """Whether it is shown oldest first, and without holes."""
        return any(line.turn for line in self.lines)

    @property
    def floor(self) -> int:
        """Tokens without which it is not shown at all, for first rows that are always there."""
        count = self._always_count()
        return self.heading_cost + sum(self.costs[:count]) if count else 0

    def _always_count(self) -> int:
        later = next((place for place, line in enumerate(self.lines) if not line.always), len(self.lines))
        return max(later, 1) if self.lines and self.place.always else later


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows of a draft that are in the window: text by the row's place in the draft, cut to ``chars``."""

    texts: Mapping[int, str]
    chars: Mapping[int, int]
    tokens: int


@dataclass(frozen=True, slots=True)
class Choice:
    """Every section with what is chosen of it, in the order of the layout."""

    drafts: tuple[Draft, ...]
    selections: tuple[Selection, ...]

    @property
    def tokens(self) -> int:
        return sum(selection.tokens for selection in self.selections)


def heading(title: str) -> str:
    """Return the line of a section's heading, with the empty line before it."""
    return f"\n[{title}]"


def first_choice(lines: Mapping[str, tuple[Line, ...]], *, room: int, aside: int) -> Choice:
    """Choose by the shares of the sections; what is always there is as long as it can be.

    Of ``room`` tokens ``aside`` are left over, as far as what is always there does not need them.
    """
    drafts = tuple(_draft(place, lines[place.name]) for place in LAYOUT)
    budget = max(room - aside, min(room, sum(draft.floor for draft in drafts)))
    granted = allocate(
        [draft.place.share for draft in drafts],
        [draft.demand for draft in drafts],
        max(budget, 0),
        floors=[draft.floor for draft in drafts],
    )
    empty = _selection({}, {}, 0)
    selections = tuple(_fill(draft, empty, room) for draft, room in zip(drafts, granted, strict=True))
    choice = _spend_rest(Choice(drafts, selections), budget=budget, spend=_fill)
    # Else the log, which comes next, would take the room of a long directive or of what is known about the person.
    choice = _spend_rest(choice, budget=budget, spend=_lengthen_always)
    return _without_repeats(choice)


def further_choice(choice: Choice, *, budget: int) -> Choice:
    """Spend the rest of ``budget`` tokens: more rows before longer ones."""
    choice = _spend_rest(choice, budget=budget, spend=_fill)
    choice = _spend_rest(choice, budget=budget, spend=_lengthen)
    # A card that became longer may say what a row says.
    return _without_repeats(choice)


def _draft(place: Place, lines: tuple[Line, ...]) -> Draft:
    rows = lines[: place.limit]
    # Counted once: `allocate` and every fill ask for these figures again.
    shorts = tuple(row.cut_to(SHORT_CHARS) for row in rows)
    return Draft(
        place=place,
        lines=rows,
        shorts=shorts,
        costs=tuple(map(count_tokens, shorts)),
        heading_cost=count_tokens(heading(place.title)) if rows else 0,
        over_limit=len(lines) - len(rows),
    )


def _spend_rest(
    choice: Choice, *, budget: int, spend: Callable[[Draft, Selection, int], Selection]
) -> Choice:
    """``spend`` what is over of the budget, section by section: those always there first, then by share."""
    rest = budget - choice.tokens
    spent = list(choice.selections)
    for at in sorted(range(len(spent)), key=lambda at: _rank(choice.drafts[at].place)):
        before = spent[at]
        spent[at] = spend(choice.drafts[at], before, before.tokens + rest)
        rest -= spent[at].tokens - before.tokens
    return replace(choice, selections=tuple(spent))


def _rank(place: Place) -> tuple[bool, float]:
    return not place.always, -place.share


def _fill(draft: Draft, selection: Selection, room: int) -> Selection:
    """``selection`` with as many more rows in their short form as fit into ``room`` tokens, the strongest first."""
    texts, chars = dict(selection.texts), dict(selection.chars)
    tokens = selection.tokens or draft.heading_cost
    for place, (short, cost) in enumerate(zip(draft.shorts, draft.costs, strict=True)):
        if place in texts or place in draft.repeated:
            continue
        if tokens + cost <= room:
            texts[place], chars[place] = short, SHORT_CHARS
            tokens += cost
        elif draft.is_dialogue:
            # An older turn after a gap would read as if it were the one before.
            break
    return _selection(texts, chars, tokens)


def _lengthen_always(draft: Draft, selection: Selection, room: int) -> Selection:
    if draft.is_dialogue:
        # The last turns must be there, not their whole length: somebody may have pasted a page.
        return selection
    places = [place for place in selection.texts if draft.place.always or draft.lines[place].always]
    return _lengthened(draft, selection, room, places=places)


def _lengthen(draft: Draft, selection: Selection, room: int) -> Selection:
    return _lengthened(draft, selection, room, places=list(selection.texts))


def _lengthened(draft: Draft, selection: Selection, room: int, *, places: Sequence[int]) -> Selection:
    """``selection`` with rows as long as ``room`` tokens allow, the strongest row first."""
    texts, chars = dict(selection.texts), dict(selection.chars)
    rest = room - selection.tokens
    for place in places:
        line, cost = draft.lines[place], count_tokens(texts[place])
        for length in _longer_cuts(line, rest + cost, longer_than=chars[place]):
            text = line.cut_to(length)
            more = count_tokens(text) - cost
            if more <= rest:
                texts[place], chars[place] = text, length
                rest -= more
                break
    return _selection(texts, chars, room - rest)


def _longer_cuts(line: Line, room: int, *, longer_than: int) -> list[int]:
    """Lengths in characters to which a long row may be cut, longest first, as far as ``room`` tokens may hold them."""
    whole = len(line.text)
    cuts = [whole, *(chars for chars in CUT_CHARS if chars < whole)]
    return [chars for chars in cuts if longer_than < chars <= room * CHARS_PER_TOKEN_LIMIT]


def _selection(texts: dict[int, str], chars: dict[int, int], tokens: int) -> Selection:
    order = sorted(texts)
    return Selection(
        texts={place: texts[place] for place in order},
        chars={place: chars[place] for place in order},
        tokens=tokens if texts else 0,
    )


# --- what a card says already -------------------------------------------------------------------------------


def _without_repeats(choice: Choice) -> Choice:
    """Take out of cards what a card before them says, and rows that say what a card says."""
    shown: set[str] = set()
    drafts, selections = [], []
    for draft, selection in zip(choice.drafts, choice.selections, strict=True):
        draft, selection = _without(draft, selection, shown)
        drafts.append(draft)
        selections.append(selection)
    return Choice(tuple(drafts), tuple(selections))


def _without(draft: Draft, selection: Selection, shown: set[str]) -> tuple[Draft, Selection]:
    """The same without what is ``shown``, to which what its cards say is added: cards stand before rows."""
    texts, chars = dict(selection.texts), dict(selection.chars)
    lines, shorts, costs = list(draft.lines), list(draft.shorts), list(draft.costs)
    repeated = set(draft.repeated)
    tokens = selection.tokens
    for place, line in enumerate(draft.lines):
        rest = line.without(shown)
        if rest is None:
            repeated.add(place)
            if place in texts:
                tokens -= count_tokens(texts.pop(place))
                del chars[place]
            continue
        if rest is not line:
            lines[place], shorts[place] = rest, rest.cut_to(SHORT_CHARS)
            costs[place] = count_tokens(shorts[place])
            if place in texts:
                tokens -= count_tokens(texts[place])
                texts[place] = rest.cut_to(chars[place])
                tokens += count_tokens(texts[place])
        if place in texts:
            shown |= {normalise(fact.text) for fact in rest.facts_within(chars[place])}
    draft = replace(
        draft, lines=tuple(lines), shorts=tuple(shorts), costs=tuple(costs), repeated=frozenset(repeated)
    )
    return draft, _selection(texts, chars, tokens)
