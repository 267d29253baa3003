"""Read the facts that a turn states, by the rules of a pack. Pure; whatever is doubtful gives nothing.

A turn is cut into sentences and clauses. What is supposed, asked, quoted or told of others is left out by the stop
words of the pack. A pattern must fit a clause from its first to its last word, and what stands in its slots must be
whole; then it states a fact.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from memory_app.extraction.rules.clauses import MARK, own_words
from memory_app.extraction.rules.packs import dates, slot_values
from memory_app.extraction.rules.packs.dates import DateMatch
from memory_app.extraction.rules.packs.format import PackRule
from memory_app.extraction.rules.packs.pack import Pack, RulePatterns
from memory_app.extraction.rules.packs.slots import DATE_SLOTS, OPEN_SLOTS
from memory_app.extraction.rules.patterns import When

SENTENCE_LIMIT = 400
"""Characters; longer sentences are pasted text, not speech."""

CLAUSE_LIMIT = 160
"""Characters of a clause, or of several that are read as one; a statement is shorter."""

PARTS_LIMIT = 24
"""A sentence of more parts is an enumeration from somewhere, and costs too much to read."""

PARTS_JOINED = 5
"""So many parts are read as one clause, for lists, "not Acme, but Apex" and "Anna and I"."""

CUTS = 2
"""So many joining words of a clause are tried as its end."""

TITLE_WORDS = 4
"""Quoted words up to so many are a title, unless one of them belongs to speech."""

_SENTENCE = re.compile(r"[^.!?\n\u2026]+(?:[.!?\u2026]+(?=[\w'\"])[^.!?\n\u2026]+)*[.!?\u2026]*")
_ROLE_PLAY = re.compile(r"\*[^*\n]{0,200}\w \w[^*\n]{0,200}\*")
_TRANSCRIPT = re.compile(r"\s*\[?(?:\d{1,4}[./-]\d{1,2}[./-]\d{2,4},? )?\d{1,2}:\d\d")
"""How a line of an exported chat begins."""
_OPENED_QUESTION = re.compile("[\\s,]*([\u00bf\u00a1])")
"""The signs with which questions and exclamations begin in Spanish."""
_LAUGHTER = re.compile("[\U0001f602\U0001f923\U0001f61c\U0001f61d\U0001f92a\U0001f643\U0001f609]")
_BULLET = re.compile(r"^\s*[-*•·]\s+(?=\w)")
_ORDINAL_DOT = re.compile(r"(?<![\d.])(\d{1,2})\. (?=[a-zß-öø-ÿ])")
_NUMERIC_DATE = re.compile(r"(?<![\d.])(\d{1,2})\.(\d{1,2})\.((?:19|20)\d\d)?(?!\d)")
_QUOTES = str.maketrans(
    dict.fromkeys("\u201e\u201c\u201d\u00ab\u00bb\u2039\u203a", '"') | dict.fromkeys("\u2018\u2019", "'")
)


@dataclass(frozen=True, slots=True)
class Fact:
    """What a rule states. ``kin`` is the relation of whom it is about to the user, None for the user.

    ``called`` is that person's name, ``term`` the word for them in the language of the turn.
    """

    rule: PackRule
    relation: str
    object: str
    says: str
    when: dates.StartDay | None = None
    kin: str | None = None
    called: str | None = None
    term: str = ""


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause without its date, openings, fillers and tails. ``is_loose``: its author writes no capitals."""

    text: str
    date: DateMatch | None
    is_loose: bool
    holds_date: bool = False
    """A date stands in ``text`` still, which only some slots may take."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a sentence; ``separator`` stands before it, and is empty where the two are never one clause."""

    text: str
    separator: str


