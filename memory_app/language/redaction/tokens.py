"""Keys and tokens of services, by the beginnings and lengths that their makers gave them so that they can be found."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_app.language.redaction.kinds import PrivateKind, Span

_TOKEN = re.compile(
    r"(?<![A-Za-z0-9_])(?:"
    r"(?:AKIA|ASIA)[A-Z0-9]{16}"  # Amazon Web Services
    r"|sk-(?:ant-|proj-|svcacct-|or-)?[\w-]{20,250}"  # OpenAI, Anthropic, OpenRouter
    r"|(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,250}|whsec_[A-Za-z0-9+/=]{20,100}"  # Stripe
    r"|gh[pousr]_[A-Za-z0-9]{30,250}|github_pat_\w{22,250}"  # GitHub
    r"|gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat)-[\w-]{20,100}"  # GitLab
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,250}|xapp-[A-Za-z0-9-]{10,250}"  # Slack
    r"|AIza[\w-]{35}|ya29\.[\w-]{20,250}|GOCSPX-[\w-]{20,50}"  # Google
    r"|hf_[A-Za-z0-9]{30,60}|r8_[A-Za-z0-9]{30,60}|gsk_[A-Za-z0-9]{40,60}|xai-[A-Za-z0-9]{40,100}"  # model hosts
    r"|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,250}|dckr_pat_[\w-]{20,50}"  # package registries
    r"|SG\.[\w-]{16,32}\.[\w-]{32,64}|key-[0-9a-f]{32}"  # SendGrid, Mailgun
    r"|(?:AC|SK)[0-9a-f]{32}"  # Twilio
    r"|\d{8,10}:AA[\w-]{32,34}"  # Telegram
    r"|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|sq0(?:atp|csp)-[\w-]{22,43}"  # Shopify, Square
    r"|dop_v1_[0-9a-f]{64}|lin_api_[A-Za-z0-9]{40}|ntn_[A-Za-z0-9]{40,60}|secret_[A-Za-z0-9]{40,50}"
    r"|mem_[\w-]{30,60}_[\w-]{4,12}"  # of this product
    r"|eyJ[\w-]{8,4000}\.eyJ[\w-]{8,4000}\.[\w-]{8,2000}"  # JSON Web Token
    r")(?![A-Za-z0-9])"
)
_BEARER = re.compile(r"\b(?:Bearer|Basic)\s{1,3}([A-Za-z0-9+/_.=~-]{16,4000})", re.IGNORECASE)
_NAMED = re.compile(
    r"(?<![A-Za-z])(?:api|access|auth|secret|private|client|refresh|session|signing|encryption|service)"
    r"[ _-]?(?:api[ _-]?)?(?:access[ _-]?)?(?:key|token|secret)(?:[ _-]?id)?[\"'`]?"
    r"\s{0,3}(?::=|=>|=|:|\bis\b|\bist\b|\best\b|\bes\b|\bè\b|\bé\b)\s{0,3}[\"'`]?([A-Za-z0-9+/_.=~-]{12,4000})",
    re.IGNORECASE,
)
_BLOCK_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_END = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_URL_PASSWORD = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/@:]{0,100}:([^\s/@]{3,200})@", re.IGNORECASE)


def find_tokens(text: str) -> Iterator[Span]:
    """Yield keys and tokens: known forms, named ones, whole blocks of private keys, passwords in addresses."""
    for match in _TOKEN.finditer(text):
        yield Span(match.start(), match.end(), PrivateKind.KEY)
    for pattern in (_BEARER, _NAMED):
        for match in pattern.finditer(text):
            if _is_random(match[1]):
                yield Span(match.start(1), match.end(1), PrivateKind.KEY)
    for match in _URL_PASSWORD.finditer(text):
        yield Span(match.start(1), match.end(1), PrivateKind.PASSWORD)
    yield from _blocks(text)


def _blocks(text: str) -> Iterator[Span]:
    at = 0
    while (begin := _BLOCK_BEGIN.search(text, at)) is not None:
        end = _BLOCK_END.search(text, begin.end())
        # Without its end line: what follows may be the key all the same.
        at = len(text) if end is None else end.end()
        yield Span(begin.start(), at, PrivateKind.KEY)


def _is_random(value: str) -> bool:
    """Whether it may be a key, and not the name of a variable or a word."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))
