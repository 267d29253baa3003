"""International bank account numbers (ISO 13616), by the check digits and the format of their country."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stdnum import iban
from stdnum.iso7064 import mod_97_10

from memory_app.language.redaction.digits import SEPARATORS
from memory_app.language.redaction.kinds import PrivateKind, Span

_SHORTEST = 15
_CANDIDATE = re.compile(rf"(?<![A-Za-z0-9])[A-Za-z]{{2}}\d{{2}}(?:[{SEPARATORS}]?[A-Za-z0-9]){{11,30}}")
_ALNUM = re.compile(r"[A-Za-z0-9]")


def find_ibans(text: str) -> Iterator[Span]:
    """Yield the parts of a text that are account numbers, in groups or not, in capitals or not."""
    at = 0
    while (candidate := _CANDIDATE.search(text, at)) is not None:
        end = _end(text, candidate)
        if end is None:
            at = candidate.start() + 2
            continue
        yield Span(candidate.start(), end, PrivateKind.IBAN)
        at = end


def _end(text: str, candidate: re.Match[str]) -> int | None:
    """Where the number ends: words that follow it look like more groups of it."""
    characters = list(_ALNUM.finditer(candidate[0]))
    for length in range(len(characters), _SHORTEST - 1, -1):
        end = candidate.start() + characters[length - 1].end()
        # A number does not end within a word.
        if _ALNUM.match(text, end):
            continue
        number = "".join(character[0] for character in characters[:length]).upper()
        # The check digits first: the formats of the countries take longer to look up.
        if mod_97_10.is_valid(number[4:] + number[:4]) and iban.is_valid(number):
            return end
    return None
