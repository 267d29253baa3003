# ruff: noqa: E501 (a pattern stays in one piece)
"""Cut a turn into the clauses that its speaker means: without quotes, code, questions and suppositions.

Quoted text, code, tagged blocks, pasted context, questions, conditions and other people's speech are left out
here, so that the patterns need not think of them. Every step is one pass over the text, and what goes on is
bounded: at most `TEXT_LIMIT` characters of a turn and sentences of at most `SENTENCE_LIMIT`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from memory_app.extraction.quoted_parts import split_pasted
from memory_app.extraction.rules.grammar import expand
from memory_app.language.marks import without_marks

TEXT_LIMIT = 8_000
"""Characters of a turn that are read; people do not tell more than that about themselves at once."""
SENTENCE_LIMIT = 400
"""Longer sentences are pasted text, not speech."""

_FENCE = "```"
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]{0,40})[^<>]{0,300}>")
_CODE = re.compile(r"`[^`\n]{1,300}`")
_QUOTED = re.compile(r'"([^"\n]{1,300})"|(?<!\w)\'([^\'\n]{1,120})\'(?!\w)')
_FINITE = re.compile(r"\b(?:I|I'm|I've|my|we|you)\b|[.!?]$", re.IGNORECASE)
_SKIPPED_LINE = re.compile(r"(?:>|\[\d{4}-\d\d-\d\d|\[[A-Z][A-Z ]{3,40}\]|\||#{1,6} |[A-Z][\w .'-]{0,30}: )")
_OWN_LABEL = re.compile(r"^(?:note|ps|p\.s\.|update|edit|btw|fyi|reminder|also)\s*:\s*", re.IGNORECASE)
MARK = "\u241f"
"""Stands where quoted speech was; a clause that holds it is not the speaker's own."""

LAUGH = "\u2421"
"""Stands where an emoji laughed."""
LAUGHING = frozenset(
    "\U0001f602\U0001f923\U0001f61c\U0001f61d\U0001f92a\U0001f609\U0001f606\U0001f605\U0001f639"
)
"""The emoji that laugh or wink."""

_ABBREVIATION = re.compile(r"\b(Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|vs|etc|e\.g|i\.e|approx|No)\.(?=\s)")
SENTENCE = re.compile(r"[^.!?\n\u2026]+(?:[.!?\u2026]+(?=[\w'\"])[^.!?\n\u2026]+)*[.!?\u2026]*")

