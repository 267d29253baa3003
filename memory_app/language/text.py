"""Clean and normalise text, make slugs of it, and take it apart into search terms.

Everything here is pure and takes any string. The analyser decides word by word, never by guessing the
language of a text: a word must become the same term in a long message and in a short question, or it is lost.
Changing what `terms` or `normalise` return means raising their version, because rows carry the result.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, pairwise

import Stemmer

from memory_app.errors import InvalidInput
from memory_app.language.calendar import MONTHS, WEEKDAYS
from memory_app.language.characters import DECORATION, PUNCTUATION_TWINS, UNCOMPARED, UNSTORABLE
from memory_app.language.table import words_of_all

NORMALISER_VERSION = 1
"""Part of every canonical key; raise it when `normalise` changes."""

TERM_IDS = 1_000_000_000
"""Term ids run from 1 to this, the largest dimension a `sparsevec` takes."""

# --- cleaning and canonical form ----------------------------------------------------------------------------

_SENTENCE_END = " .,;:!?…。、，！？؟،।॥"


def clean(text: str) -> tuple[str, bool]:
    """Return ``text`` as Postgres and JSON can hold it (NFC), and whether characters were removed.

    NUL, other control characters except tab and line ends, and lone surrogates are removed.
    """
    storable = UNSTORABLE.sub("", text)
    return unicodedata.normalize("NFC", storable), storable != text


def clean_given(value: object, *, field: str) -> tuple[str, bool]:
    """`clean` for what a caller gave as ``field``; `InvalidInput` unless it is text."""
    if not isinstance(value, str):
        raise InvalidInput(f"{field}: must be text, not {type(value).__name__}", field=field)
    return clean(value)


def normalise(text: str) -> str:
    """Return the form in which two statements are compared for sameness.

    Case, width, line breaks, kinds of quotes and dashes and the punctuation at the end do not count. Numbers,
    signs, negations and letters of any script do. Applying it twice changes nothing.
    """
    if text.isascii():
        # The rest would change nothing of it.
        folded = " ".join(UNSTORABLE.sub("", text).casefold().split())
        return folded.rstrip(_SENTENCE_END) or folded
    folded = UNCOMPARED.sub("", UNSTORABLE.sub("", text))
    # Twice: lower case of a compatibility character may be one again, and the second run must change nothing.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", folded).casefold())
    folded = " ".join(folded.translate(PUNCTUATION_TWINS).split())
    return folded.rstrip(_SENTENCE_END) or folded


def canonical_key(text: str) -> str:
    """Return 32 hexadecimal digits, equal for texts that are the same after `normalise` of this version."""
    keyed = f"{NORMALISER_VERSION}:{normalise(text)}"
    return blake2b(keyed.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


# --- slugs -------------------------------------------------------------------------------------------------

_SYMBOL_WORDS = re.compile(r"(?<=\w)(\++|#+)")
_SILENT = re.compile(r"['’`´.]")


def slug(label: str) -> str:
    """Return ``label`` in lower case, without punctuation, words joined by ``_``; letters of every script stay.

    A ``+`` or ``#`` after a letter is spelled out, so that C, C++ and C# stay three things.
    Raises `InvalidInput` when no letter or digit is left.
    """
    # Twice, as in `normalise`.
    folded = unicodedata.normalize("NFKC", UNCOMPARED.sub("", label)).lower()
    folded = unicodedata.normalize("NFKC", folded)
    spelled = _SYMBOL_WORDS.sub(_symbol_name, folded)
    words = "".join(map(_name_character, _SILENT.sub("", spelled))).split()
    # Combining marks alone would pass as words, but nobody sees them.
    if not any(map(str.isalnum, "".join(words))):
        raise InvalidInput("label: needs at least one letter or digit", field="label")
    return "_".join(words)


def _symbol_name(run: re.Match[str]) -> str:
    return run[0].replace("+", "plus").replace("#", "sharp")


def _name_character(character: str) -> str:
    """``character`` if it may stand in a slug, else a space; combining marks are part of letters."""
    return character if character.isalnum() or _is_mark(character) else " "


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


# --- search terms -------------------------------------------------------------------------------------------

STOP_WORDS = words_of_all(lambda language: language.stop_words)
FIRST_PERSON = words_of_all(lambda language: language.first_person)
SECOND_PERSON = words_of_all(lambda language: language.second_person)
PERSONS = FIRST_PERSON | SECOND_PERSON
_UNINDEXED = STOP_WORDS - PERSONS
"""Who asks "what did I tell you" looks for what was said in the first person: these words are searched for.
(Leaving them out cost 2 points of recall at ten on long chats with an assistant, and won nothing on others.)"""

ENDING = 200
"""Characters at the end of a text in which a question mark makes it a question."""


_MARKS = "".join(filter(_is_mark, map(chr, range(0x300, 0x10000))))
"""The combining marks, which ``\\w`` leaves out although words of Hindi and Arabic hold them."""

_HAN_RANGES = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED = f"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\uac00-\ud7af{_HAN_RANGES}"
"""Thai, Lao, Burmese, Khmer, Kana, Hangul, Han: cut into pairs, as words are not set apart cleanly."""
_LETTERS = rf"(?:(?![{_UNSPACED}])[\w{_MARKS}])+"
_HAN = re.compile(f"[{_HAN_RANGES}]")

# In this order, since the first that matches counts: a date is no number, and an address is no row of words.
_TOKEN = re.compile(
    "|".join(
        (
            r"(?P<address>(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+)",
            r"(?P<date>(?<![\w-])\d{4}-\d{1,2}-\d{1,2}(?![\d-]))",
            r"(?P<number>(?<!\w)\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)|\d+(?:[.:/]\d+)+)",
            r"(?P<version>(?<!\w)[vV]\d+(?:\.\d+)+)",
            r"(?P<language>(?<!\w)[a-zA-Z](?:\+\+|#)(?!\w))",
            f"(?P<unspaced>[{_UNSPACED}]+)",
            f"(?P<word>{_LETTERS}(?:'{_LETTERS})*)",
            "(?P<symbol>[\u2190-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff])",
        )
    )
)
_PART = re.compile(r"\d+|[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")


def terms(text: str) -> Counter[str]:
    """Count how often each search term occurs in ``text``.

    Words are folded and stemmed (English for Latin letters, the script's own language for Cyrillic, Greek,
    Arabic and Devanagari); scripts without spaces give pairs of characters; numbers, dates, addresses and
    code names are kept whole as well as in parts; an emoji is a term.
    """
    return Counter(_terms(text))


def _terms(text: str) -> Iterator[str]:
    folded = unicodedata.normalize("NFKC", text).translate(PUNCTUATION_TWINS)
    for match in _TOKEN.finditer(folded):
        yield from _TERMS_BY_KIND[str(match.lastgroup)](match[0])


def _terms_of_all(words: Iterable[str]) -> Iterator[str]:
    return chain.from_iterable(map(_word_terms, words))


def _whole_term(token: str) -> Iterable[str]:
    return (token.lower(),)


def _version_terms(token: str) -> Iterable[str]:
    """ "v3.2" as "3.2", which is how others write it."""
    return (token[1:],)


def _address_terms(token: str) -> Iterable[str]:
    return (token.lower(), *_terms_of_all(_PART.findall(token)))


def _unspaced_terms(run: str) -> Iterator[str]:
    """Pairs of neighbouring characters, and single Chinese characters, which are words of their own."""
    if len(run) == 1:
        yield run
        return
    yield from map("".join, pairwise(run))
    yield from _HAN.findall(run)


def _number_terms(token: str) -> Iterator[str]:
    whole = _digits(token.replace(",", ""))
    yield whole
    # A time or a fraction; the parts of "3.14" mean nothing by themselves.
    if ":" in whole or "/" in whole:
        yield from map(_without_zeros, re.split("[:/.]", whole))


def _without_zeros(digits: str) -> str:
    return digits.lstrip("0") or "0"


def _date_terms(token: str) -> Iterator[str]:
    """2024-03-15, and its year, its month's name and its day."""
    year, month, day = map(int, token.split("-"))
    yield f"{year:04}-{month:02}-{day:02}"
    yield from (str(year), str(day))
    # The pattern knows digits only: "2024-13-45" has no month.
    if 1 <= month <= 12:
        yield from _word_terms(MONTHS[month - 1])


