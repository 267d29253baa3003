"""Phone numbers: international ones by the plans of their countries (phonenumberslite), others by their form.

A number without a country is one where it is written as phones are, or where the words before it say so; an order
number of the same length is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import phonenumbers
from phonenumbers import NumberParseException

from memory_app.language.redaction.digits import is_fraction
from memory_app.language.redaction.kinds import PrivateKind, Span

_GAP = r"[ \u00a0\u2009\u202f.\-\u2010-\u2015/()\u200b-\u200d\u2060]{0,3}"
_INTERNATIONAL = re.compile(rf"(?<![A-Za-z0-9_+])(?:\+|＋|00{_GAP})(?=[1-9(]){_GAP}[1-9](?:{_GAP}\d){{6,14}}")
_CALLED = re.compile(
    r"(?<![^\W_])(?:(?:tele)?(?:ph|f)one?(?:nummer|number)?|telefon(?:nummer|o)?|téléphone|teléfono|telefone|telefoon(?:nummer)?"
    r"|tel|mobile|mobil(?:nummer)?|móvil|celular|cellulare|portable|cell|handy(?:nummer)?|landline|fax|whatsapp|signal|sms"
    r"|(?:call|text|ring|phone|reach|dial)(?: (?:me|us|him|her|them))?|(?:my|his|her|their|our) number"
    r"|(?:meine|seine|ihre) nummer|mi número|mon numéro|meu número|il mio numero|mijn nummer"
    r"|appelle[zr]?(?:[- ]moi)?|llámame|ruf(?:en sie)? mich|电话|電話|手机|전화)\.?"
    r"(?:[ \t]{1,2}(?:me|us|number|no|nr|num|is|at|on|under|unter|an|ist|es|est|é|è|au|al|to|a|nummer|número|numéro"
    r"|numero))"
    r"{0,4}\.?[\s:=#]{0,4}"
    rf"(\(?\+?\d(?:{_GAP}\d){{6,14}})(?![\d\w])",
    re.IGNORECASE,
)
_AMERICAN = re.compile(
    r"(?<![\w.+(-])(?:1[-. ])?(?:\(\d{3}\)[ -]?\d{3}[-. ]\d{4}|\d{3}(?P<sep>[-.])\d{3}(?P=sep)\d{4})(?![\w-]|\.\d)"
)
_WITH_ZERO = re.compile(r"(?<![A-Za-z0-9_.,:/+-])\(?0\d{1,5}\)?(?:[ /-]{1,3}\d{2,8}){1,5}(?![\w]|[.,:]\d)")
_DATE = re.compile(
    r"\d{1,2}(?P<sep>[-/.])\d{1,2}(?P=sep)\d{2,4}(?!\d|[-/.]\d)|\d{1,2} \d{1,2} (?:19|20)\d\d(?!\d)"
    r"|\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d)"
)
_REGIONS = ("GB", "DE", "FR", "NL", "BE", "CH", "AT", "AU", "JP")
"""Countries in which numbers are written with a 0 before the area."""


def find_phones(text: str) -> Iterator[Span]:
    """Yield the parts of a text that are phone numbers."""
    for match in _INTERNATIONAL.finditer(text):
        end = _international_end(match)
        if end is not None:
            yield Span(match.start(), match.start() + end, PrivateKind.PHONE)
    for match in _CALLED.finditer(text):
        # A day on which somebody is to be called is none.
        if not _DATE.match(match[1]):
            yield Span(match.start(1), match.end(1), PrivateKind.PHONE)
    for match in _AMERICAN.finditer(text):
        yield Span(match.start(), match.end(), PrivateKind.PHONE)
    for match in _WITH_ZERO.finditer(text):
        if not _DATE.match(match[0]) and not is_fraction(text, match.start()) and _is_national(match[0]):
            yield Span(match.start(), match.end(), PrivateKind.PHONE)


def _international_end(match: re.Match[str]) -> int | None:
    """Where the number ends in the match: numbers that follow it look like more groups of it."""
    text = match[0]
    has_plus = text[0] in "+＋"
    ends = [group.end() for group in re.finditer(r"\d+", text)]
    # A group that the pattern cut is no end.
    if match.string[match.end() : match.end() + 1].isdigit():
        ends = ends[:-1]
    for is_number in (phonenumbers.is_valid_number, phonenumbers.is_possible_number):
        for end in reversed(ends):
            written = text[:end] if has_plus else "+" + text[2:end].lstrip()
            if _parses(written, None, is_number):
                return end
        # 00 begins order numbers, too: only a number that was given out counts.
        if not has_plus:
            break
    return None


def _is_national(written: str) -> bool:
    return any(_parses(written, region, phonenumbers.is_valid_number) for region in _REGIONS)


def _parses(written: str, region: str | None, is_number: Callable[[phonenumbers.PhoneNumber], bool]) -> bool:
    try:
        return bool(is_number(phonenumbers.parse(written, region)))
    except NumberParseException:
        return False
