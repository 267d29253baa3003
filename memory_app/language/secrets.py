"""Whether a text holds a password, a key, a card number or the like, which no extractor may remember.

One filter for the rules and for language models. In doubt a text counts as a secret: a sentence too few in memory does
less harm than a password in it.
"""

from __future__ import annotations

import re

from memory_app.language.table import alternatives

_NAME = re.compile(rf"\b(?:{alternatives(lambda language: language.secret_names)})\b", re.IGNORECASE)
_PLACE = re.compile(rf"\s+(?:{alternatives(lambda language: language.secret_places)})", re.IGNORECASE)
_SPELLED = re.compile(r"[\d:=\"“”«»]")
"""Signs with which a secret may be written out."""
_FORM = re.compile(
    r"\b(?:\d[ -]?){13,19}\b"  # card numbers have 13 to 19 digits (ISO/IEC 7812)
    r"|\b(?:sk|pk|ghp|gho|xox[abp]|AKIA)[-_]?\w{12,}",  # prefixes of keys: OpenAI, Stripe, GitHub, Slack, AWS
    re.IGNORECASE,
)


def holds_secret(text: str) -> bool:
    """Whether ``text`` names a secret or contains what looks like a card number or a key.

    Where a secret is kept ("the wifi password is on the fridge") is none.
    """
    if _FORM.search(text):
        return True
    names = list(_NAME.finditer(text))
    if not names:
        return False
    is_place = all(_PLACE.match(text, name.end()) for name in names)
    return not is_place or _SPELLED.search(text) is not None