def _digits(token: str) -> str:
    """Digits of any script as 0–9."""
    if token.isascii():
        return token
    return "".join(map(_digit, token))


def _digit(character: str) -> str:
    return str(unicodedata.decimal(character)) if character.isdecimal() else character


# The words of a language repeat: most come from here, past the folding and the lock of the stemmers.
@lru_cache(maxsize=65_536)
def _word_terms(word: str) -> tuple[str, ...]:
    """Terms of one word; a compound (snake_case, camelCase, O'Brien) gives its whole and its parts."""
    parts = _compound_parts(word)
    if len(parts) > 1:
        return (_fold(word).strip("_"), *_terms_of_all(parts))
    folded = _fold(word.strip("_"))
    if "'" in folded:
        return _apostrophe_terms(folded)
    if not folded or folded in _UNINDEXED:
        return ()
    # Before the stemmers, which would take the end off "3rd".
    if folded[0].isdigit():
        return (_numeral(folded),)
    return (_stem(folded),)


def _compound_parts(word: str) -> list[str]:
    """ "snake_case" and "camelCase" as their words."""
    return list(filter(None, _CAMEL.sub("_", word).split("_")))


def _numeral(word: str) -> str:
    """ "007" as "7", "2nd" as "2"."""
    ordinal = _ORDINAL.fullmatch(word)
    return _without_zeros(_digits(ordinal[1] if ordinal else word))


