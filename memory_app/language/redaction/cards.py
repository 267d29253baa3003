"""Numbers of payment cards: issuer and length by ISO/IEC 7812, check digit by Luhn."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stdnum import luhn

from memory_app.language.redaction.digits import is_fraction, runs
from memory_app.language.redaction.kinds import PrivateKind, Span

_SHORTEST = 14
_LONGEST = 19

# First and last prefix of an issuer, and the lengths of its numbers. Without the 13 digits that Visa gave up long ago:
# every tenth product code (EAN-13) from Germany would pass for a card.
_ISSUERS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("4", "4", (16, 19)),  # Visa
    ("51", "55", (16,)),  # Mastercard
    ("2221", "2720", (16,)),  # Mastercard
    ("34", "34", (15,)),  # American Express
    ("37", "37", (15,)),  # American Express
    ("6011", "6011", (16, 19)),  # Discover
    ("644", "659", (16, 19)),  # Discover
    ("300", "305", (14, 16)),  # Diners Club
    ("36", "36", (14, 16)),  # Diners Club
    ("38", "39", (14, 16)),  # Diners Club
    ("3528", "3589", (16,)),  # JCB
    ("62", "62", (16, 17, 18, 19)),  # UnionPay
    ("50", "50", (16, 18, 19)),  # Maestro, Elo
    ("56", "58", (16, 18, 19)),  # Maestro
    ("6304", "6304", (16, 18, 19)),  # Maestro
    ("636", "636", (16,)),  # Elo
    ("67", "67", (16, 18, 19)),  # Maestro
    ("2200", "2204", (16,)),  # Mir
    ("81", "82", (16,)),  # RuPay
    ("9792", "9792", (16,)),  # Troy
)


_FIRST_DIGITS = frozenset(low[0] for low, _, _ in _ISSUERS)


def find_cards(text: str) -> Iterator[Span]:
    """Yield the parts of a text that are numbers of cards."""
    for groups in runs(text):
        end = 0
        for place, group in enumerate(groups):
            # The decimals of a number pass the check now and then.
            if group.start() < end or is_fraction(text, group.start()):
                continue
            end = _card_end(text, groups, place) or end
            if group.start() < end:
                yield Span(group.start(), end, PrivateKind.CARD)


def _card_end(text: str, groups: list[re.Match[str]], first: int) -> int | None:
    """Where the longest card ends that begins with the group ``first``; None: none does."""
    if groups[first][0][0] not in _FIRST_DIGITS:
        return None
    size = len(groups[first][0])
    digits, end = "", None
    for group in groups[first : first + _LONGEST]:
        if not _goes_on(text, group, size=size, is_first=not digits):
            break
        digits += group[0]
        if len(digits) > _LONGEST:
            break
        if _is_card(digits):
            end = group.end()
    return end


def _goes_on(text: str, group: re.Match[str], *, size: int, is_first: bool) -> bool:
    """Whether the group may belong to the same card: as cards are grouped, by three digits or more or each alike."""
    if is_first:
        return True
    length = len(group[0])
    # Between digits a dot is mostly that of a decimal or of a version.
    if text[group.start() - 1] == ".":
        return 3 <= size <= 7 and 3 <= length <= 7
    return length >= 3 if size >= 3 else length == size


def _is_card(digits: str) -> bool:
    if len(digits) < _SHORTEST:
        return False
    has_issuer = any(
        low <= digits[: len(low)] <= high and len(digits) in lengths for low, high, lengths in _ISSUERS
    )
    # The same digit throughout is a placeholder.
    return has_issuer and len(set(digits)) > 1 and bool(luhn.is_valid(digits))
