"""What of a text is compared before two are taken for the same: its numbers, dates, negations, names and words.

Reading is exact about the words of `language.words` and about figures, and knows no grammar beyond that.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from memory_app.language.characters import PUNCTUATION_TWINS
from memory_app.language.framing import unframed
from memory_app.language.table import alternatives
from memory_app.language.text import terms
from memory_app.language.words import (
    AMBIGUOUS_MONTHS,
    COMMON,
    CONTRACTED_NEGATIONS,
    FAMILY,
    MONTH_NUMBERS,
    NEGATION_SIGNS,
    NEGATIONS,
    NUMBER_SIGNS,
    NUMBER_WORDS,
    RELATIVE_DAYS,
    SIDES,
    UNITS,
    UNREAL,
    WEEKDAYS,
    stem_of,
)


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with its unit."""

    value: str
    unit: str | None
    counted: str | None
    """The word that follows: what there are so many of."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What of one text is compared. Words are stems, or the lower-case word itself where there is no stem."""

    words: frozenset[str]
    content: tuple[str, ...]
    bag: tuple[str, ...]
    negations: tuple[tuple[str, frozenset[str]], ...]
    amounts: tuple[Amount, ...]
    dates: frozenset[str]
    times: tuple[int, ...]
    family: frozenset[str]
    sides: frozenset[tuple[int, int]]
    names: tuple[str, ...]
    initials: frozenset[str]
    caseless: frozenset[str]
    is_unreal: bool
    past: frozenset[str]
    present: frozenset[str]


_CONTRACTED = re.compile(r"(?<=[a-z])n't\b|(?<=can)not\b", re.IGNORECASE)
_NEGATED_VERB = re.compile(rf"\b(?:{'|'.join(sorted(CONTRACTED_NEGATIONS))})\b", re.IGNORECASE)
_ENDED = re.compile(rf"\b(?:{alternatives(lambda language: language.ended_patterns)})\b", re.IGNORECASE)
_ISO_DATE = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
_SHORT_DATE = re.compile(r"(?<![\d/.])\d{1,4}([/.])\d{1,2}\1\d{1,4}(?![\d/])")
_MONTH = "|".join(sorted(MONTH_NUMBERS, key=len, reverse=True))
_LONG_DATE = re.compile(
    rf"""(?:(?<![\d:.])(?P<before>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?)?
    \b(?P<month>{_MONTH})\b\.?
    (?:\s+(?P<after>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:]))?
    (?:,?\s+(?P<year>\d{{4}})\b)?""",
    re.VERBOSE | re.IGNORECASE,
)
_PERIOD = re.compile(r"\b(last|past|previous|next|coming|this)\s+([^\W\d_]+)", re.IGNORECASE)
_TIME = re.compile(
    r"""(?<![\d:.])(?P<hour>\d{1,2})
    (?:[:h](?P<minute>\d{2})(?::\d{2})?(?!\d)\s*(?P<half>[ap]\.?m\b\.?)?
    |\s*(?P<half_only>[ap]\.?m\b\.?)|\s*(?:o'clock|uhr\b|heures?\b))""",
    re.VERBOSE | re.IGNORECASE,
)
_TOKEN = re.compile(
    r"""[$€£¥%°&,;]|(?<![\w)])-(?=\d)|\d+(?:[.,]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)*|(?P<stop>[.!?:\n])""",
    re.VERBOSE,
)
_ROMAN = re.compile(r"(?<=[^\W\d_] )(?:I{2,3}|IV|VI{0,3}|IX|XI{0,3})\b")
_ROMANS = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "XIII")
_ORDINALS = frozenset({"st", "nd", "rd", "th"})


@lru_cache(maxsize=512)
def read(text: str) -> Reading:
    """Everything that is compared of ``text``. The few texts of one decision are read once."""
    folded = unicodedata.normalize("NFKC", unframed(text)).translate(PUNCTUATION_TWINS)
    folded = _NEGATED_VERB.sub(" not ", _CONTRACTED.sub(" not", folded))
    folded = _ROMAN.sub(lambda match: str(_ROMANS.index(match[0]) + 1), folded)
    dates, folded = _take_dates(folded)
    times, folded = _take_times(folded)
    tokens, initials = _tokens(_ENDED.sub(" ended ", folded))
    lowered = [token.lower() for token in tokens]
    keys = [stem_of(word) for word in lowered]
    content = [_content(word) for word in lowered]
    days = {f"day {WEEKDAYS[w]}" for w in lowered if w in WEEKDAYS} | {
        w for w in lowered if w in RELATIVE_DAYS
    }
    return Reading(
        words=frozenset(lowered) | frozenset(keys),
        content=tuple(word for word in content if word),
        bag=tuple(lowered),
        negations=(*_negations(lowered, content), *_signs(folded, NEGATION_SIGNS)),
        amounts=(
            *_amounts(lowered, keys),
            *(Amount(sign, None, None) for sign in folded if sign in NUMBER_SIGNS),
        ),
        dates=frozenset(dates | days),
        times=times,
        family=frozenset(FAMILY[key] for key in keys if key in FAMILY),
        sides=frozenset(side for key in keys for side in SIDES.get(key, ())),
        names=tuple(t.lower() for t in tokens if t[0].isupper() and t.lower() not in ("i", "ended")),
        initials=frozenset(lowered[i] for i in initials),
        caseless=_caseless(lowered),
        is_unreal=not UNREAL.isdisjoint(keys),
        past=frozenset(key for word, key in zip(lowered, keys, strict=True) if _is_past(word, key)),
        present=frozenset(
            key
            for word, key in zip(lowered, keys, strict=True)
            if word in (key, key + "s", key + "es", key + "e")
        ),
    )


