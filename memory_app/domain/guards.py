"""Why two similar texts must not become one: the small words that turn a meaning round.

A cosine hardly sees a number, a negation or a name, so these are compared word for word. In doubt the texts are
kept apart: two rows too many are harmless, a wrong merge loses what somebody said.
"""

from __future__ import annotations


def conflicting(a: str, b: str) -> str | None:
    """The reason why ``a`` and ``b`` say different things although they look alike, or None. Symmetric."""
    raise NotImplementedError
