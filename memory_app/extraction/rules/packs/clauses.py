"""Cut a turn into the clauses that its author states, by the words of a pack.

Transcripts, quoted speech, questions and what is supposed are left out here, so that the patterns of rules need not
think of them. A clause has several readings, since what is taken off it for one rule belongs to the pattern of another.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

from memory_app.extraction.rules.clauses import (
    LAUGH,
    LAUGHING,
    MARK,
    SENTENCE,
    SENTENCE_LIMIT,
    own_words,
)
from memory_app.extraction.rules.packs.dates import DateMatch, find_date
from memory_app.extraction.rules.packs.pack import Pack

CLAUSE_LIMIT = 160
"""Characters of a clause, or of several that are read as one; a statement is shorter."""

PARTS_LIMIT = 24
"""A sentence of more parts is an enumeration from somewhere, and costs too much to read."""

PARTS_JOINED = 5
"""So many parts are read as one clause, for lists, "not Acme, but Apex" and "Anna and I"."""

TITLE_WORDS = 4
"""Quoted words up to so many are a title, unless one of them belongs to speech."""

_TRANSCRIPT = re.compile(r"\s*\[?(?:\d{1,4}[./-]\d{1,2}[./-]\d{2,4},? )?\d{1,2}:\d\d")
"""How a line of an exported chat begins."""
_BULLET = re.compile(r"^\s*[-*•·]\s+(?=\w)")
_OPENED_QUESTION = re.compile("[\\s,]*([\u00bf\u00a1])")
"""The signs with which questions and exclamations begin in Spanish."""
_DIGIT = re.compile(r"\d")
_ORDINAL_DOT = re.compile(r"(?<![\d.])(\d{1,2})\. (?=[a-zß-öø-ÿ])")
_NUMERIC_DATE = re.compile(r"(?<![\d.])(\d{1,2})\.(\d{1,2})\.((?:19|20)\d\d)?(?!\d)")
_QUOTES = str.maketrans(
    dict.fromkeys("\u201e\u201c\u201d\u00ab\u00bb\u2039\u203a", '"') | dict.fromkeys("\u2018\u2019", "'")
)
_SYMBOLS = frozenset({"So", "Sk"})
"""The categories of emoji and the like."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a sentence; ``separator`` stands before it, and is empty where the two are never one clause."""

    text: str
    separator: str


@dataclass(frozen=True, slots=True)
class Clause:
    """One reading of a clause.

    ``date`` was taken out of ``text``; where the clause ``holds_date``, it stands in the text still. A clause that
    ``is_cut`` goes on behind the text. What it states ``is_beside`` others of its kind; ``day_part`` was taken off it.
    """

    text: str
    date: DateMatch | None = None
    holds_date: bool = False
    is_cut: bool = False
    is_beside: bool = False
    day_part: str = ""


# --- the author's own text ------------------------------------------------------------------------------------


def own_text(pack: Pack, text: str) -> str:
    """The own words of the author, with the signs that all languages share in one form each."""
    text = unicodedata.normalize("NFC", text).translate(_QUOTES)
    lines = [_without_label(pack, line) for line in text.splitlines() if not _TRANSCRIPT.match(line)]
    own = own_words("\n".join(lines), is_title=partial(_is_title, pack))
    own = pack.contraction.sub(lambda match: pack.file.contractions[match[0].lower()], own)
    own = _without_inner_dots(pack, own)
    # Plain text has no such signs, and to look at each character is slow.
    if own.isascii():
        return own
    own = _OPENED_QUESTION.sub(r". \1", own)
    return "".join(map(_without_symbol, own))


def _without_label(pack: Pack, line: str) -> str:
    """``line`` without a label such as "PS: "; empty for what another speaker says in a transcript."""
    line = _BULLET.sub("", line)
    if ":" not in line:
        return line
    line = pack.label.sub(r"\g<label>, ", line)
    head, colon, rest = line.partition(": ")
    if not colon:
        return line
    # "Also: …" opens a sentence.
    is_opening = not without_opening(pack, head)
    if _is_speaker(head) and not is_opening:
        return ""
    return f"{head}; {rest}"