def read(pack: Pack, text: str, *, today: date, is_left_out: Callable[[str], bool]) -> list[Fact]:
    """The facts that ``text`` states, in order.

    ``today`` is the day on which it was said, where its author is. A sentence for which ``is_left_out`` is true
    states nothing.
    """
    # Whoever laughs may mean the opposite.
    if _LAUGHTER.search(text):
        return []
    own = prepared(pack, text)
    if pack.stop_turn.search(own) or _ROLE_PLAY.search(own):
        return []
    is_loose = not any(map(str.isupper, own))
    facts: list[Fact] = []
    for match in _SENTENCE.finditer(own):
        sentence = " ".join(match[0].split())
        if len(sentence) <= SENTENCE_LIMIT and MARK not in sentence and not is_left_out(sentence):
            facts += _of_sentence(pack, sentence, is_loose=is_loose, today=today)
    return facts


def prepared(pack: Pack, text: str) -> str:
    """The own words of the author, with the signs that all languages share in one form each."""
    text = unicodedata.normalize("NFC", text).translate(_QUOTES)
    # "Merk dir: …" opens no line of a transcript.
    lines = (_without_label(pack, line) for line in text.splitlines() if not _TRANSCRIPT.match(line))
    own = own_words("\n".join(lines), is_title=lambda quote: _is_title(pack, quote))
    own = pack.abbreviation.sub(r"\g<short>", own)
    own = _ORDINAL_DOT.sub(r"\1 ", own)
    own = pack.ordinal.sub(r"\1 ", _NUMERIC_DATE.sub(_with_slashes, own))
    own = _OPENED_QUESTION.sub(r". \1", own)
    # Emoji and the like end a sentence.
    return "".join("." if unicodedata.category(sign) in ("So", "Sk") else sign for sign in own)


def _without_label(pack: Pack, line: str) -> str:
    """``line`` without a colon that does not stand behind the name of a speaker."""
    line = pack.label.sub(r"\g<label>, ", _BULLET.sub("", line))
    head, colon, rest = line.partition(": ")
    if not colon:
        return line
    words = head.split()
    # "Ana: …" and "ana: …" are a speaker's line of a transcript, and so are "[12:01] Ana Ruiz: …".
    is_speaker = len(words) == 1 or (len(words) <= 3 and all(word[0].isupper() for word in words))
    # "Also: …" opens a sentence.
    return "" if is_speaker and _opened(pack, head) else f"{head}; {rest}"


def _with_slashes(match: re.Match[str]) -> str:
    return "/".join(filter(None, match.groups()))


def _is_title(pack: Pack, quote: str) -> bool:
    words = quote.lower().split()
    is_speech = quote.endswith((".", "!", "?", ",")) or not pack.not_in_objects.isdisjoint(words)
    return len(words) <= TITLE_WORDS and not is_speech


def _of_sentence(pack: Pack, sentence: str, *, is_loose: bool, today: date) -> Iterator[Fact]:
    if pack.stop_sentence.search(sentence) or sentence.startswith("\u00bf"):
        return
    sentence = sentence.lstrip("\u00a1 ")
    parts = _parts(pack, sentence)
    if len(parts) > PARTS_LIMIT:
        return
    place = 0
    while place < len(parts):
        step = 1
        for count in range(min(PARTS_JOINED, _joinable(parts, place)), 0, -1):
            joined = parts[place : place + count]
            text = joined[0].text + "".join(part.separator + part.text for part in joined[1:])
            facts = list(_of_clause(pack, text, is_loose=is_loose, today=today))
            if not facts and count == 1:
                facts = list(_of_cut_clause(pack, text, is_loose=is_loose, today=today))
            if facts:
                yield from facts
                if is_loose:
                    yield from _named_in(pack, text, facts)
                step = count
                break
        place += step
    if not is_loose:
        for part in parts:
            yield from _in_passing(pack, part.text)


def _named_in(pack: Pack, text: str, facts: Sequence[Fact]) -> Iterator[Fact]:
    """Who is named in a clause without capitals: a pattern that fits the whole of it shows what is a name."""
    for called in {fact.called for fact in facts if fact.called and fact.term}:
        yield from _in_passing(pack, text.replace(called.lower(), called))


def _joinable(parts: Sequence[_Part], place: int) -> int:
    """How many parts from ``place`` on may be one clause."""
    count = 1
    while place + count < len(parts) and parts[place + count].separator:
        count += 1
    return count


