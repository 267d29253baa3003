"""Read the facts that one clause states, by the rules of a pack. Pure.

A pattern must fit a clause from its first to its last word, and what stands in its slots must be whole; then it states
a fact.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain, islice
from string import Formatter

from memory_app.extraction.rules.packs import dates, slot_values
from memory_app.extraction.rules.packs.clauses import Clause, readings
from memory_app.extraction.rules.packs.conversation import ALONE, Conversation
from memory_app.extraction.rules.packs.dates import DateMatch, StartDay
from memory_app.extraction.rules.packs.fact import Fact
from memory_app.extraction.rules.packs.format import PackRule
from memory_app.extraction.rules.packs.pack import Pack
from memory_app.extraction.rules.packs.pattern_index import RulePattern
from memory_app.extraction.rules.packs.required_words import WORD
from memory_app.extraction.rules.packs.slots import DATE_SLOTS, OPEN_SLOTS
from memory_app.extraction.rules.patterns import When

CUTS = 3
"""So many joining words of a clause are tried as its end."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who wrote a turn: the pack of their language, the day where they are, and whether they write no capitals."""

    pack: Pack
    today: date
    is_loose: bool
    conversation: Conversation = ALONE


@dataclass(frozen=True, slots=True)
class _Subject:
    """Whom a fact is about, by default the user; the fields are those of `Fact`."""

    kin: str | None = None
    called: str | None = None
    term: str = ""


def of_clause(author: Author, text: str, *, is_cut: bool = False) -> list[Fact]:
    """The facts of the first reading that states any. ``is_cut``: behind ``text`` the clause goes on."""
    for clause in readings(author.pack, text, is_cut=is_cut):
        facts = _of_reading(author, clause)
        if facts:
            return facts
    return []


def of_cut_clause(author: Author, text: str) -> list[Fact]:
    """Facts of a clause up to a word behind which something else begins: "at Acme and no idea why", "Lyon with Ann".

    Only of rules whose object cannot be cut by this: a name, a place or a number is whole where "and" begins.
    """
    end = author.pack.end.search(text)
    if end is not None:
        facts = of_clause(author, text[: end.start()])
        if facts:
            return facts
    # Behind "and" a word with a capital may be a second name; where nobody writes capitals, nothing tells.
    pattern = author.pack.loose_cut if author.is_loose else author.pack.cut
    # The longest first, which says most: "in Winnipeg since 2021" before "in Winnipeg".
    for cut in reversed([*islice(pattern.finditer(text), CUTS)]):
        facts = of_clause(author, text[: cut.start()], is_cut=True)
        if facts:
            return facts
    return []


def _of_reading(author: Author, clause: Clause) -> list[Fact]:
    facts: list[Fact] = []
    for rule, patterns in author.pack.rules.candidates(clause.text):
        # A clause states one fact, but for the rules that say otherwise.
        is_done = bool(facts) and not rule.also
        # Only what may hold beside others is told apart by a part of the day.
        may_fit = rule.beside or not clause.day_part
        if may_fit and not is_done:
            facts += _by_rule(author, rule, patterns, clause)
    return [_beside(fact, clause) for fact in facts]


def _beside(fact: Fact, clause: Clause) -> Fact:
    """The fact with what the clause says of others of its kind."""
    if not (fact.rule.beside and clause.is_beside):
        return fact
    says = f"{fact.says} {clause.day_part}".rstrip()
    says_since = fact.says_since and f"{fact.says_since} {clause.day_part}".rstrip()
    return replace(fact, says=says, says_since=says_since, is_beside=True)


def _by_rule(author: Author, rule: PackRule, patterns: Sequence[RulePattern], clause: Clause) -> list[Fact]:
    if clause.date is None:
        if rule.needs_date:
            return []
        return _of_first_match(author, patterns, clause)
    when = _start_day(author, rule, clause.date)
    if when is None:
        return []
    facts = _of_first_match(author, patterns, clause)
    return [replace(fact, when=when) for fact in facts]


def _start_day(author: Author, rule: PackRule, match: DateMatch) -> StartDay | None:
    """The day that a date names; None where there is no such day, or where it cannot be meant."""
    is_plan = rule.when is When.PLAN
    day = dates.resolve(author.pack, match, today=author.today, future=is_plan)
    if day is None:
        return None
    if not _may_begin(rule, day, author.today):
        return None
    return day


def _may_begin(rule: PackRule, day: StartDay, today: date) -> bool:
    """Whether a date may stand in the clause: a state has a beginning, events lie behind and plans ahead."""
    if rule.when is When.PLAN:
        # A month or a year that has begun is not over.
        is_exact = day.exactness == "day" and day.until is None
        return (day.until or day.start) >= (today if is_exact else today.replace(day=1))
    if day.start > today:
        return False
    if rule.when is When.EVENT:
        return True
    return rule.starts or day.since or day.start == today


def _of_first_match(author: Author, patterns: Sequence[RulePattern], clause: Clause) -> list[Fact]:
    for candidate in patterns:
        if candidate.needs_capitals and author.is_loose:
            continue
        match = candidate.pattern.fullmatch(clause.text)
        if match is None or not candidate.unless.isdisjoint(WORD.findall(clause.text.lower())):
            continue
        if _may_fill(match, clause):
            facts = _of_match(author, candidate, match)
            if facts:
                return facts
    return []