def _is_speaker(head: str) -> bool:
    """Whether what stands before a colon names who speaks: "Ana", "ana", "Ana Ruiz"."""
    words = head.split()
    if len(words) == 1:
        return True
    return len(words) <= 3 and all(word[0].isupper() for word in words)


def _is_title(pack: Pack, quote: str) -> bool:
    words = quote.lower().split()
    if len(words) > TITLE_WORDS:
        return False
    if quote.endswith((".", "!", "?", ",")):
        return False
    return pack.words.not_in_objects.isdisjoint(words)


def _without_inner_dots(pack: Pack, text: str) -> str:
    """Without dots that end no sentence: of abbreviations, ordinal numbers and dates."""
    text = pack.abbreviation.sub(r"\g<short>", text)
    # Three slow looks less at most turns.
    if _DIGIT.search(text) is None:
        return text
    text = _ORDINAL_DOT.sub(r"\1 ", text)
    text = _NUMERIC_DATE.sub(_with_slashes, text)
    return pack.ordinal.sub(r"\1 ", text)


def _with_slashes(match: re.Match[str]) -> str:
    return "/".join(filter(None, match.groups()))


def _without_symbol(sign: str) -> str:
    """A dot instead of an emoji, which ends a sentence; one that laughs is told by `LAUGH`."""
    if sign in LAUGHING:
        return f" {LAUGH}."
    return "." if unicodedata.category(sign) in _SYMBOLS else sign


# --- sentences and their parts --------------------------------------------------------------------------------


def sentences(text: str) -> Iterator[str]:
    """The sentences of `own_text` that are speech and hold no quoted speech."""
    for match in SENTENCE.finditer(text):
        sentence = " ".join(match[0].split())
        is_pasted = len(sentence) > SENTENCE_LIMIT
        if not is_pasted and MARK not in sentence:
            yield sentence


def stated_parts(pack: Pack, sentence: str) -> Sequence[Part]:
    """The parts of a sentence that its author states: neither questions nor suppositions."""
    if sentence.startswith("\u00bf"):
        return []
    if pack.stop_sentence.search(sentence) or pack.stop_tail.search(sentence):
        return []
    sentence = sentence.lstrip("\u00a1 ")
    is_question = sentence.endswith("?")
    parts = _split(pack, sentence.rstrip(" .!?\u2026"))
    stated = list(takewhile(lambda part: _is_stated(pack, part, is_question=is_question), parts))
    if is_question and len(stated) == len(parts):
        stated = _without_question(pack, parts)
    return stated if len(stated) <= PARTS_LIMIT else []


def _split(pack: Pack, body: str) -> list[Part]:
    parts: list[Part] = []
    start = 0
    separator = ""
    for match in pack.split.finditer(body):
        text = body[start : match.start()].strip()
        parts.append(Part(text, separator))
        start = match.end()
        # Across brackets, dashes and the like nothing is joined again.
        separator = match["comma"] or match["join"] or ""
    parts.append(Part(body[start:].strip(), separator))
    return parts


def _is_stated(pack: Pack, part: Part, *, is_question: bool) -> bool:
    """Whether a part, and with it what follows, is neither supposed nor asked."""
    if pack.stop_rest.search(part.text):
        return False
    opened = without_opening(pack, part.text)
    if pack.question.match(opened):
        return False
    asks = is_question and pack.asks.match(opened) is not None
    return not asks


def _without_question(pack: Pack, parts: Sequence[Part]) -> list[Part]:
    """What a question states whose beginning is not known: its last part asks, "I live in Lyon, and you?"."""
    *stated, last = parts
    # "Do I take tea, or coffee?": all of it is the question.
    is_choice = pack.choice.match(last.text) is not None
    return [] if is_choice else stated


def without_opening(pack: Pack, text: str) -> str:
    """``text`` without words that open a sentence."""
    before = ""
    while text != before:
        before = text.strip(" ,")
        opening = pack.opening.match(before)
        text = before[opening.end() :] if opening else before
    return text


# --- clauses --------------------------------------------------------------------------------------------------