def _parts(pack: Pack, sentence: str) -> list[_Part]:
    """The parts of a sentence that are stated."""
    body = sentence.rstrip(" .!?\u2026")
    parts: list[_Part] = []
    start, separator = 0, ""
    for match in pack.split.finditer(body):
        parts.append(_Part(body[start : match.start()].strip(), separator))
        start = match.end()
        separator = match[0] if match["comma"] or match["join"] else ""
    parts.append(_Part(body[start:].strip(), separator))
    stated: list[_Part] = []
    for part in parts:
        # What follows a supposition is supposed as well.
        if pack.stop_rest.search(part.text):
            return stated
        opened = _opened(pack, part.text)
        if pack.question.match(opened) or (sentence.endswith("?") and pack.asks.match(opened)):
            return stated
        stated.append(part)
    if not sentence.endswith("?"):
        return stated
    # Of a question whose beginning is not known, the last part asks: "I live in Lyon, and you?"
    is_choice = pack.choice.match(stated[-1].text) is not None
    return [] if is_choice else stated[:-1]


def _opened(pack: Pack, text: str) -> str:
    """``text`` without words that open a sentence."""
    before = ""
    while text != before:
        before, text = text, pack.opening.sub("", text.strip(" ,"), count=1)
    return text


def _of_clause(pack: Pack, text: str, *, is_loose: bool, today: date, is_cut: bool = False) -> Iterator[Fact]:
    if not 2 <= len(text) <= CLAUSE_LIMIT or _is_shouted(text):
        return
    for clause in _readings(pack, text, is_loose=is_loose):
        is_read = False
        for rule in pack.rules:
            # A clause states one fact, but for the rules that say otherwise.
            facts = _by_rule(pack, rule, clause, today, is_cut) if rule.rule.also or not is_read else []
            is_read = is_read or bool(facts)
            yield from facts
        if is_read:
            return


def _of_cut_clause(pack: Pack, text: str, *, is_loose: bool, today: date) -> Iterator[Fact]:
    """Facts of a clause up to a word behind which something else begins: "at Acme and no idea why", "Lyon with Ann".

    Only of rules whose object cannot be cut by this: a name, a place or a number is whole where "and" begins.
    """
    # Behind "and" a word with a capital may be a second name; where nobody writes capitals, nothing tells.
    pattern = pack.loose_cut if is_loose else pack.cut
    for cut in list(pattern.finditer(text))[:CUTS]:
        clause = text[: cut.start()]
        facts = list(_of_clause(pack, clause, is_loose=is_loose, today=today, is_cut=True))
        if facts:
            yield from facts
            return


def _is_shouted(text: str) -> bool:
    """Whether one of the first words is in capitals: "I just LOVE waiting" means the opposite."""
    return not text.isupper() and any(len(word) > 3 and word.isupper() for word in text.split()[:3])


def _readings(pack: Pack, text: str, *, is_loose: bool) -> Iterator[_Clause]:
    """The clause as it is, without openings and fillers, and without its date as well.

    In "born in May" the date is the object, and in "moi c'est Anna" the filler belongs to the pattern.
    """
    opened = _opened(pack, text)
    words = dates.find_date(pack, opened)
    holds_date = words is not None
    yield _Clause(text, None, is_loose, holds_date)
    plain = _plain(pack, opened, has_front=opened != text.strip(" ,"))
    yield _Clause(plain, None, is_loose, holds_date)
    if words is not None:
        start, end = words.span
        rest = " ".join(f"{opened[:start].rstrip(' ,')} {opened[end:].lstrip(' ,')}".split())
        yield _Clause(_plain(pack, rest, has_front=start == 0), words, is_loose)


def _plain(pack: Pack, text: str, *, has_front: bool) -> str:
    without = " ".join(pack.filler.sub("", text).split()).strip(" ,")
    has_front = has_front or not text.startswith(without.split(" ")[0])
    if has_front:
        # A verb that opens a sentence asks; behind something else it states.
        without = pack.inverted.sub(r"\g<subject> \g<verb>", without, count=1)
    before = ""
    while before != without:
        before, without = without, pack.tail.sub("", without).rstrip(" ,")
    return without


