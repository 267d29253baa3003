"""Read from a text what is compared with another: its numbers, dates, negations, names and words.

Reading is exact about the words of `language.words` and about figures, and knows no grammar beyond that.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, takewhile

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
class Negation:
    """A word that negates, what it does (`NEGATIONS`), and the meaningful words that follow it."""

    kind: str
    follows: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Reading:
    """What of one text is compared. Words are stems, or the lower-case word itself where there is no stem."""

    words: frozenset[str]
    content: tuple[str, ...]
    bag: tuple[str, ...]
    negations: tuple[Negation, ...]
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

    @property
    def negation_kinds(self) -> tuple[str, ...]:
        return tuple(negation.kind for negation in self.negations)

    @property
    def negated_words(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(negation.follows for negation in self.negations))


_CONTRACTED = re.compile(r"(?<=[a-z])n't\b|(?<=can)not\b", re.IGNORECASE)
_NEGATED_VERB = re.compile(rf"\b(?:{'|'.join(sorted(CONTRACTED_NEGATIONS))})\b", re.IGNORECASE)
_ENDED = re.compile(rf"\b(?:{alternatives(lambda language: language.ended_patterns)})\b", re.IGNORECASE)
_ISO_DATE = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
# Kept as written: "3/4/2024" is a day of March or of April, and nothing here says which.
_SHORT_DATE = re.compile(r"(?<![\d/.])\d{1,4}([/.])\d{1,2}\1\d{1,4}(?![\d/])")
# The longest first, or "Mar" would be taken out of "March".
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
_CURRENCY_SIGNS = ("$", "€", "£", "¥")
_PRESENT_ENDINGS = ("", "s", "es", "e")
"""What may follow the stem of a verb in the present: stems lose a final "e"."""

_NEGATED_WORDS = 2
"""So many meaningful words after a negation are held to be what it negates."""

_NO_CONTENT = COMMON | NEGATIONS.keys() | NUMBER_WORDS.keys()
"""Words that say nothing alone, or are compared apart."""

_NOT_NAMES = ("i", "ended")
"""Words with a capital that name nothing; "Ended" may come from `_ENDED` at the start of a sentence."""


@lru_cache(maxsize=512)
def read(text: str) -> Reading:
    """Read everything that is compared of ``text``. The few texts of one decision are read once."""
    # Dates before times, and both before the tokens: each pattern would take figures that belong to the next.
    dates, folded = _take_dates(_folded(text))
    times, folded = _take_times(folded)
    # One word for every way to say "no longer", which is a negation from then on.
    tokens, initials = _tokens(_ENDED.sub(" ended ", folded))
    words = [token.lower() for token in tokens]
    stems = list(map(stem_of, words))
    pairs = list(zip(words, stems, strict=True))
    content = list(map(_content, words))
    names = (token.lower() for token in tokens if token[0].isupper())
    return Reading(
        # Both forms, since the tables hold stems and the other text may have either.
        words=frozenset(words) | frozenset(stems),
        content=tuple(filter(None, content)),
        bag=tuple(words),
        negations=(*_negations(words, content), *map(Negation, _signs(folded, NEGATION_SIGNS))),
        amounts=(*_amounts(words, stems), *_sign_amounts(folded)),
        dates=frozenset(dates | _days(words)),
        times=times,
        family=frozenset(FAMILY[stem] for stem in stems if stem in FAMILY),
        sides=frozenset(chain.from_iterable(SIDES.get(stem, ()) for stem in stems)),
        names=tuple(name for name in names if name not in _NOT_NAMES),
        initials=frozenset(words[place] for place in initials),
        caseless=_caseless(words),
        is_unreal=not UNREAL.isdisjoint(stems),
        past=frozenset(stem for word, stem in pairs if _is_past(word, stem)),
        present=frozenset(stem for word, stem in pairs if _is_present(word, stem)),
    )


def _folded(text: str) -> str:
    """``text`` without its frame, in one spelling of punctuation, negations and Roman numerals."""
    folded = unicodedata.normalize("NFKC", unframed(text)).translate(PUNCTUATION_TWINS)
    # NFKC leaves "n’t" and "n't" apart, which is why the twins of punctuation were folded before.
    folded = _CONTRACTED.sub(" not", folded)
    folded = _NEGATED_VERB.sub(" not ", folded)
    return _ROMAN.sub(lambda match: str(_ROMANS.index(match[0]) + 1), folded)


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
        month, before, after = match["month"], match["before"], match["after"]
        day = before or after
        # "may" and "march" are verbs where nothing else says that they are months.
        is_alone = not day and not match["year"]
        if is_alone and month.islower() and month in AMBIGUOUS_MONTHS:
            return match[0]
        dates.add(f"{_plain(match['year'])}-{MONTH_NUMBERS[month.lower()]}-{_plain(day)}")
        # In "5 May 10 people" the second number is no day.
        return f" {after} " if before and after else " "

    def period(match: re.Match[str]) -> str:
        dates.add(f"{match[1]} {match[2]}".lower())
        # The noun stays: "Monday" is read as a weekday besides.
        return f" {match[2]}"

    # Figures before words: "2024-05-06 May" must not lend its day to the month.
    for pattern, take in ((_ISO_DATE, iso), (_SHORT_DATE, short), (_LONG_DATE, long), (_PERIOD, period)):
        text = pattern.sub(take, text)
    return dates, text


def _plain(figures: str | None) -> str:
    """Figures without leading zeros: "05" and "5" are one day."""
    return str(int(figures)) if figures else ""


def _take_times(text: str) -> tuple[tuple[int, ...], str]:
    """Times of day in minutes after midnight, sorted, and the text without them."""
    times = sorted(map(_minutes, _TIME.finditer(text)))
    return tuple(times), _TIME.sub(" ", text)


def _minutes(match: re.Match[str]) -> int:
    parts = match.groupdict("")
    hour = int(parts["hour"])
    half = (parts["half"] + parts["half_only"])[:1].lower()
    if half:
        # 12 am is midnight and 12 pm is noon.
        hour = hour % 12 + (12 if half == "p" else 0)
    return hour * 60 + int(parts["minute"] or 0)


def _days(words: Iterable[str]) -> set[str]:
    """Weekdays in one spelling for all languages, and words such as "tomorrow"."""
    distinct = set(words)
    weekdays = {f"day {WEEKDAYS[word]}" for word in distinct & WEEKDAYS.keys()}
    return weekdays | (distinct & RELATIVE_DAYS)


def _tokens(text: str) -> tuple[list[str], list[int]]:
    """Words, numbers and signs; and the places of those that begin a sentence."""
    tokens: list[str] = []
    initials: list[int] = []
    # A capital at the beginning of a sentence says nothing about the word.
    begins = True
    for match in _TOKEN.finditer(text):
        if match["stop"]:
            begins = True
            continue
        if begins:
            initials.append(len(tokens))
        begins = False
        # "Anna's dog" is about Anna.
        tokens.append(match[0].removesuffix("'s").removesuffix("'S"))
    return tokens, initials


def _content(word: str) -> str | None:
    """The stem of a word that carries meaning by itself; None for the rest, and for what is compared apart."""
    if not word[0].isalpha() or word in _NO_CONTENT:
        return None
    return next(iter(terms(word)), None)


def _negations(words: Sequence[str], content: Sequence[str | None]) -> Iterator[Negation]:
    for place, word in enumerate(words):
        if word in NEGATIONS:
            meaningful = list(filter(None, content[place + 1 :]))
            # Without grammar nothing says how far a negation reaches; two words tell "not tea but coffee" apart.
            yield Negation(NEGATIONS[word], frozenset(meaningful[:_NEGATED_WORDS]))


def _signs(text: str, signs: Iterable[str]) -> list[str]:
    """Each of ``signs`` as often as ``text`` has it."""
    return list(chain.from_iterable([sign] * text.count(sign) for sign in signs))


def _sign_amounts(text: str) -> Iterator[Amount]:
    """Numbers of scripts in which a number is one sign, in the order of the text."""
    return (Amount(sign, unit=None, counted=None) for sign in text if sign in NUMBER_SIGNS)


def _amounts(words: Sequence[str], stems: Sequence[str]) -> Iterator[Amount]:
    place = 0
    while place < len(words):
        value, length = _value(words, place)
        if value is None:
            place += 1
            continue
        currency = _currency(words, place)
        place += length
        # "2nd" comes as two tokens.
        if _word_at(words, place) in _ORDINALS:
            place += 1
        unit = currency or UNITS.get(_word_at(words, place))
        # A word without meaning may stand between the number and the thing: "two more dogs".
        counted = next(filter(_content, stems[place : place + 2]), None)
        yield Amount(value, unit, counted=None if unit else counted)


def _word_at(words: Sequence[str], place: int) -> str:
    return words[place] if place in range(len(words)) else ""


def _currency(words: Sequence[str], place: int) -> str | None:
    """The unit of a sign in front of a number: "$5"."""
    before = _word_at(words, place - 1)
    return UNITS.get(before) if before in _CURRENCY_SIGNS else None


def _value(words: Sequence[str], place: int) -> tuple[str | None, int]:
    """The number that begins at ``place``, in figures, and how many words it takes."""
    word = words[place]
    if word[0].isdecimal():
        # The pattern of tokens yields a "-" only in front of figures.
        sign = "-" if _word_at(words, place - 1) == "-" else ""
        return sign + _figures(word), 1
    spelled = list(takewhile(NUMBER_WORDS.__contains__, words[place:]))
    # "one" alone is mostly a pronoun.
    if not spelled or spelled == ["one"]:
        return None, 1
    return _spelled(spelled), len(spelled)


def _figures(word: str) -> str:
    """A number of any script in the figures 0–9, without separators of thousands and leading zeros."""
    figures = "".join(str(unicodedata.decimal(sign, sign)) for sign in word)
    # Groups of three are thousands; any other comma stands for a decimal point, and stays.
    if re.fullmatch(r"\d{1,3}(,\d{3})+", figures):
        figures = figures.replace(",", "")
    if not figures.isdecimal():
        # "3.10" is a version as well as a number, and as a version it is not "3.1".
        return figures
    return figures.lstrip("0") or "0"


def _spelled(words: Sequence[str]) -> str:
    """ "two hundred and five" without its "and" is 205."""
    total = current = 0.0
    for word in words:
        number = NUMBER_WORDS[word]
        # "two dozen" is 24, "two twelve" is not.
        multiplies = number == 100 or (number == 12 and word != "twelve")
        if number >= 1000:
            total, current = total + (current or 1) * number, 0.0
        elif multiplies and current:
            current *= number
        else:
            current += number
    return f"{total + current:g}"


def _is_past(word: str, stem: str) -> bool:
    return word.endswith("ed") and word != stem


def _is_present(word: str, stem: str) -> bool:
    return word.startswith(stem) and word.removeprefix(stem) in _PRESENT_ENDINGS


def _caseless(words: Iterable[str]) -> frozenset[str]:
    """Words of scripts without capitals, where a name looks like any word; long runs in pairs of characters."""
    caseless = (word for word in words if word[0].isalpha() and word.upper() == word.lower())
    return frozenset(chain.from_iterable(map(terms, caseless)))