def joined_parts(parts: Sequence[Part]) -> Iterator[tuple[int, str]]:
    """What may be one clause at the beginning of ``parts``: how many parts and their text, the longest first."""
    first, *others = parts[:PARTS_JOINED]
    others = list(takewhile(lambda part: part.separator, others))
    for count in range(len(others), -1, -1):
        rest = "".join(part.separator + part.text for part in others[:count])
        yield count + 1, first.text + rest


def readings(pack: Pack, text: str, *, is_cut: bool) -> Iterator[Clause]:
    """The clause as it is, without openings and fillers, and without its date as well.

    In "born in May" the date is the object, and in "moi c'est Anna" the filler belongs to the pattern. Nothing for
    what no statement looks like.
    """
    if not 2 <= len(text) <= CLAUSE_LIMIT:
        return
    if _is_shouted(pack, text):
        return
    if not pack.file.clause.beside:
        yield from _plainer(pack, text, is_cut=is_cut)
        return
    is_change = pack.change.search(text) is not None
    is_beside = not is_change and pack.beside.search(text) is not None
    for clause in _plainer(pack, text, is_cut=is_cut):
        day_part = pack.day_part.search(clause.text)
        if day_part is not None:
            # First, since "a bakery in the mornings" looks like an object as well.
            shorter = clause.text[: day_part.start()]
            yield replace(clause, text=shorter, is_beside=not is_change, day_part=day_part["part"])
        yield replace(clause, is_beside=True) if is_beside else clause


def _plainer(pack: Pack, text: str, *, is_cut: bool) -> Iterator[Clause]:
    opened = without_opening(pack, text)
    opened = with_own(pack, opened)
    date = find_date(pack, opened)
    holds_date = date is not None
    yield Clause(text, holds_date=holds_date, is_cut=is_cut)
    plain = _plain(pack, opened, has_front=opened != text.strip(" ,"))
    if plain != text:
        yield Clause(plain, holds_date=holds_date, is_cut=is_cut)
    shorter = _without_tails(pack, plain)
    if shorter != plain:
        yield Clause(shorter, holds_date=holds_date, is_cut=is_cut)
    if date is not None:
        rest = _without_date(opened, date)
        begins_with_date = date.span[0] == 0
        plain = _plain(pack, rest, has_front=begins_with_date)
        for reading in dict.fromkeys((plain, _without_tails(pack, plain), rest)):
            yield Clause(reading, date, is_cut=is_cut)


def with_own(pack: Pack, text: str) -> str:
    """``text`` as of the speaker's own where it begins with a word that needs none: "Mum takes warfarin"."""
    is_bare = bool(pack.file.people.bare) and pack.bare.match(text) is not None
    return f"{pack.file.people.own} {text}" if is_bare else text


def _is_shouted(pack: Pack, text: str) -> bool:
    """Whether one of the first words is in capitals: "I just LOVE waiting" means the opposite."""
    if text.isupper():
        return False
    words = text.split()[:3]
    return any(len(word) > 3 and word.isupper() and word.lower() not in pack.words.acronyms for word in words)


def _without_date(text: str, date: DateMatch) -> str:
    start, end = date.span
    before = text[:start].rstrip()
    after = text[end:].lstrip()
    if before and not before.endswith(",") and after.startswith(","):
        # Or two clauses would be one: "I left Acme in April, I work at Apex".
        return " ".join(f"{before}{after}".split())
    before, after = before.rstrip(","), after.lstrip(" ,")
    return " ".join(f"{before} {after}".split())


def _plain(pack: Pack, text: str, *, has_front: bool) -> str:
    """``text`` without fillers. ``has_front``: something stood before it in its clause."""
    plain = " ".join(pack.filler.sub("", text).split()).strip(" ,")
    has_filler_in_front = not text.startswith(plain.split(" ")[0])
    # A verb that opens a sentence asks; behind something else it states.
    if has_front or has_filler_in_front:
        plain = pack.inverted.sub(r"\g<subject> \g<verb>", plain, count=1)
    return plain


def _without_tails(pack: Pack, text: str) -> str:
    before = ""
    while text != before:
        before = text
        text = pack.tail.sub("", text).rstrip(" ,")
    return text