_TASK = re.compile(
    r"^(?:please |can you |could you |would you |help me )*(?:translate|rewrite|proofread|correct|summari[sz]e|paraphrase|"
    r"edit|improve|reword|shorten|rephrase|polish|write|draft|compose|pretend|imagine|continue|act as|role-?play|analy[sz]e|explain)\b",
    re.IGNORECASE,
)
_GIVEN_TEXT = re.compile(
    r":\s*$|:\s|\b(?:this|following|below|text|paragraph|essay|email|letter|story|poem)\b", re.IGNORECASE
)
_WHOLE_SENTENCE = re.compile(
    r"^(?:(?:and|but|so|well|yeah|oh|like|even) )*(?:if|unless|suppose|supposing|imagine|pretend|when|whenever|while|wherever|had I|"
    r"should I|say|what if|let us say|as if|until|after|before)\b|"
    r"\b(?:he|she|they|who|someone|everyone|people|(?:my|his|her|their|our|the) [\w-]+(?: [\w-]+)?|[A-Z][a-z]+) "
    r"(?:said|says|told|tells|claims|claimed|thinks|thought|asked|asks|wrote|believes|insists|was like|is like|calls me|called me)\b|"
    r"\b(?:as if|as though|just kidding|jk|not true|quote|lyrics)\b",
    re.IGNORECASE,
)
_UNREAL = re.compile(
    r"\b(?:if|unless|whether|would not|would have|could|might|maybe|perhaps|supposedly|hypothetically|wish|as if|"
    r"pretend|probably|possibly|i guess|i think|not sure|in a dream|in my dream|dreamt|dreamed)\b"
    r"|\bwould (?!love to|like to|really love to|rather not)",
    re.IGNORECASE,
)
_QUESTION_TAIL = re.compile(
    r"(?:,|;| -|\.\.\.)\s*(?:(?:and|but|so|or) )?(?:(?:do|have|are|did|will|can|could|would|were|is|any|how|what|where|which|who|when)\b"
    r"(?:[^,;]*\b(?:you|your)\b|[^,;I]*$)|you\b|(?:how|what) about you)|,? and you$",
    re.IGNORECASE,
)
_SPLIT = re.compile(
    r"\s*(?:[,;]|\s[-\u2013\u2014]+|\u2013|\u2014|\(|\))?\s*\b(?:and|but|so|because|cause|plus|also|then|although|though|"
    r"so now|and now|and then|which is why|and so|and also|and yes)\s+(?=(?:I|we|my|our)\b)"
    r"|\s*[;()\u2014]\s*|\s+[-\u2013]+\s+|:\s+(?=I\b|my\b)|,\s+(?=(?:I|my|we|but|it is|it was|they|he|she|you)\b)",
)
_FILLERS = re.compile(
    r"^(?:(?:yeah|yes|yep|yup|no|nope|nah|well|so|oh|ah|hey|hi|hello|wow|whoa|haha\w*|lol|hmm+|um+|uh|actually|anyways?|btw|"
    r"by the way|on another note|on a different note|on a side note|in other news|in the meantime|also|and|but|plus|then|sure|thanks|thank you|ok|okay|honestly|frankly|fyi|guess what|to be honest|tbh|in fact|"
    r"recently|lately|these days|nowadays|currently|right now|now|fun fact|personally|unfortunately|fortunately|sadly|luckily|"
    r"(?:I |just )*wanted to (?:let you know|tell you|share)(?: that)?|I am (?:so )?(?:excited|happy|glad|thrilled|pleased|proud|sad|sorry) to (?:tell you|say|share|announce|report|let you know)(?: that)?|"
    r"for me|great news|good news|big news|news|finally|of course|as you know|as i said|like i said|just so you know|you know what|"
    r"you know|look|listen|i mean|the truth is|truth is|for the record|good morning|good evening|good afternoon|there|everyone|"
    r"first|second|basically|because|cause|since then|since(?= I (?:am|have|lost|got|moved|quit|left|started)\b)|because|just|really|totally|absolutely|glad|it is true)\b[\s,!:\-\u2013\u2014]*)+",
    re.IGNORECASE,
)
_VOCATIVE = re.compile(
    r"^[A-Z][\w'-]{1,20}(?: [A-Z][\w'-]{1,20})?[,!:-]+\s+(?=(?:I|my|we|please|call|remember|our)\b)",
    re.IGNORECASE,
)
_COMPANY = re.compile(
    r"^(?:(?:yesterday|today|tonight|last \w+|this \w+|on \w+|\w+ \w+ ago|in \w+),? )?"
    r"(?:(?:my|our) [\w'-]+(?: [\w'-]+)?|(?-i:[A-Z])[\w'-]+) and I (?=\w)",
    re.IGNORECASE,
)
_TIME_FIRST = re.compile(
    r"^(?P<time>(?:(?:last|this|on|in|yesterday|two|three|a few|a couple of|earlier)\b[\w ]{1,24}|yesterday|today)), (?=(?:I|we|my)\b)",
    re.IGNORECASE,
)
_THANKS_TO = re.compile(r"^[A-Z][\w'-]{1,20}(?=,? (?:I|my|we) )")


_TITLE_WORDS = 8
"""Quoted words up to so many are a title ("Dune") and stay; more, or a whole sentence, are somebody else's speech."""

_SHORTEST_SENTENCE = 5
"""Characters; a shorter sentence ("Yes.") states nothing."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, contractions written out, and its clauses that may be stated facts."""

    text: str
    clauses: tuple[str, ...]


def own_words(text: str, *, is_title: Callable[[str], bool] | None = None) -> str:
    """Return ``text`` without code, tagged blocks, quoted lines, context windows, quoted speech and marks.

    At most `TEXT_LIMIT` characters. ``is_title`` tells which quoted words are a title and stay; without it they are
    told as in English.
    """
    is_title = is_title or _is_title
    # Four times the limit, so that a long pasted part does not use up what is read.
    own = split_pasted(without_marks(text[: 4 * TEXT_LIMIT])).own
    own = _without_blocks(_without_fences(own))[:TEXT_LIMIT]
    own = _without_skipped_lines(own)
    # Only double quotes: a curly single one is mostly an apostrophe.
    own = own.replace("“", '"').replace("”", '"')
    # Code before quotes: what stands between quotes in it is part of it.
    own = _CODE.sub(MARK, own)
    return _QUOTED.sub(partial(_unquoted, is_title), own)


def _without_fences(text: str) -> str:
    # Every second piece stands between two fences; the last one too where the closing fence is missing.
    return "\n".join(text.split(_FENCE)[::2])


