"""Write out what people leave out or put between commas, so that the patterns of rules need not think of it. Pure.

"My son's 7" is read as "my son is 7", "been at Acme" at the beginning of a turn as "I have been at Acme", and of "my
daughter Ella, 9, hates peas" the age becomes a sentence of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial

from memory_app.extraction.rules.clauses import SENTENCE
from memory_app.extraction.rules.packs import slot_values
from memory_app.extraction.rules.packs.clauses import Part, without_opening
from memory_app.extraction.rules.packs.omission_patterns import SHORT_VERB, Aside, ShortVerb
from memory_app.extraction.rules.packs.pack import Pack
from memory_app.extraction.rules.packs.required_words import may_fit, words_of

GROUP_LIMIT = 8
"""So many of a group are read: "three kids, Ella (9), …"."""


def with_short_verbs(pack: Pack, text: str) -> str:
    """``text`` with its shortened verbs in full: "mum's 62" as "mum is 62"."""
    # The patterns are slow, and most turns have nothing for them.
    if SHORT_VERB not in text.lower():
        return text
    for verb in pack.omission.short_verbs:
        text = verb.pattern.sub(partial(_in_full, pack, verb), text)
    return text


def _in_full(pack: Pack, verb: ShortVerb, match: re.Match[str]) -> str:
    return match[0] if _names_nobody(pack, match.groupdict()) else f"{match['who']} {verb.verb}"


def with_subject(pack: Pack, text: str) -> str:
    """``text`` with the subject that its first sentence leaves out; later ones may be about somebody else."""
    for sentence in SENTENCE.finditer(text):
        opened = without_opening(pack, sentence[0].strip())
        if opened.strip(" .!?\u2026"):
            start = sentence.start() + sentence[0].rfind(opened)
            return _begun(pack, text, start)
    return text


def _begun(pack: Pack, text: str, start: int) -> str:
    for pattern, subject in pack.omission.left_out:
        if pattern.match(text, start):
            return f"{text[:start]}{subject} {text[start:]}"
    return text


def without_asides(pack: Pack, sentence: str) -> tuple[str, list[Part]]:
    """The sentence without what it says of somebody in passing, and that as parts of their own."""
    parts: list[Part] = []
    words = words_of(sentence)
    for aside in pack.omission.asides:
        if not may_fit(aside.needs, words):
            continue
        sentence, said = _without_aside(pack, aside, sentence)
        parts += (Part(text, "") for text in said)
    return sentence, parts


def _without_aside(pack: Pack, aside: Aside, sentence: str) -> tuple[str, list[str]]:
    if aside.behind is not None:
        return _without_group(pack, aside, sentence)
    said: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        text = _said(pack, aside, match.groupdict())
        if text is None:
            return match[0]
        said.append(text)
        return match["who"]

    return aside.pattern.sub(replaced, sentence), said


def _without_group(pack: Pack, aside: Aside, sentence: str) -> tuple[str, list[str]]:
    """Of "three kids, Ella (9) and Tom (6)" each by itself, up to what is something else."""
    behind = aside.behind.search(sentence) if aside.behind else None
    if behind is None:
        return sentence, []
    matches = [*_members(aside, sentence, behind.end())]
    texts = [_said(pack, aside, {**behind.groupdict(), **match.groupdict()}) for match in matches]
    said = [text for text in texts if text is not None]
    if not said or len(said) < len(texts):
        return sentence, []
    # What the list was part of ends before it.
    return f"{sentence[: behind.end()]}; {sentence[matches[-1].end() :].lstrip(' ,)')}", said


def _members(aside: Aside, sentence: str, start: int) -> Iterator[re.Match[str]]:
    for _ in range(GROUP_LIMIT):
        match = aside.pattern.match(sentence, start)
        if match is None:
            return
        yield match
        start = match.end()


def _said(pack: Pack, aside: Aside, groups: Mapping[str, str | None]) -> str | None:
    """The sentence that an aside stands for; None where its name is none."""
    filled = {slot: text for slot, text in groups.items() if text}
    if _names_nobody(pack, filled):
        return None
    for slot in filled.keys() & pack.maps.keys():
        # Not every language has a word for one of them: of "figli" there is a son or a daughter.
        terms = pack.file.people.kin.get(pack.maps[slot][filled[slot].lower()])
        if not terms:
            return None
        filled[slot] = terms[0]
    return aside.says.format_map(filled)


def _names_nobody(pack: Pack, groups: Mapping[str, str | None]) -> bool:
    """Whether what stands in the slot of a name is none. Names have capitals here, whoever writes."""
    names = filter(None, (groups.get("called"), groups.get("word")))
    return any(slot_values.name(pack, text, is_loose=False) is None for text in names)
