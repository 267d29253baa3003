"""Tell what a sentence takes back: "No wait, I work at Apex, not Acme", "it's Aalst, not Ghent". Pure.

A correction names the mistake behind its fact, is announced, or both. One that is no sentence of its own ("I meant
Apex") says again what was said before, with the right object in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from memory_app.extraction.rules.packs import slot_values
from memory_app.extraction.rules.packs.clauses import without_opening
from memory_app.extraction.rules.packs.conversation import History
from memory_app.extraction.rules.packs.fact import Fact
from memory_app.extraction.rules.packs.pack import Pack
from memory_app.memories.relations import relation_of

Read = Callable[[str], Sequence[Fact]]
"""Reads a clause."""

CORRECTION_LIMIT = 60
"""Characters of a correction that is no sentence."""

_COMMA = re.compile(r",| [\u2013\u2014-] |;")


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
    return Correction(text[: match.start()] + match.string[match.end() :], mistake, is_announced)


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
    return [replace(fact, corrects=_mistake(correction, fact, history)) for fact in facts]


def _mistake(correction: Correction, fact: Fact, history: History) -> str | None:
    """The object in place of which the fact has its own."""
    before = [other for other in history() if _is_line(fact, other) and other.object != fact.object]
    if correction.mistake is not None:
        # "The tenor saxophone, not the alto" names a part of it.
        named = (other.object for other in reversed(before) if _has_words(other.object, correction.mistake))
        return next(named, correction.mistake)
    # The object that the author gave just before for what holds one object at a time.
    last = before[-1] if before else None
    if last is None:
        return None
    return last.object if relation_of(fact.relation).single_valued else None


def _is_line(fact: Fact, other: Fact) -> bool:
    return (fact.called or fact.kin, fact.relation) == (other.called or other.kin, other.relation)


def _words_of(text: str) -> list[str]:
    return re.sub(r"\W+", " ", text.casefold()).split()


def _has_words(text: str, part: str) -> bool:
    """Whether the words of ``part`` stand in ``text``, side by side."""
    return bool(part) and f" {' '.join(_words_of(part))} " in f" {' '.join(_words_of(text))} "


# --- corrections that are no sentence ---------------------------------------------------------------------------


def said_again(
    pack: Pack, correction: Correction, history: History, *, read: Read, is_answer: bool
) -> list[Fact]:
    """What was said before with the right object, for a correction that states no fact itself: "Apex, not Acme".

    ``read`` reads the clause of what was said before, with the right words in place of the wrong ones. What may be the
    answer to a question (``is_answer``) has to be announced: "46 actually" may be the number of guests.
    """
    patterns = (*(pack.correction.right if correction else ()), *(() if is_answer else pack.correction.alone))
    for text in _beginnings(pack, correction.text):
        for match in filter(None, (pattern.fullmatch(text) for pattern in patterns)):
            # "Not Acme but Apex" names both.
            mistake = correction.mistake or match.groupdict().get("wrong")
            for fact in reversed(history()):
                again = _exchanged(fact, match["right"], mistake, read)
                if again is not None:
                    return [again]
    return []


def _beginnings(pack: Pack, text: str) -> Iterator[str]:
    """The text and what is left of it without its last parts, the longest first: "46, I forgot my birthday"."""
    # Before a semicolon, or a colon, stands how the mistake came about: "autocorrect again: Delia, not Elia".
    text = without_opening(pack, text.rpartition(";")[2]).strip(" .!\u2026")
    cuts = [match.start() for match in _COMMA.finditer(text)]
    beginnings = [text, *(text[:cut].rstrip() for cut in reversed(cuts))]
    return (beginning for beginning in beginnings if len(beginning) <= CORRECTION_LIMIT)


def _exchanged(fact: Fact, right: str, mistake: str | None, read: Read) -> Fact | None:
    """The fact with ``right`` in place of its object, or of the part of it that was the mistake."""
    old = fact.words
    if not old or (mistake is not None and not _has_words(old, mistake)):
        return None
    # "Banca del Garda, not Lario" names all of it, "the tenor, not the alto" a part.
    is_part = mistake is not None and set(_words_of(old)).isdisjoint(_words_of(right))
    words = _with_words(old, mistake, right) if is_part and mistake is not None else right
    clause = _with_words(fact.clause, old, words)
    # Two rules may read the same fact.
    again = {other.object: other for other in read(clause) if _is_line(fact, other)}
    if len(again) != 1 or fact.object in again:
        return None
    (right_fact,) = again.values()
    # The date was taken out of the clause, and stays as it was said.
    when = right_fact.when or fact.when
    return replace(right_fact, when=when, corrects=fact.object, is_request=fact.is_request)


def _with_words(text: str, old: str, new: str) -> str:
    """``text`` with the words ``new`` in place of ``old``, where these stand first."""
    return re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _: new, text, count=1, flags=re.IGNORECASE)


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
    return _words_of(fact.corrects) == _words_of(other.object)