def _take_dates(text: str) -> tuple[set[str], str]:
    """The dates in one spelling each, and the text without them."""
    dates: set[str] = set()

    def iso(match: re.Match[str]) -> str:
        dates.add("-".join(str(int(part)) for part in match.groups()))
        return " "

    def short(match: re.Match[str]) -> str:
        dates.add(match[0])
        return " "

    def long(match: re.Match[str]) -> str:
        word, day = match["month"], match["before"] or match["after"]
        if word.islower() and word in AMBIGUOUS_MONTHS and not day and not match["year"]:
            return match[0]
        year = int(match["year"]) if match["year"] else ""
        dates.add(f"{year}-{MONTH_NUMBERS[word.lower()]}-{int(day) if day else ''}")
        return f" {match['after']} " if match["before"] and match["after"] else " "

    def period(match: re.Match[str]) -> str:
        dates.add(f"{match[1]} {match[2]}".lower())
        return f" {match[2]}"

    for pattern, take in ((_ISO_DATE, iso), (_SHORT_DATE, short), (_LONG_DATE, long), (_PERIOD, period)):
        text = pattern.sub(take, text)
    return dates, text


def _take_times(text: str) -> tuple[tuple[int, ...], str]:
    """Times of day in minutes after midnight, sorted, and the text without them."""
    times = []
    for match in _TIME.finditer(text):
        half = (match["half"] or match["half_only"] or "")[:1].lower()
        hour = int(match["hour"]) % 12 + 12 * (half == "p") if half else int(match["hour"])
        times.append(hour * 60 + int(match["minute"] or 0))
    return tuple(sorted(times)), _TIME.sub(" ", text)


def _tokens(text: str) -> tuple[list[str], list[int]]:
    """Words, numbers and signs; and the places of those that begin a sentence."""
    tokens: list[str] = []
    initials: list[int] = []
    begins = True
    for match in _TOKEN.finditer(text):
        if match["stop"]:
            begins = True
            continue
        if begins:
            initials.append(len(tokens))
        begins = False
        tokens.append(match[0].removesuffix("'s").removesuffix("'S"))
    return tokens, initials


def _content(word: str) -> str | None:
    """The stem of a word that carries meaning by itself; None for the rest, and for what is compared apart."""
    if not word[0].isalpha() or word in COMMON or word in NEGATIONS or word in NUMBER_WORDS:
        return None
    return next(iter(terms(word)), None)


def _negations(words: Sequence[str], content: Sequence[str | None]) -> list[tuple[str, frozenset[str]]]:
    """Kind of each negation, and the two meaningful words that follow it."""
    found = []
    for place, word in enumerate(words):
        if word in NEGATIONS:
            found.append((NEGATIONS[word], frozenset([c for c in content[place + 1 :] if c][:2])))
    return found


def _signs(text: str, signs: Iterable[str]) -> list[tuple[str, frozenset[str]]]:
    return [(sign, frozenset()) for sign in signs for _ in range(text.count(sign))]


def _amounts(words: Sequence[str], keys: Sequence[str]) -> list[Amount]:
    amounts = []
    place = 0
    while place < len(words):
        value, length = _value(words, place)
        if value is None:
            place += 1
            continue
        before = UNITS.get(words[place - 1]) if place and words[place - 1] in "$€£¥" else None
        place += length
        if place < len(words) and words[place] in _ORDINALS:
            place += 1
        unit = before or (UNITS.get(words[place]) if place < len(words) else None)
        counted = next((key for key in keys[place : place + 2] if _content(key)), None)
        amounts.append(Amount(value, unit, None if unit else counted))
    return amounts


def _value(words: Sequence[str], place: int) -> tuple[str | None, int]:
    """The number that begins at ``place``, in figures, and how many words it takes."""
    word = words[place]
    if word[0].isdecimal():
        signed = place > 0 and words[place - 1] == "-"
        return ("-" if signed else "") + _figures(word), 1
    end = place
    while end < len(words) and words[end] in NUMBER_WORDS:
        end += 1
    if end == place or words[place:end] == ["one"]:
        return None, 1
    return _spelled(words[place:end]), end - place


def _figures(word: str) -> str:
    figures = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in word)
    if re.fullmatch(r"\d{1,3}(,\d{3})+", figures):
        figures = figures.replace(",", "")
    return (figures.lstrip("0") or "0") if figures.isdecimal() else figures


def _spelled(words: Sequence[str]) -> str:
    """ "two hundred and five" without its "and" is 205."""
    total = current = 0.0
    for word in words:
        number = NUMBER_WORDS[word]
        if number >= 1000:
            total, current = total + (current or 1) * number, 0.0
        elif number in (12.0, 100.0) and word not in ("twelve",) and current:
            current *= number
        else:
            current += number
    return f"{total + current:g}"


def _is_past(word: str, stem: str) -> bool:
    return word.endswith("ed") and word != stem


def _caseless(words: Iterable[str]) -> frozenset[str]:
    """Words of scripts without capitals, where a name looks like any word; long runs in pairs of characters."""
    found: set[str] = set()
    for word in words:
        if word[0].isalpha() and word.upper() == word.lower():
            found.update(terms(word))
    return frozenset(found)
