"""Whether a text holds a password, a key, a card number or the like, which nothing may remember.

`holds_secret` is the filter of both extractors, the rules and the language models. In doubt a text counts as a secret:
a sentence too few in memory does less harm than a password in it. `told_secrets` is for what a caller asks to have
remembered: it finds only what is spelled out, since the caller is refused and is told why.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from memory_app.language.redaction.kinds import PrivateKind
from memory_app.language.redaction.redact import private_parts
from memory_app.language.table import alternatives

SECRET_KINDS = frozenset({PrivateKind.CARD, PrivateKind.KEY, PrivateKind.NATIONAL_ID, PrivateKind.PASSWORD})
"""Private parts that no memory may hold. The others, such as a phone number, may be what is to be remembered."""

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
    if _FORM.search(text) or private_parts(text, SECRET_KINDS):
        return True
    names = list(_NAME.finditer(text))
    if not names:
        return False
    is_place = all(_PLACE.match(text, name.end()) for name in names)
    return not is_place or _SPELLED.search(text) is not None


def told_secrets(text: str, kinds: Collection[PrivateKind] = SECRET_KINDS) -> tuple[PrivateKind, ...]:
    """The kinds of secrets that ``text`` spells out, each once, in the order of their names."""
    return tuple(sorted({part.kind for part in private_parts(text, kinds)}))