def _without_blocks(text: str) -> str:
    """``text`` without tags and without what stands between a tag and its end.

    A tag that is never closed hides nothing, except ``<memory>``: what was cut off within a window is still no
    speech.
    """
    tags = list(_TAG.finditer(text))
    last_close = {_tag_name(tag): tag.start() for tag in tags if _is_close(tag)}
    pieces: list[str] = []
    start = 0
    block = ""
    for tag in tags:
        if not block:
            pieces.append(text[start : tag.start()])
            block = _opened_block(tag, last_close)
        elif _is_close(tag) and _tag_name(tag) == block:
            block = ""
        else:
            # Inside a block every other tag is part of what is left out.
            continue
        start = tag.end()
    if not block:
        pieces.append(text[start:])
    return " ".join(pieces)


def _is_close(tag: re.Match[str]) -> bool:
    return tag[1] == "/"


def _tag_name(tag: re.Match[str]) -> str:
    return tag[2].lower()


def _opened_block(tag: re.Match[str], last_close: Mapping[str, int]) -> str:
    """The name of the block that a tag opens, or nothing. ``last_close``: where the last end of each block stands."""
    name = _tag_name(tag)
    if _is_close(tag):
        return ""
    if name == "memory":
        return name
    # Looked up instead of searched for, or a text of tags alone would take time by the square of its length.
    is_closed_later = last_close.get(name, -1) > tag.start()
    return name if is_closed_later else ""


def _without_skipped_lines(text: str) -> str:
    # "PS: …" is the author's own; any other label at the start of a line is taken for a speaker of a transcript.
    lines = (_OWN_LABEL.sub("", line.strip(), count=1) for line in text.splitlines())
    return "\n".join(line for line in lines if not _SKIPPED_LINE.match(line))


def _unquoted(is_title: Callable[[str], bool], match: re.Match[str]) -> str:
    # One group for each kind of quotes.
    quote = match[1] or match[2]
    return quote if is_title(quote) else MARK


def _is_title(quote: str) -> bool:
    if len(quote.split()) > _TITLE_WORDS:
        return False
    return _FINITE.search(quote) is None


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of ``text`` (already `own_words`) until the user hands over a text to work on."""
    # Or "Dr. Lee" would end a sentence.
    text = _ABBREVIATION.sub(r"\1", text)
    for match in SENTENCE.finditer(text):
        raw = match[0].strip()
        if not _is_speech(raw):
            continue
        sentence = expand(raw)
        if not _TASK.search(sentence):
            yield Sentence(sentence, tuple(_clauses(sentence)))
        elif _GIVEN_TEXT.search(sentence):
            # "Translate this: …": what follows is the text, in which "I" is somebody else.
            return


def _is_speech(text: str) -> bool:
    if not _SHORTEST_SENTENCE <= len(text) <= SENTENCE_LIMIT:
        return False
    # A bare address is no sentence.
    return "://" not in text[:8]


def _clauses(sentence: str) -> Iterator[str]:
    body = _without_question(sentence.rstrip(" .!\u2026"))
    # A split at ", I" would lose when it was.
    body = _TIME_FIRST.sub(r"\g<time> ", body)
    # An opening such as "if" or "he said that" holds for the whole sentence.
    plain = strip_opening(body)
    if _WHOLE_SENTENCE.search(plain):
        return
    for part in _parts(plain):
        clause = strip_opening(part.strip(" ,"))
        # What follows a supposition is supposed as well: "if I move, I will need a car".
        if _UNREAL.search(clause):
            return
        if clause and MARK not in clause:
            yield clause


def _parts(sentence: str) -> list[str]:
    # "Tom and I went": the split would cut at "and I".
    company = _COMPANY.match(sentence)
    head = company[0] if company else ""
    first, *others = _SPLIT.split(sentence.removeprefix(head))
    return [head + first, *others]


def _without_question(sentence: str) -> str:
    """``sentence`` without the question at its end; empty when the whole of it is one."""
    if not sentence.endswith("?"):
        return sentence
    # "I live in Lyon, and you?" states something all the same.
    tail = _QUESTION_TAIL.search(sentence.rstrip("? "))
    return sentence[: tail.start()] if tail else ""


def strip_opening(text: str) -> str:
    """ "Hey Nova, well, I …" → "I …"."""
    # Twice, since fillers stand on both sides of a name: "Hey Nova, well, …".
    for _ in range(2):
        text = _FILLERS.sub("", text)
        text = _VOCATIVE.sub("", text)
    if _FILLERS.match(text):
        return _THANKS_TO.sub("", text).lstrip(" ,")
    return text