def _by_rule(pack: Pack, rule: RulePatterns, clause: _Clause, today: date, is_cut: bool) -> list[Fact]:
    if clause.date is None and rule.rule.needs_date:
        return []
    when = None
    if clause.date is not None:
        when = dates.resolve(pack, clause.date, today=today, future=rule.rule.when is When.PLAN)
        if when is None or not _fits(rule.rule, when, today):
            return []
    for is_other, patterns in ((False, rule.own), (True, rule.others)):
        for pattern in patterns:
            match = pattern.fullmatch(clause.text)
            if match is None or (clause.holds_date and DATE_SLOTS.isdisjoint(match.groupdict())):
                continue
            if is_cut and not OPEN_SLOTS.isdisjoint(match.groupdict()):
                continue
            facts = _facts(pack, rule.rule, match, is_other=is_other, is_loose=clause.is_loose)
            if facts:
                return [replace(fact, when=when) for fact in facts]
    return []


def _fits(rule: PackRule, when: dates.StartDay, today: date) -> bool:
    """Whether a date may stand in the clause: a state has a beginning, events lie behind and plans ahead."""
    if rule.when is When.PLAN:
        return when.start >= today.replace(day=1)
    if when.start > today:
        return False
    return rule.when is When.EVENT or rule.starts or when.since or when.start == today


def _in_passing(pack: Pack, part: str) -> Iterator[Fact]:
    """Facts that stand inside a clause about something else: "my wife Anna and I"."""
    if pack.stop_passing.search(part):
        return
    for rule in pack.rules:
        for pattern in rule.anywhere:
            for match in pattern.finditer(part):
                called = slot_values.first_name(pack, match["called"])
                if called is not None:
                    groups = match.groupdict(default="") | {"called": called}
                    is_about_called = rule.rule.about == "called"
                    yield _fact(pack, rule.rule, groups, called=called if is_about_called else None)


def _facts(pack: Pack, rule: PackRule, match: re.Match[str], *, is_other: bool, is_loose: bool) -> list[Fact]:
    groups = {name: text for name, text in match.groupdict().items() if text}
    called = groups.get("called")
    if called is not None:
        called = slot_values.name(pack, called, is_loose=is_loose)
        if called is None:
            return []
        groups["called"] = called
    items = slot_values.objects(pack, groups, is_loose=is_loose)
    if items is None:
        return []
    kin, term = _subject(pack, groups) if is_other else (None, "")
    if is_other and kin is None and called is None:
        return []
    subject = called if is_other or rule.about == "called" else None
    return [
        _fact(pack, rule, groups | {"object": item}, kin=kin, called=subject, term=term) for item in items
    ]


def _subject(pack: Pack, groups: Mapping[str, str]) -> tuple[str | None, str]:
    term = groups.get("kin") or groups.get("pet") or ""
    return pack.kin.get(term.lower()), term


def _fact(
    pack: Pack,
    rule: PackRule,
    groups: Mapping[str, str],
    *,
    called: str | None,
    kin: str | None = None,
    term: str = "",
) -> Fact:
    values = {name: pack.maps[name][text.lower()] for name, text in groups.items() if name in pack.maps}
    if groups.get("kin"):
        values["kin"] = pack.kin[groups["kin"].lower()]
    # "{kids}" is what a word stands for, "{kids_word}" the word itself.
    spelled = {f"{name}_word": groups[name] for name in values}
    fields = defaultdict(str, {**groups, **values, **spelled})
    # The sentence keeps the words of its author, the fact has what they stand for.
    words = defaultdict(str, groups)
    return Fact(
        rule=rule,
        relation=rule.relation.format_map(fields),
        object=rule.object.format_map(fields).strip(),
        says=" ".join(rule.says.format_map(words).split()),
        kin=kin,
        called=called,
        term=term,
    )