def _apostrophe_terms(folded: str) -> tuple[str, ...]:
    """caroline's → caroline, don't → nothing, o'brien → obrien, o, brien."""
    head, _, tail = folded.partition("'")
    if tail == "t" and head.endswith("n"):
        return ()
    if tail in _CONTRACTED_ENDINGS:
        return _word_terms(head)
    # A name. People write it in one word as well, and search for a part of it.
    parts = folded.split("'")
    return ("".join(parts), *_terms_of_all(parts))


_CONTRACTED_ENDINGS = frozenset({"s", "t", "re", "ve", "ll", "d", "m"})

_TERMS_BY_KIND: Mapping[str, Callable[[str], Iterable[str]]] = {
    "address": _address_terms,
    "date": _date_terms,
    "number": _number_terms,
    "version": _version_terms,
    "language": _whole_term,
    "unspaced": _unspaced_terms,
    "word": _word_terms,
    "symbol": _whole_term,
}
"""Group of `_TOKEN` to the terms of what it matched."""


def _fold(word: str) -> str:
    """Lower case without accents and vowel points; marks that are letters (Hindi, Thai) stay."""
    lowered = word.casefold()
    if lowered.isascii():
        return lowered
    # Taken apart, accents are characters of their own, which can be left out.
    apart = unicodedata.normalize("NFKD", lowered)
    return unicodedata.normalize("NFC", DECORATION.sub("", apart))


_STEMMERS = {name: Stemmer.Stemmer(name, 0) for name in ("english", "russian", "greek", "arabic", "hindi")}
_STEMMING = threading.Lock()  # a Stemmer is not re-entrant; the cache in front keeps the lock rare


_SCRIPTS = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u04ff", "russian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
)
"""First and last letter of a script, and whose endings its words have; all others are taken for English."""


def _stem(folded: str) -> str:
    stemmers = (name for first, last, name in _SCRIPTS if first <= folded[0] <= last)
    with _STEMMING:
        return str(_STEMMERS[next(stemmers, "english")].stemWord(folded)) or folded


@lru_cache(maxsize=65_536)
def term_id(term: str) -> int:
    """Return a stable number of 1 to `TERM_IDS` for ``term``: its dimension in the keyword vectors."""
    # Not `hash`, which differs from process to process, and the ids are stored.
    digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % TERM_IDS + 1


# --- what of a turn is indexed ------------------------------------------------------------------------------


def indexed_text(speaker: str, at: datetime, text: str) -> str:
    """Return what is analysed for a turn: who said it, the day as questions word it, and the text."""
    return f"{speaker}, {WEEKDAYS[at.weekday()]} {at.day} {MONTHS[at.month - 1]} {at.year}: {text}"


def embedded_text(speaker: str, at: datetime, text: str) -> str:
    """Return what is embedded for a turn: the same without its code, which would outweigh the words about it.

    Code is matched by its words instead.
    """
    return indexed_text(speaker, at, prose(text))


_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


def prose(text: str) -> str:
    """Return ``text`` without fenced blocks of code; as it is, if nothing would be left."""
    if "```" not in text:
        return text
    rest = _CODE.sub(" ", text)
    return rest if rest.strip() else text


# --- what a text asks ---------------------------------------------------------------------------------------

_QUESTION_MARK = re.compile("[?\uff1f\u061f\u037e]")
_FIRST_PERSON = re.compile(rf"\b(?:{'|'.join(sorted(FIRST_PERSON))})\b", re.IGNORECASE)


def asks(text: str) -> bool:
    """Whether ``text`` ends by asking something: a question seldom holds the answer to another."""
    return _QUESTION_MARK.search(text[-ENDING:]) is not None


def is_first_person(query: str) -> bool:
    """Whether who asks speaks of themselves ("where do I live"), in words of a known language."""
    return _FIRST_PERSON.search(query) is not None
