"""Tell what a sentence takes back: "No wait, I work at Apex, not Acme", "it's Aalst, not Ghent". Pure.

A correction names the mistake behind its fact, is announced, or both. One that is no sentence of its own ("I meant
Apex") says again what was said before, with the right object in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from memory_app.extraction.rules.packs import slot_values
from memory_app.extraction.rules.packs.clauses import without_opening
from memory_app.extraction.rules.packs.fact import Fact
from memory_app.extraction.rules.packs.pack import Pack
from memory_app.memories.relations import relation_of

History = Callable[[], Sequence[Fact]]
"""The facts that the author stated before, in order."""


def nothing_before() -> Sequence[Fact]:
    """The history of somebody who stated nothing yet."""
    return ()


@dataclass(frozen=True, slots=True)
class Correction:
    """A sentence without the words that make it a correction.

    ``mistake`` is the object that it says was wrong; ``is_announced``: words such as "no wait" stood before it.
    """

    text: str
    mistake: str | None = None
    is_announced: bool = False

    def __bool__(self) -> bool:
        return self.mistake is not None or self.is_announced


def correction_in(pack: Pack, sentence: str) -> Correction:
    """What ``sentence`` corrects; it is falsy where that is nothing, and has the text of the sentence then."""
    text, is_announced = _without_announcement(pack, sentence)
    match = pack.correction.instead.search(text.rstrip(" .!\u2026"))
    mistake = slot_values.whole(pack, match["wrong"]) if match else None
    if match is None or mistake is None:
        return Correction(text if is_announced else sentence, is_announced=is_announced)
    return Correction(text[: match.start()], mistake, is_announced)


def _without_announcement(pack: Pack, sentence: str) -> tuple[str, bool]:
    text = sentence
    is_announced = False
    # Other openings may stand before and between ("Oh, sorry, no, wait: …"), and some words are both.
    announcement = pack.correction.announcement
    while match := announcement.match(text) or announcement.match(without_opening(pack, text)):
        text = match.string[match.end() :]
        is_announced = True
    return text, is_announced


def corrected(correction: Correction, facts: Sequence[Fact], history: History) -> list[Fact]:
    """``facts`` of the sentence, each with what it takes back."""
    return [replace(fact, corrects=correction.mistake or _mistake_before(fact, history)) for fact in facts]


def _mistake_before(fact: Fact, history: History) -> str | None:
    """The object that the author gave just before for what holds one object at a time."""
    before = [other for other in history() if _is_line(fact, other)]
    last = before[-1] if before else None
    if last is None or last.object == fact.object:
        return None
    return last.object if relation_of(fact.relation).single_valued else None


def _is_line(fact: Fact, other: Fact) -> bool:
    return (fact.kin, fact.called, fact.relation) == (other.kin, other.called, other.relation)


def said_again(pack: Pack, correction: Correction, history: History, *, is_loose: bool) -> list[Fact]:
    """What was said before with the right object, for a correction that states no fact itself: "Apex, not Acme"."""
    text = without_opening(pack, correction.text).strip(" .!\u2026")
    matches = list(filter(None, (pattern.fullmatch(text) for pattern in pack.correction.right)))
    if not matches:
        return []
    for fact, match in product(reversed(history()), matches):
        # "Not Acme but Apex" names both.
        mistake = correction.mistake or match.groupdict().get("wrong")
        is_meant = mistake is None or fact.object.casefold() == mistake.casefold()
        right = _right_object(pack, match["right"], fact, is_loose=is_loose) if is_meant else None
        if right is not None:
            return [_with_object(fact, right)]
    return []


def _right_object(pack: Pack, text: str, fact: Fact, *, is_loose: bool) -> str | None:
    """``text`` as the object of a fact like ``fact``: a name in place of a name, a number in place of a number."""
    old = fact.object
    # The words of its sentence are exchanged, so that they must be there.
    if not old or old not in fact.says or text.casefold() == old.casefold():
        return None
    if old.isdigit() or text.isdigit():
        return text if old.isdigit() and text.isdigit() else None
    if old[0].isupper():
        return slot_values.name(pack, text, is_loose=is_loose)
    return slot_values.whole(pack, text)


def _with_object(fact: Fact, right: str) -> Fact:
    return replace(fact, object=right, says=fact.says.replace(fact.object, right), corrects=fact.object)


def without_mistakes(facts: Iterable[Fact], *, limit: int) -> list[Fact]:
    """The facts of one turn without those that a later one takes back; ``limit`` different ones are enough."""
    standing: list[Fact] = []
    for fact in facts:
        standing = [other for other in standing if not _takes_back(fact, other)]
        standing.append(fact)
        if len({(other.kin, other.called, other.relation, other.object) for other in standing}) >= limit:
            break
    return standing


def _takes_back(fact: Fact, other: Fact) -> bool:
    if fact.corrects is None or not _is_line(fact, other):
        return False
    return re.sub(r"\W+", " ", fact.corrects.casefold()) == re.sub(r"\W+", " ", other.object.casefold())
