"""Take private parts out of texts, and count them by kind. What was taken out is neither kept nor logged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from memory_app.language.redaction.accounts import find_ibans
from memory_app.language.redaction.cards import find_cards
from memory_app.language.redaction.digits import with_plain_digits
from memory_app.language.redaction.kinds import PrivateKind, Redaction, Span
from memory_app.language.redaction.mail import find_addresses
from memory_app.language.redaction.national_ids import find_national_ids
from memory_app.language.redaction.passwords import find_passwords
from memory_app.language.redaction.phones import find_phones
from memory_app.language.redaction.tokens import find_tokens

EMPTY = "[redacted]"
"""Stands for a text of which nothing else is left."""

_FINDERS: Mapping[PrivateKind, Callable[[str], Iterator[Span]]] = {
    PrivateKind.KEY: find_tokens,
    PrivateKind.IBAN: find_ibans,
    PrivateKind.CARD: find_cards,
    PrivateKind.NATIONAL_ID: find_national_ids,
    PrivateKind.EMAIL: find_addresses,
    PrivateKind.PASSWORD: find_passwords,
    PrivateKind.PHONE: find_phones,
}
_RANK = {kind: rank for rank, kind in enumerate(PrivateKind)}
# Without a digit or an @ there are only passwords in words.
_MAY_HOLD = re.compile(
    r"[\d@]|pass|kenn|pwd|phrase secr"
    r"|contrase|senha|palavra|parola|wachtwoord|пароль|密|パスワード|비밀번호|[([]at[)\]]|key",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its private parts, and how many of each kind were taken out."""

    text: str
    counts: Mapping[PrivateKind, int]


@dataclass(frozen=True, slots=True)
class Rules:
    """What is done with which kinds; the default does nothing."""

    redaction: Redaction = Redaction.OFF
    kinds: frozenset[PrivateKind] = frozenset(PrivateKind)

    @property
    def is_on(self) -> bool:
        return self.redaction is not Redaction.OFF and bool(self.kinds)


NO_RULES = Rules()


def mark_of(kind: PrivateKind) -> str:
    """What stands in the place of a part that is masked."""
    return f"[{kind.value.replace('_', ' ')}]"


def redact(text: str, rules: Rules) -> Redacted:
    """The text without the parts that the rules name. Takes time in proportion to the text, whatever stands in it."""
    if not rules.is_on:
        return Redacted(text, {})
    found = private_parts(text, rules.kinds)
    if not found:
        return Redacted(text, {})
    counts = Counter(span.kind for span in found)
    if rules.redaction is Redaction.MASK:
        return Redacted(_masked(text, found), counts)
    return Redacted(_dropped(text, found), counts)


def _masked(text: str, found: Iterable[Span]) -> str:
    parts, at = [], 0
    for span in found:
        parts += [text[at : span.start], mark_of(span.kind)]
        at = span.end
    return "".join([*parts, text[at:]])


def _dropped(text: str, found: Iterable[Span]) -> str:
    parts, at = [], 0
    for span in found:
        before = text[at : span.start]
        # One of the two spaces around it goes as well, which would show where it stood.
        if text[span.end : span.end + 1] in ("", " "):
            before = before.removesuffix(" ")
        parts.append(before)
        at = span.end
    remainder = "".join([*parts, text[at:]])
    return remainder if remainder.strip() else EMPTY


def private_parts(text: str, kinds: Iterable[PrivateKind]) -> list[Span]:
    """The private parts of a text in their order, none within another: parts that overlap are one."""
    if _MAY_HOLD.search(text) is None:
        return []
    plain = with_plain_digits(text)
    found = sorted(
        chain.from_iterable(_FINDERS[kind](plain) for kind in kinds),
        key=lambda span: (span.start, _RANK[span.kind]),
    )
    apart: list[Span] = []
    for span in found:
        if not apart or span.start >= apart[-1].end:
            apart.append(span)
            continue
        last = apart[-1]
        kind = min(last.kind, span.kind, key=_RANK.__getitem__)
        apart[-1] = Span(last.start, max(last.end, span.end), kind)
    return apart
