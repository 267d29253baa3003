"""Addresses of e-mail, found from their @, so that no long run of letters is tried again at each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_app.language.redaction.kinds import PrivateKind, Span

_LOCAL_LIMIT = 64  # RFC 5321, 4.5.3.1.1
_LOCAL = re.compile(r"[\w.!#$%&'*+/=?^`{|}~-]")
_HOST = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_WRITTEN_OUT = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64} ?(?:\[at\]|\(at\)) ?(?:[\w-]{1,63} ?(?:\.|\[dot\]|\(dot\)|\[punkt\]|\(punkt\)) ?){1,4}"
    r"[a-z]{2,24}\b",
    re.IGNORECASE,
)


def find_addresses(text: str) -> Iterator[Span]:
    """Yield the addresses of a text, also those written with (at) and (dot)."""
    at = text.find("@")
    while at >= 0:
        start = _local_start(text, at)
        host = _HOST.match(text, at + 1)
        if host is not None and start < at and not _is_repository(text, start, at, host.end()):
            yield Span(start, host.end(), PrivateKind.EMAIL)
        at = text.find("@", at + 1)
    if "(at)" in text.lower() or "[at]" in text.lower():
        for match in _WRITTEN_OUT.finditer(text):
            yield Span(match.start(), match.end(), PrivateKind.EMAIL)


def _local_start(text: str, at: int) -> int:
    start = at
    while start > 0 and at - start < _LOCAL_LIMIT and _LOCAL.match(text[start - 1]):
        start -= 1
    # Quotes, dots and slashes before it belong to the sentence.
    while start < at and not (text[start].isalnum() or text[start] in "_+"):
        start += 1
    return start


def _is_repository(text: str, start: int, at: int, end: int) -> bool:
    """``git@github.com:owner/name`` is where code stands, and nobody's address."""
    return text[start:at] == "git" and text[end : end + 1] == ":"