def _may_fill(match: re.Match[str], clause: Clause) -> bool:
    """Whether a pattern that fits may read the clause."""
    slots = match.groupdict()
    # A date that was not taken out belongs to no other object.
    if clause.holds_date and DATE_SLOTS.isdisjoint(slots):
        return False
    # What was cut off may belong to an object that can go on, where one stands last.
    last = [slot for slot in slots if match.end(slot) == len(clause.text)]
    return not (clause.is_cut and not OPEN_SLOTS.isdisjoint(last))


def _of_match(author: Author, candidate: RulePattern, match: re.Match[str]) -> list[Fact]:
    """The facts of a match, one for each object; none where what stands in a slot is not whole."""
    groups = _filled(match)
    if "called" in groups:
        called = slot_values.name(author.pack, groups["called"], is_loose=author.is_loose)
        if called is None:
            return []
        groups["called"] = called
    rule = candidate.rule
    subject = _other_subject(author.pack, groups) if candidate.is_other else _own_subject(rule, groups)
    if subject is None:
        return []
    objects = slot_values.objects(author.pack, groups, is_loose=author.is_loose)
    if objects is None:
        return []
    words = _words_for_object(rule, groups)
    slot = slot_values.object_slot(groups)
    if slot is not None and match.start(slot) == 0:
        objects = [slot_values.within_sentence(author.pack, item) for item in objects]
    if author.is_loose and slot is not None and slot_values.is_name(slot) and len(objects) == 1:
        # The sentence gets the capitals that its author leaves out.
        groups[slot] = objects[0]
    facts = [_fact(author.pack, rule, {**groups, "object": item}, subject) for item in objects]
    if len(facts) > 1:
        # Of a list each item stands for itself.
        return [replace(fact, clause=match.string, words=fact.object) for fact in facts]
    return [replace(fact, clause=match.string, words=words) for fact in facts]


def _words_for_object(rule: PackRule, groups: Mapping[str, str]) -> str:
    """What stands in the clause for the object of a rule; empty where it is made of several slots."""
    fields = [field for _, field, _, _ in Formatter().parse(rule.object) if field]
    if len(fields) != 1:
        return ""
    slot = slot_values.object_slot(groups) if fields[0] == "object" else fields[0].removesuffix("_word")
    return groups.get(slot or "", "")


def _filled(match: re.Match[str]) -> dict[str, str]:
    """The slots of a match in which something stands."""
    return {slot: text for slot, text in match.groupdict().items() if text}


# --- who is named in passing ----------------------------------------------------------------------------------


def in_passing(pack: Pack, part: str) -> Iterator[Fact]:
    """Facts that stand inside a clause about something else: "my wife Anna and I"."""
    if pack.stop_passing.search(part):
        return
    for rule, patterns in pack.anywhere.candidates(part):
        matches = chain.from_iterable(candidate.pattern.finditer(part) for candidate in patterns)
        for match in matches:
            called = slot_values.first_name(pack, match["called"])
            if called is None:
                continue
            groups = _filled(match) | {"called": called}
            subject = _own_subject(rule, groups)
            yield _fact(pack, rule, groups, subject)


def named_in(author: Author, text: str, facts: Sequence[Fact]) -> Iterator[Fact]:
    """Who is named in a clause without capitals: a pattern that fits the whole of it shows what is a name."""
    if not author.is_loose:
        return
    # A name once, and in the order of the facts.
    names = dict.fromkeys(fact.called for fact in facts if fact.called and fact.term)
    for name in names:
        with_capital = text.replace(name.lower(), name)
        yield from in_passing(author.pack, with_capital)


# --- from slots to a fact -------------------------------------------------------------------------------------


def _own_subject(rule: PackRule, groups: Mapping[str, str]) -> _Subject:
    if rule.about == "called":
        return _Subject(called=groups.get("called"))
    return _Subject()


def _other_subject(pack: Pack, groups: Mapping[str, str]) -> _Subject | None:
    """Somebody of the user's; None for a word such as "dog" without the name of the animal."""
    term = groups.get("kin") or groups.get("pet") or ""
    kin = pack.kin.get(term.lower())
    called = groups.get("called")
    if kin is None and called is None:
        return None
    return _Subject(kin, called, term)


def _fact(pack: Pack, rule: PackRule, groups: Mapping[str, str], subject: _Subject) -> Fact:
    """The fact of a rule, whose templates are filled with ``groups``."""
    groups = {slot: slot_values.reported(pack, text) for slot, text in groups.items()}
    values = _values(pack, groups)
    # "{kids}" is what a word stands for, "{kids_word}" the word itself.
    spelled = {f"{slot}_word": groups[slot] for slot in values}
    fields = defaultdict(str, {**groups, **values, **spelled})
    # The sentence keeps the words of its author, the fact has what they stand for.
    words = defaultdict(str, groups)
    says_since = rule.says_since and " ".join(rule.says_since.format_map(words).split())
    says = rule.says.format_map(words)
    return Fact(
        rule=rule,
        relation=rule.relation.format_map(fields),
        object=rule.object.format_map(fields).strip(),
        says=" ".join(says.split()),
        says_since=says_since,
        kin=subject.kin,
        called=subject.called,
        term=subject.term,
    )


def _values(pack: Pack, groups: Mapping[str, str]) -> dict[str, str]:
    """What the words in the slots of a pack's lists stand for."""
    tables = {**pack.maps, "kin": pack.kin}
    return {slot: tables[slot][text.lower()] for slot, text in groups.items() if slot in tables}
